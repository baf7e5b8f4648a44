package windows

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// members are the threads below 100.
type members struct{}

func (members) InService(t arch.ThreadID) bool { return t < 100 }

// player drives a Controller as the machine does.
type player struct {
	t *testing.T
	c *Controller
	g sched.Gate
}

func newPlayer(t *testing.T, s *Store) *player {
	p := &player{t: t, c: NewController(s, sched.Costs{}, members{}, true, Online)}
	p.c.Begin(Admission{Key: 1})
	return p
}

// enter has a thread reach an operation, and reports whether it may continue.
func (p *player) enter(id arch.ThreadID, op event.SyncOp) bool {
	return p.g.Ask(p.c, &sched.SyncPoint{Thread: id, Name: fmt.Sprint("1.", id), Kind: sched.AtEnter, Sync: &event.Sync{Op: op}})
}

func (p *player) leave(id arch.ThreadID) {
	p.g.Ask(p.c, &sched.SyncPoint{Thread: id, Kind: sched.AtReturn, Sync: &event.Sync{}})
}

func (p *player) wake(id arch.ThreadID) bool {
	p.c.Woken(&p.g, id)
	return p.g.Ask(p.c, &sched.SyncPoint{Thread: id, Name: fmt.Sprint("1.", id), Kind: sched.AtWake})
}

// released returns the threads that were released since the last call.
func (p *player) released() (list []arch.ThreadID) {
	p.c.Stepped(&p.g, arch.NoThread, 0, 0)
	r, _ := p.g.Take()
	for _, x := range r {
		list = append(list, x.Thread)
	}
	return list
}

func (p *player) expectReleased(want ...arch.ThreadID) {
	p.t.Helper()
	if got := p.released(); !slices.Equal(got, want) {
		p.t.Errorf("released %v, want %v", got, want)
	}
}

const lock, unlock = event.OpMutexLock, event.OpMutexUnlock

func (p *player) expect(what string, got, want bool) {
	p.t.Helper()
	if got != want {
		p.t.Errorf("%s: continues %v, want %v", what, got, want)
	}
}

// record plays a window in which thread 1 is before thread 2, and both then wait.
func record(t *testing.T, s *Store) *player {
	p := newPlayer(t, s)
	p.expect("1 locks", p.enter(1, lock), true)
	p.expect("2 locks meanwhile", p.enter(2, lock), false)
	p.leave(1)
	p.expectReleased(2)
	p.leave(2)
	p.c.Blocked(&p.g, 1, false)
	p.c.Blocked(&p.g, 2, false)
	return p
}

func TestOrderOfArrivalIsRecordedAndFollowed(t *testing.T) {
	s := NewStore()
	p := record(t, s)
	if r := p.c.End(nil, Precondition{}); r.Turns != 2 || r.Reused || r.Left != 0 {
		t.Fatalf("recorded %+v", r)
	}
	p = newPlayer(t, s)
	p.c.threadOf(1)
	p.expect("2 locks first", p.enter(2, lock), false)
	p.expectReleased()
	p.expect("1 locks", p.enter(1, lock), true)
	p.leave(1)
	p.expectReleased(2)
	p.leave(2)
	p.c.Blocked(&p.g, 1, false)
	p.c.Blocked(&p.g, 2, false)
	if r := p.c.End(nil, Precondition{}); r.Turns != 2 || !r.Reused || r.Left != 0 || s.Len() != 1 {
		t.Fatalf("followed %+v, %d orders", r, s.Len())
	}
}

// A window whose threads do something else leaves the stored order when all of them wait, and is
// stored as another order of the same key, which a third window follows.
func TestOrderIsLeftAndAnotherStored(t *testing.T) {
	s := NewStore()
	record(t, s).c.End(nil, Precondition{})
	for round := range 2 {
		p := newPlayer(t, s)
		p.c.threadOf(1)
		p.expect("2 unlocks", p.enter(2, unlock), false)
		p.expectReleased()
		p.c.Blocked(&p.g, 1, false)
		p.expectReleased(2)
		p.leave(2)
		p.c.Blocked(&p.g, 2, false)
		if r := p.c.End(nil, Precondition{}); r.Left != 1 || r.Reused != (round == 1) || s.Len() != 2 {
			t.Errorf("round %d: %+v, %d orders", round, r, s.Len())
		}
	}
}

func TestShorterWindowIsAnotherOrder(t *testing.T) {
	s := NewStore()
	record(t, s).c.End(nil, Precondition{})
	p := newPlayer(t, s)
	p.expect("1 locks", p.enter(1, lock), true)
	p.leave(1)
	p.c.Blocked(&p.g, 1, false)
	if r := p.c.End(nil, Precondition{}); r.Turns != 1 || r.Reused || r.Left != 1 {
		t.Errorf("%+v", r)
	}
}

func TestWaitInAnOperationPassesTheTurn(t *testing.T) {
	p := newPlayer(t, NewStore())
	p.expect("1 waits on a condition", p.enter(1, event.OpCondWait), true)
	p.expect("2 signals meanwhile", p.enter(2, event.OpCondSignal), false)
	p.c.Blocked(&p.g, 1, true)
	p.expectReleased(2)
	p.expect("1 was woken in 2's turn", p.wake(1), false)
	p.leave(2)
	p.expectReleased(1)
	p.leave(1)
	if r := p.c.End(nil, Precondition{}); r.Turns != 3 {
		t.Errorf("%d turns, want 3: wait, signal, wake", r.Turns)
	}
}

func TestSpinningOperationGivesItsTurnAway(t *testing.T) {
	p := newPlayer(t, NewStore())
	p.expect("1 spins", p.enter(1, lock), true)
	p.expect("2 waits", p.enter(2, unlock), false)
	p.c.Stepped(&p.g, 1, patience+1, 0)
	p.expectReleased(2)
	p.leave(2)
	p.leave(1)
	p.expect("1 locks again", p.enter(1, lock), true)
	if r := p.c.End(nil, Precondition{}); r.Spun != 1 {
		t.Errorf("%+v", r)
	}
}

func TestOthersWaitWhileTheServerStarts(t *testing.T) {
	p := newPlayer(t, NewStore())
	p.c.StartAlone()
	if !p.c.MayRun(1, 0) || p.c.MayRun(100, 0) {
		t.Error("the server may run alone, and nobody else")
	}
	p.g.Hold(100)
	p.c.AdmitOthers(&p.g)
	p.expectReleased(100)
	if !p.c.MayRun(100, 0) {
		t.Error("others may run after the start")
	}
	p.expect("a client locks", p.enter(100, lock), true)
	p.expect("another one, too", p.enter(101, lock), true)
}

func TestThreadThatExitsPassesTheTurn(t *testing.T) {
	p := newPlayer(t, NewStore())
	p.expect("1 acts", p.enter(1, lock), true)
	p.expect("2 waits", p.enter(2, lock), false)
	p.expect("3 waits", p.enter(3, lock), false)
	p.g.Forget(2)
	p.c.Exited(&p.g, 2)
	p.g.Forget(1)
	p.c.Exited(&p.g, 1)
	p.expectReleased(3)
}
