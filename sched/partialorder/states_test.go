package partialorder

import "testing"

// TestStatesThatEnd: a thread that has exited, or that has not started, changes its state no more
// (a thread that starts gets a new record).
func TestStatesThatEnd(t *testing.T) {
	for _, last := range []threadState{exited, notStarted} {
		for next := running; next <= notStarted; next++ {
			if last.mayBecome(next) != (next == last) {
				t.Errorf("%s to %s: %v", last, next, last.mayBecome(next))
			}
		}
	}
}

// TestEveryLivingThreadMayEnd: threads are killed in any state.
func TestEveryLivingThreadMayEnd(t *testing.T) {
	for s := running; s <= blocked; s++ {
		if !s.mayBecome(exited) || !s.isAlive() {
			t.Errorf("a thread that is %s cannot exit", s)
		}
	}
}

// TestStatesHaveOneKind: a state is at most one of running, queued, held, blocked and ended.
func TestStatesHaveOneKind(t *testing.T) {
	for s := running; s <= notStarted; s++ {
		kinds := 0
		for _, is := range []bool{s == running, s.isQueued(), s.isHeld(), s == blocked, !s.isAlive()} {
			if is {
				kinds++
			}
		}
		if kinds != 1 {
			t.Errorf("%s is of %d kinds", s, kinds)
		}
	}
}

func TestWrongTransitionIsABug(t *testing.T) {
	defer func() {
		if r := recover(); r != "bug: a thread that is exited would be running" {
			t.Errorf("panic %v", r)
		}
	}()
	s := exited
	s.become(running)
}
