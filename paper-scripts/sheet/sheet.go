// Package sheet has the results of a paper's table or figure as data: the cells with the paper's own
// beside them, the pairs of columns to compare, and the plot.
//
// The programs under paper-scripts print sheets as JSON (--format json); paper-scripts/papers makes its
// report and parts of the documents from sheets alone, and runs nothing for them.
package sheet

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/heddle-dmt/heddle/experiments/plots"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
)

// Sheet is a table or figure.
type Sheet struct {
	// Name is unique among those of a program, such as "table4".
	Name   string         `json:"name"`
	Title  string         `json:"title"`
	Config string         `json:"config,omitempty"` // the configuration file
	Head   []table.Column `json:"head"`
	Rows   [][]string     `json:"rows"`
	Notes  []string       `json:"notes,omitempty"`
	Pairs  []Pair         `json:"pairs,omitempty"`
	Chart  *Chart         `json:"chart,omitempty"`
}

// Pair are columns, by their keys, with values of ours and the paper's of the same quantity.
type Pair struct {
	Ours  string `json:"ours"`
	Paper string `json:"paper"`
	// Scale is by how much ours is multiplied to have the unit of the paper's; 0 is 1.
	Scale float64 `json:"scale,omitempty"`
}

// New makes a sheet of a table. Columns whose keys are KEY and paper_KEY are compared, besides those of
// pairs that name columns of the table.
func New(name, title string, t *table.Table, pairs []Pair, chart *Chart) *Sheet {
	s := &Sheet{Name: name, Title: title, Head: t.Head, Rows: t.Rows, Notes: t.Notes, Chart: chart}
	named := map[string]bool{}
	for _, p := range pairs {
		if t.Find(p.Ours) >= 0 && t.Find(p.Paper) >= 0 {
			s.Pairs = append(s.Pairs, p)
			named[p.Ours], named[p.Paper] = true, true
		}
	}
	for _, c := range t.Head {
		if paper := "paper_" + c.Key; !named[c.Key] && !named[paper] && t.Find(paper) >= 0 {
			s.Pairs = append(s.Pairs, Pair{Ours: c.Key, Paper: paper})
		}
	}
	return s
}

// Table is the sheet without pairs and chart.
func (s *Sheet) Table() *table.Table {
	return &table.Table{Head: s.Head, Rows: s.Rows, Notes: s.Notes}
}

// Cell is a row's cell in the column with a key, or "".
func (s *Sheet) Cell(row int, key string) string {
	at := s.Table().Find(key)
	if at < 0 {
		return ""
	}
	return s.Rows[row][at]
}

// RowName is the name of a row: its first cell, or the first two if the first ones repeat.
func (s *Sheet) RowName(row int) string {
	for other := range s.Rows {
		if other != row && s.Rows[other][0] == s.Rows[row][0] && len(s.Head) > 1 {
			return s.Rows[row][0] + " " + s.Rows[row][1]
		}
	}
	return s.Rows[row][0]
}

// Plot is the sheet's plot, nil if it is no figure.
func (s *Sheet) Plot() (*plots.Plot, error) {
	if s.Chart == nil {
		return nil, nil
	}
	p, err := s.Chart.plot(s)
	if err != nil {
		return nil, fmt.Errorf("plot of %s: %w", s.Name, err)
	}
	return p, nil
}

// Write writes sheets as JSON.
func Write(w io.Writer, sheets []*Sheet) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(sheets)
}

// Read reads sheets, and checks that each row has as many cells as its head.
func Read(r io.Reader) (sheets []*Sheet, err error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&sheets); err != nil {
		return nil, err
	}
	for _, s := range sheets {
		if s == nil || s.Name == "" || len(s.Head) == 0 {
			return nil, fmt.Errorf("a table has no name, or no columns")
		}
		for i, cells := range s.Rows {
			if len(cells) != len(s.Head) {
				return nil, fmt.Errorf("%s: row %d has %d cells and the head %d", s.Name, i+1, len(cells), len(s.Head))
			}
		}
	}
	return sheets, nil
}
