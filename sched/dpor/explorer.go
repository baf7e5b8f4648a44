package dpor

import (
	"errors"
	"fmt"
	"slices"
)

// ErrDiffers is the error if the program, repeated, does not do what it did before, or if the same steps
// in another order have other effects although they are independent.
var ErrDiffers = errors.New("an execution that is repeated differs")

// Explorer is an exploration under way. For each execution its caller calls
//
//	Begin(0)
//	Choose, Add    for each event
//	End
//
// as long as End or Abandon returns true.
type Explorer struct {
	nodes   []node // of the current execution
	fixed   int    // the number of events that the execution has in common with the one before
	depth   int    // the number of events executed
	indexes map[Process]int
	latest  []int // the latest event of each process, by index, or -1
}

// node is a state on the path of the current execution, with the event that is executed there.
type node struct {
	event   Event
	known   bool // the event has been executed
	sleep   []Event
	next    []*Branch // the wakeup tree, but for the branch that is explored
	below   []*Branch // the part of the wakeup tree under that branch
	clock   clock
	races   []int // earlier events with which the event is in a race that can be reversed
	process Process
	// expected is the event of the branch that is explored, as long as the one that is executed is not known.
	expected Event
}

// Branch is a node of a wakeup tree.
type Branch struct {
	// Event is executed there, and Next are the branches after it, in the order in which they are explored.
	Event Event     `json:"event"`
	Next  []*Branch `json:"next,omitempty"`
}

// New makes an explorer of which nothing is executed.
func New() *Explorer { return &Explorer{indexes: map[Process]int{}} }

// Branch lists the processes of the events with which the next execution begins as the one before did.
func (x *Explorer) Branch() []Process { return x.processesTo(x.fixed) }

// Begin begins an execution after a number of the events of Branch; 0: from the start of the program.
func (x *Explorer) Begin(depth int) {
	x.depth = depth
	for i := range x.latest {
		x.latest[i] = -1
	}
	for i := range depth {
		x.latest[x.indexOf(x.nodes[i].process)] = i
	}
}

// Depth is the number of events of the current execution.
func (x *Explorer) Depth() int { return x.depth }

// Choose returns the process that executes the next event. Enabled are the processes that can, in the
// order in which they are preferred, at least one; reluctant are processes that can, but are chosen only
// where an execution is to differ from another one by that. It returns false if every execution from here on
// is equivalent to one that was executed.
func (x *Explorer) Choose(enabled, reluctant []Process) (p Process, ok bool, err error) {
	if x.depth == len(x.nodes) && !x.extend(enabled) {
		return 0, false, nil
	}
	p = x.nodes[x.depth].process
	if !slices.Contains(enabled, p) && !slices.Contains(reluctant, p) {
		return 0, false, fmt.Errorf("%w: process %#x cannot execute event %d", ErrDiffers, uint64(p), x.depth)
	}
	return p, true, nil
}

// IsDecided reports whether the next choice follows from earlier executions.
func (x *Explorer) IsDecided() bool {
	return x.depth < len(x.nodes) || x.depth > 0 && len(x.nodes[x.depth-1].below) > 0
}

// extend adds a node for the next event. It returns false if there is nothing to execute.
func (x *Explorer) extend(enabled []Process) bool {
	n := x.newNode()
	if len(n.next) > 0 {
		first := n.next[0]
		n.process, n.expected, n.below, n.next = first.Event.Process, first.Event, first.Next, n.next[1:]
	} else {
		at := slices.IndexFunc(enabled, func(p Process) bool { return indexOf(n.sleep, p) < 0 })
		if at < 0 {
			return false
		}
		n.process = enabled[at]
	}
	x.nodes = append(x.nodes, n)
	return true
}

// newNode makes the node after the last one.
func (x *Explorer) newNode() (n node) {
	if x.depth == 0 {
		return n
	}
	last := &x.nodes[x.depth-1]
	for i := range last.sleep {
		if s := &last.sleep[i]; s.Process != last.process && !s.depends(&last.event) {
			n.sleep = append(n.sleep, *s)
		}
	}
	n.next, last.below = last.below, nil
	return n
}

func indexOf(list []Event, p Process) int {
	return slices.IndexFunc(list, func(e Event) bool { return e.Process == p })
}

// Add adds the event that the chosen process has executed.
func (x *Explorer) Add(e Event) error {
	n := &x.nodes[x.depth]
	switch {
	case e.Process != n.process:
		panic(fmt.Sprintf("bug: event of process %#x in place of %#x", uint64(e.Process), uint64(n.process)))
	case n.known && !n.event.equals(&e):
		return fmt.Errorf("%w: event %d is %+v, before %+v", ErrDiffers, x.depth, e, n.event)
	case !n.known:
		n.event, n.known = e, true
	}
	n.event.After, n.event.Prevents = e.After, e.Prevents
	if n.clock == nil {
		x.order(n)
	}
	x.latest[x.indexOf(e.Process)] = x.depth
	x.depth++
	return nil
}

// indexOf returns the index of a process in clocks.
func (x *Explorer) indexOf(p Process) int {
	i, known := x.indexes[p]
	if !known {
		i = len(x.latest)
		x.indexes[p] = i
		x.latest = append(x.latest, -1)
	}
	return i
}

// order finds the events that happen before the newest one, and its races.
func (x *Explorer) order(n *node) {
	e := &n.event
	own := x.indexOf(e.Process)
	var c clock
	if last := x.latest[own]; last >= 0 {
		c = slices.Clone(x.nodes[last].clock)
	}
	for _, i := range e.After {
		c = c.join(x.nodes[i].clock)
	}
	n.races = nil
	for i := x.depth - 1; i >= 0; i-- {
		o := &x.nodes[i]
		if int(c.at(x.indexes[o.process])) <= i && e.depends(&o.event) {
			n.races = append(n.races, i)
			c = c.join(o.clock)
		}
	}
	n.clock = c.set(own, int32(x.depth)+1)
}

// happensBefore reports whether event i happens before event k.
func (x *Explorer) happensBefore(i, k int) bool {
	return int(x.nodes[k].clock.at(x.indexes[x.nodes[i].process])) > i
}

// End ends an execution that is complete, and reports whether there is another one to execute.
func (x *Explorer) End() (more bool) {
	for k := range x.depth {
		n := &x.nodes[k]
		for _, i := range n.races {
			x.reverse(i, step{n.event, k})
		}
		for i := range n.event.Prevents {
			x.reverse(k, step{n.event.Prevents[i], -1})
		}
	}
	return x.advance()
}

// Abandon ends an execution that is not continued, without looking for others that differ from it.
func (x *Explorer) Abandon() (more bool) { return x.advance() }

// step is an event of a sequence: of the execution, with its number there, or one that is pending, -1.
type step struct {
	event  Event
	number int
}

// reverse has an execution explored, unless one is, in which a step comes before event i.
func (x *Explorer) reverse(i int, last step) {
	var sequence []step
	for m := i + 1; m < x.depth; m++ {
		if !x.happensBefore(i, m) {
			sequence = append(sequence, step{x.nodes[m].event, m})
		}
	}
	x.insert(i, append(sequence, last))
}

// insert has a sequence explored from the state before event i, unless an equivalent one is: the test of
// sleep sets and the insertion of algorithm 2.
func (x *Explorer) insert(i int, sequence []step) {
	n := &x.nodes[i]
	for s := range n.sleep {
		if _, initial := x.findInitial(&n.sleep[s], sequence); initial {
			return
		}
	}
	list := &n.next
	for {
		b, at := x.findBranch(*list, sequence)
		if b == nil {
			break
		}
		if at >= 0 {
			sequence = slices.Delete(sequence, at, at+1)
		}
		if len(b.Next) == 0 || len(sequence) == 0 {
			return
		}
		list = &b.Next
	}
	for s := range sequence {
		b := &Branch{Event: sequence[s].event}
		b.Event.After, b.Event.Prevents = nil, nil
		*list = append(*list, b)
		list = &b.Next
	}
}

// findBranch returns the first branch that is a weak initial of a sequence, and where it is there.
func (x *Explorer) findBranch(list []*Branch, sequence []step) (*Branch, int) {
	for _, b := range list {
		if at, initial := x.findInitial(&b.Event, sequence); initial {
			return b, at
		}
	}
	return nil, -1
}

// findInitial reports whether the process of an event is a weak initial of a sequence: it can execute the
// event first, and an equivalent of the sequence can follow. At is where the process is in the sequence,
// or -1 if it has no event there and its event is independent of all.
func (x *Explorer) findInitial(e *Event, sequence []step) (at int, initial bool) {
	for at := range sequence {
		if sequence[at].event.Process != e.Process {
			continue
		}
		for before := range at {
			if x.isOrdered(&sequence[before], &sequence[at]) {
				return at, false
			}
		}
		return at, true
	}
	for i := range sequence {
		if e.depends(&sequence[i].event) {
			return -1, false
		}
	}
	return -1, true
}

// isOrdered reports whether a step of a sequence happens before a later one.
func (x *Explorer) isOrdered(a, b *step) bool {
	if a.number < 0 || b.number < 0 {
		return a.event.Process == b.event.Process || a.event.depends(&b.event)
	}
	return x.happensBefore(a.number, b.number)
}

// advance goes to the next branch that is to be explored.
func (x *Explorer) advance() (more bool) {
	for i := len(x.nodes) - 1; i >= 0; i-- {
		n := &x.nodes[i]
		n.event.After, n.event.Prevents = nil, nil
		n.sleep = append(n.sleep, n.event)
		if len(n.next) == 0 {
			continue
		}
		first := n.next[0]
		x.nodes = x.nodes[:i+1]
		*n = node{process: first.Event.Process, expected: first.Event, below: first.Next, next: n.next[1:], sleep: n.sleep}
		x.fixed = i
		return true
	}
	x.nodes = nil
	return false
}
