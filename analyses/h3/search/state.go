package search

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// state is a trace in the middle of its execution.
type state struct {
	nextEvents []int32 // by thread, the next event
	memory     []byte  // the memory that the trace accesses, packed
	// values are the values that were read, by event. All states share them: a value is used only
	// after its read, and a read that is taken back stores a new value when it is executed again.
	values  []symbolic.Value
	buffers [][]write // by thread
	locks   []lock    // by object
	counts  []int32   // by object: units of a semaphore, arrivals at a barrier
	waiting [][]waiter
	steps   *stepList
}

// stepList is a schedule from its end.
type stepList struct {
	step     schedule.Step
	previous *stepList
	count    int
}

type write struct {
	id    model.ID
	at    int32 // in memory
	size  int32 // 0: a store fence
	value symbolic.Value
}

type lock struct {
	owner, depth int32
	readers      uint64 // a bit for each thread
}

type waiter struct {
	thread int32
	sleep  model.ID
	woken  bool
}

func (s *state) clone() *state {
	c := *s
	c.nextEvents, c.memory = slices.Clone(s.nextEvents), slices.Clone(s.memory)
	c.buffers, c.locks, c.counts = slices.Clone(s.buffers), slices.Clone(s.locks), slices.Clone(s.counts)
	c.waiting = slices.Clone(s.waiting)
	for i := range c.waiting {
		c.waiting[i] = slices.Clone(c.waiting[i])
	}
	for i := range c.buffers {
		c.buffers[i] = slices.Clone(c.buffers[i])
	}
	return &c
}

func (s *state) appendStep(step schedule.Step) {
	n := 1
	if s.steps != nil {
		n = s.steps.count + 1
	}
	s.steps = &stepList{step, s.steps, n}
}

func (s *state) schedule() schedule.Schedule {
	if s.steps == nil {
		return nil
	}
	all := make(schedule.Schedule, s.steps.count)
	for x := s.steps; x != nil; x = x.previous {
		all[x.count-1] = x.step
	}
	return all
}

// stateKey is a digest of all that distinguishes states with different continuations: of the values that were read it has
// those that are needed later. States themselves have the whole memory, which would be too much to keep of each.
type stateKey [sha256.Size]byte

func (x *searcher) stateKey(s *state) stateKey {
	b := x.encoded[:0]
	for t, at := range s.nextEvents {
		b = binary.AppendUvarint(b, uint64(at))
		for _, l := range x.live[t] {
			if l.from < at && at <= l.to {
				b = binary.AppendUvarint(b, s.values[l.id].Lo)
				b = binary.AppendUvarint(b, s.values[l.id].Hi)
			}
		}
	}
	b = append(b, s.memory...)
	for _, buffer := range s.buffers {
		b = binary.AppendUvarint(b, uint64(len(buffer)))
		for _, w := range buffer {
			b = binary.AppendUvarint(b, uint64(w.id))
			b = binary.AppendUvarint(b, uint64(w.at)) // of an element as it was chosen
			b = binary.AppendUvarint(b, w.value.Lo)
			b = binary.AppendUvarint(b, w.value.Hi)
		}
	}
	for _, l := range s.locks {
		b = append(b, byte(l.owner), byte(l.depth))
		b = binary.AppendUvarint(b, l.readers)
	}
	for _, n := range s.counts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, all := range s.waiting {
		b = append(b, byte(len(all)))
		for _, w := range all {
			b = append(b, byte(w.thread))
			if w.woken {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		}
	}
	x.encoded = b
	return sha256.Sum256(b)
}
