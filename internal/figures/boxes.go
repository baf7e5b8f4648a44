package main

import "fmt"

// fills are the colours of boxes by style: ground and edge.
var fills = map[string][2]string{
	"":         {"#f6f8fa", "#8c959f"},
	"group":    {"#ffffff", "#afb8c1"},
	"emphasis": {"#ddf4ff", "#0969da"},
	"memory":   {"#fff8c5", "#bf8700"},
	"result":   {"#dafbe1", "#1a7f37"},
	"title":    {"#ffffff", "#ffffff"},
}

func (f *figure) drawBoxes(c *canvas) error {
	c.width, c.height = f.Width, f.Height
	byID := map[string]box{}
	for _, b := range f.Boxes {
		colours, known := fills[b.Style]
		if !known {
			return fmt.Errorf("box %s: there is no style %q", b.ID, b.Style)
		}
		x, y, w, h := b.At[0], b.At[1], b.At[2], b.At[3]
		if x < 0 || y < 0 || x+w > f.Width || y+h > f.Height {
			return fmt.Errorf("box %s lies outside of the picture", b.ID)
		}
		if w < textWidth(b.Text)+4 {
			return fmt.Errorf("box %s is %d wide and its text %d", b.ID, w, textWidth(b.Text))
		}
		c.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="%s" stroke-width="1.3"/>`, x, y, w, h, colours[0], colours[1])
		if b.Style == "group" {
			c.text(x+w/2, y+14, b.Text, "bold")
		} else {
			c.text(x+w/2, y+h/2, b.Text, "")
		}
		byID[b.ID] = b
	}
	for _, a := range f.Arrows {
		from, ok1 := byID[a.From]
		to, ok2 := byID[a.To]
		if !ok1 || !ok2 {
			return fmt.Errorf("an arrow joins %q and %q, one of which is no box", a.From, a.To)
		}
		x1, y1, x2, y2 := join(from.At, to.At, a.Shift)
		c.line(x1, y1, x2, y2, a.Dashed, a.Both)
		if a.Text != "" {
			at := a.Label
			if at == 0 {
				at = 0.5
			}
			c.label(x1+int(float64(x2-x1)*at), y1+int(float64(y2-y1)*at), a.Text)
		}
	}
	return nil
}

// join returns the ends of a line between two rectangles: vertical or horizontal if they face
// each other, otherwise between the middles of their left and right sides, which arrows along a
// column do not touch.
func join(a, b [4]int, shift int) (x1, y1, x2, y2 int) {
	left, right := max(a[0], b[0]), min(a[0]+a[2], b[0]+b[2])
	top, bottom := max(a[1], b[1]), min(a[1]+a[3], b[1]+b[3])
	switch {
	case left < right: // one above the other
		x := (left+right)/2 + shift
		if a[1] < b[1] {
			return x, a[1] + a[3], x, b[1]
		}
		return x, a[1], x, b[1] + b[3]
	case top < bottom: // side by side
		y := (top+bottom)/2 + shift
		if a[0] < b[0] {
			return a[0] + a[2], y, b[0], y
		}
		return a[0], y, b[0] + b[2], y
	}
	y1, y2 = a[1]+a[3]/2+shift, b[1]+b[3]/2+shift
	if a[0] < b[0] {
		return a[0] + a[2], y1, b[0], y2
	}
	return a[0], y1, b[0] + b[2], y2
}
