package explore

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// state is a state of a test: each thread's registers and store buffer, and
// the shared memory, each as a number.
type state struct {
	thread [litmus.MaxThreads]int32
	buffer [litmus.MaxThreads]int32
	memory int32
}

// step is one step from a state: the next instruction of a thread, or one of its
// loads, or the commit of an entry of its buffer.
type step struct {
	thread int8
	entry  int16 // -1: the instruction
}

const instruction = -1

// system is the program under a model that steps execute.
type system struct {
	*program
	model    memmodel.Model
	buffers  [][]memmodel.Entry // by number; 0 is the empty one
	bufferAt map[string]int32
	memories [][]byte
	memoryAt map[string]int32
	view     []byte
}

func newSystem(p *program, model memmodel.Model) *system {
	s := &system{program: p, model: model, bufferAt: map[string]int32{}, memoryAt: map[string]int32{}}
	s.internBuffer(nil)
	return s
}

func (s *system) initialState() state {
	var st state
	for i := range s.threads {
		st.thread[i] = s.firstState(i)
	}
	st.memory = s.internMemory(s.test.Memory())
	return st
}

func (s *system) internMemory(m []byte) int32 {
	if id, ok := s.memoryAt[string(m)]; ok {
		return id
	}
	id := int32(len(s.memories))
	own := append([]byte(nil), m...)
	s.memories = append(s.memories, own)
	s.memoryAt[string(own)] = id
	return id
}

func (s *system) internBuffer(b []memmodel.Entry) int32 {
	b = memmodel.DropFences(b)
	key := make([]byte, 0, 32*len(b))
	for i := range b {
		e := &b[i]
		flags := byte(0)
		if e.Weak {
			flags |= 1
		}
		if e.Fence {
			flags |= 2
		}
		key = append(key, flags, byte(e.Addr), byte(e.Addr>>8), e.Size)
		key = append(key, e.Data[:e.Size]...)
	}
	if id, ok := s.bufferAt[string(key)]; ok {
		return id
	}
	id := int32(len(s.buffers))
	s.buffers = append(s.buffers, append([]memmodel.Entry(nil), b...))
	s.bufferAt[string(key)] = id
	return id
}

// viewOf is the memory as thread i sees it. The result is valid until the next
// call.
func (s *system) viewOf(st *state, i int) []byte {
	s.view = append(s.view[:0], s.memories[st.memory]...)
	memmodel.Overlay(s.view, 0, s.buffers[st.buffer[i]])
	return s.view
}

// isFinal reports whether the test is over.
func (s *system) isFinal(st *state) bool {
	for i := range s.threads {
		if !s.infos[st.thread[i]].done || st.buffer[i] != 0 {
			return false
		}
	}
	return true
}

// appendEnabled appends the steps that can be taken: by memmodel's rule of buffers,
// and that fences and locked instructions wait until theirs is empty.
func (s *system) appendEnabled(st *state, to []step) []step {
	for i := range s.threads {
		buffer := s.buffers[st.buffer[i]]
		if s.isRunnable(st, i) {
			to = append(to, step{int8(i), instruction})
		}
		for k := range buffer {
			if s.model.MayCommit(buffer, k) {
				to = append(to, step{int8(i), int16(k)})
			}
		}
	}
	return to
}

func (s *system) isRunnable(st *state, i int) bool {
	n := &s.infos[st.thread[i]]
	if n.done {
		return false
	}
	waits := s.model == memmodel.SC || n.order&(emu.OrderLocked|emu.OrderFull) != 0
	return !waits || st.buffer[i] == 0
}

// takeStep is the state after a step.
func (s *system) takeStep(st state, by step) (state, error) {
	i := int(by.thread)
	if by.entry != instruction {
		old := s.buffers[st.buffer[i]]
		buffer := append([]memmodel.Entry(nil), old[:by.entry]...)
		st.memory = s.committed(st.memory, old[by.entry:by.entry+1])
		st.buffer[i] = s.internBuffer(append(buffer, old[by.entry+1:]...))
		return st, nil
	}
	id, view := st.thread[i], s.viewOf(&st, i)
	if err := s.learnLoads(id, view); err != nil {
		return st, err
	}
	if !s.infos[id].isLastStep() {
		st.thread[i] = s.loadNext(id, view)
		return st, nil
	}
	r, err := s.executeInstr(id, view)
	if err != nil {
		return st, err
	}
	n := &s.infos[id]
	st.thread[i] = r.next
	switch {
	case n.order&emu.OrderStores != 0:
		if st.buffer[i] != 0 && (s.model == memmodel.PSO || s.threads[i].weak) {
			st.buffer[i] = s.appendEntries(st.buffer[i], memmodel.Entry{Fence: true})
		}
	case s.commitsAtOnce(n, &r):
		st.memory = s.committed(st.memory, r.stores)
	default:
		st.buffer[i] = s.appendEntries(st.buffer[i], r.stores...)
	}
	return st, nil
}

// commitsAtOnce reports whether an instruction's stores are in the same step as its
// execution. Under SC that is one access, or all of an atomic instruction; where there are
// several, the stores go through the buffer, and the thread waits until it is empty.
func (s *system) commitsAtOnce(n *info, r *result) bool {
	return n.isAtomic() || s.model == memmodel.SC && len(n.loads) == 0 && len(r.stores) <= 1
}

func (s *system) committed(memory int32, stores []memmodel.Entry) int32 {
	if len(stores) == 0 {
		return memory
	}
	m := append([]byte(nil), s.memories[memory]...)
	memmodel.Overlay(m, 0, stores)
	return s.internMemory(m)
}

func (s *system) appendEntries(buffer int32, entries ...memmodel.Entry) int32 {
	if len(entries) == 0 {
		return buffer
	}
	old := s.buffers[buffer]
	if last := len(old) - 1; last >= 0 && old[last].Fence && entries[0].Fence {
		return buffer
	}
	b := append([]memmodel.Entry(nil), old...)
	return s.internBuffer(append(b, entries...))
}

// observedState is the part of a final state that the test observes.
func (s *system) observedState(o *litmus.Observer, st *state) litmus.State {
	reg := func(thread int, r litmus.Reg) uint64 { return s.infos[st.thread[thread]].regs.GPR[r] }
	return o.State(reg, s.memories[st.memory])
}
