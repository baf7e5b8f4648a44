package study

import (
	"fmt"
	"image/color"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	// The formats of the files.
	_ "gonum.org/v1/plot/vg/vgimg"
	_ "gonum.org/v1/plot/vg/vgsvg"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
)

// Chart draws a table as groups of bars: one group for each row, one bar for each
// of some columns; or as points, one for each row.
type Chart struct {
	// Y is the quantity of the bars. Columns are the keys of the columns drawn; the groups have the
	// first column's names.
	Y       string
	Columns []string
	// X, if set, is the key of the column of the points' other coordinate; they have
	// the first column's names.
	X string
}

// colours of the bars, dark to light.
var colours = []color.Color{color.RGBA{40, 60, 110, 255}, color.RGBA{90, 140, 190, 255}, color.RGBA{200, 210, 220, 255}}

// measures of a chart.
const (
	barWidth  = 7 * vg.Millimeter / 3
	groupSize = 11 * vg.Millimeter
	height    = 90 * vg.Millimeter
	margins   = 30 * vg.Millimeter
)

// drawFile writes a file, of the form that its name ends in.
func (c *Chart) drawFile(t *table.Table, title, file string) error {
	if c.X != "" {
		return c.drawPoints(t, title, file)
	}
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = title, c.Y
	p.Y.Min = 0
	p.Legend.Top = true
	for i, key := range c.Columns {
		name, values, err := columnValues(t, key)
		if err != nil {
			return err
		}
		bars, err := plotter.NewBarChart(values, barWidth)
		if err != nil {
			return err
		}
		bars.LineStyle.Width, bars.Color = 0, colours[i%len(colours)]
		bars.Offset = barWidth * vg.Length(2*i-len(c.Columns)+1) / 2
		p.Add(bars)
		p.Legend.Add(name, bars)
	}
	if line := plotter.NewFunction(func(float64) float64 { return 1 }); len(t.Rows) > 0 {
		line.Dashes = []vg.Length{vg.Points(2), vg.Points(2)}
		p.Add(line)
	}
	p.Y.Max *= 1.25 // for the legend
	var names []string
	for _, cells := range t.Rows {
		names = append(names, cells[0])
	}
	p.NominalX(names...)
	p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = 0.6, -1, -0.5
	if err := p.Save(groupSize*vg.Length(len(t.Rows))+margins, height, file); err != nil {
		return fmt.Errorf("draw %s: %w", file, err)
	}
	return nil
}

// drawPoints draws points.
func (c *Chart) drawPoints(t *table.Table, title, file string) error {
	p := plot.New()
	x, xs, err := columnValues(t, c.X)
	if err != nil {
		return err
	}
	y, ys, err := columnValues(t, c.Columns[0])
	if err != nil {
		return err
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	named := plotter.XYLabels{}
	for i, cells := range t.Rows {
		named.XYs = append(named.XYs, plotter.XY{X: xs[i], Y: ys[i]})
		named.Labels = append(named.Labels, " "+cells[0])
	}
	dots, err := plotter.NewScatter(named)
	if err != nil {
		return err
	}
	dots.Color = colours[0]
	names, err := plotter.NewLabels(named)
	if err != nil {
		return err
	}
	p.Add(dots, names)
	p.X.Min, p.Y.Min = 0, 0
	p.X.Max *= 1.2 // for the names
	return p.Save(height*4/3, height, file)
}

// columnValues is the name and the numbers of a column.
func columnValues(t *table.Table, key string) (name string, values plotter.Values, err error) {
	at := slices.IndexFunc(t.Head, func(c table.Column) bool { return c.Key == key })
	if at < 0 {
		return "", nil, fmt.Errorf("the table has no column %s", key)
	}
	for _, cells := range t.Rows {
		if cells[at] == "-" { // not measured
			values = append(values, 0)
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(cells[at]), 64)
		if err != nil {
			return "", nil, fmt.Errorf("column %s has %q in the row of %s, which is no number", key, cells[at], cells[0])
		}
		values = append(values, v)
	}
	return t.Head[at].Name, values, nil
}
