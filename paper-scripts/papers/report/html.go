package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/plots/draw"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"picture": picture,
	"counts": func(t *Table) map[string]int {
		compared, differ, unexplained := t.Counts()
		return map[string]int{"compared": compared, "differ": differ, "unexplained": unexplained}
	},
	"numbers": func(n []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(n), " ", ", "), "[]") },
	"next":    func(i int) int { return i + 1 },
	"join":    func(list []string) string { return strings.Join(list, ", ") },
}).Parse(pageText))

// WriteHTML writes the report as one page that needs no other file.
func (r *Report) WriteHTML(w io.Writer) error {
	var b bytes.Buffer
	if err := page.Execute(&b, r); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// picture is a figure as SVG within the page; a table has none.
func picture(t *Table) (template.HTML, error) {
	if len(t.Sheet.Rows) == 0 {
		return "", nil
	}
	p, err := t.Plot()
	if p == nil || err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := draw.Write(&b, *p, "svg"); err != nil {
		return "", fmt.Errorf("%s: %w", t.ID(), err)
	}
	text := b.String()
	return template.HTML(text[max(strings.Index(text, "<svg"), 0):]), nil // without the head of an XML file
}
