// Package parquetfile describes tables with types, and has program heddle-plot write them as Parquet. Package encode,
// below this one, does so: it is not part of heddle itself, because its library would make every start of
// heddle slower.
package parquetfile

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/ownprogram"
)

var errWrite = errs.Define("parquet-not-written",
	"cannot write the table as Parquet",
	"The program heddle-plot, which writes Parquet, cannot be started, or fails; the rest of the sentence says why.",
	"Build it beside heddle with `make build`, or install the whole package. Without --parquet the table is written as CSV.")

// Argument is the argument with which the program reads a Table as JSON and writes Parquet.
const Argument = "parquet"

// Kind is the type of a column's values.
type Kind string

// The kinds of columns.
const (
	Text     Kind = "text"
	Integer  Kind = "integer"
	Unsigned Kind = "unsigned"
	Real     Kind = "real"
	Boolean  Kind = "boolean"
)

// Column is a column of a Table.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
}

// Table is rows of cells, which are values of their columns' kinds as texts; an empty one is missing.
type Table struct {
	Columns []Column   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Write writes the table as Parquet.
func (t *Table) Write(w io.Writer) error {
	text, err := json.Marshal(t)
	if err != nil {
		return errWrite.Wrap(err)
	}
	if err := ownprogram.Run(bytes.NewReader(text), w, plots.Program, Argument); err != nil {
		return errWrite.Wrap(err)
	}
	return nil
}
