package dpor_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"

	"github.com/heddle-dmt/heddle/sched/dpor"
)

// The programs of these tests: threads with loads, stores, atomic additions, fences, semaphores and
// branches, under SC, TSO and PSO.

type opKind int

const (
	opLoad opKind = iota
	opStore
	opAdd   // atomic: a fence as well
	opFence // waits until the buffer is empty
	opWait  // of a semaphore: begins, and waits if it is 0
	opPost
	opSkip // the next operation is left out if the register is odd; no event
	opExit // ends the program
)

type op struct {
	kind  opKind
	at    int // the variable or semaphore
	value int // of a store; 0: the register and 1
}

// drains reports whether the operation waits until the buffer is empty.
func (o op) drains() bool { return o.kind != opLoad && o.kind != opStore }

type model int

const (
	sc model = iota
	tso
	pso
)

type program struct {
	model   model
	threads [][]op
	vars    int
}

func (p program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model %d\n", p.model)
	for _, t := range p.threads {
		fmt.Fprintln(&b, t)
	}
	return b.String()
}

type pendingStore struct{ at, value, event int }

// machine is a state of a program.
type machine struct {
	p       program
	pc      []int
	reg     []int
	memory  []int
	buffers [][]pendingStore
	blocked []bool
	sems    map[int]*semaphore
	events  []dpor.Event
	last    map[dpor.Process]int // the latest event of each process
	after   [][]int              // events that the next event of a thread comes after
	ended   bool
}

type semaphore struct {
	count   int
	waiting []int
}

func newMachine(p program) *machine {
	n := len(p.threads)
	m := &machine{
		p: p, pc: make([]int, n), reg: make([]int, n), memory: make([]int, p.vars), buffers: make([][]pendingStore, n),
		blocked: make([]bool, n), sems: map[int]*semaphore{}, last: map[dpor.Process]int{}, after: make([][]int, n),
	}
	for t := range p.threads {
		m.skip(t)
	}
	return m
}

// skip executes the operations without events.
func (m *machine) skip(t int) {
	ops := m.p.threads[t]
	for m.pc[t] < len(ops) && ops[m.pc[t]].kind == opSkip {
		m.pc[t] += 1 + m.reg[t]&1
	}
}

// bufferOf is the process that commits the stores of a thread to a variable.
func (m *machine) bufferOf(t, at int) dpor.Process {
	if m.p.model == tso {
		at = 0
	}
	return dpor.Process(100 + 10*t + at)
}

func (m *machine) enabled() (list []dpor.Process) {
	if m.ended {
		return nil
	}
	for t, ops := range m.p.threads {
		if m.blocked[t] || m.pc[t] >= len(ops) {
			continue
		}
		if ops[m.pc[t]].drains() && len(m.buffers[t]) > 0 {
			continue
		}
		list = append(list, dpor.Process(t))
	}
	for t, b := range m.buffers {
		for _, s := range b {
			if p := m.bufferOf(t, s.at); !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

const semaphores = 1000

// next is the event that a thread executes next.
func (m *machine) next(t int) dpor.Event {
	o := m.p.threads[t][m.pc[t]]
	e := dpor.Event{Process: dpor.Process(t), Owner: dpor.Process(t), After: slices.Clone(m.after[t])}
	access := func(at int, write bool) {
		e.Accesses = append(e.Accesses, dpor.Access{Start: uint64(at), End: uint64(at) + 1, Write: write})
	}
	if o.drains() {
		for at := range m.p.vars {
			if commit, is := m.last[m.bufferOf(t, at)]; is {
				e.After = append(e.After, commit)
			}
		}
	}
	switch o.kind {
	case opLoad:
		access(o.at, false)
	case opStore:
		if m.p.model == sc {
			access(o.at, true)
		}
	case opAdd:
		access(o.at, true)
	case opWait, opPost:
		access(semaphores+o.at, true)
	case opExit:
		e.Ends = true
	}
	return e
}

func (m *machine) step(p dpor.Process) {
	number := len(m.events)
	if p >= 100 {
		m.commit(p, number)
		return
	}
	t := int(p)
	o := m.p.threads[t][m.pc[t]]
	e := m.next(t)
	if o.kind == opExit {
		e.Prevents = m.prevented(t)
	}
	m.events = append(m.events, e)
	m.after[t] = nil
	m.last[p] = number
	m.pc[t]++
	value := o.value
	if value == 0 {
		value = m.reg[t] + 1
	}
	switch o.kind {
	case opLoad:
		m.reg[t] = m.memory[o.at]
		for _, s := range m.buffers[t] {
			if s.at == o.at {
				m.reg[t] = s.value
			}
		}
	case opStore:
		if m.p.model == sc {
			m.memory[o.at] = value
		} else {
			m.buffers[t] = append(m.buffers[t], pendingStore{o.at, value, number})
		}
	case opAdd:
		m.reg[t] = m.memory[o.at]
		m.memory[o.at] += 1
	case opWait:
		s := m.semaphore(o.at)
		if s.count > 0 {
			s.count--
		} else {
			s.waiting = append(s.waiting, t)
			m.blocked[t] = true
		}
	case opPost:
		s := m.semaphore(o.at)
		if len(s.waiting) > 0 {
			w := s.waiting[0]
			s.waiting = slices.Clone(s.waiting[1:])
			m.blocked[w] = false
			m.after[w] = append(m.after[w], number)
		} else {
			s.count++
		}
	case opExit:
		m.ended = true
	}
	m.skip(t)
}

func (m *machine) semaphore(at int) *semaphore {
	if m.sems[at] == nil {
		m.sems[at] = &semaphore{}
	}
	return m.sems[at]
}

func (m *machine) commit(p dpor.Process, number int) {
	t := (int(p) - 100) / 10
	at := slices.IndexFunc(m.buffers[t], func(s pendingStore) bool { return m.bufferOf(t, s.at) == p })
	s := m.buffers[t][at]
	m.buffers[t] = slices.Delete(slices.Clone(m.buffers[t]), at, at+1)
	m.memory[s.at] = s.value
	m.events = append(m.events, dpor.Event{
		Process: p, Owner: dpor.Process(t), After: []int{s.event},
		Accesses: []dpor.Access{{Start: uint64(s.at), End: uint64(s.at) + 1, Write: true}},
	})
	m.last[p] = number
}

// prevented are the next events of other processes, which the end of the program prevents.
func (m *machine) prevented(t int) (list []dpor.Event) {
	for _, p := range m.enabled() {
		switch {
		case p == dpor.Process(t):
		case p < 100:
			list = append(list, m.next(int(p)))
		default:
			other := m.clone()
			other.step(p)
			list = append(list, other.events[len(other.events)-1])
		}
	}
	return list
}

func (m *machine) clone() *machine {
	c := *m
	c.pc, c.reg, c.memory = slices.Clone(m.pc), slices.Clone(m.reg), slices.Clone(m.memory)
	c.buffers, c.blocked, c.events = slices.Clone(m.buffers), slices.Clone(m.blocked), slices.Clone(m.events)
	for t := range c.buffers {
		c.buffers[t] = slices.Clone(m.buffers[t])
	}
	c.after = slices.Clone(m.after)
	for t := range c.after {
		c.after[t] = slices.Clone(m.after[t])
	}
	c.sems, c.last = map[int]*semaphore{}, map[dpor.Process]int{}
	for k, s := range m.sems {
		c.sems[k] = &semaphore{s.count, slices.Clone(s.waiting)}
	}
	for k, v := range m.last {
		c.last[k] = v
	}
	return &c
}

// key identifies the class of an execution: the events of each process, and the order of each pair of
// events that are dependent, by a definition of its own.
func (m *machine) key() string {
	count := map[dpor.Process]int{}
	names := make([]string, len(m.events))
	for i, e := range m.events {
		names[i] = fmt.Sprintf("%d.%d", e.Process, count[e.Process])
		count[e.Process]++
	}
	list := slices.Clone(names)
	for k, e := range m.events {
		for i, o := range m.events[:k] {
			if o.Owner != e.Owner && (conflict(o, e) || e.Ends || o.Ends) {
				list = append(list, names[i]+"<"+names[k])
			}
		}
	}
	sort.Strings(list)
	return strings.Join(list, " ")
}

func conflict(a, b dpor.Event) bool {
	for _, x := range a.Accesses {
		for _, y := range b.Accesses {
			if x.Start == y.Start && (x.Write || y.Write) {
				return true
			}
		}
	}
	return false
}

// bruteForce executes every interleaving and returns the classes; false if there are too many.
func bruteForce(p program, most int) (classes map[string]bool, ok bool) {
	classes = map[string]bool{}
	budget := most
	var walk func(m *machine)
	walk = func(m *machine) {
		if budget--; budget < 0 {
			return
		}
		list := m.enabled()
		if len(list) == 0 {
			classes[m.key()] = true
			return
		}
		for _, p := range list {
			next := m.clone()
			next.step(p)
			walk(next)
		}
	}
	walk(newMachine(p))
	return classes, budget >= 0
}

// chooser decides the order of an execution.
type chooser interface {
	Begin(int)
	Choose(enabled, reluctant []dpor.Process) (dpor.Process, bool, error)
	Add(dpor.Event) error
}

// run carries out an execution of an exploration.
func run(x *dpor.Explorer, p program) (m *machine, complete, more bool) {
	if m, complete = carryOut(x, p); complete {
		return m, true, x.End()
	}
	return m, false, x.Abandon()
}

// carryOut carries out an execution.
func carryOut(x chooser, p program) (m *machine, complete bool) {
	m = newMachine(p)
	x.Begin(0)
	for {
		list := m.enabled()
		if len(list) == 0 {
			return m, true
		}
		next, ok, err := x.Choose(list, nil)
		if err != nil {
			panic(err)
		}
		if !ok {
			return m, false
		}
		m.step(next)
		if err := x.Add(m.events[len(m.events)-1]); err != nil {
			panic(err)
		}
	}
}

// randomProgram makes a program.
func randomProgram(r *rand.Rand, m model) program {
	p := program{model: m, vars: 1 + r.IntN(3)}
	for range 2 + r.IntN(2) {
		var ops []op
		for range 1 + r.IntN(4) {
			o := op{at: r.IntN(p.vars), value: r.IntN(3)}
			switch n := r.IntN(40); {
			case n < 14:
				o.kind = opLoad
			case n < 28:
				o.kind = opStore
			case n < 31:
				o.kind = opAdd
			case n < 32:
				o.kind = opFence
			case n < 34:
				o.kind, o.at = opWait, 0
			case n < 36:
				o.kind, o.at = opPost, 0
			case n < 39:
				o.kind = opSkip
			default:
				o.kind = opExit
			}
			ops = append(ops, o)
		}
		p.threads = append(p.threads, ops)
	}
	return p
}
