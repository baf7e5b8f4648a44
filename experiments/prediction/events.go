package prediction

import (
	"cmp"
	"context"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/predict"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

const (
	pageShift = 12
	pageBytes = 1 << pageShift
)

// keptAccess is an access, or a change of a page, from which witnesses are made.
type keptAccess struct {
	seq, branches uint64
	page, next    uint64
	pc            arch.Addr
	event         predict.EventID // of which it is a part; NoEvent: of none
	size          uint32
	offset        uint16
	thread        uint16
	kind          event.MemoryKind
	part, parts   uint8
	atomic        bool
}

// memory is the access as it was recorded, without values.
func (k *keptAccess) memory() event.Memory {
	m := event.Memory{
		Stamp: event.Stamp{Seq: k.seq, Branches: k.branches}, Kind: k.kind, Atomic: k.atomic, Part: k.part, Parts: k.parts,
		PC: k.pc, Addr: arch.Addr(k.offset), Page: k.page, Next: k.next, Length: uint64(k.size),
	}
	switch k.kind {
	case event.Load, event.Store:
		m.Size = uint8(k.size)
	case event.KernelStore:
		m.Data = []byte{}
	}
	return m
}

// run is a recorded run as its predictions have it.
type run struct {
	o       *peregrine.Ordered
	b       *predict.Builder
	ops     *predict.Operations
	facts   map[uint64]predict.Facts // of operations, by the numbers of their events
	sharing *predict.Sharing

	kept []keptAccess
	// first has, of each event that is an instruction, its first access.
	first map[predict.EventID]int
	// operations are the events of the operations, by position; NoEvent: not reached.
	operations []predict.EventID
	// accesses is how many accesses were read, and cut whether the run has more.
	accesses uint64
	cut      bool
}

// walker goes through a run: its accesses, with the marks of its operations and the calls of allocators.
type walker struct {
	o           *peregrine.Ordered
	marks       []hybrid.Mark
	allocations []hybrid.Allocation
	inside      []bool
	pages       map[uint64]uint64 // by the numbers of pages of addresses
	untouched   untouchedPages
	mark        func(*hybrid.Mark)
	allocated   func(page, from, to uint64)
}

func newWalker(o *peregrine.Ordered) *walker {
	return &walker{
		o: o, marks: o.Marks, allocations: o.Allocations, inside: make([]bool, len(o.Schedule.Schedule.Threads)), pages: map[uint64]uint64{},
		untouched: untouchedPages{numbers: map[uint64]uint64{}, fresh: map[uint64]bool{}, names: map[uint64]uint64{}},
		mark:      func(*hybrid.Mark) {}, allocated: func(_, _, _ uint64) {},
	}
}

// advance continues to the event of a number.
func (w *walker) advance(seq uint64) {
	for len(w.marks) > 0 && w.marks[0].Seq <= seq {
		k := &w.marks[0]
		w.marks = w.marks[1:]
		w.mark(k)
		w.inside[k.Thread] = k.Open || w.inside[k.Thread] && !k.Close
	}
	for len(w.allocations) > 0 && w.allocations[0].Seq <= seq {
		h := &w.allocations[0]
		w.allocations = w.allocations[1:]
		if h.Begins || h.Addr == 0 {
			continue
		}
		for at, end := uint64(h.Addr), uint64(h.Addr)+h.Size; at < end; {
			next := min(end, at&^(pageBytes-1)+pageBytes)
			if page, known := w.pages[at>>pageShift]; known {
				from := page<<pageShift | at%pageBytes
				w.allocated(page, from, from+next-at)
			}
			at = next
		}
	}
}

// untouchedPages are the pages of addresses at which no thread has stored yet. All of them lead to page 0, the page of
// zeros. Here each has a number of its own, which the page keeps that the first store makes in its place: an access before
// the store and one after it are to the same memory.
type untouchedPages struct {
	numbers map[uint64]uint64 // by the numbers of pages of addresses
	fresh   map[uint64]bool   // the content of the page has appeared, and no access was to it yet
	names   map[uint64]uint64 // of pages that were made by stores, the numbers that they have here
	last    uint64
}

// firstUntouched is above the numbers of all pages.
const firstUntouched = 1 << 50

// appear notes that the content of a page appears.
func (u *untouchedPages) appear(page uint64) { u.fresh[page] = true }

// pageAt returns the number here of the page to which an address leads.
func (u *untouchedPages) pageAt(addr, page uint64) uint64 {
	at := addr >> pageShift
	if page == 0 {
		if u.numbers[at] == 0 {
			u.numbers[at] = firstUntouched + u.last
			u.last++
		}
		return u.numbers[at]
	}
	if u.fresh[page] {
		delete(u.fresh, page)
		delete(u.names, page)
		if number, known := u.numbers[at]; known {
			delete(u.numbers, at)
			u.names[page] = number
		}
	}
	return u.name(page)
}

// name returns the number here of a page that is not untouched.
func (u *untouchedPages) name(page uint64) uint64 {
	if number, renamed := u.names[page]; renamed {
		return number
	}
	return page
}

// resolve gives an access, or a change of a page, the numbers of its pages here.
func (w *walker) resolve(e *event.Memory) {
	u := &w.untouched
	switch e.Kind {
	case event.Content, event.Copy:
		page := e.Page
		e.Page = u.name(page)
		if page != 0 {
			u.appear(page)
		}
	case event.Load, event.Store, event.KernelLoad, event.KernelStore:
		end := uint64(e.Addr)&^(pageBytes-1) + pageBytes
		e.Page = u.pageAt(uint64(e.Addr), e.Page)
		if uint64(e.Addr)+uint64(e.Size) > end || e.Kind == event.KernelStore && uint64(e.Addr)+e.Length > end {
			e.Next = u.pageAt(end, e.Next)
		}
	}
}

// span is a part of an access that lies in one page: bytes of memory, wherever it is mapped.
type span struct{ from, to uint64 }

// spansOf are the parts of an access; none if it does not count.
func (w *walker) spansOf(thread int, e *event.Memory) (spans [2]span, n int) {
	from, size := e.Page<<pageShift|uint64(e.Addr)%pageBytes, uint64(e.Size)
	switch e.Kind {
	case event.Load, event.Store:
		w.pages[uint64(e.Addr)>>pageShift] = e.Page
	case event.KernelLoad:
		size = min(e.Length, pageBytes-from%pageBytes)
	case event.KernelStore:
		if size = e.Length; e.Data == nil {
			return spans, 0
		}
	default:
		return spans, 0
	}
	if w.inside[thread] || size == 0 {
		return spans, 0
	}
	first := min(size, pageBytes-from%pageBytes)
	spans[0] = span{from, from + first}
	if first == size {
		return spans, 1
	}
	spans[1] = span{e.Next << pageShift, e.Next<<pageShift + size - first}
	return spans, 2
}

// readRun reads a run up to bounds on its accesses and on those to shared memory.
func readRun(ctx context.Context, o *peregrine.Ordered, accesses, shared uint64) (*run, error) {
	s := o.Schedule.Schedule
	r := &run{o: o, sharing: predict.NewSharing(), first: map[predict.EventID]int{}, b: predict.NewBuilder(len(s.Threads))}
	r.ops = predict.NewOperations(r.b, s)
	if err := r.readFacts(); err != nil {
		return nil, err
	}
	for n := range s.Threads {
		if o.Process(n) != o.Process(0) {
			return nil, errProcesses.New()
		}
	}
	if err := r.findShared(ctx, accesses); err != nil {
		return nil, err
	}
	return r, r.readEvents(ctx, shared)
}

// readFacts reads the mutexes of waits and the first arguments of system calls.
func (r *run) readFacts() error {
	r.facts = map[uint64]predict.Facts{}
	for e, err := range trace.Get[event.Sync](r.o.Trace(), trace.Key{Kind: trace.Sync}, trace.Where{}) {
		if err != nil {
			return err
		}
		if e.Second != 0 {
			r.facts[e.Seq] = predict.Facts{Mutex: e.Second}
		}
	}
	for e, err := range trace.Get[event.Syscall](r.o.Trace(), trace.Key{Kind: trace.Syscalls}, trace.Where{}) {
		if err != nil {
			return err
		}
		r.facts[e.Seq] = predict.Facts{Descriptor: int64(int32(e.Args[0]))}
	}
	return nil
}

// findShared finds the memory that several threads access.
func (r *run) findShared(ctx context.Context, most uint64) error {
	w := newWalker(r.o)
	err := r.o.EachAccess(func(n int, e *event.Memory) bool {
		if r.accesses == most || isDone(ctx, r.accesses) {
			r.cut = true
			return false
		}
		r.accesses++
		w.advance(e.Seq)
		w.resolve(e)
		spans, count := w.spansOf(n, e)
		for _, x := range spans[:count] {
			r.sharing.Note(n, x.from, x.to, e.Kind == event.Store || e.Kind == event.KernelStore)
		}
		return true
	})
	return cmp.Or(err, ctx.Err())
}

// isDone reports whether a context is done; it is asked seldom.
func isDone(ctx context.Context, n uint64) bool {
	const seldom = 1 << 16
	return n%seldom == 0 && ctx.Err() != nil
}

// readEvents reads the events of the run.
func (r *run) readEvents(ctx context.Context, most uint64) error {
	w := newWalker(r.o)
	x := &eventReader{run: r, last: make([]lastEvent, len(r.o.Schedule.Schedule.Threads))}
	r.operations = make([]predict.EventID, len(r.o.Schedule.Schedule.Operations))
	for i := range r.operations {
		r.operations[i] = predict.NoEvent
	}
	w.mark, w.allocated = x.mark, func(page, from, to uint64) {
		if r.sharing.HasPage(page) {
			r.b.Renew(from, to)
		}
	}
	read := uint64(0)
	err := r.o.EachAccess(func(n int, e *event.Memory) bool {
		if read == r.accesses || isDone(ctx, read) {
			return false
		}
		read++
		w.advance(e.Seq)
		if uint64(len(r.kept)) >= most {
			r.cut, r.accesses = true, read
			return false
		}
		w.resolve(e)
		x.access(w, n, e)
		return true
	})
	if !r.cut {
		w.advance(^uint64(0))
	}
	return cmp.Or(err, ctx.Err())
}

// eventReader makes events of accesses and marks.
type eventReader struct {
	*run
	last []lastEvent // by thread
}

// lastEvent is the last instruction of a thread that has an event, and the thread's last operation.
type lastEvent struct {
	pc        arch.Addr
	branches  uint64
	event     predict.EventID
	operation int
	pending   []int // kept accesses of the system call that is under way
}

func (x *eventReader) mark(k *hybrid.Mark) {
	t := &x.last[k.Thread]
	if k.Position >= 0 {
		t.operation = k.Position
		x.operations[k.Position] = x.ops.Add(k.Position, x.facts[k.Seq])
		t.pc = 0
	}
	if !k.Close || k.Position < 0 && len(t.pending) == 0 {
		return
	}
	for _, i := range t.pending {
		a := &x.kept[i]
		a.event = x.operations[t.operation]
		x.b.Access(a.event, &predict.Access{
			Addr: a.page<<pageShift | uint64(a.offset), Size: uint64(a.size), Write: a.kind == event.KernelStore, Other: true,
		})
	}
	t.pending = t.pending[:0]
}

// access takes an access, or a change of a page.
func (x *eventReader) access(w *walker, n int, e *event.Memory) {
	if e.Kind == event.Content || e.Kind == event.Copy {
		if x.sharing.HasPage(e.Page) {
			x.b.Renew(e.Page<<pageShift, (e.Page+1)<<pageShift)
			x.kept = append(x.kept, keptAccess{seq: e.Seq, page: e.Page, kind: event.Content, event: predict.NoEvent, thread: uint16(n)})
		}
		return
	}
	spans, count := w.spansOf(n, e)
	shared := false
	for _, s := range spans[:count] {
		shared = shared || x.sharing.Has(s.from, s.to)
	}
	if !shared {
		return
	}
	k := keptAccess{
		seq: e.Seq, branches: e.Branches, page: e.Page, next: e.Next, pc: e.PC, size: uint32(e.Size), offset: uint16(uint64(e.Addr) % pageBytes),
		thread: uint16(n), kind: e.Kind, part: e.Part, parts: e.Parts, atomic: e.Atomic, event: predict.NoEvent,
	}
	t := &x.last[n]
	if e.Kind == event.KernelLoad || e.Kind == event.KernelStore {
		k.size = uint32(spans[0].to - spans[0].from)
		t.pending = append(t.pending, len(x.kept))
		x.kept = append(x.kept, k)
		return
	}
	// All accesses of an instruction are one event: no thread stops between them.
	if t.pc != e.PC || t.branches != e.Branches {
		t.pc, t.branches, t.event = e.PC, e.Branches, x.b.Event(n)
		x.first[t.event] = len(x.kept)
	}
	k.event = t.event
	x.kept = append(x.kept, k)
	for _, s := range spans[:count] {
		x.b.Access(t.event, &predict.Access{Addr: s.from, Size: s.to - s.from, PC: uint64(e.PC), Write: e.Kind == event.Store, Atomic: e.Atomic})
	}
}
