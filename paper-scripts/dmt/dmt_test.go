package main

import (
	"fmt"
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

// TestFrequency: computing more between two operations makes the systems cheaper.
func TestFrequency(t *testing.T) {
	testsize.SkipQuick(t)
	t.Chdir("../..")
	rows := studytest.Measured(t, newScript(), addFlags, t.TempDir(), "--only", "raytrace", "frequency")
	for i := 1; i < len(rows); i++ {
		for _, key := range []string{"kendo", "coredet", "coredet_short", "parrot", "dthreads", "consequence", "interval"} {
			before, now := studytest.Number(t, rows[i-1][key]), studytest.Number(t, rows[i][key])
			if key == "interval" {
				before, now = now, before
			}
			if now >= before {
				t.Errorf("%s: %s %v, then %v", rows[i]["arguments"], key, before, now)
			}
		}
	}
}

func TestAllAreInThePlan(t *testing.T) { studytest.InPlan(t, newScript()) }

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
	got := matrix(measured, []string{"timed", "kendo"}, valueOf("lines")).Rows
	if fmt.Sprint(got) != "[[d, buggy - 3] [e, buggy - 4]]" {
		t.Error(got)
	}
}
