package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
)

const (
	planFile   = "docs/measured.yaml"
	storedFile = "docs/measured.json"
)

// plan has the tables of planFile, and the stored cells.
type plan struct {
	Tables []table `mapstructure:"tables"`

	root   string
	stored map[string]*stored
}

// table is a table of a page.
type table struct {
	Name string   `mapstructure:"name"`
	Head []string `mapstructure:"head"`
	// Prepare is a command for sh that makes files for the rows' commands. All commands run in the repository, with
	// bin first in PATH and the variable TMP, a folder below bin that is removed in the end.
	Prepare string `mapstructure:"prepare"`
	Rows    []row  `mapstructure:"rows"`
}

// row is a row for each place in the output of its command where the pattern matches. Without a command it is one row
// of texts, such as a paper's figures.
type row struct {
	// Run is a command for sh, whose standard output and standard error are searched.
	Run string `mapstructure:"run"`
	// Pattern is a regular expression with named groups; without one there is one row.
	Pattern string `mapstructure:"pattern"`
	// Cells have {NAME} for the text of a group, {processor} for the command's seconds of processor time, those of
	// the processes that it has waited for included, and {memory} for the peak of its largest process in GB.
	Cells []string `mapstructure:"cells"`
}

// stored are the rows that a table had when it was measured.
type stored struct {
	// Definition is the digest of the table that was measured.
	Definition string     `json:"definition"`
	Rows       [][]string `json:"rows"`
}

func load(root string) (*plan, error) {
	p := &plan{root: root, stored: map[string]*stored{}}
	if _, err := yamlfile.Load(filepath.Join(root, planFile), p); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, storedFile))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if err == nil {
		if err := json.Unmarshal(text, &p.stored); err != nil {
			return nil, fmt.Errorf("%s: %w", storedFile, err)
		}
	}
	return p, nil
}

// store writes the stored cells of the plan's tables.
func (p *plan) store() error {
	for name := range p.stored {
		if !slices.ContainsFunc(p.Tables, func(t table) bool { return t.Name == name }) {
			delete(p.stored, name)
		}
	}
	return outfile.Write(filepath.Join(p.root, storedFile), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		return e.Encode(p.stored)
	})
}

// digest is of all that decides how the table is measured.
func (t *table) digest() string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", *t)))[:16]
}

func (p *plan) isCurrent(t *table) bool {
	s := p.stored[t.Name]
	return s != nil && s.Definition == t.digest()
}

// block is a table in a page.
var block = regexp.MustCompile(`(?s)<!-- begin: measured (\S+) -->\n.*?<!-- end: measured -->`)

// pages returns the pages that have tables of the plan, by their paths, with the stored cells, and the names of
// the tables in them.
func (p *plan) pages() (texts map[string]string, names []string, err error) {
	files, err := filepath.Glob(filepath.Join(p.root, "docs", "*.md"))
	if err != nil {
		return nil, nil, err
	}
	texts = map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		if !block.Match(text) {
			continue
		}
		texts[file] = block.ReplaceAllStringFunc(string(text), func(found string) string {
			name := block.FindStringSubmatch(found)[1]
			names = append(names, name)
			return "<!-- begin: measured " + name + " -->\n" + p.markdown(name) + "<!-- end: measured -->"
		})
	}
	return texts, names, nil
}

// markdown is a stored table, with the present head.
func (p *plan) markdown(name string) string {
	i := slices.IndexFunc(p.Tables, func(t table) bool { return t.Name == name })
	if i < 0 || p.stored[name] == nil {
		return ""
	}
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head := p.Tables[i].Head
	line(head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, cells := range p.stored[name].Rows {
		line(cells)
	}
	return b.String()
}

// writePages writes the pages that are not up to date.
func (p *plan) writePages() error {
	texts, _, err := p.pages()
	if err != nil {
		return err
	}
	for file, text := range texts {
		if old, err := os.ReadFile(file); err == nil && string(old) == text {
			continue
		}
		if err := outfile.WriteBytes(file, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}
