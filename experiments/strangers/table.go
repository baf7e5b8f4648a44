package strangers

import (
	"fmt"
	"io"
	"strings"
)

// eachCell visits all cells, row by row.
func (m *Matrix) eachCell(visit func(p Program, c Column, cell *Cell)) {
	for i, row := range m.Cells {
		for j, cell := range row {
			visit(m.Corpus.Programs[i], Columns()[j], cell)
		}
	}
}

// Count returns the number of cells in a state, and of all that were run.
func (m *Matrix) Count(state State) (n, all int) {
	m.eachCell(func(_ Program, _ Column, cell *Cell) {
		if cell != nil {
			all++
			if cell.State == state {
				n++
			}
		}
	})
	return n, all
}

// word is a cell in the matrix on a terminal.
func word(cell *Cell) string {
	if cell == nil {
		return "-"
	}
	return string(cell.State)
}

// Write prints the matrix, and a line for each cell that does not work.
func (m *Matrix) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-15s", "")
	for _, c := range Columns() {
		fmt.Fprintf(&b, "%-11s", c.Name)
	}
	b.WriteString("\n")
	for i, row := range m.Cells {
		fmt.Fprintf(&b, "%-15s", m.Corpus.Programs[i].Name)
		for _, cell := range row {
			fmt.Fprintf(&b, "%-11s", word(cell))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	m.eachCell(func(p Program, c Column, cell *Cell) {
		if cell != nil && cell.State != Works {
			fmt.Fprintf(&b, "%s, %s: %s: %s\n", p.Name, c.Name, cell.State, cell.Text)
		}
	})
	works, all := m.Count(Works)
	fmt.Fprintf(&b, "%d of %d cells work (%.0f %%)\n", works, all, percent(works, all))
	_, err := io.WriteString(w, b.String())
	return err
}
