package report

import (
	"fmt"
	"image/color"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgpdf"

	plotdraw "github.com/heddle-dmt/heddle/experiments/plots/draw"
)

// The page is A4, wide.
const (
	pageWidth  = 297 * vg.Millimeter
	pageHeight = 210 * vg.Millimeter
	pageMargin = 14 * vg.Millimeter
	textWidth  = pageWidth - 2*pageMargin
	bodySize   = 9
	cellGap    = 7
	// leastSize is the size of letters below which a table's texts are broken into lines instead.
	leastSize = 5.5
)

// document is a PDF that is being written, from the top of a page down.
type document struct {
	canvas *vgpdf.Canvas
	page   draw.Canvas
	y      vg.Length // of the next line's top
	number int
}

// WritePDF writes the report as a PDF.
func (r *Report) WritePDF(w io.Writer) error {
	d := &document{canvas: vgpdf.New(pageWidth, pageHeight), y: pageHeight - pageMargin}
	d.page = draw.New(d.canvas)
	d.footer()
	d.paragraph("The papers' tables and figures", 17, true)
	for _, text := range append(append([]string{}, r.About...), r.Explanation()) {
		d.paragraph(text, bodySize, false)
	}
	for _, text := range r.Failures() {
		d.paragraph("Failed: "+text, bodySize, true)
	}
	d.contents(r)
	for _, p := range r.Papers {
		d.newPage()
		d.paragraph(p.Title, 15, true)
		d.paragraph(p.Citation, bodySize, false)
		for _, t := range p.Tables() {
			if err := d.table(t); err != nil {
				return err
			}
		}
	}
	_, err := d.canvas.WriteTo(w)
	return err
}

func (d *document) newPage() {
	d.canvas.NextPage()
	d.y = pageHeight - pageMargin
	d.footer()
}

func (d *document) footer() {
	d.number++
	style := styleOf(7)
	style.XAlign = draw.XRight
	d.page.FillText(style, vg.Point{X: pageWidth - pageMargin, Y: pageMargin / 2}, fmt.Sprint(d.number))
}

// need begins a page if there is less room than that on this one.
func (d *document) need(height vg.Length) {
	if d.y-height < pageMargin && d.y < pageHeight-pageMargin {
		d.newPage()
	}
}

// styleOf is that of letters of a size, in points.
func styleOf(size float64) draw.TextStyle {
	f := font.From(plot.DefaultFont, vg.Points(size))
	f.Variant = "Sans"
	return draw.TextStyle{Color: color.Black, Font: f, Handler: plot.DefaultTextHandler, YAlign: draw.YTop}
}

// write writes a line at a point. Bold letters are written twice, because vgpdf cannot embed a bold font.
func (d *document) write(style draw.TextStyle, at vg.Point, line string, bold bool) {
	d.page.FillText(style, at, line)
	if bold {
		at.X += style.Font.Size * boldShift
		d.page.FillText(style, at, line)
	}
}

// boldShift is how far bold letters are wider, in parts of their size.
const boldShift = 0.035

// unusual are characters that the PDF's fonts, of Windows-1252, do not have, and others that it does not encode.
var unusual = strings.NewReplacer("∧", "and", "∨", "or", "¬", "not ", "≤", "<=", "≥", ">=", "≠", "!=", "∘", ".", "×", "x", "→", "->", "‡", "*", "’", "'", "“", `"`, "”", `"`)

// plain is a text in the characters of ASCII.
func plain(text string) string {
	text = unusual.Replace(text)
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, text)
}

// wrap breaks a text into lines of a width.
func wrap(style text.Style, content string, width vg.Length) (lines []string) {
	line := ""
	for _, word := range strings.Fields(content) {
		for style.Width(word) > width && len(word) > 1 { // a word that is longer than a line
			n := len(word) - 1
			for n > 1 && style.Width(word[:n]) > width {
				n--
			}
			if line != "" {
				lines = append(lines, line)
				line = ""
			}
			lines, word = append(lines, word[:n]), word[n:]
		}
		if line != "" && style.Width(line+" "+word) > width {
			lines, line = append(lines, line), word
			continue
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

// paragraph writes a text.
func (d *document) paragraph(content string, size float64, bold bool) {
	style := styleOf(size)
	height := vg.Points(size * 1.3)
	for _, line := range wrap(style, plain(content), textWidth) {
		d.need(height)
		d.write(style, vg.Point{X: pageMargin, Y: d.y}, line, bold)
		d.y -= height
	}
	d.y -= vg.Points(size * 0.4)
}

// contents lists the tables with how many of their values differ.
func (d *document) contents(r *Report) {
	g := &grid{head: []string{"table or figure", "rows", "values of the paper's", "differ by more than 2 times", "of them without a reason"}, number: []bool{false, true, true, true, true}}
	for _, p := range r.Papers {
		for _, t := range p.Tables() {
			compared, differ, unexplained := t.Counts()
			g.rows = append(g.rows, []string{p.Title + ". " + t.Title, fmt.Sprint(len(t.Rows)), fmt.Sprint(compared), fmt.Sprint(differ), fmt.Sprint(unexplained)})
		}
	}
	d.grid(g)
}

// table writes a table or figure.
func (d *document) table(t *Table) error {
	d.y -= vg.Points(8)
	f, err := newFigure(t)
	if err != nil {
		return err
	}
	d.need(f.height + 30*vg.Millimeter)
	d.paragraph(t.Title, 11.5, true)
	d.paragraph(t.Command+", or in the repository "+t.Run, 7.5, false)
	if t.Error != "" {
		d.paragraph("This step failed: "+t.Error, bodySize, true)
	}
	d.figure(f)
	g := &grid{}
	for _, c := range t.Columns {
		g.head, g.number = append(g.head, c.Name), append(g.number, c.Number)
	}
	if t.HasReasons() {
		g.head, g.number = append(g.head, "reasons"), append(g.number, false)
	}
	for _, row := range t.Rows {
		var cells []string
		for _, c := range row.Cells {
			if c.Differs {
				c.Text += "*"
			}
			cells = append(cells, c.Text)
		}
		if !t.HasReasons() {
			g.rows = append(g.rows, cells)
			continue
		}
		reasons := strings.Trim(strings.ReplaceAll(fmt.Sprint(row.Reasons), " ", ", "), "[]")
		if len(row.Unexplained) > 0 {
			reasons = strings.TrimSpace(reasons + " none for " + strings.Join(row.Unexplained, ", "))
		}
		g.rows = append(g.rows, append(cells, reasons))
	}
	d.grid(g)
	for i, reason := range t.Reasons {
		d.paragraph(fmt.Sprintf("%d. %s", i+1, reason), 7.5, false)
	}
	for _, note := range t.Remarks() {
		d.paragraph(note, 7.5, false)
	}
	return nil
}

// figure is a plot with the size that it has on a page.
type figure struct {
	pic    *plotdraw.Picture // nil if there is no plot
	scale  float64
	height vg.Length
}

// newFigure lays out the plot of a figure, smaller if it does not fit on a page.
func newFigure(t *Table) (f figure, err error) {
	if len(t.Rows) == 0 {
		return f, nil
	}
	p, err := t.Plot()
	if p == nil || err != nil {
		return f, err
	}
	if f.pic, err = plotdraw.New(*p); err != nil {
		return f, fmt.Errorf("%s: %w", t.ID(), err)
	}
	const room = pageHeight - 2*pageMargin - 35*vg.Millimeter
	f.scale = min(1, float64(textWidth/f.pic.Width), float64(room/f.pic.Height))
	f.height = f.pic.Height * vg.Length(f.scale)
	return f, nil
}

// figure draws a plot.
func (d *document) figure(f figure) {
	if f.pic == nil {
		return
	}
	d.need(f.height)
	d.canvas.Push()
	d.canvas.Translate(vg.Point{X: pageMargin, Y: d.y - f.height})
	d.canvas.Scale(f.scale, f.scale)
	f.pic.Draw(draw.Canvas{Canvas: d.canvas, Rectangle: vg.Rectangle{Max: vg.Point{X: f.pic.Width, Y: f.pic.Height}}})
	d.canvas.Pop()
	d.y -= f.height + vg.Points(4)
}
