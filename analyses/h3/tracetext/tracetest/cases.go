// Package tracetest runs data-driven tests whose input is a trace as text: the files of a
// testdata folder have cases of the form
//
//	# a comment
//	command arguments
//	  the trace
//	----
//	the expected output
//
// separated by blank lines.
package tracetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/tracetext"
)

// Run calls do with the command and the trace of each case in the files of a folder, and
// compares its output with the expected one.
func Run(t *testing.T, folder string, do func(command []string, trace *model.Trace) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no cases: %v", folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, block := range strings.Split(string(text), "\n\n") {
			name, command, source, want := split(block)
			if command == "" {
				continue
			}
			trace, err := tracetext.Parse(source)
			if err == nil {
				err = trace.Check()
			}
			if err != nil {
				t.Errorf("%s, case %d (%s): %v", file, n+1, name, err)
				continue
			}
			if got := strings.TrimSpace(do(strings.Fields(command), trace)); got != want {
				t.Errorf("%s, case %d (%s), %s:\n%s\nwant\n%s", file, n+1, name, command, got, want)
			}
		}
	}
}

// split takes a case apart.
func split(block string) (name, command, source, want string) {
	var lines []string
	for _, line := range strings.Split(block, "\n") {
		if text, comment := strings.CutPrefix(line, "#"); comment {
			name = strings.TrimSpace(text)
		} else {
			lines = append(lines, line)
		}
	}
	input, output, _ := strings.Cut(strings.Join(lines, "\n"), "\n----")
	command, source, _ = strings.Cut(strings.TrimLeft(input, "\n"), "\n")
	return name, strings.TrimSpace(command), source, strings.TrimSpace(output)
}

// Models are the memory models by their names in commands.
var Models = map[string]model.MemoryModel{"sc": model.SC, "tso": model.TSO, "pso": model.PSO}
