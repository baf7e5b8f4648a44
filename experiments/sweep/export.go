package sweep

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"

	"github.com/parquet-go/parquet-go"

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
		return writeParquet(w, x.exportColumns(), rows)
	}
	out := csv.NewWriter(w)
	var head []string
	for _, column := range x.exportColumns() {
		head = append(head, column.name)
	}
	_ = out.Write(head)
	_ = out.WriteAll(rows)
	return out.Error()
}

// exportColumn is a column; kind is that of its values, in Parquet.
type exportColumn struct {
	name string
	kind reflect.Kind
}

func (x *Experiment) exportColumns() []exportColumn {
	columns := []exportColumn{{"experiment", reflect.String}}
	for _, p := range x.parameters() {
		kind := reflect.String
		if p.name == "cores" || p.name == "threads" || p.name == "capacity" {
			kind = reflect.Int64
		}
		columns = append(columns, exportColumn{p.name, kind})
	}
	columns = append(columns, []exportColumn{
		{"seed", reflect.Uint64},
		{"repetition", reflect.Int64},
		{"outcome", reflect.String},
		{"exit_code", reflect.Int64},
		{"failure_class", reflect.String},
		{"as_native", reflect.Bool},
		{"failure", reflect.String},
		{"outdated", reflect.Bool},
	}...)
	for _, m := range x.measures() {
		kind := reflect.Float64
		if m.whole {
			kind = reflect.Int64
		}
		columns = append(columns, exportColumn{m.name, kind})
	}
	return append(columns, exportColumn{"digest", reflect.String}, exportColumn{"schedule_digest", reflect.String})
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

// writeParquet writes rows of cells as a Parquet file, whose columns are optional and of their kinds; an empty cell is
// null.
func writeParquet(w io.Writer, columns []exportColumn, rows [][]string) error {
	types := map[reflect.Kind]reflect.Type{
		reflect.String: reflect.TypeFor[*string](), reflect.Int64: reflect.TypeFor[*int64](), reflect.Uint64: reflect.TypeFor[*uint64](),
		reflect.Float64: reflect.TypeFor[*float64](), reflect.Bool: reflect.TypeFor[*bool](),
	}
	var fields []reflect.StructField
	for i, c := range columns {
		fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: types[c.kind], Tag: reflect.StructTag(`parquet:"` + c.name + `"`)})
	}
	row := reflect.StructOf(fields)
	out := parquet.NewWriter(w, parquet.SchemaOf(reflect.New(row).Interface()), parquet.Compression(&parquet.Snappy))
	for _, cells := range rows {
		values := reflect.New(row)
		for i, cell := range cells {
			if cell == "" {
				continue
			}
			v, err := parseCell(cell, columns[i].kind)
			if err != nil {
				panic(fmt.Sprintf("bug: the column %s is of another kind than its cell: %v", columns[i].name, err))
			}
			to := reflect.New(fields[i].Type.Elem())
			to.Elem().Set(reflect.ValueOf(v))
			values.Elem().Field(i).Set(to)
		}
		if err := out.Write(values.Interface()); err != nil {
			return err
		}
	}
	return out.Close()
}

// parseCell is the value of a cell that is not empty.
func parseCell(cell string, kind reflect.Kind) (any, error) {
	switch kind {
	case reflect.Int64:
		return strconv.ParseInt(cell, 10, 64)
	case reflect.Uint64:
		return strconv.ParseUint(cell, 10, 64)
	case reflect.Float64:
		return strconv.ParseFloat(cell, 64)
	case reflect.Bool:
		return strconv.ParseBool(cell)
	}
	return cell, nil
}
