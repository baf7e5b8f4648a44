// Package heddle runs unmodified multithreaded x86-64 Linux programs on an emulated multicore
// machine, deterministically.
//
// Config says which program is run and on which machine; Run runs it and returns a Result, whose
// Outcome says how the run ended. With Config.Record the run is recorded, and OpenReplay gives
// the configuration that repeats it. Machine gives finer control: single scheduling steps,
// snapshots and returns to them. Two runs with equal configurations on equal files are equal in
// every bit, whatever the host and its load; another seed gives another interleaving.
//
// The systems that run a program more than once take a Config, or the trace of a recorded run:
// experiments/peregrine (hybrid schedules), experiments/frost (Frost), experiments/h3 (failures
// from branch traces) and experiments/minimize (shortest failing schedules). Analyses, such as
// analyses/races, read traces. The examples show each of them.
package heddle

import (
	"context"
	"time"

	"github.com/heddle-dmt/heddle/internal/machine"
)

// Config is everything that a run depends on besides the bytes of the program and of the
// files that it reads. It is data alone; DefaultConfig gives the usual values.
type Config = machine.Config

// Mount makes a folder or file of the host visible at a path of the guest.
type Mount = machine.Mount

// Machine is an emulated computer with one program on it.
type Machine = machine.Machine

// Snapshot is a state of a Machine to which it can return any number of times.
type Snapshot = machine.Snapshot

// Result is what a run did.
type Result = machine.Result

// Outcome is how a run ended.
type Outcome = machine.Outcome

// The outcomes of runs.
const (
	Exited        = machine.OutcomeExit        // the program exited
	Killed        = machine.OutcomeSignal      // a signal killed the program: Result.Signal
	Deadlocked    = machine.OutcomeDeadlock    // every thread waited, and nothing could wake one
	ReachedLimit  = machine.OutcomeLimit       // the run executed Config.MaxInstructions
	Stopped       = machine.OutcomeStopped     // the program needs something that the machine lacks: Result.Message
	OutOfTime     = machine.OutcomeTimeLimit   // the limit of WithTimeLimit was reached
	Interrupted   = machine.OutcomeInterrupted // the context was cancelled, or the recording ended there
	Diverged      = machine.OutcomeDiverged    // a replay is not the recorded run, or a schedule was not followed
	ReachedDamage = machine.OutcomeDamaged     // a replay reached a damaged place of its trace
)

// Failure is how a program failed: Result.Failure returns it.
type Failure = machine.Failure

// Record says which events of a run are recorded, and where.
type Record = machine.Record

// SyncRecord says which synchronization operations are recorded.
type SyncRecord = machine.SyncRecord

// Replay is a recorded run that can be repeated.
type Replay = machine.Replay

// Enforce has a run follow a schedule, and ScheduleResult says how it did.
type (
	Enforce        = machine.Enforce
	ScheduleResult = machine.ScheduleResult
)

// DefaultConfig is the machine that `heddle run` has without flags.
func DefaultConfig() Config { return machine.DefaultConfig() }

// Outcomes lists all outcomes.
func Outcomes() []Outcome { return machine.Outcomes() }

// New builds a machine and loads the program; nothing of it has run yet.
func New(c Config) (*Machine, error) { return machine.New(c) }

// Run builds a machine, runs the program on it and returns the result.
func Run(ctx context.Context, c Config) (*Result, error) { return machine.Run(ctx, c) }

// WithTimeLimit returns a context that ends a run after a time on the host, with the outcome
// OutOfTime; 0 means no limit. Where such a run ends depends on the host's speed.
func WithTimeLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return machine.WithTimeLimit(ctx, limit)
}

// OpenReplay reads a trace to repeat its run.
func OpenReplay(path string) (*Replay, error) { return machine.OpenReplay(path) }
