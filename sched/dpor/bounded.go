package dpor

import (
	"fmt"
	"math/bits"
	"slices"
)

// Bounded explores executions by what they cost, as in iterative context bounding (Musuvathi and Qadeer, PLDI 2007) and
// delay bounding (Emmi, Qadeer and Rakamaric, POPL 2011): first all that cost nothing, then all that cost at most 1, and
// so on. It is called like an Explorer.
//
//   - Preemptions: as long as the thread that executed the last event can continue, each other event costs 1: one of
//     another thread, the commit of a store, or the end of a timer. Where it cannot, the next event is free.
//   - Delays: the thread that executed the last event continues, and where it cannot, the one with the next higher number,
//     cyclically, and after the threads come commits and timers. The n-th in this order after the first costs n.
//
// Where a state was reached that an equivalent execution has reached before, after the same last thread and at no higher
// cost, an execution is left. States are equal if the events before them are, with what happens before each; they are
// compared by sums of 128 bits.
type Bounded struct {
	delays bool
	bound  int
	most   int // the greatest bound; negative: there is none
	cut    bool
	path   []decision
	depth  int
	cost   int
	last   Process // the thread that executed the last event
	seen   map[seenState]int
	state  stateSum
}

// decision is a choice of an execution, with the choices that are still to be made in its place.
type decision struct {
	option
	others []option
}

// option is a process with the cost of choosing it.
type option struct {
	process Process
	cost    int
}

// seenState is a state that was reached, with the thread that executed the last event.
type seenState struct {
	sum
	last Process
}

// mostSeen bounds the states that are remembered; more are not, which repeats what follows them.
const mostSeen = 4 << 20

// NewBounded makes an explorer of executions that cost at most a number; negative: there is no bound.
func NewBounded(delays bool, most int) *Bounded {
	x := &Bounded{delays: delays, most: most}
	x.begin(0)
	return x
}

func (x *Bounded) begin(bound int) {
	x.bound, x.cut, x.path, x.seen = bound, false, nil, map[seenState]int{}
}

// Explored returns the cost up to which all executions are explored, -1 before any is.
func (x *Bounded) Explored() int { return x.bound - 1 }

// Begin begins an execution from the start of the program.
func (x *Bounded) Begin() {
	x.depth, x.cost, x.last = 0, 0, 0
	x.state.clear()
}

// IsDecided reports whether the next choice follows from earlier executions.
func (x *Bounded) IsDecided() bool { return x.depth < len(x.path) }

// Choose is Explorer.Choose. Reluctant processes are not chosen.
func (x *Bounded) Choose(enabled, _ []Process) (p Process, ok bool, err error) {
	if x.depth == len(x.path) && !x.extend(enabled) {
		return 0, false, nil
	}
	d := &x.path[x.depth]
	if !slices.Contains(enabled, d.process) {
		return 0, false, fmt.Errorf("%w: process %#x cannot execute event %d", ErrDiffers, uint64(d.process), x.depth)
	}
	x.cost += d.cost
	return d.process, true, nil
}

// extend decides for the next event. It returns false if what follows is explored.
func (x *Bounded) extend(enabled []Process) bool {
	if len(enabled) > 1 {
		key, left := seenState{x.state.total, x.last}, x.bound-x.cost+1
		if x.seen[key] >= left {
			return false
		}
		if len(x.seen) < mostSeen {
			x.seen[key] = left
		}
	}
	var d decision
	for i, o := range x.options(enabled) {
		switch {
		case i == 0:
			d.option = o
		case x.cost+o.cost <= x.bound:
			d.others = append(d.others, o)
		default:
			x.cut = true
		}
	}
	x.path = append(x.path, d)
	return true
}

// options lists the processes that can execute the next event, the one that costs nothing first.
func (x *Bounded) options(enabled []Process) []option {
	list := slices.Clone(enabled)
	slices.SortStableFunc(list, func(a, b Process) int { return x.rank(a) - x.rank(b) })
	continues := list[0] == x.last
	options := make([]option, len(list))
	for i, p := range list {
		options[i].process = p
		switch {
		case x.delays:
			options[i].cost = i
		case i > 0 && continues:
			options[i].cost = 1
		}
	}
	return options
}

// rank sorts the thread that continues before threads of higher numbers, these before others, and store buffers and
// timers last.
func (x *Bounded) rank(p Process) int {
	switch {
	case p == x.last:
		return 0
	case !p.isThread():
		return 3
	case p > x.last:
		return 1
	}
	return 2
}

// Add adds the event that the chosen process has executed.
func (x *Bounded) Add(e Event) error {
	x.depth++
	if e.Process.isThread() {
		x.last = e.Process
	}
	x.state.add(&e)
	return nil
}

// End ends an execution, and reports whether there is another one to execute.
func (x *Bounded) End() (more bool) {
	for len(x.path) > 0 {
		d := &x.path[len(x.path)-1]
		if len(d.others) > 0 {
			d.option, d.others = d.others[0], d.others[1:]
			return true
		}
		x.path = x.path[:len(x.path)-1]
	}
	x.bound++
	if !x.cut || x.bound == x.most+1 {
		return false
	}
	x.begin(x.bound)
	return true
}

// Abandon is End.
func (x *Bounded) Abandon() (more bool) { return x.End() }

// IsCut reports whether the bound has left executions out, once there is no other one to execute.
func (x *Bounded) IsCut() bool { return x.cut }

// sum is a sum of 128 bits.
type sum struct{ a, b uint64 }

func (s *sum) add(o sum) {
	var carry uint64
	s.a, carry = bits.Add64(s.a, o.a, 0)
	s.b, _ = bits.Add64(s.b, o.b, carry)
}

// mix makes the sum one that depends on what it was and on another one.
func (s *sum) mix(o sum) {
	const p, q = 0x9e3779b97f4a7c15, 0xd1342543de82ef95
	high, low := bits.Mul64(s.a^o.a^p, q)
	s.a = bits.RotateLeft64(s.b^low, 29) * p
	high2, low2 := bits.Mul64(s.b^bits.RotateLeft64(o.b, 32)^q, p)
	s.b = bits.RotateLeft64(high^low2, 31) + high2 ^ s.a
}

// stateSum is the sum of a state: of the events before it, each with the events that happen before it.
type stateSum struct {
	total    sum
	events   []sum
	latest   map[Process]sum
	cells    map[uint64]cellSum
	everyone sum // of the last event on which all depend
}

// cellSum is the last write of a cell of memory, and the reads since.
type cellSum struct{ write, reads sum }

// Accesses are compared by cells of 8 bytes, and those to more than widest cells depend on all events: this tells more states
// apart than differ, never fewer.
const (
	cellShift = 3
	widest    = 64
)

func (s *stateSum) clear() {
	s.total, s.everyone, s.events = sum{}, sum{}, s.events[:0]
	s.latest, s.cells = map[Process]sum{}, map[uint64]cellSum{}
}

func (s *stateSum) add(e *Event) {
	h := s.latest[e.Process]
	h.mix(sum{uint64(e.Process), uint64(len(e.Accesses))})
	h.mix(s.everyone)
	for _, i := range e.After {
		h.mix(s.events[i])
	}
	wide := e.Ends
	for _, a := range e.Accesses {
		h.mix(sum{a.Start, a.End})
		if a.End-a.Start > widest<<cellShift {
			wide = true
			continue
		}
		for n := a.Start >> cellShift; n <= (a.End-1)>>cellShift; n++ {
			c := s.cells[n]
			h.mix(c.write)
			if a.Write {
				h.mix(c.reads)
			}
		}
	}
	if wide {
		h.mix(s.total)
		s.everyone = h
	}
	s.noteAccesses(e, h)
	s.latest[e.Process] = h
	s.events = append(s.events, h)
	s.total.add(h)
}

func (s *stateSum) noteAccesses(e *Event, h sum) {
	for _, a := range e.Accesses {
		if a.End-a.Start > widest<<cellShift {
			continue
		}
		for n := a.Start >> cellShift; n <= (a.End-1)>>cellShift; n++ {
			c := s.cells[n]
			if a.Write {
				c = cellSum{write: h}
			} else {
				c.reads.add(h)
			}
			s.cells[n] = c
		}
	}
}
