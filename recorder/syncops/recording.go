package syncops

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Recording is the recorder.Recording of synchronization operations. It gives
// threads their names, so it comes before recordings that write those.
type Recording struct {
	recognizer     *Recognizer
	current        *recorder.Recorder
	syncs, objects *trace.Stream // nil if nothing is kept
	keepHeap       bool          // calls of allocators are kept
	gate           Gate          // or nil
	held           map[arch.ThreadID]event.Sync
	gated          []event.ObjectID // of operations without effect, which are not kept
}

// Rearm reports that the engine is another one than before.
func (r *Recording) Rearm() { r.recognizer.stale = true }

// Gate decides whether a thread may continue after the begin or the end of an
// operation. If not, that has its position in the order when the thread continues.
type Gate interface {
	Admit(*event.Sync) bool
}

// NewRecording makes the recording of a run that has not begun, without a trace
// if that is nil. The gate, unless nil, is asked about everything. It fails if
// atomic instructions cannot be logged.
func NewRecording(w *trace.Writer, cpu emu.CPU, c Config, gate Gate) (*Recording, error) {
	v := &Recording{gate: gate, held: map[arch.ThreadID]event.Sync{}, keepHeap: keepsHeap(c.Custom)}
	if c.TellHeap && !v.keepHeap {
		c.Custom = append(HeapFunctions(), c.Custom...)
	}
	for i := range c.Custom {
		if x := &c.Custom[i]; x.Effect == NoEffect {
			v.gated = append(v.gated, identify("function:"+x.Name))
		}
	}
	if w != nil {
		v.syncs, v.objects = w.Stream(trace.Sync, 0), w.Stream(trace.Objects, 0)
	}
	if c.Atomics {
		if err := cpu.LogAtomics(); err != nil {
			return nil, err
		}
	}
	v.recognizer = New(cpu, v, c)
	return v, nil
}

// Recognition is how operations were found: see Recognizer.
func (v *Recording) Recognition() string { return v.recognizer.Recognition() }

// AddSync implements Sink.
func (v *Recording) AddSync(e *event.Sync) {
	if v.gate != nil && !v.gate.Admit(e) {
		v.held[e.Thread] = *e
		return
	}
	v.putOperation(e)
}

// putOperation writes an operation at its place in the order, unless it is for the gate
// alone.
func (v *Recording) putOperation(e *event.Sync) {
	if e.Op == event.OpAllocate || e.Op == event.OpCustom && slices.Contains(v.gated, e.Object) {
		return
	}
	n := v.current.NextSync()
	e.Seq, e.Sync = n.Seq, n.Sync
	if v.syncs != nil {
		trace.Put(v.syncs, e)
	}
}

// AddObject implements Sink.
func (v *Recording) AddObject(e *event.Object) {
	n := v.current.Next()
	e.Seq, e.Sync = n.Seq, n.Sync
	if v.objects != nil {
		trace.Put(v.objects, e)
	}
}

// Name is the name of a live thread.
func (v *Recording) Name(t arch.ThreadID) string { return v.recognizer.Name(t) }

// InOperation reports whether a thread is within an operation.
func (v *Recording) InOperation(t arch.ThreadID) bool { return v.recognizer.InOperation(t) }

// Arguments are those of the operation that a thread is in, at its begin; not ok: it
// is in none.
func (v *Recording) Arguments(t arch.ThreadID) (args [3]uint64, ok bool) {
	return v.recognizer.Arguments(t)
}

// Library is Recognizer.Library.
func (v *Recording) Library(t arch.ThreadID, pc arch.Addr) (library, linker bool) {
	return v.recognizer.Library(t, pc)
}

// Begin implements recorder.Recording.
func (v *Recording) Begin(r *recorder.Recorder, t *kernel.Task) {
	v.current = r
	if len(v.held) > 0 {
		v.putHeld(r, t.ID())
	}
	if !v.recognizer.skipUnwatched(t.ID(), r.Retired()) {
		v.recognizer.Running(t, r.At())
	}
}

// putHeld writes the operation at which a thread was held that now continues.
func (v *Recording) putHeld(r *recorder.Recorder, t arch.ThreadID) {
	e, ok := v.held[t]
	if !ok {
		return
	}
	delete(v.held, t)
	at := r.At()
	e.Time, e.Core = at.Time, at.Core
	v.putOperation(&e)
}

// Stopped implements recorder.Recording.
func (v *Recording) Stopped(r *recorder.Recorder, t *kernel.Task, s arch.Stop) {
	v.current = r
	if s.Reason == arch.StopBreakpoint || v.recognizer.atomics {
		v.recognizer.Stopped(t.ID(), s.Reason, r.At())
	}
}

// Switch implements recorder.Recording.
func (v *Recording) Switch(*recorder.Recorder, *event.Switch) {}

// Start implements recorder.Recording.
func (v *Recording) Start(r *recorder.Recorder, t *kernel.Task, e *event.Start) {
	v.current = r
	e.Name = v.recognizer.Started(e.Parent, t, r.At())
}

// Exit implements recorder.Recording.
func (v *Recording) Exit(r *recorder.Recorder, e *event.Exit) {
	v.current = r
	v.recognizer.Exited(e.Thread, e.Stamp)
}

// Issue implements recorder.Recording.
func (v *Recording) Issue(r *recorder.Recorder, _ *kernel.Task, e *event.Syscall) {
	v.current = r
	v.recognizer.Issued(e.Thread, e.Number, e.Args, e.Stamp)
}

// Return implements recorder.Recording.
func (v *Recording) Return(r *recorder.Recorder, _ *kernel.Task, e *event.Syscall) {
	v.current = r
	v.recognizer.Completed(e.Thread, e.Number, e.Args, e.Result, e.Stamp)
}

// Signal implements recorder.Recording.
func (v *Recording) Signal(r *recorder.Recorder, e *event.Signal) {
	v.current = r
	v.recognizer.Signalled(e.Thread)
}

// Finish implements recorder.Recording.
func (v *Recording) Finish(*recorder.Recorder) {}
