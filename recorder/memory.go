package recorder

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// MemoryConfig says which loads and stores are recorded; the zero value records
// all, and all that loads can see.
type MemoryConfig struct {
	// Threads, Data and Code are the only threads, addresses and instructions,
	// if not empty. With threads or instructions left out, only loads and stores
	// are recorded, and no other changes of memory.
	Threads    []arch.ThreadID
	Data, Code []memlog.Range
	// Repeated has the trace keep only what repeats the run, and branches counted: whoever reads the accesses repeats
	// it (package internal/machine/accesses).
	Repeated bool
}

// Memory is the Recording of loads and stores. It follows Branches, which
// counts branches, and precedes all that number events within a quantum: so
// it drains exactly the accesses between the last event and the next.
type Memory struct {
	Nothing
	writer  memoryWriter
	threads []arch.ThreadID
	counts  bool // whether to give the Recorder the count of branches
	// The begin of the piece that runs, and the engine's count of branches.
	from    event.Stamp
	counted uint64
}

// memoryWriter takes the engine's log: a memtrace.Writer or a memtrace.Forwarder.
type memoryWriter interface {
	BeginRun(cpu emu.CPU, start event.Stamp, counted uint64)
	Take(cpu emu.CPU, start event.Stamp, counted uint64)
	Flush()
	Close()
}

// NewMemory makes the recording of a run that has not begun. If the trace has a listener that is one of
// memtrace, it gets the engine's log. Counts says whether
// it counts the branches of threads, since Branches does not.
func NewMemory(w *trace.Writer, cpu emu.CPU, c MemoryConfig, counts bool) (Recording, error) {
	l, listens := w.Listener().(memtrace.Listener)
	if c.Repeated && !listens {
		return newBranchCount(cpu, counts)
	}
	filter := memlog.Filter{Data: c.Data, Code: c.Code, Partial: len(c.Threads) > 0}
	if err := cpu.LogMemory(filter); err != nil {
		return nil, err
	}
	m := &Memory{threads: c.Threads, counts: counts}
	if listens {
		m.writer = memtrace.NewForwarder(l)
	} else {
		m.writer = memtrace.NewWriter(w.Stream(trace.Memory, 0))
	}
	return m, nil
}

// Leave implements leaver: the log holds the kernel's accesses for the thread.
func (m *Memory) Leave(r *Recorder) {
	at := r.At()
	if at.Thread != arch.NoThread {
		m.writer.Take(r.CPU(), at, r.CPU().CountedBranches())
	}
}

// Begin implements Recording. The log holds the kernel's stores.
func (m *Memory) Begin(r *Recorder, _ *kernel.Task) {
	m.from, m.counted = r.At(), r.CPU().CountedBranches()
	m.writer.Take(r.CPU(), m.from, m.counted)
	if len(m.threads) > 0 {
		r.CPU().MuteMemory(!slices.Contains(m.threads, m.from.Thread))
	}
}

// Continue implements continuer.
func (m *Memory) Continue(r *Recorder) {
	from, at := m.from, r.At()
	from.Seq, from.Sync = at.Seq, at.Sync
	m.writer.BeginRun(r.CPU(), from, m.counted)
}

// Stopped implements Recording.
func (m *Memory) Stopped(r *Recorder, _ *kernel.Task, _ arch.Stop) {
	count := r.CPU().CountedBranches()
	if m.counts {
		r.AddBranches(count - m.counted)
	}
	at := r.At()
	m.from.Seq, m.from.Sync = at.Seq, at.Sync
	m.writer.Take(r.CPU(), m.from, m.counted)
	m.from, m.counted = at, count
}

// Return implements Recording: the system call's stores precede it.
func (m *Memory) Return(r *Recorder, _ *kernel.Task, e *event.Syscall) {
	m.takeKernelStores(r, e.Stamp)
}

// Exit implements Recording.
func (m *Memory) Exit(r *Recorder, e *event.Exit) { m.takeKernelStores(r, e.Stamp) }

func (m *Memory) takeKernelStores(r *Recorder, at event.Stamp) {
	at.Seq--
	m.writer.Take(r.CPU(), at, r.CPU().CountedBranches())
}

// Save hands the encoder's buffered output to the trace.
func (m *Memory) Save() { m.writer.Flush() }

// Mark implements marker.
func (m *Memory) Mark(r *Recorder) {
	m.writer.Take(r.CPU(), r.At(), r.CPU().CountedBranches())
	m.writer.Flush()
}

// Returned implements marker. The encoder's buffered output belongs to the
// abandoned timeline.
func (m *Memory) Returned(r *Recorder) {
	m.writer.Flush()
	r.CPU().ForgetMemory()
}

// Finish implements Recording.
func (m *Memory) Finish(r *Recorder) {
	m.Mark(r)
	m.writer.Close()
}

// branchCount is the Recording of a run whose accesses are not stored: stamps have the branches that they have with
// accesses.
type branchCount struct {
	Nothing
	counted uint64 // the engine's count where the last piece of the run ended
}

func newBranchCount(cpu emu.CPU, counts bool) (Recording, error) {
	if !counts {
		return Nothing{}, nil
	}
	return &branchCount{}, cpu.CountBranches()
}

// Begin implements Recording.
func (b *branchCount) Begin(r *Recorder, _ *kernel.Task) { b.counted = r.CPU().CountedBranches() }

// Stopped implements Recording.
func (b *branchCount) Stopped(r *Recorder, _ *kernel.Task, _ arch.Stop) {
	count := r.CPU().CountedBranches()
	r.AddBranches(count - b.counted)
	b.counted = count
}
