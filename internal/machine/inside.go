package machine

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
)

// interrupted are the threads that are inside an instruction, between two of its accesses
// to memory, while others run. It is plain data.
//
// Only other cores act there. A thread whose core another thread gets, or that moves to
// another core, was interrupted between two instructions: an instruction that has stored nothing
// yet is executed anew, and one that has is completed. An instruction is also completed when the
// kernel acts for the thread, or when its memory is unmapped.
type interrupted []interruptedThread

type interruptedThread struct {
	thread arch.ThreadID
	core   arch.CoreID
	in     arch.Interrupted
}

func (l interrupted) indexOf(t arch.ThreadID) int {
	return slices.IndexFunc(l, func(x interruptedThread) bool { return x.thread == t })
}

// mustComplete reports whether a thread is inside an instruction that it can only complete: its
// registers are those after it.
func (l interrupted) mustComplete(t arch.ThreadID) bool {
	i := l.indexOf(t)
	return i >= 0 && l[i].in.HasStored()
}

// completeInstructions decides, before a thread runs on a core, about the instructions that
// threads are inside.
func (m *Machine) completeInstructions(core arch.CoreID, t *kernel.Task) {
	s := m.state
	if len(s.interrupted) == 0 {
		return
	}
	// A schedule has others act inside an instruction, however many cores there are.
	ordered := m.config.Enforce != nil
	acts := t.HasKernelWork()
	s.interrupted = slices.DeleteFunc(s.interrupted, func(x interruptedThread) bool {
		if s.kernel.Task(x.thread) == nil {
			return true
		}
		left := !ordered && (x.thread == t.ID()) != (x.core == core)
		return left && !x.in.HasStored()
	})
	for i := range s.interrupted {
		x := &s.interrupted[i]
		if acts || !ordered && (x.thread == t.ID()) != (x.core == core) {
			m.completeStores(x)
		}
	}
}

// completeAllStores completes the stores that threads have begun: memory is about to be unmapped
// or examined.
func (m *Machine) completeAllStores() {
	for i := range m.state.interrupted {
		m.completeStores(&m.state.interrupted[i])
	}
}

// endInstructions takes all threads out of their instructions: one that has stored nothing is
// executed anew.
func (m *Machine) endInstructions() {
	m.completeAllStores()
	m.state.interrupted = slices.DeleteFunc(m.state.interrupted, func(x interruptedThread) bool { return !x.in.HasStored() })
}

func (m *Machine) completeStores(x *interruptedThread) {
	t := m.state.kernel.Task(x.thread)
	if t == nil || !x.in.HasStored() {
		return
	}
	m.state.recording.recordAs(x.thread, x.core, func() { m.cpu.Commit(&x.in, t.Space()) })
}

// takeInterrupted removes and returns the instruction that a thread which is about to run is
// inside, nil if it is inside none.
func (m *Machine) takeInterrupted(t arch.ThreadID) *arch.Interrupted {
	s := m.state
	i := s.interrupted.indexOf(t)
	if i < 0 {
		return nil
	}
	in := s.interrupted[i].in
	s.interrupted = slices.Delete(s.interrupted, i, i+1)
	return &in
}

// position is the instruction that a loaded thread is at, and how many of its accesses are
// done.
func (m *Machine) position(t *kernel.Task) (pc arch.Addr, accesses uint8) {
	if i := m.state.interrupted.indexOf(t.ID()); i >= 0 {
		in := &m.state.interrupted[i].in
		return in.PC, in.Done()
	}
	return m.cpu.PC(), 0
}

// keepInterrupted notes the instruction that a quantum has left its thread inside.
func (m *Machine) keepInterrupted(core arch.CoreID, t arch.ThreadID, stop arch.Stop) {
	if stop.Inside == 0 {
		return
	}
	in, _ := m.cpu.Interrupted()
	m.state.interrupted = append(m.state.interrupted, interruptedThread{t, core, in})
}
