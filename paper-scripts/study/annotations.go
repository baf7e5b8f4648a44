package study

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
)

// AnnotationCounts counts the annotations of a program for the analyses.
type AnnotationCounts struct {
	// Lines are those of its source, headers of the suite included. Marks are uses of
	// heddle.h, and Named the program's own functions that the models and summaries
	// name.
	Lines, Marks, NamedFunctions int
}

// Cells are its lines, and all annotations together.
func (a *AnnotationCounts) Cells() []string {
	return []string{fmt.Sprint(a.Lines), fmt.Sprint(a.Marks + a.NamedFunctions)}
}

// mark is a use of heddle.h.
var mark = regexp.MustCompile(`\bheddle_(input|task_begin|task_end|range) *\(`)

// Annotations counts those of a subject.
func (s *Subject) Annotations() (*AnnotationCounts, error) {
	texts, err := s.Program.Texts()
	if err != nil {
		return nil, err
	}
	a := &AnnotationCounts{}
	for name, text := range texts {
		a.Lines += strings.Count(text, "\n")
		if name != "heddle.h" {
			a.Marks += len(mark.FindAllString(text, -1))
		}
	}
	a.NamedFunctions, err = countNamed(s.file)
	return a, err
}

// countNamed counts the functions of a program that models and summaries name.
func countNamed(file string) (int, error) {
	f, err := debuginfo.Open(file)
	if err != nil {
		return 0, fmt.Errorf("functions of %s: %w", file, err)
	}
	known := cfg.DefaultModels()
	names := map[string]bool{}
	for _, s := range concolic.DefaultSummaries() {
		names[s.Function] = true
	}
	named := map[string]bool{}
	for _, s := range f.Symbols() {
		name := string(s.RawName())
		if _, model := known[name]; s.Kind == debuginfo.Function && (model || names[name]) {
			named[name] = true
		}
	}
	return len(named), nil
}
