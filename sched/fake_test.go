package sched_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// The fake machine runs scripts in place of programs: it is the driver loop of
// the package comment over threads that are lists of operations. It checks the
// invariants of the package at every slice.

type kind int

const (
	run    kind = iota // n instructions
	sleep              // block for n cycles
	yield              // one instruction, then Yield
	set                // one instruction that raises flag n
	await              // block until flag n is raised
	spin               // two instructions a round until flag n is raised
	pause              // as spin, with a Yield each round
	pin                // one instruction, then SetAffinity(n)
	spawn              // one instruction that starts thread n
	locked             // one instruction that is a sync point
	stop               // one instruction that stops thread n and lets it go on
	herd               // one instruction that gives thread n this thread's affinity
	rank               // one instruction that gives the thread rank n
)

type op struct {
	kind kind
	n    uint64
}

// blockLength is the length of the fake machine's blocks: a slice that is not
// exact ends at a multiple of it within a run operation.
const blockLength = 7

type fakeThread struct {
	script  []op
	at      int    // the operation that is next
	done    uint64 // instructions done of a run operation
	cost    event.Cycles
	started bool
	exited  bool
	blocked bool
	awaits  bool         // blocked by await
	wait    uint64       // instructions of others while it was runnable
	seen    event.Cycles // the last virtual time that it saw
}

type fakeTimer struct {
	at     event.Cycles
	thread int
}

// fake is plain data, so that it can be copied in mid-run.
type fake struct {
	c       *sched.Cluster
	threads []fakeThread // of which thread i has the id i+1
	flags   map[uint64]bool
	timers  []fakeTimer // the earliest first
	syscall event.Cycles

	log     *decisionLog // of what was decided, if there is one
	history []string
	clocks  []event.Cycles
	total   uint64
	longest uint64 // the longest wait
	peak    int    // the most threads runnable at once
	steps   int
}

func newFake(c *sched.Cluster, scripts ...[]op) *fake {
	f := &fake{c: c, flags: map[uint64]bool{}, clocks: make([]event.Cycles, c.Cores()), syscall: 50}
	for _, s := range scripts {
		f.threads = append(f.threads, fakeThread{script: s, cost: 1})
	}
	spawned := map[uint64]bool{}
	for _, s := range scripts {
		for _, o := range s {
			if o.kind == spawn {
				spawned[o.n] = true
			}
		}
	}
	for i := range f.threads {
		if !spawned[uint64(i)] {
			f.start(i, 0)
		}
	}
	return f
}

func id(thread int) event.ThreadID { return event.ThreadID(thread + 1) }

func (f *fake) start(i int, at event.Cycles) {
	f.threads[i].started = true
	f.c.Ready(id(i), at)
}

// step makes one decision and carries it out. It returns false at the end.
func (f *fake) step(t testing.TB) bool {
	t.Helper()
	if f.steps++; f.steps > 1_000_000 {
		t.Fatalf("no end after a million slices; threads: %+v", f.threads)
	}
	var timer event.Cycles
	if len(f.timers) > 0 {
		timer = f.timers[0].at
	}
	s, verdict := f.c.Next(timer, len(f.timers) > 0)
	if f.log != nil {
		f.log.decided(f.c, s, verdict, timer)
	}
	switch verdict {
	case sched.Idle, sched.Diverged, sched.End:
		return false
	case sched.FireTimer:
		f.history = append(f.history, fmt.Sprintf("timer %d", timer))
		f.c.PassTo(timer)
		for len(f.timers) > 0 && f.timers[0].at <= timer {
			f.wake(f.timers[0].thread, f.timers[0].at)
			f.timers = f.timers[1:]
		}
		f.check(t)
		return true
	}
	f.check(t)
	f.slice(t, s)
	f.check(t)
	return true
}

func (f *fake) slice(t testing.TB, s sched.Slice) {
	t.Helper()
	i := int(s.Thread) - 1
	th := &f.threads[i]
	if th.blocked || th.exited || !th.started || f.c.On(s.Core) != s.Thread {
		t.Fatalf("slice %+v of a thread that is not placed and runnable: %+v", s, *th)
	}
	if now := f.c.Now(s.Core); now < th.seen {
		t.Fatalf("thread %d saw time %d, now %d", s.Thread, th.seen, now)
	}
	n, cycles := f.execute(s, th)
	f.c.Ran(s, n, cycles)
	if f.log != nil {
		f.log.ran(n, f.c.Now(s.Core))
	}
	f.history = append(f.history, fmt.Sprintf("%d on %d: %d", s.Thread, s.Core, n))
	f.account(i, n)
	f.end(t, s, i)
	if core := f.c.CoreOf(s.Thread); core != event.NoCore {
		th.seen = f.c.Now(core)
	}
}

// account adds to everyone's waits.
func (f *fake) account(ran int, n uint64) {
	f.total += n
	runnable := 0
	for i := range f.threads {
		th := &f.threads[i]
		if !th.started || th.exited || th.blocked {
			continue
		}
		runnable++
		if i == ran {
			th.wait = 0
			continue
		}
		th.wait += n
		f.longest = max(f.longest, th.wait)
	}
	f.peak = max(f.peak, runnable)
}

// execute runs a thread up to a budget or to an operation that needs the
// kernel.
func (f *fake) execute(s sched.Slice, th *fakeThread) (n uint64, cycles event.Cycles) {
	for th.at < len(th.script) {
		o := th.script[th.at]
		over := s.Instructions > 0 && n >= s.Instructions || s.Cycles > 0 && n*uint64(th.cost) >= uint64(s.Cycles)
		boundary := s.Exact || o.kind != run || th.done%blockLength == 0
		if n > 0 && over && boundary {
			break
		}
		switch o.kind {
		case run:
			n++
			if th.done++; th.done == o.n {
				th.at, th.done = th.at+1, 0
			}
			continue
		case spin:
			if f.flags[o.n] {
				th.at++
				continue
			}
			n += 2
			continue
		case locked:
			n++
			th.at++
			if !s.StopAtSync {
				continue
			}
		default:
			n++
		}
		break
	}
	return n, event.Cycles(n) * th.cost
}

// end does what the operation at which a slice has stopped needs.
func (f *fake) end(t testing.TB, s sched.Slice, i int) {
	t.Helper()
	th := &f.threads[i]
	if th.at < len(th.script) {
		f.kernel(t, s, i)
	}
	if th.at == len(th.script) && !th.blocked {
		th.exited = true
		f.c.Exit(s.Thread)
	}
}

func (f *fake) kernel(t testing.TB, s sched.Slice, i int) {
	t.Helper()
	th := &f.threads[i]
	o := th.script[th.at]
	switch o.kind {
	case run, spin, locked:
		return
	case sleep, await, pin, spawn, set, yield, stop, herd, rank:
		f.c.Charge(s.Core, f.syscall)
	}
	now := f.c.Now(s.Core)
	th.at++
	switch o.kind {
	case sleep:
		f.block(i)
		f.timers = append(f.timers, fakeTimer{now + event.Cycles(o.n), i})
		slices.SortStableFunc(f.timers, func(a, b fakeTimer) int { return int(a.at) - int(b.at) })
	case yield:
		f.c.Yield(s.Thread)
	case set:
		f.flags[o.n] = true
		for j := range f.threads {
			if w := &f.threads[j]; w.awaits && w.script[w.at].n == o.n {
				w.at++
				f.wake(j, now)
			}
		}
	case await:
		if !f.flags[o.n] {
			th.at--
			th.awaits = true
			f.block(i)
		}
	case pause:
		if !f.flags[o.n] {
			th.at--
			f.c.Yield(s.Thread)
		}
	case pin:
		if !f.c.SetAffinity(s.Thread, o.n) {
			t.Fatalf("affinity %#x refused", o.n)
		}
	case rank:
		f.c.SetPrecedence(s.Thread, sched.Precedence{Rank: int(o.n)})
	case spawn:
		f.start(int(o.n), now)
	case stop, herd:
		f.meddle(t, i, o)
	}
}

// meddle changes another thread, runnable or waiting for a core, from outside.
func (f *fake) meddle(t testing.TB, i int, o op) {
	t.Helper()
	other := int(o.n)
	th := &f.threads[other]
	if other == i || th.exited || th.blocked {
		return
	}
	if o.kind == herd {
		f.c.SetAffinity(id(other), f.c.Affinity(id(i)))
		th.wait = 0 // it may have become runnable anew
		return
	}
	f.c.Block(id(other))
	th.blocked = true
	f.check(t)
	f.wake(other, f.c.Now(f.c.LastCoreOf(id(i))))
}

func (f *fake) block(i int) {
	f.threads[i].blocked = true
	f.c.Block(id(i))
}

func (f *fake) wake(i int, at event.Cycles) {
	th := &f.threads[i]
	th.blocked, th.awaits, th.wait = false, false, 0
	f.c.Ready(id(i), at)
}

// check holds the cluster to invariants 3 and 4.
func (f *fake) check(t testing.TB) {
	t.Helper()
	placed, furthest := 0, event.Cycles(0)
	for k := range f.clocks {
		core := event.CoreID(k)
		now := f.c.Now(core)
		if now < f.clocks[k] {
			t.Fatalf("clock of core %d went from %d to %d", k, f.clocks[k], now)
		}
		f.clocks[k] = now
		furthest = max(furthest, now)
		if on := f.c.On(core); on != event.NoThread {
			placed++
			th := f.threads[on-1]
			if th.blocked || th.exited || !th.started {
				t.Fatalf("thread %d is on core %d and not runnable", on, k)
			}
			if f.c.CoreOf(on) != core || f.c.LastCoreOf(on) != core || f.c.Affinity(on)>>k&1 == 0 {
				t.Fatalf("thread %d on core %d: core %d, affinity %#x", on, k, f.c.CoreOf(on), f.c.Affinity(on))
			}
		}
	}
	if furthest != f.c.Makespan() || f.total != f.c.Instructions() {
		t.Fatalf("makespan %d, want %d; instructions %d, want %d", f.c.Makespan(), furthest, f.c.Instructions(), f.total)
	}
	for i := range f.threads {
		if th := &f.threads[i]; f.c.CoreOf(id(i)) != event.NoCore {
			placed--
		} else if th.exited && f.c.LastCoreOf(id(i)) != event.NoCore {
			t.Fatalf("thread %d has exited and is still known", id(i))
		}
	}
	if placed != 0 {
		t.Fatalf("%d more cores with threads than threads with cores", placed)
	}
}

// finish runs to the end and demands that every thread has exited.
func (f *fake) finish(t testing.TB) *fake {
	t.Helper()
	for f.step(t) {
	}
	for i := range f.threads {
		if !f.threads[i].exited {
			t.Fatalf("thread %d is lost: %+v", id(i), f.threads[i])
		}
	}
	return f
}

func newCluster(t testing.TB, cores int, seed uint64, o sched.Options) *sched.Cluster {
	t.Helper()
	c, err := sched.New(cores, seed, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func fraction(x float64) *float64 { return &x }

// compute returns n scripts of one run each.
func compute(n int, instructions uint64) [][]op {
	scripts := make([][]op, n)
	for i := range scripts {
		scripts[i] = []op{{run, instructions}}
	}
	return scripts
}
