package recorder

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/nearmap"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// A Recording is one kind of recording. Its methods are called in the order of
// events, and must change only the Recording and the trace. Recordings embed
// Nothing and have the methods that concern them.
type Recording interface {
	// Open reports that the recorded stretch of the run begins (Recorder.Limit), between two events or at a stop
	// within a quantum. The position of r is that of the last event or of the stop.
	Open(r *Recorder)
	// Begin reports that a thread is loaded and about to run on r's core.
	Begin(r *Recorder, t *kernel.Task)
	// Stopped reports that the engine has stopped within the quantum, or at its
	// end, for whatever reason; the thread is still loaded, and the engine's
	// log since the last stop can be drained. The position of r is
	// that of the stop.
	Stopped(r *Recorder, t *kernel.Task, s arch.Stop)
	// Switch reports that a core switches to another thread: before Begin.
	Switch(r *Recorder, e *event.Switch)
	// Start and Exit report a thread's begin and end. t is nil after the end.
	Start(r *Recorder, t *kernel.Task, e *event.Start)
	Exit(r *Recorder, e *event.Exit)
	// Issue reports that a thread has made a system call, Return that it is done,
	// with its effects in memory.
	Issue(r *Recorder, t *kernel.Task, e *event.Syscall)
	Return(r *Recorder, t *kernel.Task, e *event.Syscall)
	// Signal reports a signal that runs a handler or kills: the thread's
	// registers are still those from before.
	Signal(r *Recorder, e *event.Signal)
	// Finish reports that the run is over.
	Finish(r *Recorder)
}

// Nothing is a Recording that does nothing.
type Nothing struct{}

// Open implements Recording, and so do the other methods.
func (Nothing) Open(*Recorder)                                 {}
func (Nothing) Begin(*Recorder, *kernel.Task)                  {}
func (Nothing) Stopped(*Recorder, *kernel.Task, arch.Stop)     {}
func (Nothing) Switch(*Recorder, *event.Switch)                {}
func (Nothing) Start(*Recorder, *kernel.Task, *event.Start)    {}
func (Nothing) Exit(*Recorder, *event.Exit)                    {}
func (Nothing) Issue(*Recorder, *kernel.Task, *event.Syscall)  {}
func (Nothing) Return(*Recorder, *kernel.Task, *event.Syscall) {}
func (Nothing) Signal(*Recorder, *event.Signal)                {}
func (Nothing) Finish(*Recorder)                               {}

// Recorder keeps the position in the run, and passes on events. Its methods
// of the same names as a Recording's are for the machine.
type Recorder struct {
	trace  *trace.Writer // nil if nothing is kept
	cpu    emu.CPU
	kernel *kernel.Kernel
	parts  []Recording
	mark   *trace.Mark // of the snapshot that this is the copy of

	threads nearmap.Map[arch.ThreadID, *progress]
	cores   []arch.ThreadID // the thread that each core ran last

	seq, sync uint64
	thread    arch.ThreadID // that acts
	acting    *progress     // of it, or nil
	core      arch.CoreID
	time      arch.Cycles
	began     arch.Cycles   // the core's clock at the begin of the slice
	gone      arch.ThreadID // left the scheduler; Exit has not come yet
	within    arch.Stop     // the last stop of the slice
	sinceSave uint64        // instructions since the trace was flushed
	changed   event.Switch  // the argument of the recordings' Switch, kept to save an allocation

	limits *limits // of the recorded stretch, or nil
}

// progress counts a thread's instructions and events before the current quantum.
type progress struct {
	instructions, branches uint64
	lastCore               arch.CoreID // that it was to run on
	ranOn                  arch.CoreID // that it did run on
}

// New makes a Recorder that writes to a trace; without one, nil, it only calls the
// recordings. They are called in the order in which they are given.
func New(w *trace.Writer, cpu emu.CPU, cores int, parts ...Recording) *Recorder {
	r := &Recorder{
		trace: w, cpu: cpu, parts: parts,
		cores: make([]arch.ThreadID, cores), thread: arch.NoThread, core: arch.NoCore,
		gone: arch.NoThread,
	}
	for i := range r.cores {
		r.cores[i] = arch.NoThread
	}
	return r
}

// Add adds a recording, before anything runs: one that watches, in a test.
func (r *Recorder) Add(p Recording) { r.parts = append(r.parts, p) }

// Trace is where recordings write.
func (r *Recorder) Trace() *trace.Writer { return r.trace }

// CPU is the engine, whose logs recordings drain.
func (r *Recorder) CPU() emu.CPU { return r.cpu }

// Kernel is the guest's Linux, for looking.
func (r *Recorder) Kernel() *kernel.Kernel { return r.kernel }

// Attach gives the recorder the guest's Linux, before anything runs.
func (r *Recorder) Attach(k *kernel.Kernel) { r.kernel = k }

// At is the present place of the thread that acts: the number in it is that of
// the last event.
func (r *Recorder) At() event.Stamp { return r.stampOf(r.thread) }

// Thread is the thread that acts, or NoThread.
func (r *Recorder) Thread() arch.ThreadID { return r.thread }

// Time is that of the present place: At().Time.
func (r *Recorder) Time() arch.Cycles { return r.time }

// Retired is how many instructions the thread that acts has retired: At().Instructions.
func (r *Recorder) Retired() uint64 {
	if r.acting == nil {
		return 0
	}
	return r.acting.instructions + r.within.Instructions
}

func (r *Recorder) stampOf(t arch.ThreadID) event.Stamp {
	s := event.Stamp{Seq: r.seq, Sync: r.sync, Thread: t, Core: r.core, Time: r.time}
	if t == r.thread {
		if r.acting != nil {
			s.Instructions, s.Branches = r.Retired(), r.acting.branches
		}
		return s
	}
	if p := r.threads.At(t); p != nil {
		s.Instructions, s.Branches, s.Core = p.instructions, p.branches, p.lastCore
	}
	return s
}

// Next numbers a new event of the thread that acts, at the present place.
func (r *Recorder) Next() event.Stamp { return r.nextStamp(r.thread) }

func (r *Recorder) nextStamp(t arch.ThreadID) event.Stamp {
	r.seq++
	return r.stampOf(t)
}

// NextSync is Next for a sync operation.
func (r *Recorder) NextSync() event.Stamp {
	s := r.Next()
	r.sync++
	return s
}

// InQuantum is how many instructions of the quantum the thread that runs had retired at the last stop.
func (r *Recorder) InQuantum() uint64 { return r.within.Instructions }

// AddBranches counts branches of the thread that runs, as they are drained.
func (r *Recorder) AddBranches(n uint64) { r.acting.branches += n }
