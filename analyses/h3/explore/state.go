package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
)

// store is a write in a buffer; of a store fence, size 0.
type store struct {
	addr, size int
	value      uint64
	event      int // number of the thread's event
}

// thread is the state of one thread.
type thread struct {
	pc, events, reads int
	regs              [registers]uint64
	buffer            []store
	asleep            bool // waits on the condition
	rounds            int  // at the barrier
}

// state is a program in the middle of its execution.
type state struct {
	program *Program
	model   model.MemoryModel
	memory  [places]byte
	threads []thread
	holder  int // of the mutex, -1: free
	depth   int
	readers []int // by thread
	units   int
	arrived int
}

func newState(p *Program, m model.MemoryModel) *state {
	return &state{
		program: p, model: m, threads: make([]thread, len(p.Threads)), holder: -1, readers: make([]int, len(p.Threads)),
		units: p.Units[semaphore],
	}
}

func (s *state) clone() *state {
	c := *s
	c.threads = slices.Clone(s.threads)
	c.readers = slices.Clone(s.readers)
	return &c
}

// stateKey distinguishes states.
func (s *state) stateKey() string {
	var b strings.Builder
	fmt.Fprint(&b, s.memory, s.holder, s.depth, s.readers, s.units, s.arrived)
	for i := range s.threads {
		fmt.Fprint(&b, s.threads[i])
	}
	return b.String()
}

// nextOp is a thread's next instruction, nil at its end.
func (s *state) nextOp(t int) *Op {
	code := s.program.Threads[t]
	if pc := s.threads[t].pc; pc < len(code) {
		return &code[pc]
	}
	return nil
}

// takeBranch lets a thread go through a branch.
func (s *state) takeBranch(t int, o *Op) (taken bool) {
	th := &s.threads[t]
	th.pc++
	taken = th.regs[o.Reg] == o.Value
	if taken {
		th.pc += o.Skip
	}
	return taken
}

// isDrained reports whether a buffer has no write.
func (t *thread) isDrained() bool {
	return hasOnlyFences(t.buffer)
}

// isReady reports whether a thread's next event can be executed.
func (s *state) isReady(t int) bool {
	th, o := &s.threads[t], s.nextOp(t)
	if o.Kind != model.Read && o.Kind != model.Write && o.Kind != model.StoreFence && !th.isDrained() {
		return false
	}
	switch o.Kind {
	case model.Lock:
		others := 0
		for i, n := range s.readers {
			if i != t {
				others += n
			}
		}
		return (s.holder < 0 || s.holder == t) && (o.Plus || others == 0)
	case model.Take:
		return s.units > 0
	case model.Wake:
		return !th.asleep
	case model.Leave:
		return s.arrived >= th.rounds*len(s.program.Threads)
	}
	return true
}

// executeStep executes a thread's next event and returns the value that a read has read. Woken is
// the thread that a signal wakes, -1: none.
func (s *state) executeStep(t, woken int) uint64 {
	th, o := &s.threads[t], s.nextOp(t)
	th.pc++
	th.events++
	switch o.Kind {
	case model.Read, model.Write, model.Update:
		return s.executeAccess(t, o)
	case model.StoreFence:
		if s.model != model.SC {
			th.buffer = append(slices.Clone(th.buffer), store{event: th.events - 1})
		}
	case model.Lock:
		if o.Plus && s.holder < 0 {
			s.readers[t]++
		} else {
			s.holder = t
			s.depth++
		}
	case model.Unlock:
		if s.holder == t {
			if s.depth--; s.depth == 0 {
				s.holder = -1
			}
		} else {
			s.readers[t]--
		}
	case model.Sleep:
		th.asleep = true
	case model.Signal:
		if woken >= 0 {
			s.threads[woken].asleep = false
		}
	case model.Broadcast:
		for i := range s.threads {
			s.threads[i].asleep = false
		}
	case model.Post:
		s.units++
	case model.Take:
		s.units--
	case model.Arrive:
		s.arrived++
		th.rounds++
	}
	return 0
}

func (s *state) executeAccess(t int, o *Op) uint64 {
	th := &s.threads[t]
	mask := uint64(1)<<(8*o.Size) - 1
	switch o.Kind {
	case model.Read:
		th.reads++
		th.regs[o.Reg] = s.loadValue(t, o)
		return th.regs[o.Reg]
	case model.Update:
		th.reads++
		old := s.loadValue(t, o)
		s.storeValue(store{addr: o.Addr, size: o.Size, value: (old + o.Value) & mask})
		th.regs[o.Reg] = old
		return old
	}
	w := store{addr: o.Addr, size: o.Size, value: o.Value, event: th.events - 1}
	if o.Plus {
		w.value = (w.value + th.regs[o.Reg]) & mask
	}
	if s.model == model.SC {
		s.storeValue(w)
	} else {
		th.buffer = append(slices.Clone(th.buffer), w)
	}
	return 0
}

func (s *state) loadValue(t int, o *Op) uint64 {
	view := s.memory
	for _, w := range s.threads[t].buffer {
		for i := range w.size {
			view[w.addr+i] = byte(w.value >> (8 * i))
		}
	}
	v := uint64(0)
	for i := range o.Size {
		v |= uint64(view[o.Addr+i]) << (8 * i)
	}
	return v
}

func (s *state) storeValue(w store) {
	for i := range w.size {
		s.memory[w.addr+i] = byte(w.value >> (8 * i))
	}
}

// committable lists the writes of a buffer that can reach memory next.
func (s *state) committable(t int) []int {
	var found []int
	buffer := s.threads[t].buffer
	for i, w := range buffer {
		if w.size == 0 {
			if !hasOnlyFences(buffer[:i]) {
				return found
			}
			continue
		}
		free := true
		for _, o := range buffer[:i] {
			overlap := o.addr < w.addr+w.size && w.addr < o.addr+o.size
			if o.size > 0 && (s.model == model.TSO || overlap) {
				free = false
			}
		}
		if free {
			found = append(found, i)
		}
	}
	return found
}

func hasOnlyFences(b []store) bool {
	return !slices.ContainsFunc(b, func(s store) bool { return s.size > 0 })
}

// commitStore has a write reach memory.
func (s *state) commitStore(t, i int) {
	th := &s.threads[t]
	s.storeValue(th.buffer[i])
	th.buffer = slices.Delete(slices.Clone(th.buffer), i, i+1)
	for len(th.buffer) > 0 && th.buffer[0].size == 0 {
		th.buffer = th.buffer[1:]
	}
}
