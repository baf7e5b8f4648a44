// Package follow has an executor of expressions follow a run: it is a Recording
// that tells exec.Executor what the machine does, as it does it. The run may be a
// replay.
//
// What becomes a symbol is a choice (Options). Symbols are bytes, named by where
// they come from: argv[1][0] is the first byte of the first argument, as are
// env[HOME][0], stdin[0] and file(/etc/passwd)[0]; those of other sources have the
// number of the system call that brought them among those of their thread.
//
// Invariants:
//
//  1. The run is what it would be.
//  2. Arguments and variables are symbols up to the zero byte at their end, which
//     is one too.
package follow

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Options choose what becomes symbols.
type Options struct {
	// Args and Env are the program's. Neither can be left out: they are how the
	// arguments in memory are counted.
	Args, Env []string
	// Dir is the working folder. If it is given, symbols of files that arguments name
	// have the arguments for names, and sizes of chosen files are symbols.
	Dir string
	// Stdin is the name that the guest has for standard input, if that is a regular
	// file.
	Stdin string
	// Choose says of an input whether its bytes become symbols. The headers of
	// libraries that the dynamic linker reads are inputs, too.
	Choose func(e *event.Input) bool
	// Summaries are those of functions of libraries and programs.
	Summaries []exec.Summary
	// Check compares every expression with the recorded value.
	Check bool
	// Path keeps what every thread executes, and with Values what it loads and
	// stores, in Recording.Path.
	Path, Values bool
}

// Recording follows a run. After the run Err tells whether it was followed to the
// end.
type Recording struct {
	recorder.Nothing
	// Executor has what was found out.
	Executor *exec.Executor
	// Path has what was executed, if that is kept.
	Path *path.Log

	options  Options
	inputs   *recorder.Inputs
	log      *emu.MemoryBuffer
	begun    bool
	err      error
	spaces   map[*emu.Space]uint64
	task     *kernel.Task
	base     uint64 // instructions of the slice that are executed
	counted  uint32 // branches before
	accesses map[event.ThreadID]*accesses
	inside   []event.ThreadID // threads that are inside an instruction
	state    vex.State
	calls    map[event.ThreadID]int
	seq      uint64 // events of the run so far
	sizes    sizes
	streamed int                            // bytes of standard input that is no file
	files    map[string]map[string]function // of files
}

// New makes a Recording for heddle.Record.Watch. It must be closed.
func New(o Options) *Recording {
	r := &Recording{options: o, log: emu.NewMemoryBuffer(), spaces: map[*emu.Space]uint64{}, calls: map[event.ThreadID]int{}}
	r.accesses = map[event.ThreadID]*accesses{}
	r.files, r.sizes = map[string]map[string]function{}, newSizes()
	r.Executor = exec.New(r.code)
	r.Executor.Check, r.Executor.Constant = o.Check, r.constant
	if o.Path {
		r.Path = path.NewLog(r.Executor)
		r.Path.Values, r.Executor.Tracer = o.Values, r.Path
	}
	r.inputs = recorder.WatchInputs(o.Args, o.Env, r.input)
	return r
}

// Close gives back what it holds.
func (r *Recording) Close() { r.log.Close() }

// Err is why following ended before the run, if it did.
func (r *Recording) Err() error { return r.err }

// SharedInSnapshot marks that it is no part of the machine's state: runs that are
// followed do not return to snapshots.
func (r *Recording) SharedInSnapshot() {}

// code reads the code of the thread that runs.
func (r *Recording) code(_, addr uint64, b []byte) int {
	n, _ := r.task.Space().ReadAt(b, event.Addr(addr))
	return n
}

// constant are the bounds of what is mapped of a file around an address and cannot be
// written.
func (r *Recording) constant(_, addr uint64) (low, high uint64) {
	v, ok := r.task.Process().Space().Find(event.Addr(addr))
	if !ok || v.File == nil || v.Flags&mm.Shared != 0 || v.Prot&unix.PROT_WRITE != 0 {
		return 0, 0
	}
	return uint64(v.Start), uint64(v.End)
}

// space is the number of a thread's address space.
func (r *Recording) space(t *kernel.Task) uint64 {
	s := t.Space()
	if r.spaces[s] == 0 {
		r.spaces[s] = uint64(len(r.spaces) + 1)
		r.mappings(r.spaces[s], t)
	}
	return r.spaces[s]
}

// Start implements recorder.Recording: a process that begins has its parent's
// memory.
func (r *Recording) Start(on *recorder.Recorder, t *kernel.Task, e *event.Start) {
	parent := on.Kernel().Task(e.Parent)
	if parent == nil || parent.Space() == t.Space() {
		return
	}
	r.Executor.Fork(r.space(parent), r.space(t))
	r.event(path.Event{Kind: path.Fork, Thread: e.Parent, From: r.space(parent), Space: r.space(t)})
}

// event keeps what the kernel did.
func (r *Recording) event(e path.Event) {
	if r.Path != nil {
		r.Path.Event(e)
	}
}

// overwrite says that the kernel wrote bytes that depend on no input.
func (r *Recording) overwrite(t *kernel.Task, addr, n uint64) {
	r.Executor.Overwrite(r.space(t), addr, int(n))
	r.event(path.Event{Kind: path.Wrote, Thread: t.ID(), Space: r.space(t), Addr: addr, Size: n})
}

// Begin implements recorder.Recording.
func (r *Recording) Begin(on *recorder.Recorder, t *kernel.Task) {
	if r.err != nil {
		return
	}
	r.task, r.base = t, 0
	if !r.begun {
		r.begun = true
		r.Executor.CPUID = on.CPU().CPUID
		if r.err = on.CPU().LogMemory(emu.MemoryFilter{}); r.err != nil {
			return
		}
	}
	r.drain(on.CPU())
	r.inputs.Begin(on, t)
	r.counted, r.seq = uint32(on.CPU().CountedBranches()), on.At().Seq
	State(on.CPU(), &r.state)
	r.Executor.Resume(t.ID(), r.space(t), &r.state)
}

// Stopped implements recorder.Recording.
func (r *Recording) Stopped(on *recorder.Recorder, t *kernel.Task, s emu.Stop) {
	if r.err != nil {
		// A log that is full would end the run again and again.
		on.CPU().SwapMemory(r.log)
		return
	}
	r.drain(on.CPU())
	State(on.CPU(), &r.state)
	if r.Path != nil {
		r.Path.Begin(t.ID(), r.space(t), r.seq)
	}
	r.execute(on.CPU(), t.ID(), s.Instructions-r.base)
	r.base, r.counted, r.seq = s.Instructions, uint32(on.CPU().CountedBranches()), on.At().Seq
}

// execute has the executor do so many instructions, and the one that the thread has stored
// parts of.
func (r *Recording) execute(cpu *emu.CPU, id event.ThreadID, instructions uint64) {
	of := r.accessesOf(id)
	if instructions > 0 {
		instructions -= of.ahead
		of.ahead = 0
	}
	if in, ok := cpu.Interrupted(); ok && in.HasStored() && of.ahead == 0 {
		of.complete(&in)
		instructions++
	}
	if instructions > 0 && r.err == nil {
		r.err = r.Executor.Run(id, instructions, of.done, &r.state)
		of.done = of.done[:0]
	}
}

// drain takes what the machine has logged on behalf of the thread that acts.
func (r *Recording) drain(cpu *emu.CPU) {
	cpu.SwapMemory(r.log)
	id := r.task.ID()
	entries := r.log.Entries()
	var part, parts int
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case emu.MemoryPart:
			part, parts = int(e.PC), int(e.Addr)
		case emu.MemoryLoad, emu.MemoryStore:
			a := exec.Access{
				PC: e.PC, Addr: uint64(e.Addr), Size: int(e.Size), Store: e.Kind == emu.MemoryStore,
				Value: [2]uint64{e.Value, 0}, Branches: e.Branches - r.counted,
			}
			if a.Size > 8 {
				a.Value[1] = entries[i+1].Value
			}
			r.access(id, a, part, parts)
			part, parts = 0, 0
		case emu.MemoryKernel:
			if len(r.inside) > 0 {
				r.meets(id, exec.Access{Addr: uint64(e.Addr), Size: int(e.Branches), Store: true})
			}
			r.overwrite(r.task, uint64(e.Addr), uint64(e.Branches))
		}
	}
}

// Issue implements recorder.Recording.
func (r *Recording) Issue(on *recorder.Recorder, t *kernel.Task, e *event.Syscall) {
	if r.err == nil {
		r.Executor.Syscall(t.ID())
		r.event(path.Event{Kind: path.Call, Thread: t.ID(), Space: r.space(t), Number: e.Number, Args: e.Args})
		r.inputs.Issue(on, t, e)
		if r.options.Dir != "" {
			r.ask(on, t, e)
		}
	}
}

// Return implements recorder.Recording.
func (r *Recording) Return(on *recorder.Recorder, t *kernel.Task, e *event.Syscall) {
	if r.err != nil || t.Space() == nil {
		return
	}
	r.task = t
	r.drain(on.CPU())
	r.mapped(t, e)
	r.inputs.Return(on, t, e)
	r.tell(t, e)
	r.event(path.Event{Kind: path.Return, Thread: t.ID(), Space: r.space(t), Number: e.Number, Args: e.Args, Result: int64(e.Result)})
	r.calls[t.ID()]++
}

// mapped follows what system calls do to memory as a whole.
func (r *Recording) mapped(t *kernel.Task, e *event.Syscall) {
	a, space := e.Args, r.space(t)
	if int64(e.Result) < 0 && int64(e.Result) > -4096 {
		return
	}
	switch e.Number {
	case unix.SYS_MMAP:
		r.overwrite(t, e.Result, a[1])
	case unix.SYS_SHMAT:
		if v, ok := t.Process().Space().Find(event.Addr(e.Result)); ok {
			r.overwrite(t, e.Result, v.Len())
		}
	case unix.SYS_MUNMAP, unix.SYS_MADVISE:
		r.overwrite(t, a[0], a[1])
	case unix.SYS_MREMAP:
		size := min(a[1], a[2])
		r.Executor.Move(space, a[0], e.Result, int(size))
		r.event(path.Event{Kind: path.Move, Thread: t.ID(), Space: space, Addr: a[0], To: e.Result, Size: size})
	}
}

// Signal implements recorder.Recording.
func (r *Recording) Signal(_ *recorder.Recorder, e *event.Signal) {
	r.Executor.Signal(e.Thread)
	r.event(path.Event{Kind: path.Signal, Thread: e.Thread, Number: uint64(e.Number)})
}

// Exit implements recorder.Recording.
func (r *Recording) Exit(on *recorder.Recorder, e *event.Exit) {
	r.inputs.Exit(on, e)
	r.event(path.Event{Kind: path.Exit, Thread: e.Thread})
	r.Executor.Exit(e.Thread)
}

// input makes symbols of an input.
func (r *Recording) input(e *event.Input) {
	if e.Source == event.InputMap {
		r.library(r.space(r.task), e.Name, uint64(e.Addr), e.Size, uint64(e.Offset))
		return
	}
	if e.Source == event.InputFile && e.Name != "" && e.Name == r.options.Stdin {
		e.Source = event.InputStdin
	}
	if e.Addr == 0 || !r.options.Choose(e) {
		return
	}
	first := 0
	name := ""
	switch e.Source {
	case event.InputArgs:
		name = fmt.Sprintf("argv[%d]", e.Offset)
	case event.InputEnv:
		variable, _, _ := bytes.Cut(e.Data, []byte("="))
		name = fmt.Sprintf("env[%s]", variable)
		// The name is how the variable is known.
		skip := min(len(variable)+1, len(e.Data))
		e.Addr += event.Addr(skip)
		e.Data = e.Data[skip:]
	case event.InputStdin, event.InputFile:
		name, first = r.fileInput(e)
	default:
		name = fmt.Sprintf("%v#%d.%d", e.Source, e.Thread, r.calls[e.Thread])
	}
	r.Executor.Input(r.space(r.task), uint64(e.Addr), name, first, e.Data)
	r.event(path.Event{
		Kind: path.Input, Thread: r.task.ID(), Space: r.space(r.task), Addr: uint64(e.Addr), Size: uint64(len(e.Data)), Name: name, First: first,
	})
}

// State reads the loaded thread's registers as libVEX has them.
func State(cpu *emu.CPU, s *vex.State) {
	var regs emu.Regs
	cpu.Regs(&regs)
	var fp [emu.FPSize]byte
	cpu.FP(&fp)
	SetState(s, &regs, &fp)
}

// SetState makes a state of registers and their FXSAVE image.
func SetState(s *vex.State, regs *emu.Regs, fp *[emu.FPSize]byte) {
	for i, w := range regs.GPR {
		s.SetWord(vex.OffsetRAX+8*i, w)
	}
	s.SetWord(vex.OffsetRIP, regs.RIP)
	s.SetWord(vex.OffsetFS, regs.FSBase)
	s.SetWord(vex.OffsetGS, regs.GSBase)
	s.SetRFLAGS(regs.RFLAGS)
	for i := range 16 {
		copy(s[vex.OffsetXMM+32*i:][:16], fp[160+16*i:])
	}
	X87(s, fp)
}

// X87 takes the x87, and the rounding modes, out of an FXSAVE image (SDM volume 1,
// table 10-2).
func X87(s *vex.State, fp *[emu.FPSize]byte) {
	control, status := binary.LittleEndian.Uint16(fp[0:]), binary.LittleEndian.Uint16(fp[2:])
	top := int(status >> 11 & 7)
	binary.LittleEndian.PutUint32(s[vex.OffsetFTop:], uint32(top))
	s.SetWord(vex.OffsetFC3210, uint64(status&0x4700))
	s.SetWord(vex.OffsetFPRound, uint64(control>>10&3))
	s.SetWord(vex.OffsetRound, uint64(binary.LittleEndian.Uint32(fp[24:])>>13&3))
	for i := range 8 {
		s[vex.OffsetFPTag+i] = fp[4] >> i & 1
		at := fp[32+16*i:]
		register := vex.RoundExtended(binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint16(at[8:]))
		s.SetWord(vex.OffsetFPReg+8*((top+i)&7), register)
	}
}
