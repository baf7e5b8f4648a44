package main

import (
	"fmt"
	"html"
	"strings"
)

// Distances of a sequence in pixels.
const (
	margin     = 14
	actorWidth = 124
	actorGap   = 26
	rowHeight  = 40
)

func (f *figure) drawSequence(c *canvas) error {
	c.width = 2*margin + len(f.Actors)*(actorWidth+actorGap) - actorGap
	if f.Width > c.width {
		c.width = f.Width
	}
	step := (c.width - 2*margin + actorGap) / len(f.Actors)
	middle := map[string]int{}
	for i, a := range f.Actors {
		middle[a.ID] = margin + i*step + actorWidth/2
	}
	head := 2*lineHeight + 14
	rows := 0
	for _, m := range f.Messages {
		rows += m.height()
	}
	bottom := margin + head + 16 + rows
	c.height = bottom + margin
	for _, a := range f.Actors {
		x := middle[a.ID]
		c.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#afb8c1" stroke-width="1.2"/>`, x, margin+head, x, bottom)
		c.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="#ddf4ff" stroke="#0969da" stroke-width="1.3"/>`, x-actorWidth/2, margin, actorWidth, head)
		c.text(x, margin+head/2, a.Text, "")
	}
	y := margin + head + 16
	for _, m := range f.Messages {
		if err := m.draw(c, middle, y); err != nil {
			return err
		}
		y += m.height()
	}
	return nil
}

// height is that of the message's row.
func (m *message) height() int {
	lines := strings.Count(m.Text, "\n")
	if m.Note != "" {
		return (strings.Count(m.Note, "\n")+1)*lineHeight + 18
	}
	if m.Frame != "" {
		return 34
	}
	return rowHeight + lines*lineHeight
}

func (m *message) draw(c *canvas, middle map[string]int, y int) error {
	if m.Frame != "" {
		c.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#afb8c1" stroke-dasharray="2 3"/>`, margin, y+8, c.width-margin, y+8)
		c.add(`<text x="%d" y="%d" class="bold">%s</text>`, margin, y+24, html.EscapeString(m.Frame))
		return nil
	}
	from, ok := middle[m.From]
	if !ok {
		return fmt.Errorf("there is no actor %q", m.From)
	}
	if m.Note != "" {
		w, h := textWidth(m.Note)+16, m.height()-8
		x := min(max(from, margin+w/2), c.width-margin-w/2)
		c.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="3" fill="#fff8c5" stroke="#bf8700"/>`, x-w/2, y, w, h)
		c.text(x, y+h/2, m.Note, "")
		return nil
	}
	to, ok := middle[m.To]
	if !ok {
		return fmt.Errorf("there is no actor %q", m.To)
	}
	bottom := y + m.height() - 12
	c.label((from+to)/2, y+(m.height()-12)/2-2, m.Text)
	c.line(from, bottom, to, bottom, m.Reply, false)
	return nil
}
