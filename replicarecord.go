package heddle

import (
	"context"
	"errors"
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
// atomic instructions, and none of what was ordered besides. It fills in the events
// of the epochs.
func Repeat(ctx context.Context, c Config, epochs []Part) error {
	c.repeats = true
	r, err := NewReplicas(c, ReplicaOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	at := r.Start()
	defer func() { at.Release() }()
	for i := range epochs {
		e := &epochs[i]
		e.Begin = r.event()
		x, err := r.Parallel(ctx, at, e.EpochOptions)
		if err != nil {
			return err
		}
		e.End = r.event()
		at.Release()
		at = x.End
		if at.Done() {
			break
		}
	}
	m := r.m
	m.done, m.result.Outcome = true, outcomeInterrupted
	return errors.Join(m.finishRecording(), m.CloseTrace())
}

// event is the number of the last event.
func (r *Replicas) event() uint64 { return r.m.state.recording.rec.At().Seq }
