package points

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/rand"
)

// surw is the strategy SURW (algorithm 2 of the paper). Intended is the thread of the next selected operation: a
// thread before another selected one waits. Threads that do not exist yet count for the one that creates
// them, and the intended thread is drawn again when it has created one.
type surw struct {
	draw     rand.Stream
	left     map[arch.ThreadID]uint64 // for look-up only
	creators map[arch.ThreadID]arch.ThreadID
	newest   arch.ThreadID   // the highest id of a thread so far: ids ascend
	created  []arch.ThreadID // new threads
	intended arch.ThreadID
	yielded  arch.ThreadID
}

func (s *surw) Yield(t arch.ThreadID) { s.yielded = t }

func (s *surw) Choose(c *Choice) arch.ThreadID {
	s.noteThreads(c.Runnable)
	others := without(c.Runnable, s.yielded)
	s.yielded = arch.NoThread
	if !slices.Contains(others, s.intended) {
		s.intended = s.drawThread(others)
	}
	var free []arch.ThreadID
	for _, t := range others {
		if t == s.intended || !c.Next[t].Selected {
			free = append(free, t)
		}
	}
	t := free[s.draw.Below(uint64(len(free)))]
	if c.Next[t].Selected {
		s.intended = arch.NoThread
		if s.left[t] > 0 {
			s.left[t]--
		}
	}
	return t
}

// noteThreads notes the threads that exist. A new one of the intended thread's has the intended operation
// with the probability that its share of them has.
func (s *surw) noteThreads(runnable []arch.ThreadID) {
	for i := len(runnable) - 1; i >= 0 && runnable[i] > s.newest; i-- {
		s.created = append(s.created, runnable[i])
	}
	if len(s.created) == 0 {
		return
	}
	slices.Sort(s.created)
	s.newest = s.created[len(s.created)-1]
	for _, t := range s.created {
		if by, known := s.creators[t]; known && by == s.intended {
			s.intended = s.drawThread([]arch.ThreadID{by, t})
		}
	}
	s.created = s.created[:0]
}

// drawThread draws a thread in proportion to the operations that it and the threads that it creates have left.
func (s *surw) drawThread(among []arch.ThreadID) arch.ThreadID {
	weights, sum := make([]uint64, len(among)), uint64(0)
	for i, t := range among {
		weights[i] = s.left[t]
	}
	for t, n := range s.left {
		if t <= s.newest {
			continue
		}
		if i := slices.Index(among, s.ancestor(t)); i >= 0 {
			weights[i] += n
		}
	}
	for _, w := range weights {
		sum += w
	}
	if sum == 0 {
		return among[s.draw.Below(uint64(len(among)))]
	}
	n := s.draw.Below(sum)
	for i, w := range weights {
		if n < w {
			return among[i]
		}
		n -= w
	}
	panic("bug: a number that is not below the sum")
}

// ancestor returns the thread that exists and creates another one, or its creator.
func (s *surw) ancestor(t arch.ThreadID) arch.ThreadID {
	for range len(s.creators) {
		by, known := s.creators[t]
		if !known || by <= s.newest {
			return by
		}
		t = by
	}
	return arch.NoThread
}
