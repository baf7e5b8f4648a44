package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const top = "../.."

// TestMeasurements walks the lines of the table without measuring: commands are not run and
// benchmarks are not, but their programs, files, packages, names and units must exist.
func TestMeasurements(t *testing.T) {
	dir := t.TempDir()
	s := &setting{heddle: "heddle", guest: filepath.Join(dir, "guest"), input: filepath.Join(dir, "input"), dir: dir, repeat: 1}
	s.run = func(command ...string) (timing, error) { return s.pretend(t, command) }
	s.goFigures = func(pkg, name string) (map[string]float64, error) { return unitsOf(t, pkg, name), nil }
	if err := s.makeInput(); err != nil {
		t.Fatal(err)
	}
	t.Chdir(top)
	seen := map[string]bool{}
	for i, measure := range measurements {
		r, err := measure(s)
		switch {
		case err != nil:
			t.Errorf("line %d: %v", i+1, err)
		case r.title == "" || r.measured == "" || r.target == "":
			t.Errorf("line %d: %+v", i+1, r)
		case seen[r.title]:
			t.Errorf("line %d: %q is there twice", i+1, r.title)
		}
		seen[r.title] = true
	}
}

// pretend checks that a command's program and the repository's files in its arguments
// exist, and writes the files that are read after it.
func (s *setting) pretend(t *testing.T, command []string) (timing, error) {
	t.Helper()
	if command[0] == "taskset" {
		command = command[3:]
	}
	if command[0] == "qemu-x86_64" {
		command = command[1:]
	}
	if after := slices.Index(command, "--"); command[0] == s.heddle && after >= 0 {
		s.pretend(t, command[after+1:])
	} else if _, err := exec.LookPath(command[0]); err != nil && command[0] != s.heddle && !strings.HasPrefix(command[0], s.dir) {
		t.Errorf("%q: %v", command, err)
	}
	for i, arg := range command {
		file := strings.TrimPrefix(arg, "-I")
		if strings.Contains(file, "/") && !filepath.IsAbs(file) && !strings.Contains(file, "=") {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%q: %v", command, err)
			}
		}
		if arg == "--summary" {
			writeFile(t, command[i+1], `{"context_switches": 1, "instructions": 1, "host_seconds": 1}`)
		}
		if log, ok := strings.CutPrefix(arg, "--log-file="); ok {
			writeFile(t, log, "guest instrs: 1,000\n")
		}
	}
	return timing{wall: time.Second, summary: summary{HostSeconds: 1, Instructions: 1}}, nil
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var reported = regexp.MustCompile(`ReportMetric\(.*, "([^"]+)"\)`)

// unitsOf is a figure of 1 for each unit that a package's benchmarks report.
func unitsOf(t *testing.T, pkg, name string) map[string]float64 {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join(pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, file := range sources {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(source)
	}
	name, _, _ = strings.Cut(name, "/")
	if !strings.Contains(text.String(), fmt.Sprintf("func %s(b *testing.B) {", name)) {
		t.Errorf("package %s has no %s", pkg, name)
	}
	figures := map[string]float64{"ns/op": 1}
	for _, m := range reported.FindAllStringSubmatch(text.String(), -1) {
		figures[m[1]] = 1
	}
	return figures
}

// A part of the table is replaced by its titles; a line that is new comes after the one before it.
func TestLinesAreReplaced(t *testing.T) {
	table := string(render([]result{{"a", "1", "2", true}, {"b", "1", "2", true}, {"c", "1", "2", true}}))
	got := replaceLines(table, []result{{"b", "5", "2", false}, {"new", "1", "1", true}})
	want := string(render([]result{{"a", "1", "2", true}, {"b", "5", "2", false}, {"new", "1", "1", true}, {"c", "1", "2", true}}))
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
