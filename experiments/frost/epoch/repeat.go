package epoch

import (
	"context"

	"github.com/heddle-dmt/heddle/internal/machine"
)

// Part is an epoch that Repeat executes, with the numbers of the last events before
// it and in it.
type Part struct {
	EpochOptions
	Begin, End uint64
}

// Repeat executes the first epochs of a run with replicas once more, thread-parallel
// each, and records what Config.Record says: the same executions as before, if the
// thread-parallel replicas of all but the last were committed. Nothing is written to
// the host but the trace, which has the program's own synchronization operations and
// atomic instructions, and not the operations that were ordered besides. It fills in the events
// of the epochs.
func Repeat(ctx context.Context, c machine.Config, epochs []Part) error {
	r, err := NewRunner(ctx, c, Options{records: true})
	if err != nil {
		return err
	}
	defer r.Close()
	at := r.Start()
	defer func() { at.Release() }()
	for i := range epochs {
		e := &epochs[i]
		e.Begin = r.m.EventNumber()
		x, err := r.RunThreadParallel(ctx, at, e.EpochOptions)
		if err != nil {
			return err
		}
		e.End = r.m.EventNumber()
		at.Release()
		at = x.End
		if at.Done() {
			break
		}
	}
	return r.m.GiveUp()
}
