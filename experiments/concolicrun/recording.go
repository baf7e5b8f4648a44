// Package concolicrun executes a run concolically: it is a Recording that reports to a
// concolic.Executor the machine's events, as they happen. The run may be a replay.
//
// Options choose the inputs that become symbols. Symbols are bytes, named by their origin:
// argv[1][0] is the first byte of the first argument; env[HOME][0], stdin[0] and
// file(/etc/passwd)[0] are similar. Bytes of other sources have the number of their system
// call within their thread.
//
// Invariants:
//
//  1. The run is the same as without the recording.
//  2. Arguments and variables are symbols up to the zero byte at their end, which is one
//     too.
package concolicrun

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Options choose the symbols.
type Options struct {
	// Args and Env are the program's. Both are required: they give the numbers of the
	// arguments in memory.
	Args, Env []string
	// Dir is the working folder. If it is given, files that arguments name get symbols with
	// the arguments' names, and sizes of chosen files are symbols.
	Dir string
	// Folders are the numbers of the arguments that name folders; the files in these have symbols with names such as
	// argv[2]/part/file.
	Folders []int
	// Stdin is the guest's name of standard input, if that is a regular file.
	Stdin string
	// Choose reports whether the bytes of an input become symbols. The headers of libraries
	// that the dynamic linker reads are inputs, too.
	Choose func(e *event.Input) bool
	// Name, if set, names the bytes of an input, from a first number on.
	Name func(e *event.Input) (name string, first int)
	// Log, if set, is called with each part of the engine's log of memory that the Recording takes.
	Log func(*memlog.Buffer)
	// Follow, if set, reports whether a thread is executed concolically. What the others write to memory that they share
	// with it depends on no input.
	Follow func(t *kernel.Task) bool
	// State are variables that are symbols when the followed stretch of a run begins, named state(NAME)[0] and so on, in
	// the first process that is followed.
	State []Variable
	// Summaries are those of functions of libraries and programs.
	Summaries []concolic.Summary
	// Tables has loads from constant memory be functions of single bytes (concolic.Executor.Tables).
	Tables bool
	// Check compares every expression with the recorded value.
	Check bool
	// Path keeps the block trace in Recording.Path, and Values the loaded and stored values
	// in it.
	Path, Values bool
	// MaxTerms is the number of terms after which inputs are pinned (concolic.Executor.MaxTerms). After
	// MaxInstructions the concolic execution ends with ErrTooLong. 0: no limit.
	MaxTerms        int
	MaxInstructions uint64
	// Progress, if set, is called now and then with the numbers of instructions and terms so far. It may end the
	// concolic execution with an error.
	Progress func(instructions uint64, terms int) error
}

// Variable is a piece of memory with a name.
type Variable struct {
	Name       string
	Addr, Size uint64
}

// ErrTooLong ends the concolic execution of a run with more than Options.MaxInstructions.
var ErrTooLong = errs.Define("follow-too-long",
	"inputs are not followed through this run: it has too many instructions",
	"The run has more instructions than the budget of the computation allows.",
	"Raise the budget (heddle run --budget-instructions), or record a shorter run.")

// Recording executes a run concolically. After the run, Err returns nil if the execution
// reached its end.
type Recording struct {
	recorder.Nothing
	// Executor has the expressions and constraints.
	Executor *concolic.Executor
	// Path has the block trace, if it is kept.
	Path *blocktrace.Log

	options  Options
	inputs   *recorder.Inputs
	log      *memlog.Buffer
	begun    bool
	err      error
	spaces   map[*mem.Space]uint64
	task     *kernel.Task
	base     uint64 // executed instructions of the quantum
	counted  uint32 // branches before
	accesses map[arch.ThreadID]*pendingAccesses
	inside   []arch.ThreadID // threads that are inside an instruction
	state    vex.State
	calls    map[arch.ThreadID]int
	seq      uint64 // events of the run so far
	// replacing are the threads in execve(2), in which the kernel writes to the memory of the new program; until then the
	// thread's memory is the old one, which it may share with the process that called vfork(2).
	replacing map[arch.ThreadID]bool
	// nextReport is the number of instructions at which progress is reported next.
	nextReport  uint64
	sizes       sizeTracker
	mapped      []MappedFile
	firstFolder *vfs.Dentry                        // the working folder at the start
	streamed    int                                // bytes of standard input that is no file
	files       map[string]map[string]fileFunction // of files
}

// New makes a Recording for machine.WithRecordings. It must be closed.
func New(o Options) *Recording {
	r := &Recording{options: o, log: memlog.NewBuffer(), spaces: map[*mem.Space]uint64{}, calls: map[arch.ThreadID]int{}, replacing: map[arch.ThreadID]bool{}}
	r.accesses = map[arch.ThreadID]*pendingAccesses{}
	r.files, r.sizes = map[string]map[string]fileFunction{}, newSizeTracker()
	r.Executor = concolic.New(r.readCode)
	r.Executor.Check, r.Executor.ConstantRange, r.Executor.MaxTerms = o.Check, r.constantRange, o.MaxTerms
	r.Executor.Tables = o.Tables
	if o.Path {
		r.Path = blocktrace.NewLog(r.Executor)
		r.Path.Values, r.Executor.Tracer = o.Values, r.Path
	}
	r.inputs = recorder.WatchInputs(o.Args, o.Env, r.addInput)
	return r
}

// Close releases the log.
func (r *Recording) Close() { r.log.Close() }

// Err returns the error that ended the concolic execution before the run, or nil.
func (r *Recording) Err() error { return r.err }

// SharedInSnapshot marks the recording as no part of the machine's state: recorded runs do
// not return to snapshots.
func (r *Recording) SharedInSnapshot() {}

// readCode reads the code of the running thread.
func (r *Recording) readCode(_, addr uint64, b []byte) int {
	n, _ := r.task.Space().ReadAt(b, arch.Addr(addr))
	return n
}

// spaceNumber returns the number of a thread's address space.
func (r *Recording) spaceNumber(t *kernel.Task) uint64 {
	s := t.Space()
	if r.spaces[s] == 0 {
		r.spaces[s] = uint64(len(r.spaces) + 1)
		r.summarizeMappings(r.spaces[s], t)
	}
	return r.spaces[s]
}

// Start implements recorder.Recording: a new process has its parent's memory.
func (r *Recording) Start(on *recorder.Recorder, t *kernel.Task, e *event.Start) {
	parent := on.Kernel().Task(e.Parent)
	if parent == nil || parent.Space() == t.Space() || r.options.Follow != nil && !r.options.Follow(parent) {
		return
	}
	r.Executor.Fork(r.spaceNumber(parent), r.spaceNumber(t))
	r.addEvent(blocktrace.Event{Kind: blocktrace.Fork, Thread: e.Parent, From: r.spaceNumber(parent), Space: r.spaceNumber(t)})
}

// addEvent adds an effect of the kernel to the block trace.
func (r *Recording) addEvent(e blocktrace.Event) {
	if r.Path != nil {
		r.Path.AddEvent(e)
	}
}

// overwriteMemory records that the kernel wrote bytes that depend on no input.
func (r *Recording) overwriteMemory(t *kernel.Task, addr, n uint64) {
	r.Executor.Overwrite(r.spaceNumber(t), addr, int(n))
	r.addEvent(blocktrace.Event{Kind: blocktrace.KernelWrite, Thread: t.ID(), Space: r.spaceNumber(t), Addr: addr, Size: n})
}

// Open implements recorder.Recording: the program's arguments were read before.
func (r *Recording) Open(on *recorder.Recorder) {
	r.inputs.Open(on)
	r.start(on)
	if tasks := on.Kernel().Tasks(); len(tasks) > 0 {
		r.firstFolder = on.Kernel().Proc().Process(tasks[0].Process().PID()).Cwd()
	}
	for _, t := range on.Kernel().Tasks() {
		if len(r.options.State) > 0 && t.Process().Space() != nil && (r.options.Follow == nil || r.options.Follow(t)) {
			r.addState(t)
			return
		}
	}
}

// Join is Open for a run whose memory the engine logs already. Its log must be empty.
func (r *Recording) Join(on *recorder.Recorder) {
	r.inputs.Open(on)
	r.begun = true
	r.Executor.CPUID = on.CPU().CPUID
}

// AddState makes bytes of a thread's memory symbols, before the instructions that read them are executed: name[addr] and following.
func (r *Recording) AddState(t *kernel.Task, name string, addr uint64, data []byte) {
	r.Executor.Input(r.spaceNumber(t), addr, name, int(addr), data)
}

// AddRegister makes a general register of a thread symbols, name[first] and following, after the thread's first Begin.
func (r *Recording) AddRegister(t *kernel.Task, register int, name string, first int) {
	r.Executor.InputRegister(t.ID(), register, name, first)
}

// takeLog takes the engine's log.
func (r *Recording) takeLog(cpu emu.CPU) {
	cpu.SwapMemory(r.log)
	if r.options.Log != nil {
		r.options.Log(r.log)
	}
}

// addState makes symbols of the variables in a thread's memory.
func (r *Recording) addState(t *kernel.Task) {
	r.task = t
	for _, v := range r.options.State {
		data := make([]byte, v.Size)
		n := t.Process().Space().Peek(arch.Addr(v.Addr), data)
		name := "state(" + v.Name + ")"
		r.Executor.Input(r.spaceNumber(t), v.Addr, name, 0, data[:n])
		r.addEvent(blocktrace.Event{
			Kind: blocktrace.Input, Thread: t.ID(), Space: r.spaceNumber(t), Addr: v.Addr, Size: uint64(n), Name: name,
		})
	}
}

// start starts the log of memory.
func (r *Recording) start(on *recorder.Recorder) {
	r.begun = true
	r.Executor.CPUID = on.CPU().CPUID
	r.err = on.CPU().LogMemory(memlog.Filter{})
}

// Begin implements recorder.Recording.
func (r *Recording) Begin(on *recorder.Recorder, t *kernel.Task) {
	if !r.begun {
		r.start(on)
	}
	if r.err != nil || r.passes(on, t) {
		return
	}
	r.task, r.base = t, on.InQuantum()
	r.drainLog(on.CPU())
	delete(r.replacing, t.ID())
	r.inputs.Begin(on, t)
	r.counted, r.seq = uint32(on.CPU().CountedBranches()), on.At().Seq
	ReadState(on.CPU(), &r.state)
	r.Executor.Resume(t.ID(), r.spaceNumber(t), &r.state)
}

// passes reports whether a thread is not followed; its accesses are passed over.
func (r *Recording) passes(on *recorder.Recorder, t *kernel.Task) bool {
	if r.options.Follow == nil || r.options.Follow(t) {
		return false
	}
	r.takeLog(on.CPU())
	return true
}

// Stopped implements recorder.Recording.
func (r *Recording) Stopped(on *recorder.Recorder, t *kernel.Task, s arch.Stop) {
	if r.err != nil {
		// A full log would stop the engine again and again.
		r.takeLog(on.CPU())
		return
	}
	if r.passes(on, t) {
		return
	}
	r.drainLog(on.CPU())
	ReadState(on.CPU(), &r.state)
	if r.Path != nil {
		r.Path.BeginPiece(t.ID(), r.spaceNumber(t), r.seq)
	}
	r.runInstructions(on.CPU(), t.ID(), s.Instructions-r.base)
	r.base, r.counted, r.seq = s.Instructions, uint32(on.CPU().CountedBranches()), on.At().Seq
}

// runInstructions executes a number of instructions, and the one that the thread has partly
// stored.
func (r *Recording) runInstructions(cpu emu.CPU, id arch.ThreadID, instructions uint64) {
	of := r.threadAccesses(id)
	if instructions > 0 {
		instructions -= of.ahead
		of.ahead = 0
	}
	if in, ok := cpu.Interrupted(); ok && in.HasStored() && of.ahead == 0 {
		of.completeStores(&in, uint32(in.Branches)-r.counted)
		instructions++
	}
	if instructions > 0 && r.err == nil {
		r.err = r.Executor.Run(id, instructions, of.done, &r.state)
		of.done = of.done[:0]
		r.checkLimits()
	}
}

// instructionsPerReport is the number of instructions between two reports of progress.
const instructionsPerReport = 1 << 20

// checkLimits ends the concolic execution if it is too long, and reports its progress.
func (r *Recording) checkLimits() {
	n := r.Executor.Stats.Instructions
	if r.options.MaxInstructions > 0 && n > r.options.MaxInstructions && r.err == nil {
		r.err = ErrTooLong.New()
	}
	if r.options.Progress != nil && n >= r.nextReport && r.err == nil {
		r.nextReport = n + instructionsPerReport
		r.err = r.options.Progress(n, r.Executor.Terms())
	}
}

// drainLog reads the machine's log of accesses for the current thread.
func (r *Recording) drainLog(cpu emu.CPU) {
	r.takeLog(cpu)
	id := r.task.ID()
	entries := r.log.Entries()
	var part, parts int
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case memlog.Part:
			part, parts = int(e.PC), int(e.Addr)
		case memlog.Load, memlog.Store:
			a := concolic.Access{
				PC: e.PC, Addr: uint64(e.Addr), Size: int(e.Size), Store: e.Kind == memlog.Store,
				Value: [2]uint64{e.Value, 0}, Branches: e.Branches - r.counted,
			}
			if a.Size > 8 {
				a.Value[1] = entries[i+1].Value
			}
			r.addAccess(id, a, part, parts)
			part, parts = 0, 0
		case memlog.Kernel:
			if len(r.inside) > 0 {
				r.checkConflicts(id, concolic.Access{Addr: uint64(e.Addr), Size: int(e.Branches), Store: true})
			}
			if !r.replacing[id] {
				r.overwriteMemory(r.task, uint64(e.Addr), uint64(e.Branches))
			}
		}
	}
}

// Issue implements recorder.Recording.
func (r *Recording) Issue(on *recorder.Recorder, t *kernel.Task, e *event.Syscall) {
	if r.err == nil && !r.passes(on, t) {
		if e.Number == unix.SYS_EXECVE || e.Number == unix.SYS_EXECVEAT {
			r.replacing[t.ID()] = true
		}
		r.Executor.Syscall(t.ID())
		r.addEvent(blocktrace.Event{Kind: blocktrace.Call, Thread: t.ID(), Space: r.spaceNumber(t), Number: e.Number, Args: e.Args})
		r.inputs.Issue(on, t, e)
		if r.options.Dir != "" {
			r.beginSizeCall(on, t, e)
		}
	}
}

// Return implements recorder.Recording.
func (r *Recording) Return(on *recorder.Recorder, t *kernel.Task, e *event.Syscall) {
	if r.err != nil || t.Space() == nil || r.passes(on, t) {
		return
	}
	r.task = t
	r.drainLog(on.CPU())
	r.followMapping(t, e)
	r.inputs.Return(on, t, e)
	r.endSizeCall(t, e)
	r.addEvent(blocktrace.Event{Kind: blocktrace.Return, Thread: t.ID(), Space: r.spaceNumber(t), Number: e.Number, Args: e.Args, Result: int64(e.Result)})
	r.calls[t.ID()]++
}

// followMapping records the effects of system calls on whole mappings.
func (r *Recording) followMapping(t *kernel.Task, e *event.Syscall) {
	a, space := e.Args, r.spaceNumber(t)
	if linux.Failed(e.Result) {
		return
	}
	switch e.Number {
	case unix.SYS_MMAP:
		r.overwriteMemory(t, e.Result, a[1])
	case unix.SYS_SHMAT:
		if v, ok := t.Process().Space().Find(arch.Addr(e.Result)); ok {
			r.overwriteMemory(t, e.Result, v.Len())
		}
	case unix.SYS_MUNMAP:
		r.overwriteMemory(t, a[0], a[1])
	case unix.SYS_MADVISE:
		r.followAdvice(t, a[0], a[1], a[2])
	case unix.SYS_MREMAP:
		size := min(a[1], a[2])
		r.Executor.MovePages(space, a[0], e.Result, int(size))
		r.addEvent(blocktrace.Event{Kind: blocktrace.MovePages, Thread: t.ID(), Space: space, Addr: a[0], To: e.Result, Size: size})
	}
}

// Signal implements recorder.Recording.
func (r *Recording) Signal(on *recorder.Recorder, e *event.Signal) {
	if t := on.Kernel().Task(e.Thread); t != nil && r.options.Follow != nil && !r.options.Follow(t) {
		return
	}
	r.Executor.Signal(e.Thread)
	r.addEvent(blocktrace.Event{Kind: blocktrace.Signal, Thread: e.Thread, Number: uint64(e.Number)})
}

// Exit implements recorder.Recording.
func (r *Recording) Exit(on *recorder.Recorder, e *event.Exit) {
	r.inputs.Exit(on, e)
	r.addEvent(blocktrace.Event{Kind: blocktrace.Exit, Thread: e.Thread})
	r.Executor.Exit(e.Thread)
}

// addInput makes symbols of an input.
func (r *Recording) addInput(e *event.Input) {
	if e.Source == event.InputMap {
		r.summarizeLibrary(r.spaceNumber(r.task), e.Name, uint64(e.Addr), e.Size, uint64(e.Offset))
		r.followMap(e)
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
	switch {
	case r.options.Name != nil:
		name, first = r.options.Name(e)
	case e.Source == event.InputArgs:
		name = fmt.Sprintf("argv[%d]", e.Offset)
	case e.Source == event.InputEnv:
		variable, _, _ := bytes.Cut(e.Data, []byte("="))
		name = fmt.Sprintf("env[%s]", variable)
		// The variable's name is in the symbols' names.
		skip := min(len(variable)+1, len(e.Data))
		e.Addr += arch.Addr(skip)
		e.Data = e.Data[skip:]
	case e.Source == event.InputStdin || e.Source == event.InputFile:
		name, first = r.fileInputName(e)
	default:
		name = fmt.Sprintf("%v#%d.%d", e.Source, e.Thread, r.calls[e.Thread])
	}
	r.Executor.Input(r.spaceNumber(r.task), uint64(e.Addr), name, first, e.Data)
	r.addEvent(blocktrace.Event{
		Kind: blocktrace.Input, Thread: r.task.ID(), Space: r.spaceNumber(r.task), Addr: uint64(e.Addr), Size: uint64(len(e.Data)), Name: name, First: first,
	})
}

// ReadState reads the loaded thread's registers in libVEX's form.
func ReadState(cpu emu.CPU, s *vex.State) {
	var regs arch.Regs
	cpu.Regs(&regs)
	var fp [arch.FPSize]byte
	cpu.FP(&fp)
	SetState(s, &regs, &fp)
}

// SetState sets a state to registers and their FXSAVE image.
func SetState(s *vex.State, regs *arch.Regs, fp *[arch.FPSize]byte) {
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
	SetX87(s, fp)
}

// SetX87 sets the x87 registers and the rounding modes from an FXSAVE image (SDM volume 1,
// table 10-2).
func SetX87(s *vex.State, fp *[arch.FPSize]byte) {
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
