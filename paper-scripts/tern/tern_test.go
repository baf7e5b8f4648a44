package main

import (
	"bytes"
	"encoding/csv"
	"testing"
)

// Under TERN the bug never shows, at any size, and CoreDet does the same in every
// run of an input (table 4).
func TestTable4(t *testing.T) {
	t.Chdir("../..")
	s := script()
	var out, progress bytes.Buffer
	s.Progress = &progress
	if err := s.Run(t.Context(), &out, []string{"--store", t.TempDir(), "--format", "csv", "--runs", "3", "--threads", "2,4", "table4"}, flags); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 7 {
		t.Fatalf("%v: %v", err, rows)
	}
	for _, row := range rows[1:] {
		for _, shown := range row[2:5] {
			switch {
			case row[1] == "TERN" && (shown != "0" || row[6] != "0"):
				t.Errorf("under TERN the bug shows, or the schedule is left: %v", row)
			case row[1] == "CoreDet" && shown != "0" && shown != "3":
				t.Errorf("under CoreDet the runs of one input differ: %v", row)
			}
		}
	}
}
