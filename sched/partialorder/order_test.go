package partialorder

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// A script is a list of points of threads, in the order in which the threads reach them. The tests
// play it to a controller as the machine would, and compare the threads that may continue.

// a, b and c are threads; m and n are mutexes.
const (
	a arch.ThreadID = 1000 + iota
	b
	c
)

const (
	m event.ObjectID = 1 + iota
	n
)

// player gives points to a controller.
type player struct {
	t          *testing.T
	controller sched.Controller
	gate       sched.Gate
}

func (p *player) ask(id arch.ThreadID, v sched.SyncPoint) bool {
	v.Thread, v.Name = id, map[arch.ThreadID]string{a: "1", b: "1.1", c: "1.2"}[id]
	return p.gate.Ask(p.controller, &v)
}

func (p *player) start(id arch.ThreadID) bool { return p.ask(id, sched.SyncPoint{Kind: sched.AtStart}) }

// enter and leave are a thread's call of an operation on a mutex, and its return.
func (p *player) enter(id arch.ThreadID, op event.SyncOp, mutex event.ObjectID) bool {
	return p.ask(id, sched.SyncPoint{Kind: sched.AtEnter, Sync: &event.Sync{Op: op, Object: mutex}})
}

func (p *player) leave(id arch.ThreadID, op event.SyncOp, mutex event.ObjectID) {
	p.ask(id, sched.SyncPoint{Kind: sched.AtReturn, Sync: &event.Sync{Op: op, Object: mutex, Phase: event.Return}})
}

// lock and unlock are whole operations of a thread that need not wait.
func (p *player) lock(id arch.ThreadID, mutex event.ObjectID) {
	p.whole(id, event.OpMutexLock, mutex)
}

func (p *player) unlock(id arch.ThreadID, mutex event.ObjectID) {
	p.whole(id, event.OpMutexUnlock, mutex)
}

func (p *player) whole(id arch.ThreadID, op event.SyncOp, mutex event.ObjectID) {
	p.t.Helper()
	if !p.enter(id, op, mutex) {
		p.t.Fatalf("thread %d may not begin %s", id, op)
	}
	p.leave(id, op, mutex)
}

// released lists the threads that the controller has let go since the last call.
func (p *player) released() (list []arch.ThreadID) {
	p.controller.Stepped(&p.gate, arch.NoThread, 0, 0)
	released, _ := p.gate.Take()
	for _, r := range released {
		list = append(list, r.Thread)
	}
	return list
}

// clocks writes the vector clocks of a thread's steps, "-" for a missing component.
func clocks(l ThreadLog) (list [][]uint32) {
	for i := range l.Steps {
		list = append(list, l.Steps[i].Clock)
	}
	return list
}

// recordTwoThreads records an epoch in which a locks and unlocks m, then b does, and c uses n.
func recordTwoThreads(t *testing.T) *Order {
	t.Helper()
	r := NewRecorder(&Functions{}, nil)
	p := &player{t: t, controller: r}
	for _, id := range []arch.ThreadID{a, b, c} {
		if !p.start(id) {
			t.Fatalf("thread %d may not start", id)
		}
	}
	p.lock(a, m)
	p.unlock(a, m)
	p.lock(b, m)
	p.unlock(b, m)
	p.lock(c, n)
	p.unlock(c, n)
	r.Close()
	for _, id := range []arch.ThreadID{a, b, c} {
		if p.enter(id, event.OpMutexLock, n) {
			t.Fatalf("thread %d begins an operation after the end of the epoch", id)
		}
	}
	if !r.Closed() {
		t.Fatal("the epoch has not ended")
	}
	return r.Order(false)
}

// TestClocksByHand: the vector clocks of two critical sections on one mutex and one on another,
// computed by hand: a component is the number of steps of that thread that come before. Each thread's
// first step is its start; b's lock comes after the three steps of a, and c's steps after no other
// thread's.
func TestClocksByHand(t *testing.T) {
	o := recordTwoThreads(t)
	for i, want := range [][][]uint32{
		{nil, {1}, {2}},
		{nil, {3, 1}, {3, 2}},
		{nil, {0, 0, 1}, {0, 0, 2}},
	} {
		got := clocks(o.Threads[i])
		if !slices.EqualFunc(got, want, func(x, y []uint32) bool { return slices.Equal(x, y) }) {
			t.Errorf("thread %d has clocks %v, want %v", i, got, want)
		}
		if !o.Threads[i].EndsHeld || o.Threads[i].EndsInStep {
			t.Errorf("thread %d is not held at the end", i)
		}
	}
	if want := [][2]int{{0, 1}}; !slices.Equal(o.Constraints, want) {
		t.Errorf("constraints %v, want %v: b waited for a", o.Constraints, want)
	}
}

// TestOneOperationAtATime: a thread that reaches an operation on a mutex which another is operating on
// is queued until that operation has ended.
func TestOneOperationAtATime(t *testing.T) {
	r := NewRecorder(&Functions{}, nil)
	p := &player{t: t, controller: r}
	p.start(a)
	p.start(b)
	if !p.enter(a, event.OpMutexLock, m) || p.enter(b, event.OpMutexTryLock, m) {
		t.Fatal("two operations on one mutex at a time")
	}
	p.leave(a, event.OpMutexLock, m)
	if got := p.released(); !slices.Equal(got, []arch.ThreadID{b}) {
		t.Errorf("released %v, want b", got)
	}
}

// TestReplayKeepsTheOrder: in a replay b reaches the mutex first and is held until a has unlocked it;
// c, on another mutex, need not wait for them.
func TestReplayKeepsTheOrder(t *testing.T) {
	f := NewReplayer(&Functions{}, recordTwoThreads(t))
	p := &player{t: t, controller: f}
	for _, id := range []arch.ThreadID{c, b, a} {
		if !p.start(id) {
			t.Fatalf("thread %d may not start", id)
		}
	}
	if p.enter(b, event.OpMutexLock, m) {
		t.Fatal("b locks before a")
	}
	p.lock(c, n)
	p.lock(a, m)
	if got := p.released(); len(got) > 0 {
		t.Errorf("%v released while a has the mutex", got)
	}
	p.unlock(a, m)
	if got := p.released(); !slices.Equal(got, []arch.ThreadID{b}) {
		t.Errorf("released %v, want b", got)
	}
	p.leave(b, event.OpMutexLock, m)
	p.unlock(b, m)
	p.unlock(c, n)
	for _, id := range []arch.ThreadID{a, b, c} {
		if p.enter(id, event.OpMutexLock, n) {
			t.Errorf("thread %d continues after its last step", id)
		}
	}
	if !f.Idle(&p.gate, false) || f.Diverged() != "" || f.Missing() != "" {
		t.Errorf("the replay has not ended as recorded: %q", f.Diverged())
	}
}

// TestReplayDiverges: a thread that does another operation than recorded has diverged, and no thread
// waits for its other steps.
func TestReplayDiverges(t *testing.T) {
	f := NewReplayer(&Functions{}, recordTwoThreads(t))
	p := &player{t: t, controller: f}
	p.start(a)
	p.start(b)
	if p.enter(b, event.OpMutexLock, m) {
		t.Fatal("b locks before a")
	}
	if !p.enter(a, event.OpCondSignal, m) {
		t.Fatal("a thread that has diverged is held")
	}
	if got := p.released(); !slices.Equal(got, []arch.ThreadID{b}) {
		t.Errorf("released %v, want b", got)
	}
	if !strings.HasPrefix(f.Diverged(), "thread 1 at step 1: ") {
		t.Errorf("divergence %q", f.Diverged())
	}
}

// TestAdditionalLockIsBenign: Frost section 3.3 lets a replica lock and unlock a mutex that the first
// one did not.
func TestAdditionalLockIsBenign(t *testing.T) {
	f := NewReplayer(&Functions{}, recordTwoThreads(t))
	p := &player{t: t, controller: f}
	p.start(a)
	p.lock(a, n)
	p.unlock(a, n)
	p.lock(a, m)
	p.unlock(a, m)
	if f.Diverged() != "" || !strings.HasPrefix(f.BenignDivergence(), "thread 1 at step 1: ") {
		t.Errorf("divergence %q, benign %q", f.Diverged(), f.BenignDivergence())
	}
}

// call is a whole system call of a thread, which acts on a file alone unless that is 0.
func (p *player) call(id arch.ThreadID, number, file uint64) {
	p.t.Helper()
	if !p.ask(id, sched.SyncPoint{Kind: sched.AtCall, Call: &event.Syscall{Number: number}, File: file}) {
		p.t.Fatalf("thread %d may not begin call %d", id, number)
	}
	p.controller.Called(&p.gate, id, 0)
}

// TestCallsOnFiles: calls on different files have no order, calls on one file have, and so have all calls
// on files with the other calls.
func TestCallsOnFiles(t *testing.T) {
	r := NewRecorder(&Functions{}, nil)
	p := &player{t: t, controller: r}
	for _, id := range []arch.ThreadID{a, b, c} {
		p.start(id)
	}
	p.call(a, unix.SYS_READ, 7)
	p.call(b, unix.SYS_READ, 8)
	p.call(c, unix.SYS_WRITE, 8)
	p.call(a, unix.SYS_STAT, 0)
	p.call(b, unix.SYS_READ, 8)
	p.call(c, unix.SYS_READ, 7)
	o := r.Order(false)
	for i, want := range [][][]uint32{
		{nil, {1}, {2, 2, 2}},    // its start, the read, stat after all
		{nil, {0, 1}, {3, 2, 2}}, // the second read after the write, and after stat
		{nil, {0, 2, 1}, {3, 2, 2}},
	} {
		if got := clocks(o.Threads[i]); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("thread %d: %v, want %v", i, got, want)
		}
	}
}

// TestCallsThatOnlyRead: calls that change neither a file nor an offset have no order among themselves.
func TestCallsThatOnlyRead(t *testing.T) {
	r := NewRecorder(&Functions{}, nil)
	p := &player{t: t, controller: r}
	for _, id := range []arch.ThreadID{a, b, c} {
		p.start(id)
	}
	p.call(a, unix.SYS_PREAD64, 7)
	p.call(b, unix.SYS_PREAD64, 7)
	p.call(c, unix.SYS_PWRITE64, 7)
	p.call(a, unix.SYS_FSTAT, 7)
	o := r.Order(false)
	for i, want := range [][][]uint32{{nil, {1}, {2, 2, 2}}, {nil, {0, 1}}, {nil, {2, 2, 1}}} {
		if got := clocks(o.Threads[i]); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("thread %d: %v, want %v", i, got, want)
		}
	}
}

// TestCallsOnFilesWait: a call that acts on more than a file waits for those that act on files alone, and they
// for it.
func TestCallsOnFilesWait(t *testing.T) {
	p := &player{t: t, controller: NewRecorder(&Functions{}, nil)}
	for _, id := range []arch.ThreadID{a, b, c} {
		p.start(id)
	}
	begin := func(id arch.ThreadID, file uint64) bool {
		return p.ask(id, sched.SyncPoint{Kind: sched.AtCall, Call: &event.Syscall{Number: unix.SYS_READ}, File: file})
	}
	if !begin(a, 7) || !begin(b, 8) {
		t.Fatal("two calls on two files may not overlap")
	}
	if begin(c, 0) {
		t.Fatal("another call overlaps with those on files")
	}
	p.controller.Called(&p.gate, a, 0)
	if got := p.released(); len(got) > 0 {
		t.Fatalf("%v may continue after one of two calls", got)
	}
	p.controller.Called(&p.gate, b, 0)
	if got := p.released(); !slices.Equal(got, []arch.ThreadID{c}) {
		t.Fatalf("%v may continue after both", got)
	}
	if begin(a, 7) {
		t.Error("a call on a file overlaps with another")
	}
}
