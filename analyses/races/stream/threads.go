package stream

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Thread is a thread of the run.
type Thread struct {
	// Number is the detector's number of the thread: threads are numbered as they start.
	Number int
	ID     arch.ThreadID
	// Name does not depend on the interleaving: event.Start.
	Name    string
	Process int32
	// Parent is the number of the thread that made it, -1 of the first.
	Parent int
	// CreationStack is the stack of the parent when it did.
	CreationStack uint32

	process        *process
	operationDepth int   // operations that are the thread's own business
	allocatorDepth int   // calls of allocators
	saved          []int // within and heap when signal handlers were called
	runner         *races.Runner
	over           bool
}

// ThreadAt returns a thread by its number.
func (x *Run) ThreadAt(number int) *Thread { return x.threads[number] }

// process is the state of a process.
type process struct {
	id      int32
	parent  int32
	threads int // that are alive
	space   *races.Space
	files   []event.Mapping // the latest last
	areas   []area          // that may be stacks
	guarded uint64          // the end of an area that cannot be accessed, while areas are read
	blocks  heapBlocks
	code    []races.Code // of atomic accesses
}

func (p *process) setAtomicCode(code []races.Code) {
	p.code = code
	p.space.SetAtomicCode(code)
}

// area is a range of addresses.
type area struct{ start, end uint64 }

func (x *Run) processOf(id int32) *process {
	p := x.processes[id]
	if p == nil {
		p = &process{id: id, space: x.follower.NewSpace(), blocks: newHeapBlocks()}
		x.processes[id] = p
	}
	return p
}

// handleStart makes a thread known. A process that was forked comes after all that the
// threads of its parent did: it has a copy of the memory.
func (x *Run) handleStart(e *event.Start) error {
	if len(x.threads) == races.MaxThreads {
		return errThreads.New(races.MaxThreads)
	}
	p := x.processOf(e.Process)
	t := &Thread{Number: len(x.threads), ID: e.Thread, Name: e.Name, Process: e.Process, Parent: -1, process: p}
	t.runner = x.follower.NewRunner(t.Number, p.space)
	x.threads = append(x.threads, t)
	x.byID[e.Thread] = t
	p.threads++
	x.follower.SetProcess(t.Number, int(e.Process))
	parent := x.byID[e.Parent]
	if parent == nil {
		return nil
	}
	t.Parent, t.CreationStack = parent.Number, parent.runner.Stack()
	if parent.Process == e.Process {
		return nil
	}
	p.parent = parent.Process
	p.files = append(p.files, parent.process.files...)
	p.setAtomicCode(slices.Clone(parent.process.code))
	p.blocks = parent.process.blocks.cloneBlocks()
	for _, other := range x.threads {
		if other.Process == parent.Process {
			x.follower.Fork(other.Number, t.Number)
		}
	}
	return nil
}

func (x *Run) handleExit(e *event.Exit) error {
	t := x.byID[e.Thread]
	if t == nil {
		return nil
	}
	t.over = true // its end as a synchronization operation comes yet
	if t.process.threads--; t.process.threads == 0 {
		x.follower.EndProcess(int(t.Process))
		delete(x.processes, t.Process)
	}
	t.runner.EndCalls()
	return nil
}

func (x *Run) handleMapping(e *event.Mapping) error {
	p := x.processOf(e.Process)
	kept := p.files[:0]
	for _, f := range p.files {
		if f.Addr < e.Addr || f.Addr+arch.Addr(f.Size) > e.Addr+arch.Addr(e.Size) {
			kept = append(kept, f)
		}
	}
	p.files = append(kept, *e)
	if x.options.WordsOf != nil && x.words < races.AllAtomics {
		x.orderByWords(x.options.WordsOf(e.Name))
	}
	if x.words > races.NoAtomics && x.options.AtomicCode != nil {
		old := slices.DeleteFunc(p.code, func(c races.Code) bool { return c.Start-uint64(e.Addr) < e.Size })
		p.setAtomicCode(append(old, x.options.AtomicCode(e)...))
	}
	return nil
}

// FileAt is the part of a file that is at an address of a process now, or else the nearest one
// before it, which may have zeros after it (bss); nil without one.
func (x *Run) FileAt(process int32, addr arch.Addr) *event.Mapping {
	p := x.processes[process]
	if p == nil {
		return nil
	}
	var nearest *event.Mapping
	for i := len(p.files) - 1; i >= 0; i-- {
		f := &p.files[i]
		if addr >= f.Addr && uint64(addr-f.Addr) < f.Size {
			return f
		}
		if f.Addr <= addr && (nearest == nil || f.Addr > nearest.Addr) {
			nearest = f
		}
	}
	return nearest
}

// handleSignal notes that a handler interrupts the thread's present operation.
func (x *Run) handleSignal(e *event.Signal) error {
	if t := x.byID[e.Thread]; t != nil {
		t.saved = append(t.saved, t.operationDepth, t.allocatorDepth)
		t.operationDepth, t.allocatorDepth = 0, 0
		x.noteDepth(t)
	}
	return nil
}

func (x *Run) handleSyscall(e *event.Syscall) error {
	t := x.byID[e.Thread]
	if t == nil {
		return nil
	}
	if e.Phase == event.Enter {
		if n := len(t.saved); e.Number == unix.SYS_RT_SIGRETURN && n > 0 {
			t.operationDepth, t.allocatorDepth = t.saved[n-2], t.saved[n-1]
			t.saved = t.saved[:n-2]
			x.noteDepth(t)
		}
		return nil
	}
	if linux.Failed(e.Result) {
		return nil
	}
	switch e.Number {
	case unix.SYS_MMAP:
		x.noteMapped(t.process, e.Result, e.Args[1], e.Args[2], e.Args[3])
	case unix.SYS_MUNMAP, unix.SYS_MADVISE:
		x.noteUnmapped(t.process, e.Args[0], e.Args[1], e.Number == unix.SYS_MUNMAP)
	case unix.SYS_MREMAP:
		x.noteUnmapped(t.process, e.Args[0], e.Args[1], true)
		x.noteUnmapped(t.process, e.Result, e.Args[2], true)
	case unix.SYS_BRK:
		x.follower.DropPages(t.process.space, e.Result>>pageShift, e.Result>>pageShift+brkPages)
	}
	if linux.Has(e.Number, linux.Executes) {
		x.handleExec(t)
	}
	return nil
}

// handleArea notes memory that there was when the recorded stretch of the run began: an area that can be written after
// one that cannot be accessed may be a stack.
func (x *Run) handleArea(e *event.Area) error {
	p := x.processOf(e.Process)
	start, end := uint64(e.Addr), uint64(e.Addr)+e.Size
	if e.Anonymous && !e.Shared && e.Rights&unix.PROT_WRITE != 0 && p.guarded == start {
		p.areas = append(p.areas, area{start, end})
	}
	p.guarded = 0
	if e.Anonymous && e.Rights == unix.PROT_NONE {
		p.guarded = end
	}
	return nil
}

// handleExec notes that the process has another program. The accesses of a vfork's child to its
// parent's memory come before the later ones of the parent.
func (x *Run) handleExec(t *Thread) {
	for _, other := range x.threads {
		if other.Process == t.process.parent {
			x.follower.Fork(t.Number, other.Number)
		}
	}
	p := t.process
	p.files, p.areas, p.blocks = nil, nil, newHeapBlocks()
	p.setAtomicCode(nil)
	x.follower.DropPages(p.space, 0, ^uint64(0))
	t.operationDepth, t.allocatorDepth, t.saved = 0, 0, nil
	t.runner.EndCalls()
	x.noteDepth(t)
}

// noteMapped notes memory that a C library may have made for a stack: glibc says so,
// musl makes it inaccessible first.
func (x *Run) noteMapped(p *process, start, size, prot, flags uint64) {
	x.noteUnmapped(p, start, size, true)
	stack := flags&unix.MAP_STACK != 0 || prot == unix.PROT_NONE && flags&unix.MAP_NORESERVE == 0
	if flags&unix.MAP_ANONYMOUS != 0 && stack {
		p.areas = append(p.areas, area{start, start + size})
	}
}

// brkPages is how far after the break pages are looked for that are gone.
const brkPages = 1 << 10

// noteUnmapped notes that addresses lead nowhere now, or, if they are still mapped,
// to new pages.
func (x *Run) noteUnmapped(p *process, start, size uint64, gone bool) {
	x.follower.DropPages(p.space, start>>pageShift, (start+size+pageSize-1)>>pageShift)
	if !gone {
		return
	}
	kept := p.areas[:0]
	for _, a := range p.areas {
		if a.start < start || a.end > start+size {
			kept = append(kept, a)
		}
	}
	p.areas = kept
}

// forgetStack makes the stack of a thread memory without a past. The thread's first
// access is on it.
func (x *Run) forgetStack(t *Thread, addr uint64) {
	for _, a := range t.process.areas {
		if a.start <= addr && addr < a.end {
			x.forgetRange(t.process, a.start, a.end)
		}
	}
}
