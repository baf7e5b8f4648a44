package dpor

import (
	"fmt"
	"slices"
)

// A Guess is an execution that an Explorer is likely to ask for later. It shares nothing with the Explorer, so that it
// can be carried out at the same time as others, and its events are then offered to the Explorer, which
// tells whether they are those of the execution that it asks for.
type Guess struct {
	processes []Process // that execute the first events
	begin     int       // the number of events before the branch
	asleep    []Event   // before the branch
	sleep     []Event   // in the state that the execution is in
	depth     int
}

// Key identifies an execution among those that an Explorer asks for: the processes up to the branch with which it
// begins.
type Key string

func keyOf(processes []Process) Key {
	var b []byte
	for _, p := range processes {
		b = fmt.Appendf(b, "%x ", uint64(p))
	}
	return Key(b)
}

// Key returns the key of the next execution.
func (x *Explorer) Key() Key { return keyOf(x.processesTo(len(x.nodes))) }

// processesTo lists the processes of the first events of the next execution.
func (x *Explorer) processesTo(n int) []Process {
	list := make([]Process, n, n+1)
	for i := range list {
		list[i] = x.nodes[i].process
	}
	return list
}

// Guesses returns executions that are likely to come after the next one, at most a number of them, those that are expected
// first at first, with their keys.
func (x *Explorer) Guesses(most int) (list []*Guess, keys []Key) {
	for i := len(x.nodes) - 1; i >= 0; i-- {
		n := &x.nodes[i]
		if len(n.next) == 0 {
			continue
		}
		asleep := slices.Clone(n.sleep)
		if n.known {
			asleep = append(asleep, n.event)
		} else {
			asleep = append(asleep, n.expected)
		}
		before := x.processesTo(i)
		for _, b := range n.next {
			if len(list) == most {
				return list, keys
			}
			processes := append(slices.Clone(before), b.Event.Process)
			g := &Guess{processes: processes, begin: i, asleep: slices.Clone(asleep)}
			keys = append(keys, keyOf(processes))
			for next := b.Next; len(next) > 0; next = next[0].Next {
				g.processes = append(g.processes, next[0].Event.Process)
			}
			list = append(list, g)
			asleep = append(asleep, b.Event)
		}
	}
	return list, keys
}

// Branch is Explorer.Branch.
func (g *Guess) Branch() []Process { return g.processes[:g.begin] }

// Begin begins the execution after a number of the events of Branch; 0: from the start of the program.
func (g *Guess) Begin(depth int) { g.depth, g.sleep = depth, nil }

// IsDecided reports whether the next choice is that of the guess.
func (g *Guess) IsDecided() bool { return g.depth < len(g.processes) }

// Choose is Explorer.Choose.
func (g *Guess) Choose(enabled, reluctant []Process) (p Process, ok bool, err error) {
	if g.depth == g.begin {
		g.sleep = slices.Clone(g.asleep)
	}
	if g.depth < len(g.processes) {
		p = g.processes[g.depth]
		if !slices.Contains(enabled, p) && !slices.Contains(reluctant, p) {
			return 0, false, fmt.Errorf("%w: process %#x cannot execute event %d", ErrDiffers, uint64(p), g.depth)
		}
		return p, true, nil
	}
	at := slices.IndexFunc(enabled, func(p Process) bool { return indexOf(g.sleep, p) < 0 })
	if at < 0 {
		return 0, false, nil
	}
	return enabled[at], true, nil
}

// Add adds the event that the chosen process has executed.
func (g *Guess) Add(e Event) error {
	g.depth++
	if g.depth > g.begin {
		g.sleep = slices.DeleteFunc(g.sleep, func(s Event) bool { return s.Process == e.Process || s.depends(&e) })
	}
	return nil
}
