package machine

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// syncRecording reports the events of a run to a recognizer of synchronization operations. At each
// operation it asks the controller whether the thread may continue, and writes the operation to
// the trace. It gives threads their names, so it precedes recordings that write
// those.
//
// An operation at which its thread is held has its position in the order when the thread
// continues.
type syncRecording struct {
	recorder.Nothing
	recognizer     *syncops.Recognizer
	recorder       *recorder.Recorder
	syncs, objects *trace.Stream // nil if nothing is kept
	keepHeap       bool          // calls of allocators are kept
	atomics        bool          // are recognized
	control        *control      // nil if no controller decides
	held           map[arch.ThreadID]event.Sync
}

// newSyncRecording makes the recording of a run that has not begun, without a trace if that is
// nil. It fails if atomic instructions cannot be logged.
func (m *Machine) newSyncRecording(w *trace.Writer, c syncops.Config, keepHeap bool) (*syncRecording, error) {
	v := &syncRecording{control: m.state.control, held: map[arch.ThreadID]event.Sync{}, keepHeap: keepHeap, atomics: c.Atomics}
	if w != nil {
		v.syncs, v.objects = w.Stream(trace.Sync, 0), w.Stream(trace.Objects, 0)
	}
	if c.Atomics {
		if err := m.cpu.LogAtomics(); err != nil {
			return nil, err
		}
	}
	v.recognizer = syncops.New(m.cpu, v, c)
	return v, nil
}

// AddSync implements syncops.Sink.
func (v *syncRecording) AddSync(e *event.Sync) {
	if v.control != nil && !v.control.admits(e) {
		v.held[e.Thread] = *e
		return
	}
	v.putOperation(e)
}

// putOperation writes an operation at its place in the order, unless it is for the controller
// alone.
func (v *syncRecording) putOperation(e *event.Sync) {
	if v.recognizer.OrdersNothing(e) {
		return
	}
	n := v.recorder.NextSync()
	e.Seq, e.Sync = n.Seq, n.Sync
	if v.syncs != nil {
		trace.Put(v.syncs, e)
	}
}

// AddObject implements syncops.Sink.
func (v *syncRecording) AddObject(e *event.Object) {
	n := v.recorder.Next()
	e.Seq, e.Sync = n.Seq, n.Sync
	if v.objects != nil {
		trace.Put(v.objects, e)
	}
}

// AddAllocation implements syncops.Sink.
func (v *syncRecording) AddAllocation(e *event.Heap) {
	if v.control != nil {
		v.control.observeAllocation(e)
	}
	w := v.recorder.Trace()
	if w == nil || !v.keepHeap {
		return
	}
	n := v.recorder.Next()
	e.Seq, e.Sync = n.Seq, n.Sync
	trace.Put(w.Stream(trace.Heap, 0), e)
}

// Begin implements recorder.Recording.
func (v *syncRecording) Begin(r *recorder.Recorder, t *kernel.Task) {
	if len(v.held) > 0 {
		v.putHeld(t.ID())
	}
	if !v.recognizer.SkipUnwatched(t.ID(), r.Retired()) {
		v.recognizer.Running(t, r.At())
	}
}

// putHeld writes the operation at which a thread was held that now continues.
func (v *syncRecording) putHeld(t arch.ThreadID) {
	e, ok := v.held[t]
	if !ok {
		return
	}
	delete(v.held, t)
	at := v.recorder.At()
	e.Time, e.Core = at.Time, at.Core
	v.putOperation(&e)
}

// Stopped implements recorder.Recording.
func (v *syncRecording) Stopped(r *recorder.Recorder, t *kernel.Task, s arch.Stop) {
	if s.Reason == arch.StopBreakpoint || v.atomics {
		v.recognizer.Stopped(t.ID(), s.Reason, r.At())
	}
}

// Start implements recorder.Recording.
func (v *syncRecording) Start(r *recorder.Recorder, t *kernel.Task, e *event.Start) {
	e.Name = v.recognizer.Started(e.Parent, t, r.At())
}

// Exit implements recorder.Recording.
func (v *syncRecording) Exit(_ *recorder.Recorder, e *event.Exit) {
	v.recognizer.Exited(e.Thread, e.Stamp)
}

// Issue implements recorder.Recording.
func (v *syncRecording) Issue(_ *recorder.Recorder, _ *kernel.Task, e *event.Syscall) {
	v.recognizer.Issued(e.Thread, e.Number, e.Args, e.Stamp)
}

// Return implements recorder.Recording.
func (v *syncRecording) Return(_ *recorder.Recorder, _ *kernel.Task, e *event.Syscall) {
	v.recognizer.Completed(e.Thread, e.Number, e.Args, e.Result, e.Stamp)
}

// Signal implements recorder.Recording.
func (v *syncRecording) Signal(_ *recorder.Recorder, e *event.Signal) {
	v.recognizer.Signalled(e.Thread)
}
