package study

import (
	"context"
	"fmt"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// Tally is the result of many runs under a schedule.
type Tally struct {
	Runs int
	// Results counts different outputs and ends, and States different final
	// memories and instruction counts of threads with them. A run that left the
	// schedule is a result and a state of its own kind: that it left.
	Results, States int
	// Different counts runs with another result than the recorded one, and Left
	// those of them that left the schedule; Why is the first one's reason.
	Different, Left int
	Why             string
	// Failed counts runs that did not end with status 0.
	Failed int
}

// Deterministic reports whether all runs had the recorded run's result.
func (t *Tally) Deterministic() bool { return t.Different == 0 }

// Repeat runs a subject many times under a schedule of a recorded run, each time
// with another seed, number of cores and noise.
func (r *RecordedRun) Repeat(ctx context.Context, o *Options, m *peregrine.Schedule, how enforce.Options, runs int) (*Tally, error) {
	outcomes := make([]Outcome, runs)
	results := make([]*machine.Result, runs)
	done := NewSteps(o, r.Program.Name, runs)
	err := RunParallel(ctx, runs, func(i int) error {
		var err error
		outcomes[i], results[i], err = Run(ctx, r.ConfigUnder(r.VariedConfig(i), m, how))
		done.Step()
		return err
	})
	if err != nil {
		return nil, err
	}
	t := &Tally{Runs: runs}
	found, states := map[Outcome]bool{}, map[string]bool{}
	for i, out := range outcomes {
		state := results[i].StateDigest
		if !results[i].Schedule.Followed {
			t.Left++
			out, state = Outcome{Outcome: "left", Output: fmt.Sprint(out)}, "left "+state
			if t.Why == "" {
				t.Why = results[i].Schedule.Reason
			}
		}
		found[out], states[state] = true, true
		if out != r.Outcome {
			t.Different++
		}
		if results[i].ExitCode != 0 {
			t.Failed++
		}
	}
	t.Results, t.States = len(found), len(states)
	return t, nil
}
