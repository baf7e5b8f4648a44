package h3

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// long are programs that run for long before they fail, and how many instructions are
// from one checkpoint to the next.
var long = []struct {
	bug
	every uint64
}{
	{bug{program: "racey", args: "-p 4 -i 5000", class: machine.FailureWrong, right: true}, 50_000},
	{bug{program: "mysql-791", args: "-p 2 -n 200", sched: sched.Options{Policy: sched.Random, Quantum: 200}, class: machine.FailureWrong}, 5000},
	{bug{program: "lost-wakeup", args: "-r 100", sched: fine, class: machine.FailureDeadlock}, 2000},
	{bug{program: "frost-figure-1b", args: "-r 100", sched: fine, class: machine.FailureCrash}, 5000},
	{bug{program: "bounded-buffer", args: "-p 5 -n 40", class: machine.FailureAssertion}, 2000},
}

// checkpointSeeds is how many failing seeds of each are tried.
func checkpointSeeds() int { return testsize.Pick(1, 1, 5) }

// TestFromCheckpoints: of a long trace the part after a checkpoint is solved, and the program fails
// under a schedule that begins there.
func TestFromCheckpoints(t *testing.T) {
	for i := range testsize.Pick(2, len(long), len(long)) {
		b := &long[i]
		t.Run(b.program, func(t *testing.T) {
			bin, found := build(t, b.program), 0
			right := rightOutput(t, &b.bug, bin)
			for seed := uint64(1); seed <= 400 && found < checkpointSeeds(); seed++ {
				path, failure, failed := record(t, &b.bug, bin, seed, right)
				if failed && instructions(t, path) > 3*b.every {
					found++
					fromCheckpoint(t, path, b.every, seed, failure, right)
				}
			}
			if found < checkpointSeeds() {
				t.Errorf("%d of 400 seeds fail by %s, late", found, b.class)
			}
		})
	}
}

// instructions is how many all threads of a recorded run have retired.
func instructions(t *testing.T, path string) uint64 {
	t.Helper()
	r, err := machine.OpenProgram(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return r.Recorded().Instructions
}

// fromCheckpoint solves a trace from the last possible checkpoint, and once more without any of the
// recorded decisions after it.
func fromCheckpoint(t *testing.T, path string, every, seed uint64, want machine.Failure, right []byte) {
	t.Helper()
	first := solved(t, path, Checkpoints{Every: every}, seed, want, right)
	if first == nil {
		return
	}
	whole := first.CheckpointInstructions + first.Trace.Instructions
	if first.Checkpoint < 1 || first.Plan.PriorDecisions < 1 || first.CheckpointInstructions < uint64(first.Checkpoint)*every || first.Trace.Instructions > whole-first.CheckpointInstructions {
		t.Errorf("seed %d: checkpoint %d of those each %d instructions is after %d, %d decisions; passed over: %v",
			seed, first.Checkpoint, every, first.CheckpointInstructions, first.Plan.PriorDecisions, first.SkippedCheckpoints)
		return
	}
	before := changed(t, path, int(first.Plan.PriorDecisions), func(b []byte) []byte { return b })
	again := solved(t, before, Checkpoints{every, first.Checkpoint}, seed, want, right)
	if again != nil && (again.CheckpointInstructions != first.CheckpointInstructions || again.Plan.PriorDecisions != first.Plan.PriorDecisions) {
		t.Errorf("seed %d: after %d instructions and %d decisions, and then %d and %d", seed, first.CheckpointInstructions, first.Plan.PriorDecisions, again.CheckpointInstructions, again.Plan.PriorDecisions)
	}
}

// solved demands a schedule from checkpoints that is followed to the failure; nil: no schedule exists.
func solved(t *testing.T, path string, c Checkpoints, seed uint64, want machine.Failure, right []byte) *Outcome {
	t.Helper()
	r, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, err := r.Reproduce(t.Context(), Options{Now: time.Now, Stdout: right, Checkpoints: c})
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return nil
	}
	if out.Answer != smt.Satisfiable || !out.Verified || out.Divergence != "" || out.Failure != want {
		t.Errorf("seed %d: %v, verified %v: %s, %s; want %v; %s", seed, out.Answer, out.Verified, out.Ending, out.Divergence, want, out.describeAnswer())
		return nil
	}
	t.Logf("seed %d: checkpoint %d, after %d instructions; %d followed, %d events, %d states; %d passed over",
		seed, out.Checkpoint, out.CheckpointInstructions, out.Trace.Instructions, len(out.Trace.Trace.Events), out.States, len(out.SkippedCheckpoints))
	followed(t, r, out, want, right)
	return out
}

// Checkpoints that cannot be are refused, with the reason; with several to choose from
// the program's begin is the last.
func TestNoCheckpoint(t *testing.T) {
	path, want, failed := record(t, &bugs[0], build(t, bugs[0].program), 1, nil)
	if !failed {
		t.Fatal("seed 1 does not fail")
	}
	r, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = r.Reproduce(t.Context(), Options{Now: time.Now, Checkpoints: Checkpoints{Every: 1000, Only: 1_000_000}})
	if err == nil || !strings.Contains(err.Error(), "has no checkpoint after 1000000000 instructions") {
		t.Errorf("a checkpoint after the end: %v", err)
	}
	_, err = r.Reproduce(t.Context(), Options{Now: time.Now, Model: "tso", Checkpoints: Checkpoints{Every: 1000}})
	if err == nil || !strings.Contains(err.Error(), "was recorded under sc, and its checkpoints cannot be used under tso") {
		t.Errorf("a checkpoint under another model: %v", err)
	}
	all := instructions(t, path)
	out, err := r.Reproduce(t.Context(), Options{Now: time.Now, Checkpoints: Checkpoints{Every: all - 1}})
	if err != nil || out.Checkpoint != 0 || out.Plan.PriorDecisions != 0 || len(out.SkippedCheckpoints) != 1 || !out.Verified || out.Failure != want {
		t.Errorf("one checkpoint, at the end: %+v, %v", out, err)
	}
	_, err = solvedFrom(t, stripped(t, path, 0), Checkpoints{Every: all / 2, Only: LastCheckpoint})
	if err == nil || !strings.Contains(err.Error(), "it has no decisions") {
		t.Errorf("a trace without decisions: %v", err)
	}
}

func solvedFrom(t *testing.T, path string, c Checkpoints) (*Outcome, error) {
	t.Helper()
	r, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return r.Reproduce(t.Context(), Options{Now: time.Now, Checkpoints: c})
}

// The values of --checkpoint, and the checkpoints of a run that they select.
func TestParseCheckpoints(t *testing.T) {
	for _, c := range []struct {
		text  string
		every uint64
		ok    bool
		tried []int
	}{
		{"none", 10, true, []int{0}},
		{"auto", 10, true, []int{3, 2, 1, 0}},
		{"last", 10, true, []int{3}},
		{"2", 10, true, []int{2}},
		{"auto", 100, true, []int{0}},
		{"0", 10, false, nil},
		{"first", 10, false, nil},
		{"auto", 0, false, nil},
	} {
		got, ok := ParseCheckpoints(c.text, c.every)
		if ok != c.ok {
			t.Errorf("%s with %d: %v", c.text, c.every, ok)
		} else if ok {
			if tried := got.candidateNumbers(40); !slices.Equal(tried, c.tried) {
				t.Errorf("%s with %d: %v, want %v", c.text, c.every, tried, c.tried)
			}
		}
	}
}
