package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
)

// The parts of documents that are made of results are between two such lines. The first one names a table and,
// after it, the keys of the columns wanted, or none for all, each with another head if it has one:
//
//	<!-- begin: make papers peregrine/table4 program trace=thousands paper_trace -->
//	<!-- end: make papers -->
var part = regexp.MustCompile(`(?s)(<!-- begin: make papers ([a-z0-9]+)/([a-z0-9]+)((?: [^\n]*)?) -->\n)(.*?)(<!-- end: make papers -->)`)

// Update returns a document with its parts made of results anew.
func Update(text string, results []*Result) (updated string, err error) {
	sheets := map[string]*sheet.Sheet{}
	about := map[string]*Result{}
	for _, r := range results {
		for _, s := range r.Sheets {
			sheets[r.Program+"/"+s.Name], about[r.Program+"/"+s.Name] = s, r
		}
	}
	if strings.Count(text, "<!-- begin: make papers") != len(part.FindAllString(text, -1)) {
		return "", fmt.Errorf("a part that begins with <!-- begin: make papers PROGRAM/TABLE COLUMN... --> has no end")
	}
	updated = part.ReplaceAllStringFunc(text, func(old string) string {
		m := part.FindStringSubmatch(old)
		name := m[2] + "/" + m[3]
		s := sheets[name]
		if s == nil {
			err = fmt.Errorf("there is no result for %s", name)
			return old
		}
		made, e := markdown(s, about[name], strings.TrimSpace(m[4]))
		if e != nil {
			err = fmt.Errorf("%s: %w", name, e)
			return old
		}
		return m[1] + made + m[6]
	})
	return updated, err
}

// wanted is a column of a part: its place in the sheet, and its head.
type wanted struct {
	at   int
	name string
}

// wantedColumns reads the columns of a part: KEY, or KEY=HEAD with _ for spaces.
func wantedColumns(s *sheet.Sheet, text string) (list []wanted, err error) {
	if text == "" {
		for i, c := range s.Head {
			list = append(list, wanted{i, c.Name})
		}
		return list, nil
	}
	for _, word := range strings.Fields(text) {
		key, name, renamed := strings.Cut(word, "=")
		at := slices.IndexFunc(s.Head, func(c table.Column) bool { return c.Key == key })
		if at < 0 {
			return nil, fmt.Errorf("the table has no column %s", key)
		}
		if !renamed {
			name = s.Head[at].Name
		}
		list = append(list, wanted{at, strings.ReplaceAll(name, "_", " ")})
	}
	return list, nil
}

// markdown is a table of some columns, with its notes of figures that are computed from it.
func markdown(s *sheet.Sheet, r *Result, columns string) (string, error) {
	list, err := wantedColumns(s, columns)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(cell func(wanted) string) {
		for _, c := range list {
			text := strings.TrimSpace(cell(c))
			if text == "" {
				text = " "
			} else {
				text = " " + strings.ReplaceAll(text, "|", `\|`) + " "
			}
			b.WriteString("|" + text)
		}
		b.WriteString("|\n")
	}
	line(func(c wanted) string { return c.name })
	line(func(c wanted) string {
		if s.Head[c.at].Number {
			return "--:"
		}
		return "---"
	})
	for _, row := range s.Rows {
		line(func(c wanted) string { return row[c.at] })
	}
	if r.Size != "default" {
		fmt.Fprintf(&b, "\nMeasured at the size `--%s`.\n", r.Size)
	}
	return b.String(), nil
}
