package points

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
)

// ReadsFrom is a pair of instructions of which the second has read a value that the first has written; Write is
// 0 for a value from before the start of the schedules. It is an abstract event of the paper: an instruction
// stands for all its executions.
type ReadsFrom struct{ Write, Read arch.Addr }

// Constraint demands that a read reads from a write, or, if it is forbidden, that it does not. It is
// satisfied once.
type Constraint struct {
	ReadsFrom
	Forbidden bool
	// Writes are the instructions that are known to write what the read reads, in ascending order.
	Writes []arch.Addr
}

// Observation is the reads and writes of a run.
type Observation struct {
	// Pairs are the reads with their writes.
	Pairs map[ReadsFrom]bool
	// Written and Read have, for each address, the instructions that accessed it.
	Written, Read map[arch.Addr]map[arch.Addr]bool
}

// rff is the strategy RFF. A thread is deferred while its operation would violate a constraint: a read whose
// value is not of the right write, or a write that replaces the value that a read is to get. A thread whose
// read satisfies one is preferred. Among threads of one class, the one with the highest priority of
// POS runs.
type rff struct {
	pos
	open     []Constraint
	last     map[arch.Addr]arch.Addr // the instruction that has written an address last; for look-up only
	observed Observation
}

func newRFF(draw rand.Stream, constraints []Constraint) *rff {
	return &rff{
		pos:  pos{draw: draw, priorities: map[arch.ThreadID]uint64{}, yielded: arch.NoThread},
		open: slices.Clone(constraints), last: map[arch.Addr]arch.Addr{},
		observed: Observation{map[ReadsFrom]bool{}, map[arch.Addr]map[arch.Addr]bool{}, map[arch.Addr]map[arch.Addr]bool{}},
	}
}

// Observed returns the reads and writes of a run of RFF; nil for other strategies.
func (p *Policy) Observed() *Observation {
	if p.observer == nil {
		return nil
	}
	return &p.observer.observed
}

func (s *rff) Choose(c *Choice) arch.ThreadID {
	others := without(c.Runnable, s.yielded)
	t := c.beforeNone(others)
	if t == arch.NoThread {
		t = s.chooseAmong(c, others)
	}
	s.yielded = arch.NoThread
	if o, before := c.Next[t]; before {
		s.execute(o)
	}
	return t
}

func (s *rff) chooseAmong(c *Choice, among []arch.ThreadID) arch.ThreadID {
	for _, t := range c.Runnable {
		if _, known := s.priorities[t]; !known {
			s.priorities[t] = s.drawPriority()
		}
	}
	chosen := slices.MaxFunc(among, func(a, b arch.ThreadID) int {
		return cmp.Or(cmp.Compare(s.classOf(c.Next[a]), s.classOf(c.Next[b])), cmp.Compare(s.priorities[a], s.priorities[b]))
	})
	for _, t := range c.Runnable {
		if t == chosen || c.Next[chosen].conflicts(c.Next[t]) || s.priorities[t] == lowestOfPOS {
			s.priorities[t] = s.drawPriority()
		}
	}
	return chosen
}

// Classes of operations.
const (
	deferred = iota
	neutral
	preferred
)

// classOf compares an operation with the constraints that are open.
func (s *rff) classOf(o Operation) int {
	class := neutral
	if o.Addr == 0 {
		return class
	}
	last := s.last[o.Addr]
	for i := range s.open {
		x := &s.open[i]
		if o.Reads && o.PC == x.Read {
			if (last == x.Write) == x.Forbidden {
				return deferred
			}
			class = preferred
			continue
		}
		if o.Writes && !x.Forbidden && last == x.Write && o.PC != x.Write && slices.Contains(x.Writes, o.PC) {
			return deferred
		}
	}
	return class
}

// execute notes an operation that is executed now.
func (s *rff) execute(o Operation) {
	if o.Addr == 0 {
		return
	}
	if o.Reads {
		pair := ReadsFrom{s.last[o.Addr], o.PC}
		s.observed.Pairs[pair] = true
		note(s.observed.Read, o.Addr, o.PC)
		s.open = slices.DeleteFunc(s.open, func(x Constraint) bool {
			return x.Read == o.PC && (x.Write == pair.Write) != x.Forbidden
		})
	}
	if o.Writes {
		s.last[o.Addr] = o.PC
		note(s.observed.Written, o.Addr, o.PC)
	}
}

func note(in map[arch.Addr]map[arch.Addr]bool, at, pc arch.Addr) {
	if in[at] == nil {
		in[at] = map[arch.Addr]bool{}
	}
	in[at][pc] = true
}
