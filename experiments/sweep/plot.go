package sweep

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/sweep/statistics"
	"github.com/heddle-dmt/heddle/internal/errs"
)

var (
	errAmbiguous = errs.Define("plot-ambiguous",
		"several rows of the table fall on one point of the plot: {first} and {second}; add the parameter in which they differ to its series, or choose one value by where",
		"The rows differ in a parameter that neither an axis nor the series of the plot show.",
		"Add the parameter to the plot's series, or choose one value of it with `heddle experiment plot --where`, or with where in the file.")
	errNoPlots = errs.Define("plot-none",
		"{file} has no section plots",
		"The command draws the plots that the file describes, unless `heddle experiment plot --kind` describes one.",
		"Describe a plot with `heddle experiment plot --kind --x --y`, or in the file.")
)

// PlotOptions describe a plot of the results.
type PlotOptions struct {
	// Name is the file's, without the end that says its form.
	Name string `mapstructure:"name"`
	// Kind is lines, bars, boxes or heatmap.
	Kind string `mapstructure:"kind"`
	// Title stands above; the default has the measure and the conditions.
	Title string `mapstructure:"title"`
	// X is the parameter on the x axis. Y is the measure or "speedup" or, in a heat map, the parameter on
	// the y axis, and Value the measure.
	X     string `mapstructure:"x"`
	Y     string `mapstructure:"y"`
	Value string `mapstructure:"value"`
	// Series are the parameters whose values have a line, or a colour of bars, of their own.
	Series []string `mapstructure:"series"`
	// Log are the axes that are logarithmic: x, y, value.
	Log []string `mapstructure:"log"`
	// Statistic is mean or median, of which Errors are drawn: ci (of the mean or median), sd, range, quartiles
	// or none; the default is ci.
	Statistic string `mapstructure:"statistic"`
	Errors    string `mapstructure:"errors"`
	// Where, Base and Confidence are those of Selection; with Base the ratio of means is drawn.
	Where      []string `mapstructure:"where"`
	Base       string   `mapstructure:"base"`
	Confidence float64  `mapstructure:"confidence"`
}

// measureSpeedUp is the name of the speed-up in PlotOptions.
const measureSpeedUp = "speedup"

// parameterExperiment is the parameter of several experiments in one plot.
const parameterExperiment = "experiment"

// errorKinds are the values of PlotOptions.Errors.
var errorKinds = []string{"ci", "sd", "range", "quartiles", "none"}

func (p PlotOptions) withDefaults() PlotOptions {
	p.Statistic, p.Errors = cmp.Or(p.Statistic, "mean"), cmp.Or(p.Errors, "ci")
	if p.Kind == plots.Heatmap {
		p.Value = cmp.Or(p.Value, builtinMeasures[measureCycles].name)
	} else {
		p.Y = cmp.Or(p.Y, builtinMeasures[measureCycles].name)
	}
	return p
}

// measured is the name of the measure that is drawn.
func (p PlotOptions) measured() string {
	if p.Kind == plots.Heatmap {
		return p.Value
	}
	return p.Y
}

// checkPlot checks the options, but for the fields of Selection.
func (x *Experiment) checkPlot(p PlotOptions) error {
	quoted := func(s string) string { return strconv.Quote(s) }
	switch {
	case !slices.Contains(plots.Kinds(), p.Kind):
		return wrongChoice("kind", quoted(p.Kind), strings.Join(plots.Kinds(), ", "))
	case p.Statistic != "mean" && p.Statistic != "median":
		return wrongChoice("statistic", quoted(p.Statistic), "mean, median")
	case !slices.Contains(errorKinds, p.Errors):
		return wrongChoice("errors", quoted(p.Errors), strings.Join(errorKinds, ", "))
	case p.Kind == plots.Heatmap && len(p.Series) > 0:
		return wrongChoice("series", quoted(strings.Join(p.Series, ",")), "none in a heatmap")
	}
	for _, axis := range p.Log {
		if axis != "x" && axis != "y" && axis != "value" {
			return wrongChoice("log", quoted(axis), "x, y, value")
		}
	}
	measured := "y"
	if p.Kind == plots.Heatmap {
		measured = "value"
	}
	names := []string{measureSpeedUp}
	for _, m := range x.measures() {
		names = append(names, m.name)
	}
	if !slices.Contains(names, p.measured()) || p.measured() == measureSpeedUp && (p.Base != "" || p.Kind == plots.Boxes) {
		return wrongChoice(measured, quoted(p.measured()), strings.Join(names, ", ")+"; speedup without base, and not in boxes")
	}
	if err := x.checkParameters("x", p.X); err != nil {
		return err
	}
	if p.Kind == plots.Heatmap {
		return x.checkParameters("y", p.Y)
	}
	return x.checkParameters("series", p.Series...)
}

// checkParameters checks the parameters that an option of a plot names.
func (x *Experiment) checkParameters(option string, names ...string) error {
	for _, name := range names {
		if name == parameterExperiment {
			continue
		}
		if _, err := x.findParameter(name, option); err != nil {
			return err
		}
	}
	return nil
}

// checkPlots checks the file's plots.
func (x *Experiment) checkPlots() error {
	seen := map[string]bool{}
	for i, p := range x.Plots {
		field := fmt.Sprintf("plots[%d]", i)
		if !plainName().MatchString(p.Name) || seen[p.Name] {
			return fieldError(field+".name", p.Name, plainNameForm+", and no name twice")
		}
		seen[p.Name] = true
		err := x.checkPlot(p.withDefaults())
		if err == nil {
			_, err = x.view(p.selection())
		}
		if err != nil {
			return asField(field, err)
		}
	}
	return nil
}

func (p PlotOptions) selection() Selection {
	return Selection{Where: p.Where, Base: p.Base, Confidence: p.Confidence}
}

// FigureBase is the path of a figure of the experiment without its end: in the folder NAME.figures beside the
// store.
func (x *Experiment) FigureBase(o Options, name string) string {
	return filepath.Join(strings.TrimSuffix(x.StorePath(o), ".sqlite")+".figures", name)
}

// LoadAll loads experiment files.
func LoadAll(paths []string) (all []*Experiment, err error) {
	for _, path := range paths {
		x, err := Load(path)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// ChoosePlots returns the plots of the first experiment's file that have one of the names; all of no names.
func (x *Experiment) ChoosePlots(names []string) ([]PlotOptions, error) {
	if len(x.Plots) == 0 {
		return nil, errNoPlots.New(x.path)
	}
	var have []string
	for _, p := range x.Plots {
		have = append(have, p.Name)
	}
	for _, name := range names {
		if !slices.Contains(have, name) {
			return nil, wrongChoice("plot", strconv.Quote(name), strings.Join(have, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(x.Plots), func(p PlotOptions) bool {
		return len(names) > 0 && !slices.Contains(names, p.Name)
	}), nil
}

// Plot makes a plot of the results of experiments.
func Plot(all []*Experiment, o Options, p PlotOptions) (plots.Plot, error) {
	p = p.withDefaults()
	b := plotBuilder{options: p, at: map[[2]string]*row{}, series: map[string]int{}}
	if len(all) > 1 && o.Store != "" {
		return b.plot, errStoreOfSeveral.New(len(all))
	}
	for _, x := range all {
		if err := x.checkPlot(p); err != nil {
			return b.plot, err
		}
		y := *x
		y.Selection = Selection{} // a plot has conditions of its own
		c, err := y.collect(o, p.selection())
		if err != nil {
			return b.plot, err
		}
		for _, r := range c.shown {
			if err := b.addRow(c, r); err != nil {
				return b.plot, err
			}
		}
	}
	b.finish(all[0])
	return b.plot, nil
}

// plotBuilder builds a plot from rows.
type plotBuilder struct {
	options PlotOptions
	plot    plots.Plot
	at      map[[2]string]*row // by series and x
	series  map[string]int
	xs      []string // values of x, as they come
}

// parameterOf is the value of a row's parameter.
func (c *collection) parameterOf(r *row, name string) string {
	if name == parameterExperiment {
		return c.x.Name
	}
	p, err := c.x.findParameter(name, "x")
	if err != nil {
		return missing
	}
	return p.value(r.point)
}

// addRow adds a row as a point of its series.
func (b *plotBuilder) addRow(c *collection, r *row) error {
	o := b.options
	var names []string
	for _, parameter := range o.Series {
		names = append(names, c.parameterOf(r, parameter))
	}
	name := strings.Join(names, ", ")
	if o.Kind == plots.Heatmap {
		name = c.parameterOf(r, o.Y)
	}
	x := c.parameterOf(r, o.X)
	if other, taken := b.at[[2]string{name, x}]; taken {
		return errAmbiguous.New(nameRow(other), nameRow(r))
	}
	b.at[[2]string{name, x}] = r
	i, known := b.series[name]
	if !known {
		i = len(b.plot.Series)
		b.series[name] = i
		b.plot.Series = append(b.plot.Series, plots.Series{Name: name})
	}
	point := b.pointOf(c, r)
	if o.Kind == plots.Lines {
		n, err := strconv.ParseFloat(x, 64)
		if err != nil {
			return wrongChoice("x", fmt.Sprintf("%s with the value %q", o.X, x), "a parameter whose values are numbers; bars can show others")
		}
		point.X = n
	} else {
		at := slices.Index(b.xs, x)
		if at < 0 {
			at = len(b.xs)
			b.xs = append(b.xs, x)
		}
		point.X = float64(at)
	}
	b.plot.Series[i].Points = append(b.plot.Series[i].Points, point)
	return nil
}

// nameRow names a row in a sentence.
func nameRow(r *row) string {
	text := r.point.String()
	return text[:strings.LastIndex(text, " seed=")]
}

// pointOf is the value of a row with its error bar.
func (b *plotBuilder) pointOf(c *collection, r *row) (p plots.Point) {
	o := b.options
	number := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	if o.measured() == measureSpeedUp {
		p.Y = number(c.speedUp(r))
		return p
	}
	i := slices.IndexFunc(c.x.measures(), func(m measure) bool { return m.name == o.measured() })
	sample := r.sample(i)
	if o.Base != "" {
		var base []float64
		if row := c.baseOf(r, c.view.base); row != nil {
			base = row.sample(i)
		}
		ratio, ci := statistics.Ratio(sample, base, c.view.level)
		p.Y = number(ratio)
		if o.Errors != "none" {
			p.Low, p.High = number(ci.Low), number(ci.High)
		}
		return p
	}
	if o.Kind == plots.Boxes {
		p.Sample = sample
	}
	middle, around := statistics.Mean(sample), statistics.MeanInterval
	if o.Statistic == "median" {
		middle, around = statistics.Quantile(sample, 0.5), statistics.MedianInterval
	}
	p.Y = number(middle)
	deviation := statistics.Deviation(sample)
	switch o.Errors {
	case "ci":
		ci := around(sample, c.view.level)
		p.Low, p.High = number(ci.Low), number(ci.High)
	case "sd":
		p.Low, p.High = number(middle-deviation), number(middle+deviation)
	case "range":
		p.Low, p.High = number(statistics.Min(sample)), number(statistics.Max(sample))
	case "quartiles":
		p.Low, p.High = number(statistics.Quantile(sample, 0.25)), number(statistics.Quantile(sample, 0.75))
	}
	return p
}

// finish adds axes, and the places that have no row, which are marked as missing.
func (b *plotBuilder) finish(x *Experiment) {
	o := b.options
	log := func(axis string) bool { return slices.Contains(o.Log, axis) }
	title := "speed-up"
	for _, m := range x.measures() {
		if m.name == o.measured() {
			title = m.withUnit()
		}
	}
	if o.Base != "" {
		title += " / that of " + o.Base
		one := 1.0
		b.plot.Reference = &one
	}
	b.plot.Kind, b.plot.X = o.Kind, plots.Axis{Title: o.X, Log: log("x")}
	b.plot.Title = o.Title
	if b.plot.Title == "" {
		b.plot.Title = strings.TrimSpace(x.Name + "  " + strings.Join(o.Where, " "))
	}
	if o.Kind == plots.Heatmap {
		b.plot.Y, b.plot.Value = plots.Axis{Title: o.Y}, plots.Axis{Title: title, Log: log("value")}
		b.plot.Reference = nil
	} else {
		b.plot.Y = plots.Axis{Title: title, Log: log("y")}
	}
	b.plot.Diagonal = o.Kind == plots.Lines && o.measured() == measureSpeedUp
	if o.Kind != plots.Lines {
		b.plot.Categories = b.xs
	}
	b.nameSeries()
	b.addMissing()
}

// nameSeries adds the parameter to names that are numbers alone.
func (b *plotBuilder) nameSeries() {
	for i := range b.plot.Series {
		s := &b.plot.Series[i]
		if b.options.Kind == plots.Heatmap {
			b.plot.Rows = append(b.plot.Rows, s.Name)
		} else if _, err := strconv.ParseFloat(s.Name, 64); err == nil {
			s.Name = b.options.Series[0] + " " + s.Name
		}
	}
}

// addMissing adds a point without a value to each series for each x that another series has.
func (b *plotBuilder) addMissing() {
	var xs []float64
	for _, s := range b.plot.Series {
		for _, p := range s.Points {
			if !slices.Contains(xs, p.X) {
				xs = append(xs, p.X)
			}
		}
	}
	slices.Sort(xs)
	for i := range b.plot.Series {
		s := &b.plot.Series[i]
		for _, x := range xs {
			if !slices.ContainsFunc(s.Points, func(p plots.Point) bool { return p.X == x }) {
				s.Points = append(s.Points, plots.Point{X: x})
			}
		}
		slices.SortFunc(s.Points, func(p, q plots.Point) int { return cmp.Compare(p.X, q.X) })
	}
}
