package schedtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// opKind is the kind of an operation of a script; the functions with their names describe them.
type opKind int

const (
	kindRun opKind = iota
	kindSleep
	kindYield
	kindSet
	kindAwait
	kindSpin
	kindPause
	kindPin
	kindSpawn
	kindLocked
	kindStop
	kindHerd
	kindRank
)

// Op is an operation of a script. Each but Run and Spin is one instruction.
type Op struct {
	kind opKind
	n    uint64
}

// Run runs n instructions.
func Run(n uint64) Op { return Op{kindRun, n} }

// Sleep blocks for n cycles.
func Sleep(n uint64) Op { return Op{kindSleep, n} }

// Yield lets other threads go first (Cluster.Yield).
func Yield(n uint64) Op { return Op{kindYield, n} }

// Set raises flag n.
func Set(n uint64) Op { return Op{kindSet, n} }

// Await blocks until flag n is raised.
func Await(n uint64) Op { return Op{kindAwait, n} }

// Spin spins, with two instructions a round, until flag n is raised.
func Spin(n uint64) Op { return Op{kindSpin, n} }

// Pause is Spin with a Yield each round.
func Pause(n uint64) Op { return Op{kindPause, n} }

// Pin restricts the thread to the cores of mask n (Cluster.SetAffinity).
func Pin(n uint64) Op { return Op{kindPin, n} }

// Spawn starts thread n.
func Spawn(n uint64) Op { return Op{kindSpawn, n} }

// Locked is a locked instruction, at which quanta may end (Quantum.StopAtSync).
func Locked(n uint64) Op { return Op{kindLocked, n} }

// Stop stops thread n and lets it continue.
func Stop(n uint64) Op { return Op{kindStop, n} }

// Herd gives thread n this thread's affinity.
func Herd(n uint64) Op { return Op{kindHerd, n} }

// Rank gives this thread rank n (Precedence).
func Rank(n uint64) Op { return Op{kindRank, n} }

// UsesTime reports whether the effect of an operation depends on virtual time or on cores.
func (o Op) UsesTime() bool { return o.kind == kindSleep || o.kind == kindPin || o.kind == kindHerd }

// BlockLength is the length of the machine's basic blocks: a quantum that is not exact ends at a
// multiple of it within a Run.
const BlockLength = 7

// Thread is a thread of a Machine.
type Thread struct {
	Cost    arch.Cycles // of an instruction
	script  []Op
	next    int    // the operation that is next
	done    uint64 // instructions done of a Run
	started bool
	exited  bool
	blocked bool
	awaits  bool        // it is blocked by Await
	waited  uint64      // instructions of others while it was runnable
	seen    arch.Cycles // the last virtual time that it saw
}

// Exited reports whether the thread has exited.
func (t *Thread) Exited() bool { return t.exited }

// Timer wakes a thread.
type Timer struct {
	At     arch.Cycles
	thread int
}

// A Machine runs scripts on the cores of a cluster. It is plain data, so that it can be copied in
// the middle of a run.
type Machine struct {
	Cluster *sched.Cluster
	Threads []Thread     // thread i has the id i+1
	Timers  []Timer      // the earliest first
	Log     *DecisionLog // the decisions, if they are logged

	// History has a line for each decision: "THREAD on CORE: INSTRUCTIONS" or "timer TIME".
	History      []string
	Clocks       []arch.Cycles // by core
	LongestWait  uint64        // in instructions of other threads
	MostRunnable int           // the most threads that were runnable at once

	flags   map[uint64]bool
	syscall arch.Cycles // the cost of a system call
	total   uint64      // instructions
	steps   int
}

// NewMachine makes a machine with a thread for each script. Threads that no script spawns are
// runnable at once.
func NewMachine(c *sched.Cluster, scripts ...[]Op) *Machine {
	m := &Machine{Cluster: c, flags: map[uint64]bool{}, Clocks: make([]arch.Cycles, c.Cores()), syscall: 50}
	for _, s := range scripts {
		m.Threads = append(m.Threads, Thread{script: s, Cost: 1})
	}
	spawned := map[uint64]bool{}
	for _, s := range scripts {
		for _, o := range s {
			if o.kind == kindSpawn {
				spawned[o.n] = true
			}
		}
	}
	for i := range m.Threads {
		if !spawned[uint64(i)] {
			m.startThread(i, 0)
		}
	}
	return m
}

// ID returns the id of the thread with an index.
func ID(thread int) arch.ThreadID { return arch.ThreadID(thread + 1) }

func (m *Machine) startThread(i int, at arch.Cycles) {
	m.Threads[i].started = true
	m.Cluster.Ready(ID(i), at)
}

// Step makes one decision and carries it out. It returns false at the end of the run.
func (m *Machine) Step(t testing.TB) bool {
	t.Helper()
	if m.steps++; m.steps > 1_000_000 {
		t.Fatalf("no end after a million quanta; threads: %+v", m.Threads)
	}
	var timer arch.Cycles
	if len(m.Timers) > 0 {
		timer = m.Timers[0].At
	}
	s, verdict := m.Cluster.Next(timer, len(m.Timers) > 0)
	if m.Log != nil {
		m.Log.noteDecision(m.Cluster, s, verdict, timer)
	}
	switch verdict {
	case sched.Idle, sched.Diverged, sched.End:
		return false
	case sched.FireTimer:
		m.History = append(m.History, fmt.Sprintf("timer %d", timer))
		m.Cluster.PassTo(timer)
		for len(m.Timers) > 0 && m.Timers[0].At <= timer {
			m.wakeThread(m.Timers[0].thread, m.Timers[0].At)
			m.Timers = m.Timers[1:]
		}
		m.checkInvariants(t)
		return true
	}
	m.checkInvariants(t)
	m.runQuantum(t, s)
	m.checkInvariants(t)
	return true
}

// WaitsForCore reports whether thread i is runnable and on no core, and for how many instructions of
// other threads it has been so.
func (m *Machine) WaitsForCore(i int) (instructions uint64, waits bool) {
	th := &m.Threads[i]
	return th.waited, th.started && !th.exited && !th.blocked && m.Cluster.CoreOf(ID(i)) == arch.NoCore
}

func (m *Machine) runQuantum(t testing.TB, s sched.Quantum) {
	t.Helper()
	i := int(s.Thread) - 1
	th := &m.Threads[i]
	if th.blocked || th.exited || !th.started || m.Cluster.On(s.Core) != s.Thread {
		t.Fatalf("quantum %+v of a thread that is not placed and runnable: %+v", s, *th)
	}
	if now := m.Cluster.Now(s.Core); now < th.seen {
		t.Fatalf("thread %d saw time %d, now %d", s.Thread, th.seen, now)
	}
	n, cycles := m.executeScript(s, th)
	m.Cluster.Ran(s, n, cycles)
	if m.Log != nil {
		m.Log.noteEnd(n, m.Cluster.Now(s.Core))
	}
	m.History = append(m.History, fmt.Sprintf("%d on %d: %d", s.Thread, s.Core, n))
	m.accountWaits(i, n)
	m.endQuantum(t, s, i)
	if core := m.Cluster.CoreOf(s.Thread); core != arch.NoCore {
		th.seen = m.Cluster.Now(core)
	}
}

// accountWaits counts the instructions for which runnable threads waited.
func (m *Machine) accountWaits(ran int, n uint64) {
	m.total += n
	runnable := 0
	for i := range m.Threads {
		th := &m.Threads[i]
		if !th.started || th.exited || th.blocked {
			continue
		}
		runnable++
		if i == ran {
			th.waited = 0
			continue
		}
		th.waited += n
		m.LongestWait = max(m.LongestWait, th.waited)
	}
	m.MostRunnable = max(m.MostRunnable, runnable)
}

// executeScript runs a thread until a budget is used up or an operation needs the kernel.
func (m *Machine) executeScript(s sched.Quantum, th *Thread) (n uint64, cycles arch.Cycles) {
	for th.next < len(th.script) {
		o := th.script[th.next]
		over := s.Instructions > 0 && n >= s.Instructions || s.Cycles > 0 && n*uint64(th.Cost) >= uint64(s.Cycles)
		boundary := s.Exact || o.kind != kindRun || th.done%BlockLength == 0
		if n > 0 && over && boundary {
			break
		}
		switch o.kind {
		case kindRun:
			n++
			if th.done++; th.done == o.n {
				th.next, th.done = th.next+1, 0
			}
			continue
		case kindSpin:
			if m.flags[o.n] {
				th.next++
				continue
			}
			n += 2
			continue
		case kindLocked:
			n++
			th.next++
			if !s.StopAtSync {
				continue
			}
		default:
			n++
		}
		break
	}
	return n, arch.Cycles(n) * th.Cost
}

// endQuantum carries out the operation at which a quantum has stopped.
func (m *Machine) endQuantum(t testing.TB, s sched.Quantum, i int) {
	t.Helper()
	th := &m.Threads[i]
	if th.next < len(th.script) {
		m.enterKernel(t, s, i)
	}
	if th.next == len(th.script) && !th.blocked {
		th.exited = true
		m.Cluster.Exit(s.Thread)
	}
}

func (m *Machine) enterKernel(t testing.TB, s sched.Quantum, i int) {
	t.Helper()
	th := &m.Threads[i]
	o := th.script[th.next]
	switch o.kind {
	case kindRun, kindSpin, kindLocked:
		return
	case kindSleep, kindAwait, kindPin, kindSpawn, kindSet, kindYield, kindStop, kindHerd, kindRank:
		m.Cluster.Charge(s.Core, m.syscall)
	}
	now := m.Cluster.Now(s.Core)
	th.next++
	switch o.kind {
	case kindSleep:
		m.blockThread(i)
		m.Timers = append(m.Timers, Timer{now + arch.Cycles(o.n), i})
		slices.SortStableFunc(m.Timers, func(a, b Timer) int { return int(a.At) - int(b.At) })
	case kindYield:
		m.Cluster.Yield(s.Thread)
	case kindSet:
		m.flags[o.n] = true
		for j := range m.Threads {
			if w := &m.Threads[j]; w.awaits && w.script[w.next].n == o.n {
				w.next++
				m.wakeThread(j, now)
			}
		}
	case kindAwait:
		if !m.flags[o.n] {
			th.next--
			th.awaits = true
			m.blockThread(i)
		}
	case kindPause:
		if !m.flags[o.n] {
			th.next--
			m.Cluster.Yield(s.Thread)
		}
	case kindPin:
		if !m.Cluster.SetAffinity(s.Thread, o.n) {
			t.Fatalf("affinity %#x refused", o.n)
		}
	case kindRank:
		m.Cluster.SetPrecedence(s.Thread, sched.Precedence{Rank: int(o.n)})
	case kindSpawn:
		m.startThread(int(o.n), now)
	case kindStop, kindHerd:
		m.disturbThread(t, i, o)
	}
}

// disturbThread changes another thread that is runnable.
func (m *Machine) disturbThread(t testing.TB, i int, o Op) {
	t.Helper()
	other := int(o.n)
	th := &m.Threads[other]
	if other == i || th.exited || th.blocked {
		return
	}
	if o.kind == kindHerd {
		m.Cluster.SetAffinity(ID(other), m.Cluster.Affinity(ID(i)))
		th.waited = 0 // it may have become runnable anew
		return
	}
	m.Cluster.Block(ID(other))
	th.blocked = true
	m.checkInvariants(t)
	m.wakeThread(other, m.Cluster.Now(m.Cluster.LastCoreOf(ID(i))))
}

func (m *Machine) blockThread(i int) {
	m.Threads[i].blocked = true
	m.Cluster.Block(ID(i))
}

func (m *Machine) wakeThread(i int, at arch.Cycles) {
	th := &m.Threads[i]
	th.blocked, th.awaits, th.waited = false, false, 0
	m.Cluster.Ready(ID(i), at)
}

// checkInvariants checks invariants 3 and 4 of package sched.
func (m *Machine) checkInvariants(t testing.TB) {
	t.Helper()
	placed, furthest := 0, arch.Cycles(0)
	for k := range m.Clocks {
		core := arch.CoreID(k)
		now := m.Cluster.Now(core)
		if now < m.Clocks[k] {
			t.Fatalf("clock of core %d went from %d to %d", k, m.Clocks[k], now)
		}
		m.Clocks[k] = now
		furthest = max(furthest, now)
		if on := m.Cluster.On(core); on != arch.NoThread {
			placed++
			th := m.Threads[on-1]
			if th.blocked || th.exited || !th.started {
				t.Fatalf("thread %d is on core %d and not runnable", on, k)
			}
			if m.Cluster.CoreOf(on) != core || m.Cluster.LastCoreOf(on) != core || m.Cluster.Affinity(on)>>k&1 == 0 {
				t.Fatalf("thread %d on core %d: core %d, affinity %#x", on, k, m.Cluster.CoreOf(on), m.Cluster.Affinity(on))
			}
		}
	}
	if furthest != m.Cluster.Makespan() || m.total != m.Cluster.Instructions() {
		t.Fatalf("makespan %d, want %d; instructions %d, want %d", m.Cluster.Makespan(), furthest, m.Cluster.Instructions(), m.total)
	}
	for i := range m.Threads {
		if th := &m.Threads[i]; m.Cluster.CoreOf(ID(i)) != arch.NoCore {
			placed--
		} else if th.exited && m.Cluster.LastCoreOf(ID(i)) != arch.NoCore {
			t.Fatalf("thread %d has exited and is still known", ID(i))
		}
	}
	if placed != 0 {
		t.Fatalf("%d more cores with threads than threads with cores", placed)
	}
}

// Finish runs to the end and fails the test unless every thread has exited.
func (m *Machine) Finish(t testing.TB) *Machine {
	t.Helper()
	for m.Step(t) {
	}
	for i := range m.Threads {
		if !m.Threads[i].exited {
			t.Fatalf("thread %d is lost: %+v", ID(i), m.Threads[i])
		}
	}
	return m
}

// NewCluster makes a cluster for any policy.
func NewCluster(t testing.TB, cores int, seed uint64, o sched.Options) *sched.Cluster {
	t.Helper()
	c, err := dmt.New(cores, seed, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Fraction returns a value of Options.Jitter.
func Fraction(x float64) *float64 { return &x }

// Compute returns n scripts of one Run each.
func Compute(n int, instructions uint64) [][]Op {
	scripts := make([][]Op, n)
	for i := range scripts {
		scripts[i] = []Op{Run(instructions)}
	}
	return scripts
}
