// Package accesses reads the accesses to memory of a recorded run: the stream of its trace, or if the trace says that a
// replay has them (recorder.MemoryConfig.Repeated) the accesses of a replay, which takes place meanwhile.
//
// A replay needs the files that the run read, of the host or of the trace (package inputfiles). It is compared with
// the recorded run, decision by decision: accesses of another run end with an error.
package accesses

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var errRepeat = errs.Define("accesses-of-another-run",
	"the accesses of {file} cannot be read: {why}",
	"The trace has what repeats the run, and the accesses to memory are those of a replay. This replay was not the recorded run, or ended before it.",
	"Restore the folders and symbolic links that the run used, use the heddle that recorded it, or record again with heddle record --memory=stored.")

// Are reports whether the accesses of a trace were recorded: they are in it, or those of a replay.
func Are(r *trace.Reader) (bool, error) {
	if AreRepeated(r) {
		return true, nil
	}
	return r.Recorded(trace.Memory)
}

// AreRepeated reports whether the accesses of a trace are those of a replay.
func AreRepeated(r *trace.Reader) bool {
	text, err := r.Manifest()
	var m struct {
		Record *machine.Record `json:"record"`
	}
	return err == nil && text != nil && json.Unmarshal(text, &m) == nil && m.Record != nil && !r.Has(trace.Memory)
}

// Read iterates over the accesses of a trace, whose file is path; see memtrace.Read. When the context is over, so is
// a replay, with an error.
func Read(ctx context.Context, path string, r *trace.Reader, s memtrace.Select) iter.Seq2[*event.Memory, error] {
	if !AreRepeated(r) {
		return memtrace.Read(r, s)
	}
	return memtrace.ReadRun(ctx, s, func(ctx context.Context, l trace.Listener) error { return repeat(ctx, path, l) })
}

// repeat repeats a recorded run with the recordings that number its events, and with its accesses.
func repeat(ctx context.Context, path string, l trace.Listener) error {
	return Repeat(ctx, path, l, func(*machine.Record) {})
}

// Repeat repeats the recorded run of a trace whose accesses are those of a replay, and passes its events and accesses to a
// listener. They are those of the recorded run, numbered as there, unless change, which gets its recordings first,
// changes what is recorded. A run that is not the whole recorded run is an error, and so is the end of the context.
func Repeat(ctx context.Context, path string, l trace.Listener, change func(*machine.Record)) error {
	var recorded *machine.Replay
	result, err := machine.RepeatTrace(ctx, path, func(c *machine.Config) ([]machine.Option, error) {
		recorded = c.Replay
		r := *recorded.Recordings()
		r.Listener, r.Stretch, r.Files = l, recorded.Stretch(), false
		change(&r)
		c.Record = &r
		return nil, nil
	})
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	want := machine.OutcomeInterrupted // of a recording that was cut
	if end := recorded.Recorded(); end != nil {
		want = end.Outcome
	}
	if result.Outcome != want {
		return errRepeat.New(path, result.Message)
	}
	return nil
}
