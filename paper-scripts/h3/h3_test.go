package main

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
)

// run runs a command line with results in a folder.
func run(t *testing.T, store string, args ...string) (string, error) {
	t.Helper()
	s := script()
	var out, progress bytes.Buffer
	s.Progress = &progress
	err := s.Run(t.Context(), &out, append([]string{"--store", store}, args...), flags)
	return out.String(), err
}

// The string buffer has two threads and is reproduced, its row is stored, and the
// paper's numbers stand beside it (table 2).
func TestTable2(t *testing.T) {
	store := t.TempDir()
	out, err := run(t, store, "--only", "sbuf", "--format", "csv", "table2")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v: %q", err, out)
	}
	if got := rows[1]; got[0] != "sbuf" || got[1] != "2" || got[2] != "2" || got[3] != "64993" || got[10] != "" {
		t.Errorf("%q", got)
	}
	if again, err := run(t, store, "--stored", "--format", "csv", "table2"); err != nil || again != out {
		t.Errorf("%v: what is stored is %q, what was measured %q", err, again, out)
	}
}

func TestUnknownProgram(t *testing.T) {
	if _, err := run(t, t.TempDir(), "--only", "sbuf,tbuf", "table4"); err == nil || !strings.Contains(err.Error(), "--only tbuf: one of bbuf, sbuf,") {
		t.Error(err)
	}
}
