package campaign

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format of files
)

// colours are told apart by people who see red and green alike (M. Okabe and K. Ito, Color universal design, 2008).
var colours = []color.RGBA{
	{0, 114, 178, 255},
	{213, 94, 0, 255},
	{0, 158, 115, 255},
	{204, 121, 167, 255},
	{230, 159, 0, 255},
	{86, 180, 233, 255},
	{0, 0, 0, 255},
	{240, 228, 66, 255},
	{120, 120, 120, 255},
	{90, 60, 20, 255},
}

// Plot writes a picture, in the format of the file's ending, with the share of searches of each strategy that have found
// a failure, over the number of schedules.
func Plot(path string, results []Result) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "schedules", "searches that have found a failure"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.X.Min, p.Y.Min, p.Y.Max = 1, 0, 1
	p.Legend.Top, p.Legend.Left = true, true
	var strategies []string
	for _, r := range results {
		if !slices.Contains(strategies, r.Strategy) {
			strategies = append(strategies, r.Strategy)
		}
	}
	for i, strategy := range strategies {
		var line plotter.XYs
		for _, x := range foundOver(results, strategy) {
			line = append(line, plotter.XY{X: x.schedules, Y: x.share})
		}
		l, err := plotter.NewLine(line)
		if err != nil {
			return err
		}
		l.Color, l.Width = colours[i%len(colours)], vg.Points(1.5)
		p.Add(l)
		p.Legend.Add(strategy, l)
	}
	return p.Save(16*vg.Centimeter, 10*vg.Centimeter, path)
}
