package heddle

import (
	"context"
	"io"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

var errNoCheckpoint = errs.Define("run-without-checkpoint",
	"the run in {file} has no checkpoint behind {instructions} instructions",
	"The run is over before, or from there on there is no place at which each thread is in code that is followed, or waits in an operation that is known.",
	"Ask for an earlier checkpoint, or for none.")

// Stand is where a thread is between two slices.
type Stand struct {
	Thread event.ThreadID
	Regs   emu.Regs
	FP     [emu.FPSize]byte
	// Passed is how many instructions of its path it has behind it, a repeated one
	// counted once; Latest is the number of its latest slice.
	Passed, Latest uint64
	// Call is the system call that it is in, Asked whether it is in one, and Waits
	// whether it waits there. First is the call's first argument.
	Call  uint64
	Asked bool
	Waits bool
	First uint64
	// Arguments are those of the synchronization operation that it is in, if it is in
	// one: Operates.
	Arguments [3]uint64
	Operates  bool
}

// way is what a Halt knows of how it came to where it is.
type way struct {
	passed, latest map[event.ThreadID]uint64 // for look-up only
	slices         uint64
	last           event.ThreadID // that has run, by number
}

func (w *way) ran(t event.ThreadID, s emu.Stop) {
	w.passed[t] += s.Instructions - s.Repeated
	w.slices++
	w.last = max(w.last, t)
	w.latest[t] = w.slices
}

// Decisions is how many of the recorded run are carried out.
func (h *Halt) Decisions() uint64 {
	n, _ := h.m.state.cluster.Replaying()
	return n + 1
}

// Last is the greatest number that a thread has had.
func (h *Halt) Last() event.ThreadID {
	last := h.way.last
	for _, t := range h.m.state.kernel.Tasks() {
		last = max(last, t.ID())
	}
	return last
}

// Stands are where the live threads are, by thread.
func (h *Halt) Stands() []Stand {
	var all []Stand
	for _, t := range h.m.state.kernel.Tasks() {
		s := Stand{Thread: t.ID(), Passed: h.way.passed[t.ID()], Latest: h.way.latest[t.ID()]}
		t.Registers(&s.Regs, &s.FP)
		_, s.Waits = t.Waits()
		if s.Call, s.Asked = t.Call(); s.Asked {
			s.First = t.Argument(0)
		}
		s.Arguments, s.Operates = h.m.state.recording.syncs.Arguments(t.ID())
		all = append(all, s)
	}
	return all
}

// Still tells that no store is on its way to memory, and that there is one process.
func (h *Halt) Still() bool {
	s := h.m.state
	if s.pages != nil {
		return false
	}
	for _, t := range s.kernel.Tasks() {
		if t.Process() != h.task.Process() {
			return false
		}
	}
	for k := 0; s.buffers != nil && k < h.m.config.Cores; k++ {
		if len(s.buffers.Stores(event.CoreID(k))) > 0 {
			return false
		}
	}
	return true
}

// HaltBetween repeats the recorded run up to the first place between two slices that is
// wanted, behind so many instructions of all threads. Of the recording it uses what is
// before that place.
func (r *Replay) HaltBetween(ctx context.Context, behind uint64, wanted func(*Halt) bool) (*Halt, error) {
	if in := r.stdin; in != nil {
		r.stdin = nil
		_ = in.Close() // it was read only
	}
	if !r.trace.Has(trace.Decisions) {
		return nil, r.lacks("decisions", nil)
	}
	c, err := r.Config()
	if err != nil {
		return nil, err
	}
	h := &Halt{way: way{passed: map[event.ThreadID]uint64{}, latest: map[event.ThreadID]uint64{}}}
	c.rehearsal = &rehearsal{Tracker: minimize.NewTracker(nil)}
	c.rehearsal.places = func(t *kernel.Task, _ emu.Regs, s emu.Stop) {
		h.Instructions += s.Instructions
		h.way.ran(t.ID(), s)
	}
	// Branches are counted to tell repeated instructions from others, and operations
	// recognized to know who is in one.
	c.Record = &Record{To: io.Discard, PT: &pt.Config{RetCompression: true}, Sync: &SyncRecord{}}
	if h.m, err = New(c); err != nil {
		return nil, err
	}
	for n := 0; !h.m.done; n++ {
		h.m.Step()
		if n%stepsBetweenLooks == 0 && ctx.Err() != nil {
			h.m.Close()
			return nil, ctx.Err()
		}
		if h.task == nil {
			h.task = h.m.state.kernel.Tasks()[0]
		}
		if !h.m.done && h.Instructions >= behind && h.Still() && wanted(h) {
			return h, nil
		}
	}
	h.m.Close()
	return nil, errNoCheckpoint.New(r.path, behind)
}
