package recorder

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Branches is the Recording of each core's branches as a stream of Intel PT
// packets, and of the code that ran. It completes the stream's part of each
// Switch, so it precedes the recordings that write switches.
//
// Tracing is on while a thread is in user mode, and stays on from one quantum to
// the next of the same thread on the same core. It is turned off after a system call
// or software interrupt, and before the instruction at which a fault or another
// exception, a signal or another thread's turn comes.
type Branches struct {
	Nothing
	cores []coreTrace
	on    map[arch.ThreadID]arch.CoreID // the cores that trace a thread
	code  *trace.Stream
	known codeMemory
	// spaces numbers the address spaces as they come, from 1: a process has a
	// new one after exec.
	spaces map[int32]uint64
	last   uint64
	base   uint64 // the core's count at the begin of the quantum
}

// coreTrace is one core's stream.
type coreTrace struct {
	encoder *pt.Encoder
	out     *pieces
	thread  arch.ThreadID // that is traced
	pc      arch.Addr     // where it is
	count   uint64        // instructions, a repeated string instruction once
}

// pieces is the writer of an encoder: it stamps the encoder's output for the index.
type pieces struct {
	to       *trace.Stream
	from, at event.Stamp // the range of the run that the pending output covers
}

// noteProgress notes how far the stream covers the run.
func (p *pieces) noteProgress(at event.Stamp) {
	at.Thread = arch.NoThread // the sideband has the threads
	if p.from.Seq == 0 {
		p.from = at
	}
	p.at = at
}

// SharedInSnapshot marks that copies of an encoder share the trace.
func (*pieces) SharedInSnapshot() {}

// Write implements io.Writer. The trace keeps its own failure.
func (p *pieces) Write(b []byte) (int, error) {
	p.to.Append(b, p.from, p.at)
	p.from = p.at
	return len(b), nil
}

// NewBranches makes the recording of a run that has not begun.
func NewBranches(w *trace.Writer, cpu emu.CPU, cores int, c pt.Config) (*Branches, error) {
	if err := cpu.LogBranches(c.MTCPeriod > 0 || c.CYC); err != nil {
		return nil, err
	}
	c.LoggedReturns = c.RetCompression && cpu.CompressReturns()
	b := &Branches{
		cores: make([]coreTrace, cores), on: map[arch.ThreadID]arch.CoreID{}, code: w.Stream(trace.Code, 0),
		known: codeMemory{}, spaces: map[int32]uint64{},
	}
	for i := range b.cores {
		out := &pieces{to: w.ByteStream(trace.PT, uint32(i))}
		b.cores[i] = coreTrace{encoder: pt.NewEncoder(out, c), out: out, thread: arch.NoThread}
	}
	return b, nil
}

// stopTracing turns the tracing of a core off before its next instruction.
func (b *Branches) stopTracing(c *coreTrace) {
	if c.encoder.On() {
		c.encoder.Async(uint64(c.pc))
		delete(b.on, c.thread)
	}
	c.thread = arch.NoThread
}

// Switch implements Recording.
func (b *Branches) Switch(_ *Recorder, e *event.Switch) {
	c := &b.cores[e.Core]
	b.stopTracing(c)
	e.Offset, e.CoreInstructions = c.encoder.Offset(), c.count
}

// Begin implements Recording.
func (b *Branches) Begin(r *Recorder, t *kernel.Task) {
	at := r.At()
	c := &b.cores[at.Core]
	c.out.noteProgress(at)
	b.base = c.count - (r.within.Instructions - r.within.Repeated) // the stretch may begin within a quantum
	if c.encoder.On() && c.thread == at.Thread {
		c.encoder.Clock(at.Time)
		return
	}
	if other, ok := b.on[at.Thread]; ok {
		b.stopTracing(&b.cores[other])
	}
	b.stopTracing(c)
	var regs arch.Regs
	r.CPU().Regs(&regs)
	c.thread, c.pc = at.Thread, arch.Addr(regs.RIP)
	b.on[at.Thread] = at.Core
	c.encoder.PIP(b.addressSpace(t))
	c.encoder.Enable(regs.RIP, at.Time)
}

// addressSpace is the number of a thread's address space.
func (b *Branches) addressSpace(t *kernel.Task) uint64 {
	pid := t.Process().PID()
	if b.spaces[pid] == 0 {
		b.last++
		b.spaces[pid] = b.last
	}
	return b.spaces[pid]
}

// Stopped implements Recording.
func (b *Branches) Stopped(r *Recorder, t *kernel.Task, s arch.Stop) {
	at := r.At()
	c := &b.cores[at.Core]
	c.out.noteProgress(at)
	b.recordCode(r, t, at)
	r.AddBranches(c.encoder.Log(r.CPU().Branches()))
	c.count = b.base + s.Instructions - s.Repeated
	if s.Reason == arch.StopSyscall || s.Reason == arch.StopInterrupt {
		c.encoder.Syscall()
		delete(b.on, c.thread)
		return
	}
	var regs arch.Regs
	r.CPU().Regs(&regs)
	c.pc = arch.Addr(regs.RIP)
	c.encoder.Position(regs.RIP)
}

// recordCode records the code that the trace does not have yet.
func (b *Branches) recordCode(r *Recorder, t *kernel.Task, at event.Stamp) {
	space := b.addressSpace(t)
	for code := range r.CPU().Code {
		if !b.known.storeBlock(space, code.PC, code.Bytes) {
			continue
		}
		e := event.Code{Stamp: at, Space: space, Addr: code.PC, Bytes: code.Bytes, Counts: make([]uint64, len(b.cores))}
		for i := range b.cores {
			e.Counts[i] = b.cores[i].count
		}
		e.Counts[at.Core] = b.base + code.At
		trace.Put(b.code, &e)
	}
}

// Start implements Recording: the child of a vfork runs in its parent's space.
func (b *Branches) Start(r *Recorder, t *kernel.Task, e *event.Start) {
	parent := r.Kernel().Task(e.Parent)
	if parent == nil || parent.Process().PID() == e.Process || parent.Process().Space() != t.Process().Space() {
		return
	}
	b.spaces[e.Process] = b.addressSpace(parent)
}

// Signal implements Recording: the thread continues at the handler, or ends.
func (b *Branches) Signal(_ *Recorder, e *event.Signal) { b.stopThread(e.Thread) }

// Exit implements Recording.
func (b *Branches) Exit(_ *Recorder, e *event.Exit) { b.stopThread(e.Thread) }

func (b *Branches) stopThread(t arch.ThreadID) {
	if core, ok := b.on[t]; ok {
		b.stopTracing(&b.cores[core])
	}
}

// Return implements Recording: exec gives a process another address space.
func (b *Branches) Return(_ *Recorder, t *kernel.Task, e *event.Syscall) {
	if linux.Has(e.Number, linux.Executes) && e.Result == 0 {
		delete(b.spaces, t.Process().PID())
	}
}

// Save hands the encoders' buffered output to the trace.
func (b *Branches) Save() {
	for i := range b.cores {
		_ = b.cores[i].encoder.Flush() // the trace keeps its own failure
	}
}

// Finish implements Recording.
func (b *Branches) Finish(*Recorder) {
	for i := range b.cores {
		b.stopTracing(&b.cores[i])
	}
	b.Save()
}
