package partialorder

import "fmt"

// threadState is the state of a thread of a replica, for Recorder and Replayer alike.
//
//	                        its entities are busy (Recorder)
//	            +------------------------------------------------> queued ---+
//	            |              its entities are free                 |       |
//	notStarted  |    +-----------------------------------------------+       | the epoch
//	     .      |    v                                                       | ends
//	     .......> running ---------------------------------------> held <----+
//	              ^  |      before its turn (Replayer),            |
//	              |  |      or the epoch ends                      |
//	              +--|---------------------------------------------+
//	                 |      its turn has come
//	                 |
//	                 +--------> blocked -----------> running, held or queued
//	            waits in the kernel    its wait has ended
//
//	running, queued, held, blocked -----> exited
//
// A queued or held thread continues at one of four places, which the states name:
//
//	          before a step   after a wait     after an operation   at a signal
//	queued    queuedAtStep    queuedAfterWait
//	held      heldAtStep      heldAfterWait    heldAtReturn         heldAtSignal
//
// Only the Recorder has queued threads, which wait for other threads' operations on an entity. Only
// the Replayer holds threads after operations and at signals, where they wait for their turn. A
// signal that stops a queued or held thread makes it blocked.
type threadState uint8

const (
	running         threadState = iota
	queuedAtStep                // before replayedThread.next, until its entities are free
	queuedAfterWait             // after a wait in its innermost open step, until the step's entities are free
	heldAtStep                  // before its next step
	heldAfterWait               // after a wait in its innermost open step, or for a signal in it
	heldAtReturn                // after its innermost open step
	heldAtSignal                // at the instruction where it gets a signal
	blocked                     // in the kernel
	exited
	notStarted // the Replayer expects it
)

func (s threadState) String() string {
	return [...]string{
		"running", "queued at a step", "queued after a wait", "held at a step", "held after a wait", "held at a return",
		"held at a signal", "blocked", "exited", "not started",
	}[s]
}

// isQueued reports whether the thread waits for entities.
func (s threadState) isQueued() bool { return s == queuedAtStep || s == queuedAfterWait }

// isHeld reports whether the controller holds the thread.
func (s threadState) isHeld() bool { return s >= heldAtStep && s <= heldAtSignal }

// isAfterWait reports whether the thread's wait in the kernel has ended and it has not continued yet.
func (s threadState) isAfterWait() bool { return s == queuedAfterWait || s == heldAfterWait }

// isAlive reports whether the thread has started and not ended.
func (s threadState) isAlive() bool { return s != exited && s != notStarted }

// transitions has, for each state, the states that may follow it. A state may always follow itself.
var transitions = [...][]threadState{
	running:         {queuedAtStep, queuedAfterWait, heldAtStep, heldAfterWait, heldAtReturn, heldAtSignal, blocked, exited},
	queuedAtStep:    {running, heldAtStep, blocked, exited},
	queuedAfterWait: {running, blocked, exited},
	heldAtStep:      {running, queuedAtStep, heldAfterWait, heldAtSignal, blocked, exited},
	heldAfterWait:   {running, queuedAfterWait, blocked, exited},
	heldAtReturn:    {running, blocked, exited},
	heldAtSignal:    {running, heldAtStep, blocked, exited},
	blocked:         {running, queuedAtStep, queuedAfterWait, heldAtStep, heldAfterWait, heldAtReturn, heldAtSignal, exited},
	exited:          {},
	notStarted:      {},
}

// become changes a state: the one place where threads change theirs.
func (s *threadState) become(next threadState) {
	if !s.mayBecome(next) {
		panic(fmt.Sprintf("bug: a thread that is %s would be %s", *s, next))
	}
	*s = next
}

// mayBecome reports whether a state may follow another.
func (s threadState) mayBecome(next threadState) bool {
	if s == next {
		return true
	}
	for _, allowed := range transitions[s] {
		if next == allowed {
			return true
		}
	}
	return false
}

// kind returns the state in which a thread begins an epoch.
func (s *ThreadState) kind() threadState {
	switch {
	case !s.Held:
		return blocked
	case s.Woken:
		return heldAfterWait
	}
	return heldAtStep
}
