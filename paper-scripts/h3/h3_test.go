package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/paper-scripts/study"
	"github.com/heddle-dmt/heddle/paper-scripts/study/studytest"
)

// run runs a command line with results in a folder.
func run(t *testing.T, store string, args ...string) (string, error) {
	t.Helper()
	s := newScript()
	var out, progress bytes.Buffer
	s.Progress = &progress
	err := s.Run(t.Context(), &out, append([]string{"--store", store}, args...), addFlags)
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
		t.Errorf("%v: the stored rows are %q, the measured ones %q", err, again, out)
	}
}

// The string buffer's paths are a small part of its branch trace, as CLAP records the
// program's own code alone, and of all code they take more time than it, as in the
// paper's table 3.
func TestTable3(t *testing.T) {
	out, err := run(t, t.TempDir(), "--config", "../../configs/h3/recording.yaml", "--only", "string-buffer", "--times", "1", "--format", "csv", "table3")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v: %q", err, out)
	}
	cell := map[string]float64{}
	for i, key := range rows[0] {
		cell[key], _ = study.Number(rows[1][i])
	}
	if cell["paper_clap"] != 38.5 || cell["clap_space"] >= cell["h3_space"] || cell["whole"] <= cell["h3"] || cell["own"] <= 0 || cell["own"] >= 50 {
		t.Errorf("%v", cell)
	}
}

// The order of the cores removes at least as large a part of the read-write constraints as in the
// paper's table 4. pbzip2 is not among them: most of its shared memory has one write, so that
// nothing is left to remove (docs/reproduce-internals.md).
func TestReduction(t *testing.T) {
	for i := range subjects {
		s := &subjects[i]
		long := s.paper == "racey2" || s.paper == "racey3"
		if s.paper == "pbzip2" || long && !testsize.Long() {
			continue
		}
		t.Run(s.paper, func(t *testing.T) {
			_, err := s.measureSubject(t.Context(), t.TempDir(), bounds{Timeout: time.Minute}, func(_ context.Context, r *reproduction) ([]string, error) {
				clap, h3 := constraints.CountCLAP(r.outcome.Trace.Trace), constraints.CountCores(r.outcome.Trace.Trace)
				fewer := 100 * (1 - float64(h3)/float64(clap))
				paper, err := strconv.ParseFloat(s.table4[3], 64)
				if err != nil || fewer < paper {
					t.Errorf("%d of CLAP's constraints are %d of H3's, %.1f %% fewer; the paper has %s %%", clap, h3, fewer, s.table4[3])
				}
				return nil, err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnknownProgram(t *testing.T) {
	if _, err := run(t, t.TempDir(), "--only", "sbuf,tbuf", "table4"); err == nil || !strings.Contains(err.Error(), "--only tbuf: one of bbuf, sbuf,") {
		t.Error(err)
	}
}

func TestAllAreInThePlan(t *testing.T) { studytest.InPlan(t, newScript()) }
