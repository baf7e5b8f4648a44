// Package heddle runs unmodified multithreaded x86-64 Linux programs on an emulated multicore
// machine, deterministically.
//
// Config says which program is run and on which machine; Run runs it and returns a
// Result. Machine gives finer control: single scheduling steps, snapshots and
// returns to them. Two runs with equal configurations on equal files are equal
// in every bit, whatever the host and its load; another seed gives another interleaving.
package heddle

import (
	"context"

	"github.com/heddle-dmt/heddle/internal/machine"
)

// Config is everything that a run depends on besides the bytes of the program and of the
// files that it reads. DefaultConfig gives the usual values.
type Config = machine.Config

// Machine is an emulated computer with one program on it.
type Machine = machine.Machine

// Snapshot is a state of a Machine to which it can return any number of times.
type Snapshot = machine.Snapshot

// Result is the outcome of a run.
type Result = machine.Result

// Record says what of a run is recorded, and where.
type Record = machine.Record

// Replay is a recorded run that can be repeated.
type Replay = machine.Replay

// DefaultConfig is the machine that `heddle run` has without flags.
func DefaultConfig() Config { return machine.DefaultConfig() }

// New builds a machine and loads the program; nothing of it has run yet.
func New(c Config) (*Machine, error) { return machine.New(c) }

// Run builds a machine, runs the program on it and returns the result.
func Run(ctx context.Context, c Config) (*Result, error) { return machine.Run(ctx, c) }

// OpenReplay reads a trace to repeat its run.
func OpenReplay(path string) (*Replay, error) { return machine.OpenReplay(path) }
