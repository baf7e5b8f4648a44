package h3

import (
	"context"
	"io"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/pt"
)

var errNoCheckpoint = errs.Define("run-without-checkpoint",
	"the run in {file} has no checkpoint after {instructions} instructions",
	"The run ends before, or at no later point is each thread in code that can be followed or in a known operation.",
	"Ask for an earlier checkpoint, or for none.")

// Stand is where a thread is between two quanta.
type Stand struct {
	Thread arch.ThreadID
	Regs   arch.Regs
	FP     [arch.FPSize]byte
	// Passed is the number of instructions of its path so far, a repeated one
	// counted once; Latest is the number of its latest quantum.
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

// runProgress is a PausedRun's knowledge of the run so far.
type runProgress struct {
	passed, latest map[arch.ThreadID]uint64 // for look-up only
	quanta         uint64
	last           arch.ThreadID // that has run, by number
}

func (w *runProgress) quantumEnded(t arch.ThreadID, s arch.Stop) {
	w.passed[t] += s.Instructions - s.Repeated
	w.quanta++
	w.last = max(w.last, t)
	w.latest[t] = w.quanta
}

// Decisions is how many of the recorded run are carried out.
func (h *PausedRun) Decisions() uint64 { return h.m.CarriedOut() }

// Last is the greatest number that a thread has had.
func (h *PausedRun) Last() arch.ThreadID {
	last := h.progress.last
	for _, t := range h.m.Kernel().Tasks() {
		last = max(last, t.ID())
	}
	return last
}

// Stands are where the live threads are, by thread.
func (h *PausedRun) Stands() []Stand {
	var all []Stand
	for _, t := range h.m.Kernel().Tasks() {
		s := Stand{Thread: t.ID(), Passed: h.progress.passed[t.ID()], Latest: h.progress.latest[t.ID()]}
		t.Registers(&s.Regs, &s.FP)
		_, s.Waits = t.BlockedIn()
		if s.Call, s.Asked = t.Call(); s.Asked {
			s.First = t.Argument(0)
		}
		s.Arguments, s.Operates = h.m.OperationArguments(t.ID())
		all = append(all, s)
	}
	return all
}

// IsStill reports whether no store is on its way to memory, and there is one process.
func (h *PausedRun) IsStill() bool {
	for _, t := range h.m.Kernel().Tasks() {
		if t.Process() != h.task.Process() {
			return false
		}
	}
	return h.m.StoresAreVisible()
}

// runToQuantum repeats the recorded run up to the first wanted place between two quanta,
// after a number of instructions of all threads. Of the recording it uses the part
// before that place.
func runToQuantum(ctx context.Context, r *machine.Replay, after uint64, wanted func(*PausedRun) bool) (*PausedRun, error) {
	if err := r.CheckDecisions(); err != nil {
		return nil, err
	}
	c, err := r.Config()
	if err != nil {
		return nil, err
	}
	h := &PausedRun{progress: runProgress{passed: map[arch.ThreadID]uint64{}, latest: map[arch.ThreadID]uint64{}}}
	hook := &quantumHook{call: func(_ *machine.Machine, t *kernel.Task, s arch.Stop) {
		h.Instructions += s.Instructions
		h.progress.quantumEnded(t.ID(), s)
	}}
	// Branches are counted to distinguish repeated instructions from others, and operations
	// recognized to know which threads are in one.
	c.Record = &machine.Record{To: io.Discard, PT: &pt.Config{RetCompression: true}, Sync: &machine.SyncRecord{}}
	if h.m, err = machine.New(c, machine.WithHook(hook), machine.Isolated()); err != nil {
		return nil, err
	}
	for n := 0; !h.m.Done(); n++ {
		h.m.Step()
		if n%stepsBetweenChecks == 0 && ctx.Err() != nil {
			h.m.Close()
			return nil, ctx.Err()
		}
		if h.task == nil {
			h.task = h.m.Kernel().Tasks()[0]
		}
		if !h.m.Done() && h.Instructions >= after && h.IsStill() && wanted(h) {
			return h, nil
		}
	}
	h.m.Close()
	return nil, errNoCheckpoint.New(r.Path(), after)
}
