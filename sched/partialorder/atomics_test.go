package partialorder

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// head is the object of a CMPXCHG at pc, and loop the address of the instruction.
const (
	head event.ObjectID = 9
	loop arch.Addr      = 0x1000
)

// attempt is a CMPXCHG of a thread that may continue; it has stored unless it failed.
func (p *player) attempt(id arch.ThreadID, failed bool) {
	p.controller.Observe(&p.gate, sched.ThreadEvent{Kind: sched.AtomicExecuted, Thread: id, Failed: failed, Sync: &event.Sync{
		Stamp: event.Stamp{Thread: id}, Op: event.OpAtomic, Object: head, PC: loop,
	}})
}

// compare is a CMPXCHG of a thread, which must be allowed.
func (p *player) compare(id arch.ThreadID, failed bool) {
	p.t.Helper()
	if !p.ask(id, sched.SyncPoint{Kind: sched.AtAtomic}) {
		p.t.Fatalf("thread %d may not begin a CMPXCHG", id)
	}
	p.attempt(id, failed)
}

// recordAttempts records an epoch in which b stores, an attempt of a fails, c stores, and then a does.
func recordAttempts(t *testing.T) *Order {
	t.Helper()
	p := &player{t: t, controller: NewRecorder(&Functions{}, nil)}
	for _, id := range []arch.ThreadID{a, b, c} {
		p.start(id)
	}
	p.compare(b, false)
	p.compare(a, true)
	p.compare(c, false)
	p.compare(a, false)
	return p.controller.(*Recorder).Order(false)
}

// TestAttemptsAreNoSteps: of a loop that repeats a CMPXCHG until it stores, only the attempt that stores has a place in the
// order, after those of the other threads: one that has loaded the old value too early fails once more there.
func TestAttemptsAreNoSteps(t *testing.T) {
	for early, attempts := range map[string]int{"a loads after c": 0, "a loads before b": 1, "a loads, and then others store twice": 2} {
		f := NewReplayer(&Functions{}, recordAttempts(t))
		p := &player{t: t, controller: f}
		for _, id := range []arch.ThreadID{a, b, c} {
			p.start(id)
		}
		if p.ask(a, sched.SyncPoint{Kind: sched.AtAtomic}) {
			t.Fatalf("%s: a may store before b and c", early)
		}
		p.compare(b, false)
		p.released()
		p.compare(c, false)
		if got := p.released(); !slices.Equal(got, []arch.ThreadID{a}) {
			t.Fatalf("%s: %v may continue after the others have stored", early, got)
		}
		for range attempts {
			p.attempt(a, true)
			if !p.ask(a, sched.SyncPoint{Kind: sched.AtAtomic}) {
				t.Fatalf("%s: a may not repeat its attempt", early)
			}
		}
		p.attempt(a, false)
		if f.Diverged() != "" || f.Missing() != "" {
			t.Errorf("%s: diverged: %q, missing: %q", early, f.Diverged(), f.Missing())
		}
	}
}

// TestFailedAttemptIsAStep: a CMPXCHG that fails and is not repeated, as of a lock that is tried, comes after the one that
// took the lock.
func TestFailedAttemptIsAStep(t *testing.T) {
	p := &player{t: t, controller: NewRecorder(&Functions{}, nil)}
	p.start(a)
	p.start(b)
	p.compare(b, false)
	p.compare(a, true)
	p.lock(a, m)
	f := NewReplayer(&Functions{}, p.controller.(*Recorder).Order(false))
	p = &player{t: t, controller: f}
	p.start(a)
	p.start(b)
	if p.ask(a, sched.SyncPoint{Kind: sched.AtAtomic}) {
		t.Fatal("a tries the lock before b has taken it")
	}
	p.compare(b, false)
	p.released()
	p.attempt(a, true)
	p.lock(a, m)
	if f.Diverged() != "" || f.Missing() != "" {
		t.Errorf("diverged: %q, missing: %q", f.Diverged(), f.Missing())
	}
}

// TestAttemptsAreBounded: a thread whose attempts never store, since another value is there than in the first replica, has
// diverged.
func TestAttemptsAreBounded(t *testing.T) {
	f := NewReplayer(&Functions{}, recordAttempts(t))
	p := &player{t: t, controller: f}
	p.start(a)
	p.start(b)
	p.start(c)
	p.ask(a, sched.SyncPoint{Kind: sched.AtAtomic})
	p.compare(b, false)
	p.released()
	p.compare(c, false)
	p.released()
	for range 2 * mostAttempts {
		p.attempt(a, true)
		if !p.ask(a, sched.SyncPoint{Kind: sched.AtAtomic}) {
			break
		}
	}
	if f.Diverged() == "" {
		t.Error("it has not diverged")
	}
}
