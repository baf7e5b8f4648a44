package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/paper-scripts/study/studytest"
)

// TestMeasured: one program with its bug and without. The systems have the schedules that their papers
// promise, and those that order races leave none.
func TestMeasured(t *testing.T) {
	testsize.SkipQuick(t)
	t.Chdir("../..")
	rows := studytest.Measured(t, newScript(), addFlags, t.TempDir(), "--only", "fft", "--runs", "4", "--inputs", "2", "--races", "3", "systems")
	if len(rows) != len(systems()) {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		switch name := row["system"]; name {
		case "timed", "fcfs-sync":
		case "coredet", "dthreads", "consequence":
			if row["lines"] != "0" {
				t.Errorf("%s leaves races: %v", name, row)
			}
			fallthrough
		default:
			if row["one"] != "1 of 1" {
				t.Errorf("%s has several schedules: %v", name, row)
			}
		}
	}
}

// TestDocumentIsCurrent: the tables of docs/dmt.md are those of the stored results.
func TestDocumentIsCurrent(t *testing.T) {
	t.Chdir("../..")
	page, err := os.ReadFile("docs/dmt.md")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := newScript()
	s.Progress = io.Discard
	if err := s.Run(context.Background(), &out, []string{"--stored", "--store", "configs/dmt/results", "systems", "schedules", "races"}, addFlags); err != nil {
		t.Fatal(err)
	}
	want, err := replaceParts(string(page), laidOut)
	if err != nil {
		t.Fatal(err)
	}
	if want != string(page) {
		t.Error("docs/dmt.md is not that of configs/dmt/results: go run ./paper-scripts/dmt --stored --store configs/dmt/results --write docs/dmt.md all")
	}
}

// TestSystemsTable: means, medians and shares, by hand.
func TestSystemsTable(t *testing.T) {
	measured := &table.Table{Head: head(), Rows: [][]string{
		{"a", "kendo", "1.000", "1", "1", "-", "-"},
		{"b", "kendo", "4.000", "3", "-", "-", "-"},
		{"c", "kendo", "2.000", "1", "2", "-", "-"},
		{"d, buggy", "kendo", "-", "-", "-", "3", "-"},
		{"e, buggy", "kendo", "-", "-", "-", "4", "-"},
	}}
	programs, values := column(measured, "kendo", "overhead")
	if strings.Join(programs, "") != "abc" || geometricMean(values) < 1.999 || geometricMean(values) > 2.001 {
		t.Errorf("%v %v", programs, values)
	}
	if got := share(measured, "kendo", "schedules") + ", " + share(measured, "kendo", "inputs") + ", " + total(measured, "kendo"); got != "2 of 3, 1 of 2, 7" {
		t.Error(got)
	}
	if got := markdown(matrix(measured, []string{"timed", "kendo"}, valueOf("lines"))); got != "| program | timed | kendo |\n| --- | --- | --- |\n| d, buggy | - | 3 |\n| e, buggy | - | 4 |\n" {
		t.Error(got)
	}
	if _, err := replaceParts("<!-- x -->\n", map[string]*table.Table{"x": measured}); err == nil {
		t.Error("a part without an end")
	}
}
