package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/sched"
)

// laidOut are the tables that were laid out, by name, for the page of documentation.
var laidOut = map[string]*table.Table{}

// keep notes a table for the page.
func keep(name string, t *table.Table) *table.Table {
	laidOut[name] = t
	return t
}

// column returns the numbers of a system in a column, by program.
func column(t *table.Table, system, key string) (programs []string, values []float64) {
	for _, row := range study.Cells(t) {
		if v, ok := number(row[key]); ok && row["system"] == system {
			programs, values = append(programs, row["program"]), append(values, v)
		}
	}
	return programs, values
}

// geometricMean is that of values above 0, of which there is one at least.
func geometricMean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}

// laySystems has a row for each system.
func laySystems(o *study.Options, t *table.Table) (*table.Table, error) {
	s, err := loadSettings(o)
	if err != nil {
		return nil, err
	}
	out := &table.Table{
		Head: []table.Column{
			{Name: "system", Key: "system"},
			{Name: "mean time", Key: "mean", Number: true},
			{Name: "median", Key: "median", Number: true},
			{Name: "least", Key: "least", Number: true},
			{Name: "greatest", Key: "greatest", Number: true},
			{Name: "paper", Key: "paper"},
			{Name: "one schedule for all seeds", Key: "one", Number: true},
			{Name: "one for all inputs", Key: "stable", Number: true},
			{Name: "racy lines left", Key: "lines", Number: true},
		},
		Notes: []string{
			"Times are virtual, in times of that under timed; the mean is geometric.",
			fmt.Sprintf("Schedules are orders of operations over %d seeds with noise, delays and 1 to %d cores (4 seeds of Debian's programs), and over %d data of the same size.", s.Runs, s.Cores, s.Inputs),
			fmt.Sprintf("Racy lines left are source lines of the programs with bugs whose order was not the same in %d runs.", s.Races),
		},
	}
	for _, system := range systems() {
		row := []string{system, "-", "-", "-", "-", paperValue(s, system)}
		if _, values := column(t, system, "overhead"); len(values) > 0 {
			slices.Sort(values)
			row = append(row[:1], fmt.Sprintf("%.2f", geometricMean(values)), fmt.Sprintf("%.2f", values[len(values)/2]),
				fmt.Sprintf("%.2f", values[0]), fmt.Sprintf("%.2f", values[len(values)-1]), row[5])
		}
		out.Rows = append(out.Rows, append(row, share(t, system, "schedules"), share(t, system, "inputs"), total(t, system)))
	}
	return keep("systems", out), nil
}

func paperValue(s *settings, system string) string {
	if v := s.Reported[system]; v != "" {
		return v
	}
	return "-"
}

// share says for how many programs a count is 1.
func share(t *table.Table, system, key string) string {
	_, values := column(t, system, key)
	one := 0
	for _, v := range values {
		if v == 1 {
			one++
		}
	}
	if len(values) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", one, len(values))
}

// total is the number of lines of all programs with bugs.
func total(t *table.Table, system string) string {
	_, values := column(t, system, "lines")
	if len(values) == 0 {
		return "-"
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return fmt.Sprintf("%.0f", sum)
}

// matrix has a row for each program that has a value in a column, and a column for each system.
func matrix(t *table.Table, list []string, cell func(row map[string]string) string) *table.Table {
	out := &table.Table{Head: []table.Column{{Name: "program", Key: "program"}}}
	for _, system := range list {
		out.Head = append(out.Head, table.Column{Name: system, Key: system, Number: true})
	}
	at := map[string]int{}
	for _, row := range study.Cells(t) {
		text, k := cell(row), slices.Index(list, row["system"])
		if text == "" || k < 0 {
			continue
		}
		if _, ok := at[row["program"]]; !ok {
			at[row["program"]] = len(out.Rows)
			out.Rows = append(out.Rows, append([]string{row["program"]}, slices.Repeat([]string{"-"}, len(list))...))
		}
		out.Rows[at[row["program"]]][k+1] = text
	}
	return out
}

// valueOf is the cell of a key, or empty.
func valueOf(key string) func(map[string]string) string {
	return func(row map[string]string) string { return strings.TrimPrefix(row[key], "-") }
}

func layOverhead(o *study.Options, t *table.Table) (*table.Table, error) {
	out := keep("overhead", matrix(t, systems()[1:], valueOf("overhead")))
	return out, drawOverhead(o, out)
}

func laySchedules(_ *study.Options, t *table.Table) (*table.Table, error) {
	return keep("schedules", matrix(t, systems(), func(row map[string]string) string {
		if _, ok := number(row["schedules"]); !ok {
			return ""
		}
		return strings.TrimSuffix(row["schedules"]+", "+row["inputs"], ", -")
	})), nil
}

func layRaces(_ *study.Options, t *table.Table) (*table.Table, error) {
	return keep("races", matrix(t, systems()[:len(systems())-1], valueOf("lines"))), nil
}

// drawOverhead draws the overheads beside the results.
func drawOverhead(o *study.Options, t *table.Table) error {
	if !plots.IsInstalled() {
		o.Say("no figure is drawn: %s is not in PATH (make build, and put bin there)", plots.Program)
		return nil
	}
	one := 1.0
	p := plots.Plot{
		Title: "Virtual time under systems for deterministic multithreading", Kind: plots.Bars,
		Y: plots.Axis{Title: "times of that under " + sched.Timed, Log: true}, Reference: &one,
	}
	for _, row := range t.Rows {
		p.Categories = append(p.Categories, row[0])
	}
	for k, c := range t.Head[1:] {
		series := plots.Series{Name: c.Name}
		for i, row := range t.Rows {
			point := plots.Point{X: float64(i)}
			if v, ok := number(row[k+1]); ok {
				point.Y = &v
			}
			series.Points = append(series.Points, point)
		}
		p.Series = append(p.Series, series)
	}
	folder := o.Flags.Lookup("store").Value.String()
	return plots.Draw(p, []string{filepath.Join(folder, "overhead.svg"), filepath.Join(folder, "overhead.png")})
}

// replaceParts puts tables into a page, between the comments that name them.
func replaceParts(page string, tables map[string]*table.Table) (string, error) {
	for name, t := range tables {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
		before, rest, found := strings.Cut(page, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			return "", fmt.Errorf("the page has no lines %q and %q", strings.TrimSpace(begin), end)
		}
		page = before + begin + markdown(t) + end + after
	}
	return page, nil
}

// markdown is a table as the documentation has it.
func markdown(t *table.Table) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	var names []string
	for _, c := range t.Head {
		names = append(names, c.Name)
	}
	line(names)
	line(slices.Repeat([]string{"---"}, len(names)))
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}
