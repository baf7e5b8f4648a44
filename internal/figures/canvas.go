package main

import (
	"fmt"
	"html"
	"strings"
)

// Sizes of text in pixels: of a line, of a character on average in the widest font that the
// picture may be shown with, and from a line's middle to its base.
const (
	lineHeight     = 17
	characterWidth = 7.2
	boldWidth      = 7.7
	halfLetter     = 5
)

// textWidth is the width of the longest line of a text.
func textWidth(text string) (width int) {
	for _, line := range strings.Split(text, "\n") {
		each := characterWidth
		if rest, bold := strings.CutPrefix(line, "*"); bold {
			line, each = rest, boldWidth
		}
		width = max(width, int(float64(len([]rune(line)))*each))
	}
	return width
}

// canvas collects the elements of a picture.
type canvas struct {
	width, height int
	body          strings.Builder
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.body, format+"\n", args...) }

// document is the whole picture. Colours suit light and dark pages: the ground is white.
func (c *canvas) document(title string) []byte {
	return []byte(fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">
<style>
text { font: 13px 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; fill: #1b1f24; }
.small { font-size: 12px; fill: #444c56; }
.bold { font-weight: bold; }
</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 z" fill="#444c56"/></marker></defs>
<rect width="%d" height="%d" fill="#ffffff"/>
%s</svg>
`, c.width, c.height, c.width, c.height, html.EscapeString(title), c.width, c.height, c.body.String()))
}

// text writes lines around a middle. The first line is bold if it has a mark, "*", before it.
func (c *canvas) text(x, y int, text, class string) {
	lines := strings.Split(text, "\n")
	top := y - (len(lines)-1)*lineHeight/2
	for i, line := range lines {
		kind := class
		if rest, bold := strings.CutPrefix(line, "*"); bold {
			line, kind = rest, "bold"
		}
		c.add(`<text x="%d" y="%d" text-anchor="middle" class="%s">%s</text>`, x, top+i*lineHeight+halfLetter, kind, html.EscapeString(line))
	}
}

// label writes lines on a white ground, which hides the lines below.
func (c *canvas) label(x, y int, text string) {
	w, h := textWidth(text)*12/13+6, (strings.Count(text, "\n")+1)*lineHeight
	c.add(`<rect x="%d" y="%d" width="%d" height="%d" fill="#ffffff"/>`, x-w/2, y-h/2, w, h)
	c.text(x, y, text, "small")
}

func (c *canvas) line(x1, y1, x2, y2 int, dashed, both bool) {
	more := ""
	if dashed {
		more += ` stroke-dasharray="5 4"`
	}
	if both {
		more += ` marker-start="url(#head)"`
	}
	c.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#444c56" stroke-width="1.4" marker-end="url(#head)"%s/>`, x1, y1, x2, y2, more)
}
