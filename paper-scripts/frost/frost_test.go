package main

import (
	"bytes"
	"encoding/csv"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/paper-scripts/study/studytest"
)

// rows runs the script and returns its output without the head.
func rows(t *testing.T, args ...string) [][]string {
	t.Helper()
	s := newScript()
	var out, progress bytes.Buffer
	s.Progress = &progress
	args = append([]string{"--store", t.TempDir(), "--format", "csv"}, args...)
	if err := s.Run(t.Context(), &out, args, defineFlags); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	list, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(list) < 2 {
		t.Fatalf("%v: %v", err, list)
	}
	return list[1:]
}

// TestTables: table 1 is the paper's; in a trial of a bug it is detected and survived
// (table 2); no harmful race is missed when reads are compared (table 3).
func TestTables(t *testing.T) {
	t.Chdir("../..")
	for _, row := range rows(t, "table1") {
		if row[1] != row[2] {
			t.Errorf("%s is a %s, not a %s", row[0], row[2], row[1])
		}
	}
	for _, row := range rows(t, "--trials", "1", "--only", "glibc-12486,scanner", "table2") {
		if !slices.Equal(row[5:7], []string{"100 %", "100 %"}) {
			t.Errorf("survived and detected: %v", row)
		}
	}
	for _, row := range rows(t, "--trials", "1", "--only", "mysql-2011", "table3") {
		if row[3] != "1" || row[5] != row[3] || row[8] != row[6] {
			t.Errorf("missed: %v", row)
		}
	}
}

func TestAllAreInThePlan(t *testing.T) { studytest.InPlan(t, newScript()) }
