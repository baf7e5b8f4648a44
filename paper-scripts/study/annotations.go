package study

import (
	"debug/elf"
	"fmt"
	"regexp"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
)

// Annotated counts what a program was given for the analyses' sake.
type Annotated struct {
	// Lines are those of its source, headers of the suite included. Marks are uses of
	// heddle.h, and Named the program's own functions that the models and summaries
	// name.
	Lines, Marks, Named int
}

// Cells are its lines, and all annotations together.
func (a *Annotated) Cells() []string {
	return []string{fmt.Sprint(a.Lines), fmt.Sprint(a.Marks + a.Named)}
}

// mark is a use of heddle.h.
var mark = regexp.MustCompile(`\bheddle_(input|task_begin|task_end|range) *\(`)

// Annotations counts those of a subject.
func (s *Subject) Annotations() (*Annotated, error) {
	texts, err := s.Program.Texts()
	if err != nil {
		return nil, err
	}
	a := &Annotated{}
	for name, text := range texts {
		a.Lines += strings.Count(text, "\n")
		if name != "heddle.h" {
			a.Marks += len(mark.FindAllString(text, -1))
		}
	}
	a.Named, err = named(s.file)
	return a, err
}

// named counts the functions of a program that models and summaries name.
func named(file string) (int, error) {
	f, err := elf.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return 0, fmt.Errorf("functions of %s: %w", file, err)
	}
	known := cfg.DefaultModels()
	names := map[string]bool{}
	for _, s := range exec.DefaultSummaries() {
		names[s.Function] = true
	}
	n := 0
	for _, s := range symbols {
		_, model := known[s.Name]
		if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC && (model || names[s.Name]) {
			n++
		}
	}
	return n, nil
}
