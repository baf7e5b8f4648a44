// Package studytest runs the scripts for the papers' tables in tests.
package studytest

import (
	"bytes"
	"encoding/csv"
	"os"
	"slices"
	"testing"

	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"github.com/heddle-dmt/heddle/paper-scripts/study"
)

// Measured runs a command line of a script, with results in a folder, and returns the
// printed rows, by the keys of columns. The test is in the repository's root.
func Measured(t *testing.T, s *study.Script, flags func(*pflag.FlagSet), store string, args ...string) (rows []map[string]string) {
	t.Helper()
	var out, progress bytes.Buffer
	s.Progress = &progress
	if err := s.Run(t.Context(), &out, append([]string{"--store", store, "--format", "csv"}, args...), flags); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, progress.String())
	}
	cells, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(cells) < 2 {
		t.Fatalf("%q: %v: %v", args, err, cells)
	}
	for _, line := range cells[1:] {
		row := map[string]string{}
		for i, key := range cells[0] {
			row[key] = line[i]
		}
		rows = append(rows, row)
	}
	t.Log(rows)
	return rows
}

// Number reads a cell that is a number.
func Number(t *testing.T, cell string) float64 {
	t.Helper()
	v, ok := study.Number(cell)
	if !ok {
		t.Fatalf("%q is no number", cell)
	}
	return v
}

// InPlan checks that configs/papers/steps.yaml has each table and figure of a script, and no other of it. The test is in
// the script's folder.
func InPlan(t *testing.T, s *study.Script) {
	t.Helper()
	text, err := os.ReadFile("../../configs/papers/steps.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Papers []struct {
			Program string
			Steps   []struct{ Artefacts []string }
		}
	}
	if err := yaml.Unmarshal(text, &plan); err != nil {
		t.Fatal(err)
	}
	var planned, known []string
	for _, p := range plan.Papers {
		for _, step := range p.Steps {
			if p.Program == s.Name {
				planned = append(planned, step.Artefacts...)
			}
		}
	}
	for _, a := range s.Artefacts {
		known = append(known, a.Name)
	}
	slices.Sort(planned)
	slices.Sort(known)
	if !slices.Equal(planned, known) {
		t.Errorf("configs/papers/steps.yaml has %v, and the script %v", planned, known)
	}
}
