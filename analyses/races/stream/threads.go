package stream

import (
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
	calls          callStack
	begun          bool
	over           bool
	// low and high are bounds of the stack as far as it was used.
	low, high uint64
}

// ThreadAt returns a thread by its number.
func (x *Reader) ThreadAt(number int) *Thread { return x.threads[number] }

// process is the state of a process.
type process struct {
	id      int32
	parent  int32
	threads int // that are alive
	table   pageTable
	files   []event.Mapping // the latest last
	areas   []area          // that may be stacks
	blocks  heapBlocks
}

// area is a range of addresses.
type area struct{ start, end uint64 }

func (x *Reader) processOf(id int32) *process {
	p := x.processes[id]
	if p == nil {
		p = &process{id: id, table: newPageTable(), blocks: newHeapBlocks()}
		x.processes[id] = p
	}
	return p
}

// handleStart makes a thread known. A process that was forked comes after all that the
// threads of its parent did: it has a copy of the memory.
func (x *Reader) handleStart(e *event.Start) error {
	if len(x.threads) == races.MaxThreads {
		return errThreads.New(races.MaxThreads)
	}
	p := x.processOf(e.Process)
	t := &Thread{Number: len(x.threads), ID: e.Thread, Name: e.Name, Process: e.Process, Parent: -1, process: p}
	x.threads = append(x.threads, t)
	x.byID[e.Thread] = t
	p.threads++
	x.detector.SetProcess(t.Number, int(e.Process))
	parent := x.byID[e.Parent]
	if parent == nil {
		return nil
	}
	t.Parent, t.CreationStack = parent.Number, parent.calls.node
	if parent.Process == e.Process {
		return nil
	}
	p.parent = parent.Process
	p.files = append(p.files, parent.process.files...)
	p.blocks = parent.process.blocks.cloneBlocks()
	for _, other := range x.threads {
		if other.Process == parent.Process {
			x.detector.Fork(other.Number, t.Number)
		}
	}
	return nil
}

func (x *Reader) handleExit(e *event.Exit) error {
	t := x.byID[e.Thread]
	if t == nil {
		return nil
	}
	t.over = true // its end as a synchronization operation comes yet
	if t.process.threads--; t.process.threads == 0 {
		x.detector.EndProcess(int(t.Process))
		delete(x.processes, t.Process)
	}
	t.calls = callStack{}
	return nil
}

func (x *Reader) handleMapping(e *event.Mapping) error {
	p := x.processOf(e.Process)
	kept := p.files[:0]
	for _, f := range p.files {
		if f.Addr < e.Addr || f.Addr+arch.Addr(f.Size) > e.Addr+arch.Addr(e.Size) {
			kept = append(kept, f)
		}
	}
	p.files = append(kept, *e)
	return nil
}

// FileAt is the part of a file that is at an address of a process now, or else the nearest one
// before it, which may have zeros after it (bss); nil without one.
func (x *Reader) FileAt(process int32, addr arch.Addr) *event.Mapping {
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
func (x *Reader) handleSignal(e *event.Signal) error {
	if t := x.byID[e.Thread]; t != nil {
		t.saved = append(t.saved, t.operationDepth, t.allocatorDepth)
		t.operationDepth, t.allocatorDepth = 0, 0
	}
	return nil
}

func (x *Reader) handleSyscall(e *event.Syscall) error {
	t := x.byID[e.Thread]
	if t == nil {
		return nil
	}
	if e.Phase == event.Enter {
		if n := len(t.saved); e.Number == unix.SYS_RT_SIGRETURN && n > 0 {
			t.operationDepth, t.allocatorDepth = t.saved[n-2], t.saved[n-1]
			t.saved = t.saved[:n-2]
		}
		return nil
	}
	if linux.Failed(e.Result) {
		return nil
	}
	switch e.Number {
	case unix.SYS_MMAP:
		t.process.noteMapped(e.Result, e.Args[1], e.Args[2], e.Args[3])
	case unix.SYS_MUNMAP, unix.SYS_MADVISE:
		t.process.noteUnmapped(e.Args[0], e.Args[1], e.Number == unix.SYS_MUNMAP)
	case unix.SYS_MREMAP:
		t.process.noteUnmapped(e.Args[0], e.Args[1], true)
		t.process.noteUnmapped(e.Result, e.Args[2], true)
	case unix.SYS_BRK:
		t.process.table.dropPages(e.Result>>pageShift, e.Result>>pageShift+brkPages)
	}
	if linux.Has(e.Number, linux.Executes) {
		x.handleExec(t)
	}
	return nil
}

// handleExec notes that the process has another program. The accesses of a vfork's child to its
// parent's memory come before the later ones of the parent.
func (x *Reader) handleExec(t *Thread) {
	for _, other := range x.threads {
		if other.Process == t.process.parent {
			x.detector.Fork(t.Number, other.Number)
		}
	}
	p := t.process
	p.table, p.files, p.areas, p.blocks = newPageTable(), nil, nil, newHeapBlocks()
	t.operationDepth, t.allocatorDepth, t.saved, t.calls = 0, 0, nil, callStack{}
}

// noteMapped notes memory that a C library may have made for a stack: glibc says so,
// musl makes it inaccessible first.
func (p *process) noteMapped(start, size, prot, flags uint64) {
	p.noteUnmapped(start, size, true)
	stack := flags&unix.MAP_STACK != 0 || prot == unix.PROT_NONE && flags&unix.MAP_NORESERVE == 0
	if flags&unix.MAP_ANONYMOUS != 0 && stack {
		p.areas = append(p.areas, area{start, start + size})
	}
}

// brkPages is how far after the break pages are looked for that are gone.
const brkPages = 1 << 10

// noteUnmapped notes that addresses lead nowhere now, or, if they are still mapped,
// to new pages.
func (p *process) noteUnmapped(start, size uint64, gone bool) {
	p.table.dropPages(start>>pageShift, (start+size+pageSize-1)>>pageShift)
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
func (x *Reader) forgetStack(t *Thread, addr uint64) {
	t.begun, t.low, t.high = true, addr, addr
	for _, a := range t.process.areas {
		if a.start <= addr && addr < a.end {
			x.forgetRange(t.process, a.start, a.end)
		}
	}
}
