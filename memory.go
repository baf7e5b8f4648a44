package heddle

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/buffers"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/replay"
	"github.com/heddle-dmt/heddle/sched"
)

var errBuffers = errs.Define("store-buffers-cannot-begin",
	"the machine cannot be set up for the memory model",
	"The engine does not watch stores; the rest of the sentence is its own.",
	"Report the sentence, and run under --model sc until it is mended.")

// bufferStores sets up the memory model, unless it is SC, which needs nothing.
func (m *Machine) bufferStores() (err error) {
	c := &m.config
	model := c.Memory.MemoryModel()
	if model == memmodel.SC {
		return nil
	}
	if c.Memory.Engine == buffers.Pages {
		return m.separateViews()
	}
	m.state.buffers = buffers.New(c.Cores, c.Seed, c.Memory)
	if m.buffers, err = m.cpu.BufferStores(c.Memory.WithDefaults().Capacity); err != nil {
		return errBuffers.Wrap(err)
	}
	return nil
}

// sharedMemory is the memory that all cores see, by thread.
type sharedMemory struct{ kernel *kernel.Kernel }

// Commit implements buffers.Memory. A page that is not there any more, or may
// not be written, takes the store with it.
func (s sharedMemory) Commit(t event.ThreadID, at event.Addr, data []byte) {
	if task := s.kernel.Task(t); task != nil {
		_, _ = task.Space().CommitAt(data, at)
	}
}

// commit takes the decisions on stores that are due before a slice, and lets go
// what waits for another thread's or core's sake. It returns false when a
// recorded commit cannot be made, which ends the run.
func (m *Machine) commit(slice sched.Slice) bool {
	s := m.state
	if s.pages != nil {
		return m.commitPages(slice)
	}
	if s.buffers == nil {
		m.config.rehearsal.begin(slice, nil, nil)
		return true
	}
	memory := sharedMemory{s.kernel}
	if n, recorded := s.cluster.Replaying(); recorded != nil {
		if !s.buffers.Follow(recorded.Commits, memory) {
			m.diverge(replay.Place(n, recorded) + ": a store that is committed in the recording cannot be committed now")
			return false
		}
		m.decided = append(m.decided[:0], recorded.Commits...)
	} else if hold := m.config.rehearsal.hold(); hold != nil {
		m.decided = s.buffers.Release(slice.Core, hold, memory, m.decided[:0])
	} else {
		m.decided = s.buffers.Decide(s.cluster.Now(slice.Core), memory, m.decided[:0])
	}
	s.recording.commits(m.decided)
	m.delays(s.cluster.Now(slice.Core), true)
	s.buffers.Turn(slice.Core, slice.Thread, memory)
	m.config.rehearsal.begin(slice, s.buffers, m.decided)
	if t := s.kernel.Task(slice.Thread); t.KernelActs() {
		s.buffers.Drain(slice.Core, memory)
	}
	m.delays(s.cluster.Now(slice.Core), false)
	s.recording.delays.others(slice.Core)
	return true
}

// execute runs the thread, which is loaded, to the end of a slice.
func (m *Machine) execute(slice sched.Slice, t *kernel.Task) emu.Stop {
	var stop emu.Stop
	switch s := m.state; {
	case s.pages != nil:
		stop = m.executePages(slice, t)
	case s.buffers != nil:
		stop = m.executeBuffered(slice, t)
	default:
		stop = m.executeShared(slice, t)
	}
	m.config.rehearsal.ended(m, t, stop)
	return stop
}

// executeBuffered is execute with the core's buffer over memory.
func (m *Machine) executeBuffered(slice sched.Slice, t *kernel.Task) emu.Stop {
	s := m.state
	m.buffers.Lay(s.buffers.Stores(slice.Core))
	stop := m.executeShared(slice, t)
	s.buffers.Keep(slice.Core, slice.Thread, m.buffers.Park)
	defer m.delays(s.cluster.Now(slice.Core)+stop.Cycles, false)
	switch stop.Reason {
	case emu.StopBudget, emu.StopPause, emu.StopSync:
		return stop
	}
	// The kernel is about to act for the thread.
	memory := sharedMemory{s.kernel}
	s.buffers.Drain(slice.Core, memory)
	if stop.Reason == emu.StopSyscall && m.changesMappings(t) {
		s.buffers.DrainAll(memory)
	}
	return stop
}

// changesMemory reports whether the kernel is about to do something for the loaded thread after
// which memory may be gone that another thread stores to.
func (m *Machine) changesMemory(t *kernel.Task, stop emu.Stop) bool {
	switch stop.Reason {
	case emu.StopBudget, emu.StopPause, emu.StopSync, emu.StopBreakpoint, emu.StopLog:
		return false
	case emu.StopSyscall:
		return len(m.state.interrupted) > 0 && m.changesMappings(t)
	}
	return true
}

// mappingCalls are the system calls after which a page may be gone or another
// one at its address, or another process may see it. Processors tell each other
// of that by interrupts, which drain all buffers.
var mappingCalls = [...]uint64{
	unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_MUNMAP, unix.SYS_BRK, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_SHMAT,
	unix.SYS_SHMDT, unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_PKEY_MPROTECT,
	unix.SYS_REMAP_FILE_PAGES, unix.SYS_TRUNCATE, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_MEMBARRIER,
	unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PTRACE,
}

// changesMappings tells whether the system call that the loaded thread is about
// to make is one of those, or reads or writes memory by a file.
func (m *Machine) changesMappings(t *kernel.Task) bool {
	var r emu.Regs
	m.cpu.Regs(&r)
	if t.ReachesMemory(&r) {
		return true
	}
	for _, call := range mappingCalls {
		if kernel.CallNumber(r.GPR[emu.RAX]) == call {
			return true
		}
	}
	return false
}

// drain lets all stores go, at the end of the run.
func (m *Machine) drain() {
	m.completeAllStores()
	if s := m.state; s.buffers != nil {
		s.buffers.DrainAll(sharedMemory{s.kernel})
		m.delays(s.cluster.Makespan(), false)
	} else if s.pages != nil {
		s.pages.DrainAll(m.views)
	}
}
