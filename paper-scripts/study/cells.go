package study

import (
	"fmt"
	"strconv"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
)

// Cells are those of a table's rows by the keys of their columns.
func Cells(t *table.Table) []map[string]string {
	var rows []map[string]string
	for _, cells := range t.Rows {
		row := map[string]string{}
		for i, c := range t.Head {
			row[c.Key] = cells[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// WithPaperColumns are columns of numbers, each with the paper's to the right.
func WithPaperColumns(columns ...table.Column) (head []table.Column) {
	for _, c := range columns {
		c.Number = true
		head = append(head, c, table.Column{Name: "paper", Key: "paper_" + c.Key, Number: true})
	}
	return head
}

// Number reads a cell that is a number: the paper's may have commas between thousands.
func Number(cell string) (v float64, ok bool) {
	var digits []byte
	for _, c := range []byte(cell) {
		if c != ',' {
			digits = append(digits, c)
		}
	}
	v, err := strconv.ParseFloat(string(digits), 64)
	return v, err == nil
}

// Ratio is one cell over another with some decimals, or "-" if one of them is no number,
// or the second is 0.
func Ratio(a, b string, decimals int) string {
	x, known := Number(a)
	y, also := Number(b)
	if !known || !also || y == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f", decimals, x/y)
}
