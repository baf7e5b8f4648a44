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
// after it, the keys of the columns wanted, or none for all, each with another head if it has one (_ for a space),
// and the names of the rows wanted, if not all are:
//
//	<!-- begin: make papers peregrine/table4 program trace=in_thousands paper_trace rows:fft,radix -->
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

// readWanted reads the columns of a part and the names of its rows; none are all.
func readWanted(s *sheet.Sheet, text string) (list []wanted, rows []string, err error) {
	for _, word := range strings.Fields(text) {
		if names, found := strings.CutPrefix(word, "rows:"); found {
			rows = strings.Split(names, ",")
			continue
		}
		key, name, renamed := strings.Cut(word, "=")
		at := slices.IndexFunc(s.Head, func(c table.Column) bool { return c.Key == key })
		if at < 0 {
			return nil, nil, fmt.Errorf("the table has no column %s", key)
		}
		if !renamed {
			name = s.Head[at].Name
		}
		list = append(list, wanted{at, strings.ReplaceAll(name, "_", " ")})
	}
	for _, name := range rows {
		if !slices.ContainsFunc(s.Rows, func(cells []string) bool { return cells[0] == name }) {
			return nil, nil, fmt.Errorf("the table has no row %s", name)
		}
	}
	if len(list) == 0 {
		for i, c := range s.Head {
			list = append(list, wanted{i, c.Name})
		}
	}
	return list, rows, nil
}

// markdown is a table of some columns and rows.
func markdown(s *sheet.Sheet, r *Result, columns string) (string, error) {
	list, rows, err := readWanted(s, columns)
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
		if len(rows) > 0 && !slices.Contains(rows, row[0]) {
			continue
		}
		line(func(c wanted) string { return row[c.at] })
	}
	if r.Size != "default" {
		fmt.Fprintf(&b, "\nMeasured at the size `--%s`.\n", r.Size)
	}
	return b.String(), nil
}
