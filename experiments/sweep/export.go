package sweep

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
)

// Export writes the stored runs as CSV, one a line in the plan's order, for pandas, R and others: a column
// for each parameter, argument, measure and value; numbers with all their digits; a number that is
// missing is an empty field. docs/experiments.md describes the columns.
func (x *Experiment) Export(o Options, w io.Writer) error {
	results, err := store.OpenExisting(x.StorePath(o))
	if err != nil {
		return err
	}
	defer results.Close()
	plan, err := x.Plan(o)
	if err != nil {
		return err
	}
	c := &collection{store: results, x: x}
	found, err := c.readRuns(plan)
	if err != nil {
		return err
	}
	out := csv.NewWriter(w)
	_ = out.Write(x.exportHead())
	written := 0
	for i, r := range found {
		if r.stored {
			_ = out.Write(x.exportCells(plan.Runs[i/x.Repetitions].Point, i%x.Repetitions+1, r))
			written++
		}
	}
	if written == 0 {
		return errNothingStored.New(len(found), x.path, x.StorePath(o))
	}
	out.Flush()
	return out.Error()
}

func (x *Experiment) exportHead() []string {
	head := []string{"experiment"}
	for _, p := range x.parameters() {
		head = append(head, p.name)
	}
	head = append(head, "seed", "repetition", "outcome", "exit_code", "failure_class", "as_native", "failure", "outdated")
	for _, m := range x.measures() {
		head = append(head, m.name)
	}
	return append(head, "digest", "schedule_digest")
}

func (x *Experiment) exportCells(at Point, repetition int, r result) []string {
	cells := []string{x.Name}
	for _, p := range x.parameters() {
		value := p.value(at)
		if value == missing {
			value = ""
		}
		cells = append(cells, value)
	}
	native, exit := "", ""
	if r.hasNative {
		native = strconv.FormatBool(r.identical)
	}
	if r.measures != nil {
		exit = strconv.Itoa(r.exit)
	}
	cells = append(cells, strconv.FormatUint(at.Seed, 10), strconv.Itoa(repetition), r.outcome, exit, r.class, native, r.failure, strconv.FormatBool(r.stale))
	for i := range x.measures() {
		cell := ""
		if r.measures != nil && !math.IsNaN(r.measures[i]) {
			cell = strconv.FormatFloat(r.measures[i], 'f', -1, 64)
		}
		cells = append(cells, cell)
	}
	return append(cells, r.digest, r.schedule)
}
