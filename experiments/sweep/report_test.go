package sweep

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/sweep/store"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/output"
)

// TestTableGroupsOverSeeds fills a store by hand.
func TestTableGroupsOverSeeds(t *testing.T) {
	x := mustLoad(t, `
programs:
  - {name: a, command: [echo, "{threads}", "{level}"]}
  - {name: b, command: [echo]}
grid: {cores: [4], threads: [1, 2], seeds: 1-2, arguments: {level: [9]}}
`)
	if _, err := x.Table(Options{}, Selection{}); err == nil {
		t.Error("a table without a store")
	}
	s, err := store.Open(x.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := x.Table(Options{}, Selection{}); !errors.Is(err, errNothingStored) {
		t.Errorf("a table of nothing: %v", err)
	}
	plan, err := x.Plan(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range plan.Runs[:5] {
		record := store.Record{
			Slot: run.slot, Repetition: 1, Key: run.Key,
			Report: store.Report{
				Stdout: output.Sum{SHA256: "same"},
				Result: &machine.Result{
					Outcome: "exit", Cycles: []uint64{1000, 3000, 900, 1100, 5}[i], Instructions: uint64(100 + i),
					ContextSwitches: uint64(i), ScheduleDigest: fmt.Sprint(i / 2), Digest: fmt.Sprint(i),
				},
			},
		}
		switch i {
		case 3:
			record.Report.Stdout.SHA256 = "other"
		case 4:
			record.Failure, record.Report = "crashed", store.Report{}
		}
		if err := s.Put(record); err != nil {
			t.Fatal(err)
		}
		if err := s.PutNative(run.NativeKey, store.Native{Stdout: output.Sum{SHA256: "same"}}); err != nil {
			t.Fatal(err)
		}
	}
	table, err := x.Table(Options{}, Selection{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := table.Write(&b, "csv"); err != nil {
		t.Fatal(err)
	}
	want := `program,level,policy,cores,threads,runs,speedup,cycles,instructions,context_switches,distinct_schedules,identical_to_native
a,9,timed,4,1,2,1.00,2000,100,0,1,yes
a,9,timed,4,2,2,2.00,1000,102,2,1,no (1 of 2)
b,-,timed,4,-,0,-,-,-,-,-,-
`
	want = strings.Replace(want, ",100,0,1,yes", ",100,0,1,yes", 1)
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	notes := strings.Join(table.Notes, "\n")
	for _, want := range []string{"1 of 6 runs are not stored yet", "1 runs FAILED", "b cores=4 policy=timed seed=1: crashed"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
}
