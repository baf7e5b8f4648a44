package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

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
			{Name: "paper", Key: "paper_mean"},
			{Name: "median", Key: "median", Number: true},
			{Name: "least", Key: "least", Number: true},
			{Name: "greatest", Key: "greatest", Number: true},
			{Name: "paper", Key: "paper_greatest"},
			{Name: "the paper's programs", Key: "of"},
			{Name: "one schedule for all seeds", Key: "one", Number: true},
			{Name: "one for all inputs", Key: "stable", Number: true},
			{Name: "racy lines left", Key: "lines", Number: true},
		},
		Notes: []string{
			"Times are virtual, in times of that under timed; the mean is geometric.",
			fmt.Sprintf("Schedules are orders of operations over %d seeds with noise, delays and 1 to %d cores (4 seeds of Debian's programs), and over %d inputs of the same size. With hints the operations in performance-critical sections do not count.", s.Runs, s.Cores, s.Inputs),
			fmt.Sprintf("Racy lines left are source lines of the programs with bugs whose order was not the same in %d runs.", s.Races),
		},
	}
	for _, system := range systems() {
		paper := s.Reported[system]
		numbers := []string{"-", "-", "-", "-"}
		if _, values := column(t, system, "overhead"); len(values) > 0 {
			slices.Sort(values)
			for i, v := range []float64{geometricMean(values), values[len(values)/2], values[0], values[len(values)-1]} {
				numbers[i] = fmt.Sprintf("%.2f", v)
			}
		}
		out.Rows = append(out.Rows, []string{
			system, numbers[0], cmp.Or(paper.Mean, "-"), numbers[1], numbers[2], numbers[3], cmp.Or(paper.Greatest, "-"), cmp.Or(paper.Of, "-"),
			share(t, system, "schedules"), share(t, system, "inputs"), total(t, system),
		})
	}
	return out, nil
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

func layOverhead(_ *study.Options, t *table.Table) (*table.Table, error) {
	return matrix(t, systems()[1:], valueOf("overhead")), nil
}

func laySchedules(_ *study.Options, t *table.Table) (*table.Table, error) {
	return matrix(t, systems(), func(row map[string]string) string {
		if _, ok := number(row["schedules"]); !ok {
			return ""
		}
		return strings.TrimSuffix(row["schedules"]+", "+row["inputs"], ", -")
	}), nil
}

func layRaces(_ *study.Options, t *table.Table) (*table.Table, error) {
	return matrix(t, systems()[:len(systems())-1], valueOf("lines")), nil
}
