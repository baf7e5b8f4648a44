package minimize

import (
	"context"
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
)

// A toy machine: threads of a few instructions over shared words, with a store
// buffer for each thread in the order of TSO.

// op is an instruction: x and y name a word or a register, depending on the instruction.
type op struct {
	do   string
	x, y int
}

// A program has a list of instructions for each thread. fails judges the end.
type program struct {
	threads [][]op
	tso     bool
	fails   func(*toy) bool
}

type toyThread struct {
	pc      int
	regs    [4]int
	waiting []toyStore // oldest first
	blocked bool
	gone    bool
	// inside reports that the next instruction has loaded this already.
	inside bool
	loaded int
}

type toyStore struct{ word, value int }

// toy is a machine that runs a program.
type toy struct {
	program program
	threads []toyThread
	words   [8]int
	steps   int
}

const firstThread = 100

func id(i int) arch.ThreadID { return arch.ThreadID(firstThread + i) }

func (m *toy) load(t *toyThread, word int) int {
	for _, s := range slices.Backward(t.waiting) {
		if s.word == word {
			return s.value
		}
	}
	return m.words[word]
}

func (m *toy) drain(t *toyThread) {
	for _, s := range t.waiting {
		m.words[s.word] = s.value
	}
	t.waiting = nil
}

// begin does the load of an instruction that loads and stores.
func (m *toy) begin(t *toyThread, o op) {
	if !t.inside {
		t.inside, t.loaded = true, m.load(t, o.x)
	}
}

// accesses is the number of accesses of its next instruction that a thread has done where its
// quantum ends.
func (m *toy) accesses(k int, s *sched.Quantum) uint8 {
	t := &m.threads[k]
	if o := m.program.threads[k][t.pc]; o.do == "inc" && (s.Accesses == 1 || s.InsideChoice%2 == 1) {
		m.begin(t, o)
		return 1
	}
	return 0
}

// step executes an instruction of a thread and returns how its quantum ends.
func (m *toy) step(c *sched.Cluster, k int) How {
	t := &m.threads[k]
	o := m.program.threads[k][t.pc]
	t.pc++
	switch o.do {
	case "load": // register x of word y
		t.regs[o.x] = m.load(t, o.y)
	case "store": // word x of register y
		t.waiting = append(t.waiting, toyStore{o.x, t.regs[o.y]})
		if !m.program.tso {
			m.drain(t)
		}
	case "inc": // word x: a load, and a store
		m.begin(t, o)
		t.waiting = append(t.waiting, toyStore{o.x, t.loaded + 1})
		t.inside = false
		if !m.program.tso {
			m.drain(t)
		}
	case "set": // register x to y
		t.regs[o.x] = o.y
	case "add": // y to register x
		t.regs[o.x] += o.y
	case "fence":
		m.drain(t)
	case "jump": // to y if register x is not 0
		if t.regs[o.x] != 0 {
			t.pc = o.y
		}
	case "back": // to y if register x is 0
		if t.regs[o.x] == 0 {
			t.pc = o.y
		}
	case "pause":
		return AtPause
	case "wait": // until word x is not 0: a system call
		m.drain(t)
		if m.words[o.x] == 0 {
			t.pc--
			t.blocked = true
			c.Block(id(k))
		}
		return AtAction
	case "wake": // all that wait: a system call
		m.drain(t)
		for i := range m.threads {
			if m.threads[i].blocked {
				m.threads[i].blocked = false
				c.Ready(id(i), c.Makespan())
			}
		}
		return AtAction
	case "exit":
		m.drain(t)
		t.gone = true
		c.Exit(id(k))
		return AtAction
	default:
		panic("no instruction " + o.do)
	}
	return AtBudget
}

// watch hears of the events of a run: a Follower, or the Tracker of a run under another policy.
type watch interface {
	Ended(How, arch.Addr, uint64, uint8)
}

// play runs the program under a policy.
func play(p program, cores int, policy sched.Policy, tracker *Tracker, ended watch, hold func(Store) int) *toy {
	m := &toy{program: p, threads: make([]toyThread, len(p.threads))}
	c, err := sched.NewWithPolicy(cores, policy)
	if err != nil {
		panic(err)
	}
	for k := range m.threads {
		c.Ready(id(k), 0)
	}
	for m.steps = 0; m.steps < 20_000; {
		s, verdict := c.Next(0, false)
		if verdict != sched.Run {
			break
		}
		k := int(s.Thread) - firstThread
		committed := m.commit(k, hold)
		tracker.Begin(s.Thread, s.Core, m.held(k), nil, committed)
		n, how := uint64(0), AtBudget
		for how == AtBudget && (s.Instructions == 0 && !s.AccessesOnly || n < s.Instructions) {
			how = m.step(c, k)
			n++
			m.steps++
			if m.steps >= 20_000 {
				break
			}
		}
		inside := uint8(0)
		if how == AtBudget {
			inside = m.accesses(k, &s)
		}
		ended.Ended(how, arch.Addr(1000*k+m.threads[k].pc), n, inside)
		if _, known := c.Affinity(s.Thread), !m.threads[k].gone; known {
			c.Ran(s, n, arch.Cycles(n))
		}
	}
	for k := range m.threads {
		m.drain(&m.threads[k])
	}
	return m
}

// commit commits the stores that the others' buffers do not hold back.
func (m *toy) commit(self int, hold func(Store) int) (committed bool) {
	for k := range m.threads {
		t := &m.threads[k]
		for k != self && len(t.waiting) > 0 && hold(Store{id(k), arch.Addr(t.waiting[0].word)}) < m.same(t) {
			m.words[t.waiting[0].word] = t.waiting[0].value
			t.waiting = t.waiting[1:]
			committed = true
		}
	}
	return committed
}

// same counts the waiting stores to the word of the oldest.
func (m *toy) same(t *toyThread) (n int) {
	for _, s := range t.waiting {
		if s.word == t.waiting[0].word {
			n++
		}
	}
	return n
}

func (m *toy) held(self int) (list []Hold) {
	for k := range m.threads {
		if t := &m.threads[k]; k != self && len(t.waiting) > 0 {
			list = append(list, Hold{Store{id(k), arch.Addr(t.waiting[0].word)}, m.same(t)})
		}
	}
	return list
}

// carryOut carries out a schedule.
func carryOut(p program, s Schedule, known Waits) (*toy, Schedule) {
	f := NewFollower(s, known)
	m := play(p, 2, f, f.Tracker, f, f.Held)
	return m, f.Schedule()
}

// try is a Try for the program.
func try(p program, known Waits) Try {
	return func(_ context.Context, s Schedule) (Outcome, error) {
		f := NewFollower(s, known)
		m := play(p, 2, f, f.Tracker, f, f.Held)
		return Outcome{
			Fails: p.fails(m), Schedule: f.Schedule(), Recording: []byte(fmt.Sprint(f.Schedule())), Drifted: f.Drifted(),
		}, nil
	}
}

// find is an Options.Probe for the program.
func find(p program, known Waits) func(context.Context, Schedule, int) (int64, bool, error) {
	return func(_ context.Context, s Schedule, step int) (int64, bool, error) {
		f := NewFollower(s, known)
		f.Probe(step)
		play(p, 2, f, f.Tracker, f, f.Held)
		off, found, _ := f.Probed()
		return off, found, nil
	}
}

// counted is a policy that ignores the ends of quanta.
type counted struct{ *Tracker }

// wild runs the program under the policy random, with stores that are committed at random, until it
// fails. It returns the schedule, and the known waiting.
func wild(p program, quantum uint64) (Schedule, Waits) {
	var waits Waits
	for seed := uint64(1); ; seed++ {
		var m *toy
		var t *Tracker
		for range 2 { // the second time with the known waiting
			state := seed
			chance := func(Store) int {
				state = state*6364136223846793005 + 1442695040888963407
				return int(state >> 62) // 0 to 3 stores stay
			}
			policy := &wildPolicy{seed: seed, quantum: quantum}
			t = NewTracker(waits)
			m = play(p, 2, policy, t, counted{t}, chance)
			waits = t.Waits()
		}
		if p.fails(m) {
			return t.Schedule(), waits
		}
		if seed == 5000 {
			panic("the program does not fail")
		}
		waits = nil
	}
}

// wildPolicy draws a thread and a length for each quantum.
type wildPolicy struct{ seed, quantum uint64 }

func (p *wildPolicy) Ready(*sched.Cluster, arch.ThreadID, arch.Cycles)       {}
func (p *wildPolicy) Block(*sched.Cluster, arch.ThreadID)                    {}
func (p *wildPolicy) Exit(*sched.Cluster, arch.ThreadID)                     {}
func (p *wildPolicy) Yield(*sched.Cluster, arch.ThreadID)                    {}
func (p *wildPolicy) Ran(*sched.Cluster, sched.Quantum, uint64, arch.Cycles) {}

func (p *wildPolicy) draw(n uint64) uint64 {
	p.seed = p.seed*6364136223846793005 + 1442695040888963407
	return (p.seed >> 33) % n
}

func (p *wildPolicy) Next(c *sched.Cluster, _ arch.Cycles, _ bool) (sched.Quantum, sched.Verdict) {
	t := c.RunnableThread(int(p.draw(uint64(c.Runnable()))))
	return sched.Quantum{Core: c.Place(t), Thread: t, Instructions: 1 + p.draw(p.quantum), Exact: true, InsideChoice: uint32(p.seed >> 50)}, sched.Run
}
