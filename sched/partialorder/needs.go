package partialorder

import "github.com/heddle-dmt/heddle/sched"

// Needs implements Controller.
func (r *Recorder) Needs() sched.Needs {
	return sched.Needs{
		Signals: true, HandlerReturns: true, Kills: true, Atomics: true, CallWakes: true,
		MayRun: true, SignalHolds: true, WholeOperations: true,
	}
}

// Observe implements Controller.
func (r *Recorder) Observe(g *sched.Gate, e sched.ThreadEvent) {
	switch e.Kind {
	case sched.SignalDelivered:
		r.noteSignal(g, e.Signal)
	case sched.HandlerReturned:
		r.noteHandlerReturn(e.Thread, e.Instructions)
	case sched.SignalSent:
		r.noteSentSignal(e.Thread)
	case sched.AtomicExecuted:
		r.completeAtomic(g, e.Sync, e.Failed)
	}
}

// Needs implements Controller.
func (f *Replayer) Needs() sched.Needs {
	return sched.Needs{
		Signals: true, HandlerReturns: true, Times: true, Atomics: true, CallWakes: true,
		MayRun: true, SignalHolds: true, Stops: true,
	}
}

// Observe implements Controller.
func (f *Replayer) Observe(g *sched.Gate, e sched.ThreadEvent) {
	switch e.Kind {
	case sched.SignalDelivered:
		f.noteSignal(e.Signal)
	case sched.HandlerReturned:
		f.noteHandlerReturn(e.Thread)
	case sched.TimeAsked:
		f.answerWithin(g, e.Thread, e.Number)
	case sched.AtomicExecuted:
		f.completeAtomic(g, e.Sync, e.Failed)
	}
}
