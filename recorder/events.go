package recorder

import (
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Events is the Recording of starts and ends of threads, context switches,
// system calls and signals.
type Events struct {
	Nothing
	switches, starts, exits, syscalls, signals *trace.Stream
}

// NewEvents makes the recording.
func NewEvents(w *trace.Writer) *Events {
	return &Events{
		switches: w.Stream(trace.Sideband, 0), starts: w.Stream(trace.Threads, 0), exits: w.Stream(trace.Exits, 0),
		syscalls: w.Stream(trace.Syscalls, 0), signals: w.Stream(trace.Signals, 0),
	}
}

// Switch implements Recording.
func (v *Events) Switch(_ *Recorder, e *event.Switch) { trace.Put(v.switches, e) }

// Start implements Recording.
func (v *Events) Start(_ *Recorder, _ *kernel.Task, e *event.Start) { trace.Put(v.starts, e) }

// Exit implements Recording.
func (v *Events) Exit(_ *Recorder, e *event.Exit) { trace.Put(v.exits, e) }

// Issue implements Recording.
func (v *Events) Issue(_ *Recorder, _ *kernel.Task, e *event.Syscall) { trace.Put(v.syscalls, e) }

// Return implements Recording.
func (v *Events) Return(_ *Recorder, _ *kernel.Task, e *event.Syscall) { trace.Put(v.syscalls, e) }

// Signal implements Recording.
func (v *Events) Signal(_ *Recorder, e *event.Signal) { trace.Put(v.signals, e) }
