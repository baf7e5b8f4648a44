package sheet

import (
	"fmt"

	"github.com/heddle-dmt/heddle/experiments/plots"
)

// Chart says how a sheet is drawn: as groups of bars, a group for each row, or over numbers.
type Chart struct {
	// Kind is one of plots.Bars and plots.Lines.
	Kind string `json:"kind"`
	// X and Y are the axes; Columns are the keys of the columns drawn.
	X       plots.Axis `json:"x"`
	Y       plots.Axis `json:"y"`
	Columns []string   `json:"columns"`
	// Over is the key of the column of the x axis of lines. Of Bars the groups have the first column's names.
	Over string `json:"over,omitempty"`
	// Points draws a point for each row, with the first column's name in the legend, of the first of Columns.
	Points bool `json:"points,omitempty"`
	// Reference, if not 0, is a line to compare with.
	Reference float64 `json:"reference,omitempty"`
	// Reported are the paper's values to draw, where it prints them.
	Reported []Reported `json:"reported,omitempty"`
}

// Reported is a column of the paper's values.
type Reported struct {
	// Of is the key of the drawn column whose values it is compared with, Paper that of the paper's.
	Of    string `json:"of"`
	Paper string `json:"paper"`
	// Times takes percentages as factors. More is a column of ours of which the paper's value is that many
	// percent more, and Slower one of a speed at which the same takes that many percent more time.
	Times  bool   `json:"times,omitempty"`
	More   string `json:"more,omitempty"`
	Slower string `json:"slower,omitempty"`
	// OverPaper is the column of the paper's x coordinates of Points, and Scales are by how much the paper's
	// coordinates are multiplied to have our units (0 is 1).
	OverPaper string  `json:"over_paper,omitempty"`
	ScaleX    float64 `json:"scale_x,omitempty"`
	ScaleY    float64 `json:"scale_y,omitempty"`
}

// wide is from how many times on the least value's greatest values need a logarithmic axis.
const wide = 50

func (c *Chart) plot(s *Sheet) (*plots.Plot, error) {
	for _, key := range append([]string{}, c.Columns...) {
		if s.Table().Find(key) < 0 {
			return nil, fmt.Errorf("the table has no column %s", key)
		}
	}
	p := &plots.Plot{Title: s.Title, Kind: c.Kind, X: c.X, Y: c.Y}
	if c.Reference != 0 {
		p.Reference = &c.Reference
	}
	if c.Points {
		c.addPoints(p, s)
	} else {
		c.addSeries(p, s)
	}
	p.Y.Log = p.Y.Log || isWide(p, func(pt plots.Point) []*float64 { return []*float64{pt.Y, pt.Low, pt.High} })
	return p, nil
}

// isWide reports whether numbers are too far apart for a linear axis.
func isWide(p *plots.Plot, of func(plots.Point) []*float64) bool {
	var least, most float64
	for _, s := range p.Series {
		for _, pt := range s.Points {
			for _, v := range of(pt) {
				switch {
				case v == nil:
					continue
				case *v <= 0:
					return false
				case least == 0 || *v < least:
					least = *v
				}
				most = max(most, *v)
			}
		}
	}
	return least > 0 && most/least > wide
}

// columnName is the head of a column.
func (s *Sheet) columnName(key string) string { return s.Head[s.Table().Find(key)].Name }

// number is a cell's number, nil if it has none.
func (s *Sheet) number(row int, key string) *float64 {
	v, _ := Parse(s.Cell(row, key))
	return v.Number
}

// addSeries adds a series for each column, and the paper's after them.
func (c *Chart) addSeries(p *plots.Plot, s *Sheet) {
	at := func(row int) *float64 {
		x := float64(row)
		if c.Over != "" {
			return s.number(row, c.Over)
		}
		return &x
	}
	if c.Kind == plots.Bars {
		for row := range s.Rows {
			p.Categories = append(p.Categories, s.RowName(row))
		}
	}
	number := map[string]int{}
	for i, key := range c.Columns {
		number[key] = i
		series := plots.Series{Name: s.columnName(key)}
		for row := range s.Rows {
			if x := at(row); x != nil {
				series.Points = append(series.Points, plots.Point{X: *x, Y: s.number(row, key)})
			}
		}
		p.Series = append(p.Series, series)
	}
	for _, r := range c.Reported {
		of := number[r.Of]
		series := plots.Series{Name: "paper", Of: &of}
		if len(c.Reported) > 1 {
			series.Name = "paper: " + s.columnName(r.Of)
		}
		for row := range s.Rows {
			v, ok := r.value(s, row)
			if x := at(row); ok && x != nil {
				series.Points = append(series.Points, plots.Point{X: *x, Y: v.Number, Low: v.Low, High: v.High})
			}
		}
		if len(series.Points) > 0 {
			p.Series = append(p.Series, series)
		}
	}
}

// value is the paper's of a row, in our unit.
func (r *Reported) value(s *Sheet, row int) (v Value, ok bool) {
	if v, ok = Parse(s.Cell(row, r.Paper)); !ok {
		return v, false
	}
	if r.Times || v.Percent && v.Number == nil && r.More+r.Slower == "" {
		v = v.asTimes()
	}
	if r.More != "" || r.Slower != "" {
		base := s.number(row, r.More+r.Slower)
		if base == nil {
			return v, false
		}
		v.Percent = true
		v = v.asTimes()
		if r.Slower != "" {
			v = v.inverse()
		}
		v = v.scaled(*base)
	}
	if r.ScaleY != 0 {
		v = v.scaled(r.ScaleY)
	}
	return v, true
}

// inverse is 1 over the value.
func (v Value) inverse() Value {
	v.Low, v.High = v.High, v.Low
	for _, n := range []**float64{&v.Number, &v.Low, &v.High} {
		if *n != nil {
			quotient := 1 / **n
			*n = &quotient
		}
	}
	return v
}

func (v Value) scaled(by float64) Value {
	for _, n := range []**float64{&v.Number, &v.Low, &v.High} {
		if *n != nil {
			product := **n * by
			*n = &product
		}
	}
	return v
}

// addPoints adds a series of one point for each row, and the paper's points after all of them.
func (c *Chart) addPoints(p *plots.Plot, s *Sheet) {
	number := map[int]int{}
	for row := range s.Rows {
		x, y := s.number(row, c.Over), s.number(row, c.Columns[0])
		if x == nil || y == nil {
			continue
		}
		number[row] = len(p.Series)
		p.Series = append(p.Series, plots.Series{Name: s.RowName(row), Points: []plots.Point{{X: *x, Y: y}}})
	}
	for _, r := range c.Reported {
		for row := range s.Rows {
			of, drawn := number[row]
			x, ok := Parse(s.Cell(row, r.OverPaper))
			y, also := r.value(s, row)
			if !drawn || !ok || !also || x.Number == nil || y.Number == nil {
				continue
			}
			if r.ScaleX != 0 {
				x = x.scaled(r.ScaleX)
			}
			p.Series = append(p.Series, plots.Series{Name: "paper: " + s.RowName(row), Of: &of, Points: []plots.Point{{X: *x.Number, Y: y.Number}}})
		}
	}
	p.X.Log = p.X.Log || isWide(p, func(pt plots.Point) []*float64 { return []*float64{&pt.X} })
}
