package epoch

import (
	"github.com/heddle-dmt/heddle/internal/machine"
)

// Checkpoint takes a snapshot where the leading machine is.
func (r *Runner) Checkpoint() *machine.Snapshot { return r.m.Snapshot() }

// UsedPages is how many pages the states of the leading machine hold.
func (r *Runner) UsedPages() uint64 { return r.m.Memory().Used() }

// TakeOver puts a follower to where an epoch begins, to execute it.
func (f *Follower) TakeOver(at *Checkpoint, first *Replica) { f.goToCheckpoint(at, first.level) }
