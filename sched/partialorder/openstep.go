package partialorder

import "github.com/heddle-dmt/heddle/sched/follow"

// openStep is a step that is under way. Its index is -1 if it began in an earlier epoch.
type openStep struct {
	Step
	index         int
	beginDone     bool // its begin step is complete
	blocked       bool // the thread waits in the kernel
	beginPending  bool // its begin step is recorded at the thread's next synchronization point
	signalsBefore bool // signals that arrived in it were placed before it
}

// handlerStep marks in a thread's open steps that the thread is in a handler.
var handlerStep = openStep{Step: Step{Kind: HandlerStep}, index: -1}

// leaveHandlers removes the handlers within a thread's innermost operation, which continues.
func leaveHandlers(open *[]openStep) {
	for k := len(*open); k > 0 && (*open)[k-1].Kind == HandlerStep; k-- {
		*open = (*open)[:k-1]
	}
}

// leaveHandler removes a thread's innermost handler, if that is within a step, and reports whether
// the thread continues in an operation.
func leaveHandler(open *[]openStep) bool {
	k := len(*open)
	if k == 0 || (*open)[k-1].Kind != HandlerStep {
		return false
	}
	*open = (*open)[:k-1]
	return inOperation(*open)
}

// nestHandler adds a handler for a signal that arrives in a handler within a step.
func nestHandler(open *[]openStep) {
	if k := len(*open); k > 0 && (*open)[k-1].Kind == HandlerStep {
		*open = append(*open, handlerStep)
	}
}

// continuesInHandler decides whether a thread that continues after a wait does so in a handler
// within an operation: it is about to enter the handler, or has waited there.
func continuesInHandler(open *[]openStep, handling *bool, inside bool) bool {
	k := len(*open)
	if k == 0 || (*open)[k-1].Kind != HandlerStep {
		*handling = false
		return false
	}
	if *handling || !inside {
		*handling = false
		return true
	}
	leaveHandlers(open)
	return false
}

// inCall reports whether the innermost open step of a thread is a system call.
func inCall(open []openStep) bool {
	k := len(open)
	return k > 0 && (open[k-1].Kind == CallStep || open[k-1].Kind == CalledStep)
}

// inOperation reports whether a thread is in an operation; the routine of pthread_once does not
// count.
func inOperation(open []openStep) bool {
	k := len(open)
	if k == 0 || inCall(open) || open[k-1].Kind == HandlerStep {
		return false
	}
	o := &open[k-1]
	return !follow.EnclosesOperations(o.Op) || !o.beginDone || o.blocked
}
