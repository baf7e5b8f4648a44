// Package report makes the report about the papers' tables and figures from their results: each beside the
// paper's own numbers, with ratios and the reasons for differences, as one HTML page and as a PDF; and the
// tables of the documents.
//
// It reads results alone, and runs nothing.
package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
)

// Result has the tables that a step of a paper's program has made.
type Result struct {
	Program   string   `json:"program"`
	Artefacts []string `json:"artefacts"`
	// Size and Flags say how it was measured.
	Size  string   `json:"size"`
	Flags []string `json:"flags,omitempty"`
	// Error is why the step failed, or empty. Sheets then have the rows that there are.
	Error  string         `json:"error,omitempty"`
	Sheets []*sheet.Sheet `json:"sheets"`
}

// Reason is why values differ from the paper's.
type Reason struct {
	// In are the tables and figures, Columns the keys of columns of ours and Rows the names of rows; a list that
	// is empty stands for all.
	In      []string `mapstructure:"in"`
	Columns []string `mapstructure:"columns"`
	Rows    []string `mapstructure:"rows"`
	// Size is the only size at which it holds, or empty.
	Size string `mapstructure:"size"`
	Text string `mapstructure:"text"`
}

// Paper is a paper with its results.
type Paper struct {
	Program, Title, Citation string
	Why                      []Reason
	Results                  []*Result
}

// Report is about all papers.
type Report struct {
	// Size is that of the runs, and About are sentences about the host and the time.
	Size   string
	About  []string
	Papers []*Paper
}

// Table is a table or figure as the report shows it.
type Table struct {
	*sheet.Sheet
	Program, Command, Run, Error string
	// Columns are the sheet's that have a text in any row, with a column of ratios after each of the paper's that is
	// compared.
	Columns []table.Column
	Rows    []Row
	// Reasons are numbered from 1 on; rows refer to them.
	Reasons []string
}

// Row is a row of a Table.
type Row struct {
	Cells []Cell
	// Reasons are numbers of reasons for its differences, and Unexplained the columns that differ without one.
	Reasons     []int
	Unexplained []string
}

// Cell is a cell. A ratio says whether it is one that differs by more than two times.
type Cell struct {
	Text           string
	Ratio, Differs bool
}

// Tables lays out all that the paper has.
func (p *Paper) Tables() (list []*Table) {
	for _, r := range p.Results {
		if len(r.Sheets) == 0 {
			for _, name := range r.Artefacts {
				list = append(list, p.table(r, &sheet.Sheet{Name: name, Title: name}))
			}
		}
		for _, s := range r.Sheets {
			list = append(list, p.table(r, s))
		}
	}
	return list
}

// table compares a sheet's values with the paper's.
func (p *Paper) table(r *Result, s *sheet.Sheet) *Table {
	t := &Table{
		Sheet: s, Program: p.Program, Error: r.Error,
		Command: "heddle papers " + sizeFlag(r.Size) + p.Program + "/" + s.Name,
		Run:     strings.Join(slices.Concat([]string{"go run ./paper-scripts/" + p.Program}, r.Flags, []string{s.Name}), " "),
	}
	ratios := map[string][]sheet.Pair{} // by the column that a ratio is right of
	for _, pair := range s.Pairs {
		known := false
		for row := range s.Rows {
			_, found := pair.Compare(s.Cell(row, pair.Ours), s.Cell(row, pair.Paper))
			known = known || found
		}
		if known {
			after := pair.Paper
			if s.Table().Find(pair.Ours) > s.Table().Find(after) {
				after = pair.Ours
			}
			ratios[after] = append(ratios[after], pair)
		}
	}
	for i, c := range s.Head {
		if isEmpty(s, i) {
			continue
		}
		t.Columns = append(t.Columns, c)
		for _, pair := range ratios[c.Key] {
			t.Columns = append(t.Columns, table.Column{Name: "ratio", Key: "ratio_" + pair.Ours, Number: true})
		}
	}
	used := map[string]int{}
	for row := range s.Rows {
		t.Rows = append(t.Rows, p.row(r, t, row, ratios, used))
	}
	return t
}

// Remarks are the notes, of which one that does not end a sentence goes on with the next one.
func (t *Table) Remarks() (list []string) {
	for _, note := range t.Notes {
		if n := len(list); n > 0 && !strings.HasSuffix(list[n-1], ".") {
			list[n-1] += " " + note
			continue
		}
		list = append(list, note)
	}
	return list
}

// HasReasons reports whether a row has a reason, or lacks one.
func (t *Table) HasReasons() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return len(r.Reasons)+len(r.Unexplained) > 0 })
}

// isEmpty reports whether no row has a text in a column.
func isEmpty(s *sheet.Sheet, column int) bool {
	return len(s.Rows) > 0 && !slices.ContainsFunc(s.Rows, func(cells []string) bool { return cells[column] != "" })
}

// sizeFlag is a size's, with a space.
func sizeFlag(size string) string {
	if size == "default" || size == "" {
		return ""
	}
	return "--" + size + " "
}

// row lays a row out. used has the numbers of the table's reasons.
func (p *Paper) row(r *Result, t *Table, row int, ratios map[string][]sheet.Pair, used map[string]int) Row {
	s := t.Sheet
	var out Row
	for i, c := range s.Head {
		if isEmpty(s, i) {
			continue
		}
		out.Cells = append(out.Cells, Cell{Text: s.Rows[row][i]})
		for _, pair := range ratios[c.Key] {
			compared, known := pair.Compare(s.Cell(row, pair.Ours), s.Cell(row, pair.Paper))
			cell := Cell{Text: "-", Ratio: true}
			if known {
				cell.Text, cell.Differs = compared.Format(), compared.Differs
			}
			out.Cells = append(out.Cells, cell)
			if !cell.Differs {
				continue
			}
			own := s.Cell(row, "why") != "" && s.Cell(row, "why") != "-" || s.Cell(row, "remark") != ""
			for _, reason := range p.Why {
				if !reason.holds(s.Name, pair.Ours, s.RowName(row), r.Size) {
					continue
				}
				own = true
				n, known := used[reason.Text]
				if !known {
					t.Reasons = append(t.Reasons, reason.Text)
					n = len(t.Reasons)
					used[reason.Text] = n
				}
				if !slices.Contains(out.Reasons, n) {
					out.Reasons = append(out.Reasons, n)
				}
			}
			if !own {
				out.Unexplained = append(out.Unexplained, pair.Ours)
			}
		}
	}
	slices.Sort(out.Reasons)
	return out
}

// holds reports whether a reason is about a value.
func (x *Reason) holds(in, column, row, size string) bool {
	among := func(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }
	return among(x.In, in) && among(x.Columns, column) && among(x.Rows, row) && (x.Size == "" || x.Size == size)
}

// Counts are how many of a table's values have one of the paper's beside them, how many of these differ by
// more than two times, and how many of those have no reason.
func (t *Table) Counts() (compared, differ, unexplained int) {
	for _, row := range t.Rows {
		unexplained += len(row.Unexplained)
		for _, c := range row.Cells {
			if c.Ratio && c.Text != "-" {
				compared++
				if c.Differs {
					differ++
				}
			}
		}
	}
	return compared, differ, unexplained
}

// ID is unique in the report.
func (t *Table) ID() string { return t.Program + "-" + t.Name }

// Failures lists the steps that failed.
func (r *Report) Failures() (list []string) {
	for _, p := range r.Papers {
		for _, x := range p.Results {
			if x.Error != "" {
				list = append(list, fmt.Sprintf("%s %s: %s", x.Program, strings.Join(x.Artefacts, ", "), x.Error))
			}
		}
	}
	return list
}

// Explanation describes the report's columns.
func (r *Report) Explanation() string {
	return "Ratio is our value in times of the paper's or, where the paper gives a range, of the nearer end of it. " +
		"Ratios above 2 or below 0.5, and words that differ, are marked, and the numbers in the last column are those of the reasons below the table. " +
		"In figures a diamond is the paper's value, where it prints one, a line with two ends a range, and an arrow a bound."
}
