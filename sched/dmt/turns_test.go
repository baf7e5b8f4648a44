package dmt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
	. "github.com/heddle-dmt/heddle/sched/schedtest"
)

// A gated machine has threads that compute and do operations on locks, and runs them in an order of
// its own choosing: the decisions of a controller must not depend on that order. It is plain data.
type gatedMachine struct {
	gate    sched.Gate
	c       sched.Controller
	threads []gatedThread
	owners  map[uint64]int   // of locks, by number: a thread's index
	waiters map[uint64][]int // in the kernel
	order   []string         // of the operations that ended
	charged arch.Cycles
	commits []string // threads whose views were committed
}

type gatedThread struct {
	script  []gatedOp // run n; lock n and unlock n; call
	at      int
	done    uint64 // of a run
	retired uint64
	ran     uint64 // since the last end of a budget
	inside  bool   // an operation
	gone    bool
	blocked bool
	waited  bool
}

// gatedKind is the kind of an operation of a gated machine's script.
type gatedKind int

const (
	run gatedKind = iota // n instructions
	lock
	unlock
	call // a system call
	own  // one of the C library's own
)

// gatedOp is an operation of a script; n is the number of instructions, or of the lock.
type gatedOp struct {
	kind gatedKind
	n    uint64
}

func id(thread int) arch.ThreadID { return arch.ThreadID(thread + 1) }

func newGated(policy string, o sched.Options, scripts ...[]gatedOp) *gatedMachine {
	o.Policy = policy
	m := &gatedMachine{
		c:      dmt.NewTurnController(o.WithDefaults(), sched.Costs{Sync: 1, SemaphoreWait: 10, SemaphoreWake: 100, SpinCheck: 1000}),
		owners: map[uint64]int{}, waiters: map[uint64][]int{},
	}
	for i, s := range scripts {
		m.threads = append(m.threads, gatedThread{script: s})
		m.woken(i)
	}
	return m
}

func (m *gatedMachine) woken(i int) {
	m.c.Observe(&m.gate, sched.ThreadEvent{Kind: sched.ThreadCreated, Thread: id(i)})
}

// able lists the threads that can run.
func (m *gatedMachine) able() (list []int) {
	for i := range m.threads {
		if th := &m.threads[i]; !th.gone && !th.blocked && !m.gate.Holds(id(i)) {
			list = append(list, i)
		}
	}
	return list
}

func (m *gatedMachine) ask(i int, p sched.PointKind, own bool) bool {
	th := &m.threads[i]
	return m.gate.Ask(m.c, &sched.SyncPoint{Thread: id(i), Kind: p, Private: own, InOperation: th.inside, Instructions: th.retired})
}

// step runs a thread for up to n instructions or to a place where it is held or
// blocked.
func (m *gatedMachine) step(i int, n uint64) {
	th := &m.threads[i]
	ran := th.retired
	m.slice(i, n)
	m.noteViews()
	m.c.Stepped(&m.gate, id(i), th.retired-ran, 0)
	th.ran += th.retired - ran
	m.noteViews()
	_, charge := m.gate.Take()
	m.charged += charge
}

// noteViews notes the views that begin and are committed.
func (m *gatedMachine) noteViews() {
	for {
		e, ok := m.gate.TakeEffect(arch.NoThread, sched.BeginView, sched.CommitView)
		if !ok {
			return
		}
		if e.Kind == sched.CommitView {
			m.commits = append(m.commits, fmt.Sprint(e.Thread))
		}
	}
}

func (m *gatedMachine) slice(i int, n uint64) {
	th := &m.threads[i]
	if th.waited {
		th.waited = false
		if !m.ask(i, sched.AtWake, false) || m.gate.Pending() {
			return
		}
	}
	if m.c.Needs().MayRun && !m.c.MayRun(id(i), th.retired) {
		m.gate.Hold(id(i))
		return
	}
	if most := m.c.Budget(id(i)); most > 0 && th.ran >= most {
		th.ran = 0
		if !m.ask(i, sched.AtBudget, false) || m.gate.Pending() {
			return
		}
	}
	if most := m.c.Budget(id(i)); most > 0 {
		n = min(n, most-th.ran)
	}
	for n > 0 && th.at < len(th.script) {
		o := th.script[th.at]
		if o.kind == run {
			part := min(n, o.n-th.done)
			n, th.done, th.retired = n-part, th.done+part, th.retired+part
			if th.done == o.n {
				th.at, th.done = th.at+1, 0
			}
			continue
		}
		if !m.operation(i, o) {
			return
		}
	}
	if th.at == len(th.script) {
		th.gone = true
		m.gate.Forget(id(i))
		m.c.Exited(&m.gate, id(i))
	}
}

// operation does an operation; false: the thread is held or blocked.
func (m *gatedMachine) operation(i int, o gatedOp) bool {
	th := &m.threads[i]
	if !th.inside {
		th.inside = true
		place := sched.AtEnter
		if o.kind == call || o.kind == own {
			place = sched.AtCall
		}
		if !m.ask(i, place, o.kind == own) || m.gate.Pending() {
			return false // held, or at the end of its quantum
		}
	}
	th.retired += 3
	switch o.kind {
	case lock:
		if owner, held := m.owners[o.n]; held && owner != i {
			m.waiters[o.n] = append(m.waiters[o.n], i)
			th.blocked = true
			m.c.Blocked(&m.gate, id(i), true)
			return false
		}
		m.owners[o.n] = i
	case unlock:
		delete(m.owners, o.n)
		if w := m.waiters[o.n]; len(w) > 0 {
			m.waiters[o.n] = w[1:]
			m.owners[o.n] = w[0]
			m.threads[w[0]].blocked, m.threads[w[0]].waited = false, true
			m.woken(w[0])
		}
	}
	th.inside = false
	th.at++
	if o.kind == call || o.kind == own {
		m.c.Called(&m.gate, id(i), 0)
	} else {
		m.ask(i, sched.AtReturn, false)
	}
	if o.kind != own {
		m.order = append(m.order, fmt.Sprintf("%d:%s%d", id(i), names[o.kind], o.n))
	}
	return !m.gate.Pending()
}

var names = map[gatedKind]string{lock: "lock", unlock: "unlock", call: "call"}

// finish runs all threads to their ends; choose picks one from the list of threads that can run.
func (m *gatedMachine) finish(t testing.TB, choose func(n int) int, length func() uint64) *gatedMachine {
	for range 100_000 {
		able := m.able()
		if len(able) == 0 {
			m.c.Stuck(&m.gate)
			if able = m.able(); len(able) == 0 {
				break
			}
		}
		m.step(able[choose(len(able))], length())
	}
	for i := range m.threads {
		if !m.threads[i].gone {
			t.Fatalf("thread %d is lost: %+v; order %v", id(i), m.threads[i], m.order)
		}
	}
	return m
}

// drawGated draws threads that take locks one at a time.
func drawGated(t *rapid.T) (scripts [][]gatedOp) {
	for range rapid.IntRange(1, 5).Draw(t, "threads") {
		var s []gatedOp
		for range rapid.IntRange(0, 6).Draw(t, "sections") {
			n := rapid.Uint64Range(1, 3).Draw(t, "lock")
			s = append(s, gatedOp{run, rapid.Uint64Range(1, 200).Draw(t, "instructions")})
			if rapid.Bool().Draw(t, "call") {
				s = append(s, gatedOp{call, 0}, gatedOp{own, 0})
			}
			s = append(s, gatedOp{lock, n}, gatedOp{run, rapid.Uint64Range(1, 50).Draw(t, "instructions")}, gatedOp{unlock, n})
		}
		scripts = append(scripts, append(s, gatedOp{call, 0}))
	}
	return scripts
}

// The order of operations under rr-sync and kendo does not depend on when threads run; a copy of
// the controller in the middle of a run continues like the original.
func TestTurnsDoNotDependOnTiming(t *testing.T) {
	for _, policy := range []string{sched.RRSync, sched.Kendo, sched.Parrot, sched.DThreads, sched.Consequence} {
		t.Run(policy, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				tb := RapidTB(t, r)
				scripts := drawGated(r)
				o := sched.Options{Fairness: rapid.Uint64Range(10, 1000).Draw(r, "fairness")}
				if policy == sched.DThreads {
					o.Fairness = 0 // where threads spin, the run ends
				}
				choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "thread") }
				length := func() uint64 { return rapid.Uint64Range(1, 300).Draw(r, "length") }
				first := newGated(policy, o, scripts...).finish(tb, func(int) int { return 0 }, func() uint64 { return 1000 })
				second := newGated(policy, o, scripts...)
				for range rapid.IntRange(0, 20).Draw(r, "steps") {
					if able := second.able(); len(able) > 0 {
						second.step(able[choose(len(able))], length())
					}
				}
				copied := deepcopy.Copy(deepcopy.New(), second)
				for _, m := range []*gatedMachine{second, copied} {
					if m.finish(tb, choose, length); !slices.Equal(m.order, first.order) {
						r.Fatalf("got  %v\nwant %v", m.order, first.order)
					}
					if !slices.Equal(m.commits, first.commits) {
						r.Fatalf("views %v\nwant  %v", m.commits, first.commits)
					}
				}
			})
		})
	}
}

// Every thread finishes under first come, first served, and in the order of
// arrival.
func TestFirstComeGoesByArrival(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "thread") }
		newGated(sched.FCFSSync, sched.Options{}, drawGated(r)...).finish(RapidTB(t, r), choose, func() uint64 { return 40 })
	})
	m := newGated(sched.FCFSSync, sched.Options{}, []gatedOp{{run, 50}, {call, 0}}, []gatedOp{{run, 10}, {call, 0}}, []gatedOp{{run, 5}, {call, 0}})
	turn := -1
	m.finish(t, func(n int) int { turn++; return turn % n }, func() uint64 { return 10 })
	if got := strings.Join(m.order, " "); got != "3:call0 2:call0 1:call0" {
		t.Errorf("order %s", got)
	}
}

// Orders by hand. Round-robin: in turns, by ids, however long a thread computes.
// Kendo: by logical clocks, which operations advance by one.
func TestOrdersByHand(t *testing.T) {
	long, short := []gatedOp{{run, 100}, {lock, 1}, {unlock, 1}}, []gatedOp{{run, 30}, {lock, 2}, {run, 30}, {unlock, 2}, {run, 30}, {call, 0}}
	for policy, want := range map[string]string{
		sched.RRSync: "1:lock1 2:lock2 1:unlock1 2:unlock2 2:call0",
		// Clocks: 2 at 30 locks; at 31+30 unlocks; at 62+30 calls; 1 at 100 and 101.
		sched.Kendo: "2:lock2 2:unlock2 2:call0 1:lock1 1:unlock1",
	} {
		m := newGated(policy, sched.Options{}, long, short).finish(t, func(n int) int { return n - 1 }, func() uint64 { return 1000 })
		if got := strings.Join(m.order, " "); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
}

// A thread that has waited for a lock in the kernel continues in its turn: at the queue's tail, or
// after the clock of the thread that woke it.
func TestWokenThreadsWaitForATurn(t *testing.T) {
	holder := []gatedOp{{lock, 1}, {run, 100}, {unlock, 1}, {call, 0}}
	waiter := []gatedOp{{run, 10}, {lock, 1}, {unlock, 1}}
	other := []gatedOp{{run, 105}, {call, 0}}
	for policy, want := range map[string]string{
		sched.RRSync: "1:lock1 3:call0 1:unlock1 2:lock1 1:call0 2:unlock1",
		// 1 unlocks at 101, 2 continues at 102, which is 1's too and 2's id greater.
		sched.Kendo: "1:lock1 1:unlock1 1:call0 2:lock1 2:unlock1 3:call0",
	} {
		m := newGated(policy, sched.Options{}, holder, waiter, other).finish(t, func(n int) int { return n - 1 }, func() uint64 { return 1000 })
		if got := strings.Join(m.order, " "); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
}

// A thread that does nothing but compute holds round-robin up for no longer than
// fairness instructions.
func TestRoundRobinPassesOn(t *testing.T) {
	m := newGated(sched.RRSync, sched.Options{Fairness: 100}, []gatedOp{{run, 1000}, {call, 1}}, []gatedOp{{call, 2}, {call, 3}})
	for range 40 {
		if able := m.able(); len(able) > 0 {
			m.step(able[0], 10)
		}
	}
	if len(m.order) != 2 || m.threads[0].gone {
		t.Errorf("after at most 400 instructions of the first thread: %v", m.order)
	}
}

// The costs of turns: without waiting the wrapper and the semaphore (rr-sync, fcfs-sync) or a check
// of the flag (kendo).
func TestTurnsCost(t *testing.T) {
	for policy, want := range map[string]arch.Cycles{sched.RRSync: 33, sched.FCFSSync: 33, sched.Kendo: 3003} {
		m := newGated(policy, sched.Options{}, []gatedOp{{lock, 1}, {unlock, 1}, {call, 0}})
		if m.finish(t, func(int) int { return 0 }, func() uint64 { return 10 }); m.charged != want {
			t.Errorf("%s: %d cycles, want %d", policy, m.charged, want)
		}
	}
}

func TestOnlySomePoliciesOrderOperations(t *testing.T) {
	for _, policy := range sched.PolicyNames() {
		o := sched.Defaults(policy)
		if c := dmt.NewTurnController(o, sched.Costs{}); (c != nil) != dmt.OrdersOperations(policy) {
			t.Errorf("%s: controller %v", policy, c)
		}
	}
}
