package stream

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Thread is a thread of the run.
type Thread struct {
	// Number is what the detector calls it: threads are numbered as they start.
	Number int
	ID     event.ThreadID
	// Name does not depend on the interleaving: event.Start.
	Name    string
	Process int32
	// Parent is the number of the thread that made it, -1 of the first.
	Parent int
	// Made is the stack of the parent when it did.
	Made uint32

	process *process
	within  int   // operations that are the thread's own business
	heap    int   // calls of allocators
	saved   []int // within and heap when signal handlers were called
	calls   calls
	begun   bool
	over    bool
	// low and high are bounds of the stack as far as it was used.
	low, high uint64
}

// ThreadAt returns a thread by its number.
func (x *Run) ThreadAt(number int) *Thread { return x.threads[number] }

// process is what is known of a process.
type process struct {
	id      int32
	parent  int32
	threads int // that are alive
	table   table
	files   []event.Mapping // the latest last
	areas   []area          // that may be stacks
	blocks  blocks
}

// area is a range of addresses.
type area struct{ start, end uint64 }

func (x *Run) processOf(id int32) *process {
	p := x.processes[id]
	if p == nil {
		p = &process{id: id, table: newTable(), blocks: newBlocks()}
		x.processes[id] = p
	}
	return p
}

// start makes a thread known. A process that was forked comes after all that the
// threads of its parent did: it has a copy of the memory.
func (x *Run) start(e *event.Start) error {
	if len(x.threads) == races.MaxThreads {
		return errThreads.New(races.MaxThreads)
	}
	p := x.processOf(e.Process)
	t := &Thread{Number: len(x.threads), ID: e.Thread, Name: e.Name, Process: e.Process, Parent: -1, process: p}
	x.threads = append(x.threads, t)
	x.byID[e.Thread] = t
	p.threads++
	x.detector.Begin(t.Number, int(e.Process))
	parent := x.byID[e.Parent]
	if parent == nil {
		return nil
	}
	t.Parent, t.Made = parent.Number, parent.calls.node
	if parent.Process == e.Process {
		return nil
	}
	p.parent = parent.Process
	p.files = append(p.files, parent.process.files...)
	p.blocks = parent.process.blocks.clone()
	for _, other := range x.threads {
		if other.Process == parent.Process {
			x.detector.Fork(other.Number, t.Number)
		}
	}
	return nil
}

func (x *Run) exit(e *event.Exit) error {
	t := x.byID[e.Thread]
	if t == nil {
		return nil
	}
	t.over = true // its end as a synchronization operation comes yet
	if t.process.threads--; t.process.threads == 0 {
		x.detector.End(int(t.Process))
		delete(x.processes, t.Process)
	}
	t.calls = calls{}
	return nil
}

func (x *Run) mapping(e *event.Mapping) error {
	p := x.processOf(e.Process)
	kept := p.files[:0]
	for _, f := range p.files {
		if f.Addr < e.Addr || f.Addr+event.Addr(f.Size) > e.Addr+event.Addr(e.Size) {
			kept = append(kept, f)
		}
	}
	p.files = append(kept, *e)
	return nil
}

// File is the part of a file that is at an address of a process now, or else the
// nearest one before it, which may have zeros behind it (bss); nil if there is
// none.
func (x *Run) File(process int32, addr event.Addr) *event.Mapping {
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

// signal notes that a handler interrupts what the thread is within.
func (x *Run) signal(e *event.Signal) error {
	if t := x.byID[e.Thread]; t != nil {
		t.saved = append(t.saved, t.within, t.heap)
		t.within, t.heap = 0, 0
	}
	return nil
}

func (x *Run) syscall(e *event.Syscall) error {
	t := x.byID[e.Thread]
	if t == nil {
		return nil
	}
	if e.Phase == event.Enter {
		if n := len(t.saved); e.Number == unix.SYS_RT_SIGRETURN && n > 0 {
			t.within, t.heap = t.saved[n-2], t.saved[n-1]
			t.saved = t.saved[:n-2]
		}
		return nil
	}
	if e.Result > ^uint64(4095) {
		return nil
	}
	switch e.Number {
	case unix.SYS_MMAP:
		t.process.mapped(e.Result, e.Args[1], e.Args[2], e.Args[3])
	case unix.SYS_MUNMAP, unix.SYS_MADVISE:
		t.process.unmapped(e.Args[0], e.Args[1], e.Number == unix.SYS_MUNMAP)
	case unix.SYS_MREMAP:
		t.process.unmapped(e.Args[0], e.Args[1], true)
		t.process.unmapped(e.Result, e.Args[2], true)
	case unix.SYS_BRK:
		t.process.table.drop(e.Result>>pageShift, e.Result>>pageShift+brkPages)
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		x.executed(t)
	}
	return nil
}

// executed notes that the process has another program. What the child of a vfork
// did in its parent's memory comes before what the parent does now.
func (x *Run) executed(t *Thread) {
	for _, other := range x.threads {
		if other.Process == t.process.parent {
			x.detector.Fork(t.Number, other.Number)
		}
	}
	p := t.process
	p.table, p.files, p.areas, p.blocks = newTable(), nil, nil, newBlocks()
	t.within, t.heap, t.saved, t.calls = 0, 0, nil, calls{}
}

// mapped notes memory that a C library may have made for a stack: glibc says so,
// musl makes it inaccessible first.
func (p *process) mapped(start, size, prot, flags uint64) {
	p.unmapped(start, size, true)
	stack := flags&unix.MAP_STACK != 0 || prot == unix.PROT_NONE && flags&unix.MAP_NORESERVE == 0
	if flags&unix.MAP_ANONYMOUS != 0 && stack {
		p.areas = append(p.areas, area{start, start + size})
	}
}

// brkPages is how far behind the break pages are looked for that are gone.
const brkPages = 1 << 10

// unmapped notes that addresses lead nowhere now, or, if they are still mapped,
// to new pages.
func (p *process) unmapped(start, size uint64, gone bool) {
	p.table.drop(start>>pageShift, (start+size+pageSize-1)>>pageShift)
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

// begin makes the stack of a thread memory without a past. The thread's first
// access is on it.
func (x *Run) begin(t *Thread, addr uint64) {
	t.begun, t.low, t.high = true, addr, addr
	for _, a := range t.process.areas {
		if a.start <= addr && addr < a.end {
			x.forget(t.process, a.start, a.end)
		}
	}
}
