package syncops

import (
	"github.com/heddle-dmt/heddle/emu"
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
	syncs, objects *trace.Stream
}

// NewRecording makes the recording of a run that has not begun. It fails if
// atomic instructions cannot be logged.
func NewRecording(w *trace.Writer, cpu *emu.CPU, c Config) (*Recording, error) {
	v := &Recording{syncs: w.Stream(trace.Sync, 0), objects: w.Stream(trace.Objects, 0)}
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

// Sync implements Sink.
func (v *Recording) Sync(e *event.Sync) {
	n := v.current.NextSync()
	e.Seq, e.Sync = n.Seq, n.Sync
	trace.Put(v.syncs, e)
}

// Object implements Sink.
func (v *Recording) Object(e *event.Object) {
	n := v.current.Next()
	e.Seq, e.Sync = n.Seq, n.Sync
	trace.Put(v.objects, e)
}

// Begin implements recorder.Recording.
func (v *Recording) Begin(r *recorder.Recorder, t *kernel.Task) {
	v.current = r
	v.recognizer.Running(t, r.At())
}

// Stopped implements recorder.Recording.
func (v *Recording) Stopped(r *recorder.Recorder, t *kernel.Task, s emu.Stop) {
	v.current = r
	v.recognizer.Stopped(t.ID(), s.Reason, r.At())
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
