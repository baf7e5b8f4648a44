package h3

import (
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/experiments/h3/pathsearch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched/guided"
)

// Bounds of searches by execution, in moves: before other values of a symbolic trace are tried, and where
// it has given no schedule.
const fewMoves, manyMoves = 40_000, 400_000

// searchByExecution looks for a schedule by executing the program along the recorded paths. If there is one,
// out has it. The program is executed under sequential consistency: a schedule in which no store waits is one of TSO and PSO
// too. It looks for no run without end.
func (r *Recording) searchByExecution(l *limiter, out *Outcome, o *Options, moves int) error {
	if o.isSymbolic() || out.Failure.Class == machine.FailureHang || out.hasSearched >= moves {
		return nil
	}
	out.hasSearched = moves
	c, err := r.replay.Config()
	if err != nil {
		return err
	}
	c.Memory = storebuffer.Options{}
	found, err := pathsearch.Search(l.ctx, pathsearch.Problem{
		Config: c, Profile: r.profile, Moves: moves, Stop: l.isReached,
		Fails: func(m *machine.Machine, stdout, stderr []byte) bool { return out.isSameFailure(m, stdout, stderr, o) },
	})
	if err != nil || !found.Found {
		if err == nil {
			out.fruitless = found.Moves
		}
		return l.limitError(err, executingPaths)
	}
	executed := *out
	executed.Executed = found
	executed.Plan = &guided.Plan{Steps: found.Steps, Last: found.Last}
	for i := range r.profile.Threads {
		executed.Plan.Threads = append(executed.Plan.Threads, guided.Thread{ID: r.profile.Threads[i].ID})
	}
	if err := r.verifySchedule(l, &executed, o); err != nil {
		return l.limitError(err, runningPlan)
	}
	if executed.Verified {
		*out = executed
		out.Answer, out.Limit, out.Checkpoint = smt.Satisfiable, "", 0
	}
	return nil
}

// addSearch adds to the reason why there is no symbolic trace that executing the program has led to nothing.
func (out *Outcome) addSearch(reason error) error {
	if out.fruitless == 0 {
		return reason
	}
	return errNotFound.Wrap(reason, out.fruitless)
}

// isSymbolic reports whether the symbolic trace alone is to give the schedule.
func (o *Options) isSymbolic() bool {
	ofPapers := o.Encoding != "" && o.Encoding != "heddle"
	return o.Symbolic || ofPapers || len(o.Shared) > 0 || o.Profile != "" || o.Checkpoints.Every > 0
}

// isSameFailure reports whether a run that ended has failed as the recorded one did.
func (out *Outcome) isSameFailure(m *machine.Machine, stdout, stderr []byte, o *Options) bool {
	r := machine.Result{Outcome: m.Outcome()}
	if r.Outcome == machine.OutcomeExit {
		if m.Kernel().Fatal() != "" {
			return false
		}
		if r.ExitCode, r.Signal = m.Kernel().Status(); r.Signal != 0 {
			r.Outcome = machine.OutcomeSignal
		}
	}
	f, failed := o.failureOf(&r, stdout, stderr)
	return failed && f.Class == out.Failure.Class && out.isSameAssertion(f.Text)
}
