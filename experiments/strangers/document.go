package strangers

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
)

//go:embed document.md
var introduction string

// marker is the line of the document's introduction at which the results are inserted.
const marker = "RESULTS\n"

// WriteDocument writes the page of the documentation: what the cells mean, and the results.
func (m *Matrix) WriteDocument(w io.Writer) error {
	head, tail, _ := strings.Cut(introduction, marker)
	_, err := io.WriteString(w, head+m.document()+tail)
	return err
}

func (m *Matrix) document() string {
	var b strings.Builder
	works, all := m.Count(Works)
	fmt.Fprintf(&b, "%d of %d cells work (%.0f %%).\n\n", works, all, percent(works, all))
	b.WriteString("| column | works | weaker | refused | limit | defect | what works means, and the figures of a cell |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for j, c := range Columns() {
		fmt.Fprintf(&b, "| %s |", c.Title)
		for _, state := range states {
			fmt.Fprintf(&b, " %d |", m.countColumn(j, state))
		}
		fmt.Fprintf(&b, " %s |\n", c.About)
	}
	b.WriteString("\n## The matrix\n\n| program | language, threads |")
	for _, c := range Columns() {
		fmt.Fprintf(&b, " %s |", c.Title)
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", 2+len(Columns())) + "\n")
	notes := m.notes()
	for i, row := range m.Cells {
		p := m.Corpus.Programs[i]
		fmt.Fprintf(&b, "| %s | %s |", p.Name, describeThreads(p))
		for _, cell := range row {
			fmt.Fprintf(&b, " %s |", describeCell(cell, notes))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n## What does not work\n\n")
	for i, text := range notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, escape(text))
	}
	return b.String()
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

func describeThreads(p Program) string {
	if p.Language == p.Threads {
		return p.Language
	}
	return p.Language + ", " + p.Threads
}

func (m *Matrix) countColumn(column int, state State) (n int) {
	for _, row := range m.Cells {
		if row[column] != nil && row[column].State == state {
			n++
		}
	}
	return n
}

// notes are the sentences of cells that do not work, each once, in the order of the table.
func (m *Matrix) notes() (list []string) {
	m.eachCell(func(_ Program, _ Column, cell *Cell) {
		if cell != nil && cell.State != Works && !slices.Contains(list, cell.Text) {
			list = append(list, cell.Text)
		}
	})
	return list
}

// describeCell has the figures of a cell that works, and the state and the number of the sentence of
// another.
func describeCell(cell *Cell, notes []string) string {
	switch {
	case cell == nil:
		return "-"
	case cell.State == Works:
		return escape(cell.Text)
	}
	return fmt.Sprintf("**%s** (%d)", cell.State, 1+slices.Index(notes, cell.Text))
}

// escape makes a text fit into a table of Markdown.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "\n", " ").Replace(text)
}
