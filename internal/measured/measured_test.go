package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const top = "../.."

// TestPagesAreCurrent: the pages have the stored tables, which were measured by the commands of the plan.
func TestPagesAreCurrent(t *testing.T) {
	p, err := load(top)
	if err != nil {
		t.Fatal(err)
	}
	texts, names, err := p.pages()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range texts {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what %s gives (%v): go run ./internal/measured -documents", file, storedFile, err)
		}
	}
	for i := range p.Tables {
		x := &p.Tables[i]
		switch s := p.stored[x.Name]; {
		case s == nil || s.Definition != x.digest():
			t.Errorf("%s was measured by other commands than %s has: go run ./internal/measured %s", x.Name, planFile, x.Name)
		case !slices.Contains(names, x.Name):
			t.Errorf("no page has the table %s", x.Name)
		}
	}
	for _, name := range names {
		if p.markdown(name) == "" {
			t.Errorf("%s has no table %s", planFile, name)
		}
	}
}

// Marks above a table that says where its figures come from. A block is compared with its source by the
// test of the program that makes it.
var (
	blockBegin = regexp.MustCompile(`^<!-- (begin: (make papers|make bench|measured) .*|begin: make bench|table \w+) -->$`)
	blockEnd   = regexp.MustCompile(`^<!-- end.* -->$`)
	// checked names a test that compares the table with its source, settings a table without measurements.
	checked  = regexp.MustCompile(`^<!-- checked by (Test\w+) -->$`)
	settings = "<!-- no measurements -->"
	figure   = regexp.MustCompile("^[^\\w\\s`]{0,3}\\d")
)

// hasFigures reports whether two cells or more, but for those of the first column, begin with a digit.
func hasFigures(rows []string) bool {
	n := 0
	for _, row := range rows[min(2, len(rows)):] {
		cells := strings.Split(strings.Trim(row, "| "), "|")
		for _, cell := range cells[1:] {
			if figure.MatchString(strings.TrimSpace(cell)) {
				n++
			}
		}
	}
	return n > 1
}

// TestTablesHaveSources: each table of figures in the pages is made or checked by something.
func TestTablesHaveSources(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	var tests []string
	// docs/strangers.md as a whole is made of docs/strangers.json, which TestDocument of experiments/strangers checks.
	files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == "strangers.md" })
	for _, file := range append(files, filepath.Join(top, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines, made := strings.Split(string(text), "\n"), false
		for i := 0; i < len(lines); i++ {
			switch {
			case blockBegin.MatchString(lines[i]):
				made = true
			case blockEnd.MatchString(lines[i]):
				made = false
			}
			if !strings.HasPrefix(lines[i], "|") {
				continue
			}
			first := i
			for i < len(lines) && strings.HasPrefix(lines[i], "|") {
				i++
			}
			if made || !hasFigures(lines[first:i]) {
				i--
				continue
			}
			above := ""
			if first > 0 {
				above = lines[first-1]
			}
			found := checked.FindStringSubmatch(above)
			switch {
			case above == settings:
			case found != nil:
				tests = append(tests, found[1])
			default:
				t.Errorf("%s:%d: the figures have no source: put the table into %s, or above it %s or <!-- checked by TestName -->", file, first+1, planFile, settings)
			}
			i--
		}
	}
	for _, name := range tests {
		if !hasTest(t, name) {
			t.Errorf("there is no test %s, which a table names", name)
		}
	}
}

// TestSentencesHaveNoFigures: sentences of the documents have no figures that somebody measured once. These are in tables with
// a source (TestTablesHaveSources), in docs/performance.md, or, where a decision rests on them, in RATIONALE.md. Sentences
// about a paper's figures are left out.
func TestSentencesHaveNoFigures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, filepath.Join(top, "README.md")) {
		if base := filepath.Base(file); base == "strangers.md" || base == "errors.md" { // made of other files
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, sentence := range sentences(string(text)) {
			if quantity.MatchString(sentence) && measuring.MatchString(sentence) && !strings.Contains(sentence, "paper") {
				t.Errorf("%s has a figure without a source: %s", file, sentence)
			}
		}
	}
}

var (
	quantity  = regexp.MustCompile(`\b[0-9][0-9,.]*( to [0-9][0-9,.]*| and [0-9][0-9,.]*)? ?(%|s|ms|us|ns|seconds|minutes|microseconds|milliseconds|MB|GB|MiB|GiB|times)( |[.,;:)]|$)`)
	measuring = regexp.MustCompile(`\b(took|takes|processor time|times native|busy host|quiet cores|in turn|instead of)\b`)
	made      = regexp.MustCompile(`(?s)<!-- begin: .*?<!-- end: [^>]*-->|` + "```.*?```|`[^`\n]*`")
	between   = regexp.MustCompile(`[.:;]\s+`)
)

// sentences are the sentences of a page, without what is generated, quoted or in tables. A paragraph under a comment that says
// that its figures are settings is left out.
func sentences(page string) (list []string) {
	for _, paragraph := range strings.Split(made.ReplaceAllString(page, ""), "\n\n") {
		if strings.HasPrefix(paragraph, settings) {
			continue
		}
		lines := slices.DeleteFunc(strings.Split(paragraph, "\n"), func(line string) bool { return strings.HasPrefix(line, "|") })
		list = append(list, between.Split(strings.Join(lines, " "), -1)...)
	}
	return list
}

// hasTest reports whether the repository has a test.
func hasTest(t *testing.T, name string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "results", "docs"}, d.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if found = strings.Contains(string(text), "func "+name+"("); found {
			return filepath.SkipAll
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// writePlan makes a repository with one page and a plan.
func writePlan(t *testing.T, rows string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		planFile:       "tables:\n  - name: sizes\n    head: [name, size]\n    prepare: echo 10 12 > $TMP/file\n    rows:\n" + rows,
		"docs/page.md": "Before.\n<!-- begin: measured sizes -->\nold\n<!-- end: measured -->\nAfter.\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestMeasuring: each match is a row, rows without a command are texts, and a changed command makes the table stale.
func TestMeasuring(t *testing.T) {
	root := writePlan(t, `      - {run: "cat $TMP/file; echo a 3; echo b 4", pattern: '^(?P<name>[a-z]) (?P<size>\d)$', cells: ["{name}", "{size} m"]}
      - {run: "cat $TMP/file", cells: [all, "1"]}
      - {cells: [the paper, "7"]}
`)
	var progress strings.Builder
	if err := run(t.Context(), &progress, root, false, nil); err != nil {
		t.Fatal(err)
	}
	want := "Before.\n<!-- begin: measured sizes -->\n| name | size |\n| --- | --- |\n| a | 3 m |\n| b | 4 m |\n| all | 1 |\n| the paper | 7 |\n<!-- end: measured -->\nAfter.\n"
	if got, err := os.ReadFile(filepath.Join(root, "docs/page.md")); err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	p, err := load(root)
	if err != nil || !p.isCurrent(&p.Tables[0]) {
		t.Fatal(err)
	}
	p.Tables[0].Rows[2].Cells[1] = "8"
	if p.isCurrent(&p.Tables[0]) {
		t.Error("a table with another definition is current")
	}
}

// TestInterruption: an interruption ends the command with all that it has started, and its folder is removed.
func TestInterruption(t *testing.T) {
	root := writePlan(t, "      - {run: \"sleep 1000 | cat\", cells: [a, b]}\n")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := run(ctx, &strings.Builder{}, root, false, nil); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(root, "bin", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

func TestFailures(t *testing.T) {
	for rows, says := range map[string]string{
		"      - {run: \"exit 3\", cells: [a, b]}\n":                    "exit status 3",
		"      - {run: \"echo x\", pattern: \"y\", cells: [a, b]}\n":    "has no y",
		"      - {run: \"echo x\", pattern: \"x\", cells: [a, b, c]}\n": "3 cells, the head 2",
		"      - {run: \"echo x\", pattern: \"(x\", cells: [a, b]}\n":   "missing closing",
		"      - {run: \"echo x\", paterns: \"x\", cells: [a, b]}\n":    "paterns",
	} {
		err := run(t.Context(), &strings.Builder{}, writePlan(t, rows), false, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", rows, err)
		}
	}
	if err := run(t.Context(), &strings.Builder{}, writePlan(t, "      - {cells: [a, b]}\n"), false, []string{"size"}); err == nil || !strings.Contains(err.Error(), "there are sizes") {
		t.Errorf("an unknown table: %v", err)
	}
}
