package report

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// grid is a table of texts in the PDF.
type grid struct {
	head   []string
	number []bool // columns of numbers, which are aligned on the right
	rows   [][]string
}

// layout is a grid with the size of its letters and the widths of its columns.
type layout struct {
	*grid
	size   float64
	widths []vg.Length
}

// fit finds the largest letters with which the table is as wide as the page, and breaks texts into lines if that
// would be too small.
func (g *grid) fit() layout {
	for size := 8.0; ; size -= 0.5 {
		widths, total := g.natural(size)
		if total <= textWidth {
			return layout{g, size, widths}
		}
		if size <= leastSize {
			return layout{g, size, g.narrowed(size, widths, total)}
		}
	}
}

// natural are the widths of columns whose cells are one line, but for heads, which are as wide as a word.
func (g *grid) natural(size float64) (widths []vg.Length, total vg.Length) {
	style := styleOf(size)
	for i := range g.head {
		var w vg.Length
		for _, line := range wrap(style, plain(g.head[i]), 22*vg.Millimeter) {
			w = max(w, style.Width(line)+vg.Points(size*boldShift))
		}
		for _, row := range g.rows {
			w = max(w, style.Width(plain(row[i])))
		}
		w += vg.Points(cellGap)
		widths, total = append(widths, w), total+w
	}
	return widths, total
}

// narrowed takes the excess from the widest columns, which become equally wide.
func (g *grid) narrowed(size float64, widths []vg.Length, total vg.Length) []vg.Length {
	least := vg.Points(size * 4)
	for total > textWidth {
		widest := slices.Max(widths)
		if widest <= least {
			break
		}
		// To the next width below, or as far as needed.
		next, count := least, 0
		for _, w := range widths {
			if w < widest {
				next = max(next, w)
			} else {
				count++
			}
		}
		next = max(next, widest-(total-textWidth)/vg.Length(count))
		for i := range widths {
			if widths[i] == widest {
				widths[i] = next
			}
		}
		total -= (widest - next) * vg.Length(count)
	}
	return widths
}

// grid writes a table; its head is repeated on each page.
func (d *document) grid(g *grid) {
	if len(g.rows) == 0 {
		d.paragraph("There are no rows.", bodySize, false)
		return
	}
	l := g.fit()
	head := l.lines(g.head)
	d.need(l.height(head) + 2*l.line())
	d.row(l, head, true)
	most := int((pageHeight-2*pageMargin-l.height(head))/l.line()) - 1
	for _, row := range g.rows {
		for _, part := range split(l.lines(row), most) {
			if d.y-l.height(part) < pageMargin {
				d.newPage()
				d.row(l, head, true)
			}
			d.row(l, part, false)
		}
	}
	d.y -= vg.Points(6)
}

// line is the height of a line.
func (l layout) line() vg.Length { return vg.Points(l.size * 1.25) }

// lines are those of each cell of a row.
func (l layout) lines(row []string) (cells [][]string) {
	style := styleOf(l.size)
	for i, text := range row {
		cells = append(cells, wrap(style, plain(text), l.widths[i]-vg.Points(cellGap-1)))
	}
	return cells
}

// split cuts a row that is higher than a page into parts with a number of lines at most.
func split(cells [][]string, most int) (parts [][][]string) {
	for {
		part, rest := make([][]string, len(cells)), make([][]string, len(cells))
		more := false
		for i, lines := range cells {
			n := min(most, len(lines))
			part[i], rest[i] = lines[:n], lines[n:]
			more = more || len(rest[i]) > 0
		}
		parts = append(parts, part)
		if !more {
			return parts
		}
		cells = rest
	}
}

func (l layout) height(cells [][]string) vg.Length {
	most := 0
	for _, lines := range cells {
		most = max(most, len(lines))
	}
	return l.line()*vg.Length(most) + vg.Points(2.5)
}

// row writes a row.
func (d *document) row(l layout, cells [][]string, bold bool) {
	style := styleOf(l.size)
	x := pageMargin
	for i, lines := range cells {
		at := vg.Point{X: x, Y: d.y}
		style.XAlign = draw.XLeft
		if l.number[i] {
			style.XAlign = draw.XRight
			at.X += l.widths[i] - vg.Points(cellGap)
		}
		for _, line := range lines {
			d.write(style, at, line, bold)
			at.Y -= l.line()
		}
		x += l.widths[i]
	}
	d.y -= l.height(cells)
	rule := draw.LineStyle{Color: color.Gray{215}, Width: vg.Points(0.4)}
	if bold {
		rule = draw.LineStyle{Color: color.Gray{90}, Width: vg.Points(0.8)}
	}
	d.page.StrokeLine2(rule, pageMargin, d.y+vg.Points(1.5), x, d.y+vg.Points(1.5))
}
