package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/prediction"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// TestDetectorsCompared: the source lines that take part in the races of a buggy form, by one run under each detector.
// Every line of a predicted race is in program.yaml. Its rows are a table of docs/races.md.
func TestDetectorsCompared(t *testing.T) {
	if !testsize.Long() {
		t.Skip("left to make long")
	}
	var mu sync.Mutex
	var rows []string
	t.Cleanup(func() {
		slices.Sort(rows)
		for _, row := range rows {
			t.Log(row)
		}
	})
	eachBug(t, func(t *testing.T, p Program) {
		bin := build(t, p, Variant{Form: Buggy, Debug: true, Optimize: 2})
		args := p.CommandLine(p.Arguments.Test, 4)
		file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		c := machine.DefaultConfig()
		c.Args, c.Dir, c.Control, c.Record = append([]string{bin}, args...), "/", peregrine.ControlConfig(), peregrine.RecordConfig(file)
		peregrine.BindNow(&c)
		if _, err := machine.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		r, err := prediction.Predict(t.Context(), file.Name(), p.Name, prediction.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		all := sourceLines(p, r)
		r.Races = slices.DeleteFunc(r.Races, func(x *report.Race) bool { return x.Witness != nil })
		own := sourceLines(p, r)
		predicted := without(all, own)
		for _, x := range predicted {
			if !slices.ContainsFunc(p.Races, func(r Race) bool { return slices.Contains(r.Lines, x) || slices.Contains(r.Also, x) }) {
				t.Errorf("a race is predicted at %s, which program.yaml does not name", x)
			}
		}
		counts, others := "", []string{}
		for _, d := range detectors {
			v := d.variant
			v.Form = Buggy
			if !v.Sanitize {
				v.Optimize = 2
			}
			_, log := d.watch(t, p.limit(), build(t, p, v), args)
			lines := d.lines(p, log)
			others = append(others, lines...)
			counts += fmt.Sprintf(" %d |", len(lines))
		}
		slices.SortFunc(others, byLine)
		others = slices.Compact(others)
		mu.Lock()
		defer mu.Unlock()
		rows = append(rows, fmt.Sprintf("| %s | %d | %d |%s %s | %s |", p.Name, len(own), len(predicted), counts,
			numbers(without(all, others)), numbers(without(others, all))))
	})
}

// numbers lists the lines of a list of places.
func numbers(places []string) string {
	var list []string
	for _, x := range places {
		_, line, _ := strings.Cut(x, ":")
		list = append(list, line)
	}
	return strings.Join(list, ", ")
}
