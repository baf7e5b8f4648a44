package sweep

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"

	"github.com/heddle-dmt/heddle/experiments/sweep/parquetfile"
	"github.com/heddle-dmt/heddle/experiments/sweep/store"
)

// Export writes the stored runs as CSV or as Parquet, one a row in the plan's order, for pandas, R and others: a column
// for each parameter, argument, measure and value; numbers with all their digits; a number that is
// missing is an empty field of CSV, and null in Parquet. docs/experiments.md describes the columns.
func (x *Experiment) Export(o Options, asParquet bool, w io.Writer) error {
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
	var rows [][]string
	for i, r := range found {
		if r.stored {
			rows = append(rows, x.exportCells(plan.Runs[i/x.Repetitions].Point, i%x.Repetitions+1, r))
		}
	}
	switch {
	case len(rows) == 0:
		return errNothingStored.New(len(found), x.path, x.StorePath(o))
	case asParquet:
		t := parquetfile.Table{Columns: x.exportColumns(), Rows: rows}
		return t.Write(w)
	}
	out := csv.NewWriter(w)
	var head []string
	for _, column := range x.exportColumns() {
		head = append(head, column.Name)
	}
	_ = out.Write(head)
	_ = out.WriteAll(rows)
	return out.Error()
}

func (x *Experiment) exportColumns() []parquetfile.Column {
	columns := []parquetfile.Column{{Name: "experiment", Kind: parquetfile.Text}}
	for _, p := range x.parameters() {
		kind := parquetfile.Text
		if p.name == "cores" || p.name == "threads" || p.name == "capacity" {
			kind = parquetfile.Integer
		}
		columns = append(columns, parquetfile.Column{Name: p.name, Kind: kind})
	}
	columns = append(columns, []parquetfile.Column{
		{Name: "seed", Kind: parquetfile.Unsigned},
		{Name: "repetition", Kind: parquetfile.Integer},
		{Name: "outcome", Kind: parquetfile.Text},
		{Name: "exit_code", Kind: parquetfile.Integer},
		{Name: "failure_class", Kind: parquetfile.Text},
		{Name: "as_native", Kind: parquetfile.Boolean},
		{Name: "failure", Kind: parquetfile.Text},
		{Name: "outdated", Kind: parquetfile.Boolean},
	}...)
	for _, m := range x.measures() {
		kind := parquetfile.Real
		if m.whole {
			kind = parquetfile.Integer
		}
		columns = append(columns, parquetfile.Column{Name: m.name, Kind: kind})
	}
	return append(columns, parquetfile.Column{Name: "digest", Kind: parquetfile.Text}, parquetfile.Column{Name: "schedule_digest", Kind: parquetfile.Text})
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
