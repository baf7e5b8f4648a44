package dpor

import (
	"encoding/binary"
	"errors"
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
// Among those that cost the same, executions that leave earlier ones at their first events come first: a failure that
// takes few preemptions is often possible near the start, of a long execution, too.
//
// Where a state was reached that an equivalent execution has reached before, after the same last thread and therefore at no
// higher cost, an execution is left. States are equal if the events before them are, with what happens before each; they
// are compared by sums of 128 bits.
type Bounded struct {
	delays bool
	bound  int // the cost of the executions under way
	most   int // the greatest bound; negative: without end
	cut    bool
	seen   map[seenState]struct{}
	// The options of choices, each list once, and where it is.
	options   [][]option
	optionsAt map[string]int32
	waiting   map[int][]*branches // by the cost of their executions
	kept      int                 // stretches of these
	// The execution under way: what it has in common with an earlier one, its own cost, and its choices.
	prefix  []turn
	decided int // choices of the prefix
	cost    int
	path    []turn
	free    []stretch // choices after the prefix
	depth   int
	at      int // the turn of the prefix, with the choices of it that were made
	made    int32
	last    Process // the thread that executed the last event
	state   stateSum
}

// ErrTooMany is the error if the executions that are still to be executed take too much memory.
var ErrTooMany = errors.New("too many executions are still to be executed")

// option is a process with the cost of choosing it.
type option struct {
	process Process
	cost    int
}

// turn is a number of choices of one process in a row.
type turn struct {
	process Process
	choices int32
}

// stretch are the events from one number to another, End excluded, that had the same options, of which the first
// was taken.
type stretch struct{ start, end, options int32 }

// branches are the executions that leave one at one of its stretches, where that costs extra.
type branches struct {
	path      []turn
	cost      int // of the execution that is left
	extra     int
	stretches []stretch
	option    int // the next one, of the first event of the first stretch
}

// seenState is a state that was reached, with the thread that executed the last event.
type seenState struct {
	sum
	last Process
}

// mostSeen bounds the states that are remembered; more are not, which repeats what follows them. MostKept bounds the
// stretches of executions that others are to leave.
const (
	mostSeen = 4 << 20
	mostKept = 64 << 20
)

// NewBounded makes an explorer of executions that cost at most a number; negative: there is no bound.
func NewBounded(delays bool, most int) *Bounded {
	return &Bounded{delays: delays, most: most, seen: map[seenState]struct{}{}, optionsAt: map[string]int32{}, waiting: map[int][]*branches{}}
}

// Explored returns the cost up to which all executions are explored, -1 before any is.
func (x *Bounded) Explored() int { return x.bound - 1 }

// Branch is Explorer.Branch: an execution begins from the start of the program.
func (x *Bounded) Branch() []Process { return nil }

// Begin begins an execution.
func (x *Bounded) Begin(int) {
	x.depth, x.at, x.made, x.last = 0, 0, 0, 0
	x.path, x.free = nil, nil
	x.state.clear()
}

// IsDecided reports whether the next choice follows from earlier executions.
func (x *Bounded) IsDecided() bool { return x.depth < x.decided }

// Choose is Explorer.Choose. Reluctant processes are not chosen.
func (x *Bounded) Choose(enabled, _ []Process) (p Process, ok bool, err error) {
	if x.IsDecided() {
		p = x.prefix[x.at].process
		if !slices.Contains(enabled, p) {
			return 0, false, fmt.Errorf("%w: process %#x cannot execute event %d", ErrDiffers, uint64(p), x.depth)
		}
		if x.made++; x.made == x.prefix[x.at].choices {
			x.at, x.made = x.at+1, 0
		}
	} else if p, ok = x.extend(enabled); !ok {
		return 0, false, nil
	}
	x.path = appendTurn(x.path, p)
	if x.kept+len(x.free) > mostKept {
		return 0, false, ErrTooMany
	}
	return p, true, nil
}

func appendTurn(path []turn, p Process) []turn {
	if n := len(path); n > 0 && path[n-1].process == p {
		path[n-1].choices++
		return path
	}
	return append(path, turn{p, 1})
}

// extend takes the option that costs nothing, and notes the others. It returns false if what follows is explored.
func (x *Bounded) extend(enabled []Process) (p Process, ok bool) {
	if len(enabled) == 1 {
		return enabled[0], true
	}
	key := seenState{x.state.total, x.last}
	if _, seen := x.seen[key]; seen {
		return 0, false
	}
	if len(x.seen) < mostSeen {
		x.seen[key] = struct{}{}
	}
	list := x.listOptions(enabled)
	number := x.numberOf(list)
	if n := len(x.free); n > 0 && x.free[n-1].options == number && x.free[n-1].end == int32(x.depth) {
		x.free[n-1].end++
	} else {
		x.free = append(x.free, stretch{int32(x.depth), int32(x.depth) + 1, number})
	}
	return list[0].process, true
}

// numberOf returns the number of a list of options.
func (x *Bounded) numberOf(list []option) int32 {
	var text []byte
	for _, o := range list {
		text = binary.AppendUvarint(binary.LittleEndian.AppendUint64(text, uint64(o.process)), uint64(o.cost))
	}
	n, known := x.optionsAt[string(text)]
	if !known {
		n = int32(len(x.options))
		x.options = append(x.options, list)
		x.optionsAt[string(text)] = n
	}
	return n
}

// listOptions lists the processes that can execute the next event, the one that costs nothing first.
func (x *Bounded) listOptions(enabled []Process) []option {
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
	x.keepBranches()
	for {
		for _, b := range x.waiting[x.bound] {
			if x.take(b) {
				return true
			}
			x.kept -= cap(b.stretches)
			x.waiting[x.bound] = x.waiting[x.bound][1:]
		}
		delete(x.waiting, x.bound)
		x.bound++
		if len(x.waiting) == 0 {
			if x.cut {
				x.bound = x.most + 1
			}
			return false
		}
	}
}

// keepBranches keeps the executions that leave the one that ends.
func (x *Bounded) keepBranches() {
	var extras []int
	for _, s := range x.free {
		for _, o := range x.options[s.options][1:] {
			switch {
			case x.most >= 0 && x.cost+o.cost > x.most:
				x.cut = true
			case !slices.Contains(extras, o.cost):
				extras = append(extras, o.cost)
			}
		}
	}
	for _, extra := range extras {
		b := &branches{path: x.path, cost: x.cost, extra: extra, option: 1}
		for _, s := range x.free {
			if slices.ContainsFunc(x.options[s.options][1:], func(o option) bool { return o.cost == extra }) {
				b.stretches = append(b.stretches, s)
			}
		}
		b.stretches = slices.Clip(b.stretches)
		x.kept += cap(b.stretches)
		x.waiting[x.cost+extra] = append(x.waiting[x.cost+extra], b)
	}
}

// take makes the next execution one of the branches. It returns false after the last one.
func (x *Bounded) take(b *branches) bool {
	for len(b.stretches) > 0 {
		s := &b.stretches[0]
		options := x.options[s.options]
		for ; b.option < len(options); b.option++ {
			if o := options[b.option]; o.cost == b.extra {
				x.prefix, x.decided, x.cost = branchOff(b.path, s.start, o.process), int(s.start)+1, b.cost+b.extra
				b.option++
				return true
			}
		}
		b.option = 1
		if s.start++; s.start == s.end {
			b.stretches = b.stretches[1:]
		}
	}
	return false
}

// branchOff returns the first choices of a path, and then a process.
func branchOff(path []turn, choices int32, p Process) (list []turn) {
	for _, t := range path {
		t.choices = min(t.choices, choices)
		if choices -= t.choices; t.choices == 0 {
			break
		}
		list = append(list, t)
	}
	return appendTurn(list, p)
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
