// Package table lays out results as text, CSV or LaTeX. It knows nothing of
// their meaning.
package table

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// The formats.
const (
	Text  = "text"
	CSV   = "csv"
	LaTeX = "latex"
)

// Formats lists the formats, the default first.
func Formats() []string { return []string{Text, CSV, LaTeX} }

// Table is a table with a head. Each row has as many cells as the head.
type Table struct {
	Head []Column
	Rows [][]string
	// Notes are sentences below a text table; the other formats leave them
	// out, for they are read by programs.
	Notes []string
}

// Column is the head of a column.
type Column struct {
	// Name stands in text and LaTeX, Key in CSV.
	Name, Key string
	// Number aligns the column to the right.
	Number bool
}

// Find returns the place of the column with a key, or -1.
func (t *Table) Find(key string) int {
	return slices.IndexFunc(t.Head, func(c Column) bool { return c.Key == key })
}

// Write writes the table in a format of Formats.
func (t *Table) Write(w io.Writer, format string) error {
	switch format {
	case CSV:
		return t.writeCSV(w)
	case LaTeX:
		return t.writeLaTeX(w)
	}
	return t.writeText(w)
}

func (t *Table) writeText(w io.Writer) error {
	layout := table.NewWriter()
	layout.SetStyle(table.StyleLight)
	layout.Style().Format.Header = text.FormatDefault
	layout.Style().Options.DrawBorder = false
	layout.Style().Options.SeparateColumns = false
	var head table.Row
	var columns []table.ColumnConfig
	for i, column := range t.Head {
		head = append(head, column.Name)
		align := text.AlignLeft
		if column.Number {
			align = text.AlignRight
		}
		columns = append(columns, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	layout.AppendHeader(head)
	layout.SetColumnConfigs(columns)
	for _, row := range t.Rows {
		var cells table.Row
		for _, cell := range row {
			cells = append(cells, cell)
		}
		layout.AppendRow(cells)
	}
	for _, line := range strings.Split(layout.Render(), "\n") {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	for _, note := range t.Notes {
		if _, err := fmt.Fprintln(w, note); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	var keys []string
	for _, column := range t.Head {
		keys = append(keys, column.Key)
	}
	_ = out.Write(keys)
	_ = out.WriteAll(t.Rows)
	return out.Error()
}

var latexEscapes = strings.NewReplacer(
	`\`, `\textbackslash{}`, `&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`,
	`{`, `\{`, `}`, `\}`, `~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`)

// writeLaTeX writes a tabular with the rules of the booktabs package.
func (t *Table) writeLaTeX(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`\begin{tabular}{`)
	var names []string
	for _, column := range t.Head {
		if column.Number {
			b.WriteByte('r')
		} else {
			b.WriteByte('l')
		}
		names = append(names, column.Name)
	}
	b.WriteString("}\n\\toprule\n" + latexRow(names) + "\\midrule\n")
	for _, row := range t.Rows {
		b.WriteString(latexRow(row))
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func latexRow(cells []string) string {
	var escaped []string
	for _, cell := range cells {
		escaped = append(escaped, latexEscapes.Replace(cell))
	}
	return strings.Join(escaped, " & ") + ` \\` + "\n"
}
