package recorder

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// past keeps the events before a stretch that still have an effect, and writes them, with their own stamps, to the trace
// when the stretch begins: the starts of the threads that there are, the threads of the cores, objects of synchronization,
// blocks of the heap, and operations, calls of allocators, system calls and signal handlers that are under way. It adds
// the registers of all threads and the areas of memory at that moment.
type past struct {
	Nothing
	starts    map[arch.ThreadID]event.Start
	issued    map[arch.ThreadID]event.Syscall
	switches  map[arch.CoreID]event.Switch
	objects   []event.Object
	under     map[arch.ThreadID][]any // *event.Sync, *event.Heap and *event.Signal, the innermost last
	barriers  map[event.ObjectID]*pastBarrier
	heaps     map[int32]map[arch.Addr]event.Heap // blocks by process
	processes map[arch.ThreadID]int32            // also of threads that are over
}

// pastBarrier is the past of a barrier: the events of its creation, and those since no thread waited at it.
type pastBarrier struct {
	made, rounds []event.Sync
	waiting      int
}

// newPast makes the past of a run that has not begun.
func newPast() *past {
	return &past{
		starts: map[arch.ThreadID]event.Start{}, issued: map[arch.ThreadID]event.Syscall{}, switches: map[arch.CoreID]event.Switch{},
		under: map[arch.ThreadID][]any{}, barriers: map[event.ObjectID]*pastBarrier{}, heaps: map[int32]map[arch.Addr]event.Heap{},
		processes: map[arch.ThreadID]int32{},
	}
}

// SharedInSnapshot marks that a run of which a stretch is recorded does not return to snapshots.
func (p *past) SharedInSnapshot() {}

// keepEvent takes an event before the stretch (trace.Writer.Mute).
func (p *past) keepEvent(e any) {
	switch e := e.(type) {
	case *event.Start:
		p.keepStart(e)
	case *event.Exit:
		delete(p.starts, e.Thread)
		delete(p.issued, e.Thread)
		delete(p.under, e.Thread)
	case *event.Switch:
		s := *e
		s.Offset, s.CoreInstructions = 0, 0
		p.switches[e.Core] = s
	case *event.Object:
		p.objects = append(p.objects, *e)
	case *event.Syscall:
		p.keepSyscall(e)
	case *event.Signal:
		s := *e
		s.Info = slices.Clone(e.Info)
		p.under[e.Thread] = append(p.under[e.Thread], &s)
	case *event.Sync:
		p.keepSync(e)
	case *event.Heap:
		p.keepHeap(e)
	}
}

// keepStart keeps the start of a thread. A process that was forked has its parent's heap.
func (p *past) keepStart(e *event.Start) {
	p.starts[e.Thread] = *e
	p.processes[e.Thread] = e.Process
	if p.heaps[e.Process] != nil {
		return
	}
	p.heaps[e.Process] = map[arch.Addr]event.Heap{}
	if parent, ok := p.processes[e.Parent]; ok {
		for at, b := range p.heaps[parent] {
			b.Stamp = e.Stamp
			p.heaps[e.Process][at] = b
		}
	}
}

func (p *past) keepSyscall(e *event.Syscall) {
	if e.Phase == event.Return {
		delete(p.issued, e.Thread)
		if linux.Has(e.Number, linux.Executes) && e.Result == 0 {
			delete(p.under, e.Thread)
			p.heaps[p.processes[e.Thread]] = map[arch.Addr]event.Heap{}
		}
		return
	}
	p.issued[e.Thread] = *e
	if e.Number == unix.SYS_RT_SIGRETURN {
		list := p.under[e.Thread]
		for n := len(list) - 1; n >= 0; n-- {
			if _, ok := list[n].(*event.Signal); ok {
				p.under[e.Thread] = list[:n]
				return
			}
		}
	}
}

// leave removes the innermost operation that is under way, or call of an allocator, as ends says.
func (p *past) leave(t arch.ThreadID, ends func(e any) bool) {
	list := p.under[t]
	for n := len(list) - 1; n >= 0; n-- {
		if ends(list[n]) {
			p.under[t] = slices.Delete(list, n, n+1)
			return
		}
	}
}

func (p *past) keepSync(e *event.Sync) {
	s := *e
	if e.Op == event.OpBarrierInit || e.Op == event.OpBarrierWait {
		p.keepBarrier(&s)
		if e.Op == event.OpBarrierWait {
			return
		}
	}
	switch e.Phase {
	case event.Enter:
		p.under[e.Thread] = append(p.under[e.Thread], &s)
	case event.Return, event.Unwound:
		p.leave(e.Thread, func(x any) bool {
			begun, ok := x.(*event.Sync)
			return ok && begun.Op == e.Op
		})
	}
}

// keepBarrier keeps the rounds of a barrier in which threads wait.
func (p *past) keepBarrier(e *event.Sync) {
	b := p.barriers[e.Object]
	if b == nil {
		b = &pastBarrier{}
		p.barriers[e.Object] = b
	}
	if e.Op == event.OpBarrierInit {
		if e.Phase == event.Enter {
			*b = pastBarrier{}
		}
		b.made = append(b.made, *e)
		return
	}
	b.rounds = append(b.rounds, *e)
	if e.Phase == event.Enter {
		b.waiting++
	} else if b.waiting--; b.waiting == 0 {
		b.rounds = b.rounds[:0]
	}
}

func (p *past) keepHeap(e *event.Heap) {
	blocks := p.heaps[p.processes[e.Thread]]
	if e.Phase == event.Enter {
		h := *e
		p.under[e.Thread] = append(p.under[e.Thread], &h)
		if e.Op == event.HeapFree {
			delete(blocks, e.Old)
		}
		return
	}
	p.leave(e.Thread, func(x any) bool {
		begun, ok := x.(*event.Heap)
		return ok && begun.Op == e.Op
	})
	if e.Op == event.HeapResize && e.Old != 0 && (e.Addr != 0 || e.Size == 0) {
		delete(blocks, e.Old)
	}
	if e.Addr != 0 && blocks != nil {
		blocks[e.Addr] = *e
	}
}

// Open implements Recording: it writes what was kept.
func (p *past) Open(r *Recorder) {
	var l keptEvents
	for _, e := range p.starts {
		l.add(e.Stamp, func() { writeEvent(r, trace.Threads, &e) })
	}
	for _, e := range p.switches {
		if _, lives := p.starts[e.Thread]; lives {
			l.add(e.Stamp, func() { writeEvent(r, trace.Sideband, &e) })
		}
	}
	for _, e := range p.objects {
		l.add(e.Stamp, func() { writeEvent(r, trace.Objects, &e) })
	}
	for _, e := range p.issued {
		l.add(e.Stamp, func() { writeEvent(r, trace.Syscalls, &e) })
	}
	p.addUnderWay(r, &l)
	p.addHeaps(r, &l)
	l.write()
	p.writeMachine(r)
	*p = *newPast()
}

func writeEvent[E trace.Event](r *Recorder, kind trace.Kind, e *E) {
	trace.Put(r.Trace().Stream(kind, 0), e)
}

// keptEvents is a list of events that are written in their order.
type keptEvents struct{ list []keptEvent }

type keptEvent struct {
	seq   uint64
	block arch.Addr // of the heap: an inherited one has the number of its process's start
	write func()
}

func (l *keptEvents) add(at event.Stamp, write func()) {
	l.list = append(l.list, keptEvent{seq: at.Seq, write: write})
}

func (l *keptEvents) write() {
	slices.SortFunc(l.list, func(a, b keptEvent) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.block, b.block))
	})
	for _, e := range l.list {
		e.write()
	}
}

// addUnderWay adds operations, calls of allocators and handlers that are under way, and the rounds of barriers.
func (p *past) addUnderWay(r *Recorder, l *keptEvents) {
	for _, list := range p.under {
		for _, e := range list {
			switch e := e.(type) {
			case *event.Sync:
				l.add(e.Stamp, func() { writeEvent(r, trace.Sync, e) })
			case *event.Heap:
				l.add(e.Stamp, func() { writeEvent(r, trace.Heap, e) })
			case *event.Signal:
				l.add(e.Stamp, func() { writeEvent(r, trace.Signals, e) })
			}
		}
	}
	first := map[int32]arch.ThreadID{}
	for pid, tasks := range r.Processes {
		first[pid] = tasks[0].ID()
	}
	for _, b := range p.barriers {
		for _, e := range slices.Concat(b.made, b.rounds) {
			if _, lives := p.starts[e.Thread]; !lives {
				e.Thread = first[p.processes[e.Thread]]
			}
			if e.Thread != 0 {
				l.add(e.Stamp, func() { writeEvent(r, trace.Sync, &e) })
			}
		}
	}
}

// addHeaps adds the blocks of the heaps.
func (p *past) addHeaps(r *Recorder, l *keptEvents) {
	for pid, tasks := range r.Processes {
		for _, b := range p.heaps[pid] {
			if _, lives := p.starts[b.Thread]; !lives || p.processes[b.Thread] != pid {
				b.Thread = tasks[0].ID() // the thread that has allocated it is over, or another process's
				b.Seq = max(b.Seq, p.starts[b.Thread].Seq)
			}
			l.list = append(l.list, keptEvent{b.Seq, b.Addr, func() { writeEvent(r, trace.Heap, &b) }})
		}
	}
}

// writeMachine writes the registers of all threads and the areas of memory.
func (p *past) writeMachine(r *Recorder) {
	registers, areas := r.Trace().Stream(trace.Registers, 0), r.Trace().Stream(trace.Areas, 0)
	for pid, tasks := range r.Processes {
		for _, t := range tasks {
			e := registersOf(t)
			e.Stamp = r.Now(t.ID())
			trace.Put(registers, &e)
		}
		for _, v := range tasks[0].Process().Space().VMAs() {
			trace.Put(areas, &event.Area{
				Stamp: r.Now(tasks[0].ID()), Process: pid, Addr: v.Start, Size: v.Len(), Rights: uint64(v.Prot),
				Shared: v.Flags&mm.Shared != 0, Anonymous: v.File == nil,
			})
		}
	}
	if t := r.Kernel().Task(r.Thread()); t != nil && t.Process().Space() != nil {
		t.Load()
	}
}

func registersOf(t *kernel.Task) event.Registers {
	var regs arch.Regs
	var fp [arch.FPSize]byte
	t.Registers(&regs, &fp)
	return event.Registers{
		General: regs.GPR, PC: arch.Addr(regs.RIP), Flags: regs.RFLAGS, FS: regs.FSBase, GS: regs.GSBase, FP: fp[:],
	}
}
