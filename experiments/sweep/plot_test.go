package sweep

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/sweep/store"
)

// describe writes the points of a plot in lines: series, x, y, low and high.
func describe(p plots.Plot) (lines []string) {
	number := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.4g", *v)
	}
	for _, s := range p.Series {
		for _, pt := range s.Points {
			lines = append(lines, fmt.Sprintf("%s %g %s %s %s", s.Name, pt.X, number(pt.Y), number(pt.Low), number(pt.High)))
		}
	}
	return lines
}

func TestPlotsOfResults(t *testing.T) {
	x := mustLoad(t, "name: x\nprograms: [{name: a, command: [echo, '{threads}']}, {name: b, command: [echo]}]\ngrid: {seeds: 1-3, policy: [timed, rr], threads: [1, 2]}\nnative: false\n")
	// Rows: a timed 1, a timed 2, a rr 1, a rr 2, b timed, b rr, of three runs each; b rr has none.
	invented(t, x, x.Store, func(i int) bool { return i < 15 }, func(i int, r *store.Record) {
		r.Report.Result.Cycles = uint64(100*(i/3+1) + 10*(i%3))
	})
	for name, c := range map[string]struct {
		o    PlotOptions
		want []string
	}{
		"lines": {
			PlotOptions{Kind: plots.Lines, X: "threads", Series: []string{"policy"}, Where: []string{"program=a"}, Errors: "range"},
			[]string{"timed 1 110 100 120", "timed 2 210 200 220", "rr 1 310 300 320", "rr 2 410 400 420"},
		},
		"speed-up": {
			PlotOptions{Kind: plots.Lines, X: "threads", Y: "speedup", Series: []string{"policy"}, Where: []string{"program=a"}},
			[]string{"timed 1 1 - -", "timed 2 0.5238 - -", "rr 1 1 - -", "rr 2 0.7561 - -"},
		},
		"ratio": {
			PlotOptions{Kind: plots.Bars, X: "policy", Base: "policy=timed", Where: []string{"program=a threads=2"}, Errors: "none"},
			[]string{" 0 1 - -", " 1 1.952 - -"},
		},
		"missing": {
			PlotOptions{Kind: plots.Bars, X: "policy", Series: []string{"program", "threads"}, Statistic: "median", Errors: "quartiles"},
			[]string{
				"a, 1 0 110 105 115", "a, 1 1 310 305 315", "a, 2 0 210 205 215", "a, 2 1 410 405 415", "b, - 0 510 505 515", "b, - 1 - - -",
			},
		},
		"heat": {
			PlotOptions{Kind: plots.Heatmap, X: "threads", Y: "policy", Where: []string{"program=a"}, Errors: "none"},
			[]string{"timed 0 110 - -", "timed 1 210 - -", "rr 0 310 - -", "rr 1 410 - -"},
		},
		"sd": {PlotOptions{Kind: plots.Boxes, X: "program", Where: []string{"policy=timed threads!=1"}, Errors: "sd"}, []string{" 0 210 200 220", " 1 510 500 520"}},
	} {
		p, err := Plot([]*Experiment{x}, Options{}, c.o)
		if got := describe(p); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	p, err := Plot([]*Experiment{x}, Options{}, PlotOptions{Kind: plots.Boxes, X: "threads", Series: []string{"policy"}, Where: []string{"program=a"}, Base: ""})
	if err != nil || len(p.Series[0].Points[0].Sample) != 3 || !slices.Equal(p.Categories, []string{"1", "2"}) || p.Y.Title != "cycles" {
		t.Errorf("%+v, %v", p, err)
	}
	if p.Reference != nil || p.Diagonal || math.IsNaN(*p.Series[0].Points[0].Y) {
		t.Errorf("%+v", p)
	}
	for want, o := range map[string]PlotOptions{
		"several rows of the table fall on one point of the plot: a threads=1 cores=4 policy=timed and a threads=1 cores=4 policy=rr": {Kind: plots.Bars, X: "threads"},
		"no row of the table meets the conditions program=c":                                                                          {Kind: plots.Bars, X: "threads", Where: []string{"program=c"}},
		"x is program with the value \"a\"":                                                                                           {Kind: plots.Lines, X: "program"},
		"kind is \"\"":                                                                                                                {X: "threads"},
		"errors is \"se\"":                                                                                                            {Kind: plots.Bars, X: "threads", Errors: "se"},
		"log is \"z\"":                                                                                                                {Kind: plots.Bars, X: "threads", Log: []string{"z"}},
		"y is \"speed\"":                                                                                                              {Kind: plots.Bars, X: "threads", Y: "speed"},
		"x is \"speed\"":                                                                                                              {Kind: plots.Bars, X: "speed"},
		"series is \"policy\"":                                                                                                        {Kind: plots.Heatmap, X: "threads", Y: "policy", Series: []string{"policy"}},
	} {
		if _, err := Plot([]*Experiment{x}, Options{}, o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if _, err := x.ChoosePlots(nil); !errors.Is(err, errNoPlots) {
		t.Error(err)
	}
}

// TestPlotOfTwoExperiments: the parameter experiment tells them apart.
func TestPlotOfTwoExperiments(t *testing.T) {
	var all []*Experiment
	for _, name := range []string{"one", "two"} {
		x := mustLoad(t, "name: "+name+"\nprograms: [{name: a, command: [echo]}]\nnative: false\n")
		invented(t, x, x.Store, func(int) bool { return true }, nil)
		all = append(all, x)
	}
	p, err := Plot(all, Options{}, PlotOptions{Kind: plots.Bars, X: "program", Series: []string{"experiment"}})
	if got := describe(p); err != nil || !slices.Equal(got, []string{"one 0 1000 - -", "two 0 1000 - -"}) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Plot(all, Options{Store: "x"}, PlotOptions{Kind: plots.Bars, X: "program"}); !errors.Is(err, errStoreOfSeveral) {
		t.Error(err)
	}
}
