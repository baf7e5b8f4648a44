package stream

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/recorder/event"
)

const (
	pageSize  = 4096
	pageShift = 12
)

// handleMemory acts on an access or another change of memory.
func (x *Reader) handleMemory(m *event.Memory) error {
	if m.Kind <= event.Store {
		t := x.current
		if t == nil {
			return errStamps.New(m.Thread, m.Seq)
		}
		x.reportGuestAccess(t, m)
		return nil
	}
	switch m.Kind {
	case event.KernelStore:
		if x.current != nil && m.Data != nil {
			x.reportKernelAccess(x.current, m)
		}
		x.values.putBytes(m)
	case event.KernelLoad:
		if x.current != nil {
			x.reportKernelAccess(x.current, m)
		}
	case event.View:
		x.values.putBytes(m)
	case event.Content:
		x.detector.Forget(m.Page<<pageShift, (m.Page+1)<<pageShift)
		x.values.setPage(m.Page, m.Data)
	case event.Copy:
		if x.current != nil {
			x.detector.CopyPage(m.Page, m.From, int(x.current.Process))
		}
		x.values.copyPage(m.Page, m.From)
	}
	return nil
}

// reportGuestAccess passes a load or store to the detector.
func (x *Reader) reportGuestAccess(t *Thread, m *event.Memory) {
	addr, offset := uint64(m.Addr), uint64(m.Addr)%pageSize
	t.process.table.notePage(addr>>pageShift, m.Page)
	if !t.begun {
		x.forgetStack(t, addr)
	}
	a := &x.access
	a.Value, a.Old, a.Valued = 0, 0, false
	if x.values != nil && m.Kind == event.Store {
		x.values.applyStore(m, a)
	}
	if x.ignoresAccesses(t) || m.Atomic && m.Kind == event.Store && x.options.Order == races.HappensBefore {
		x.counts.Skipped++
	} else {
		a.Thread, a.Addr, a.Size, a.First = t.Number, m.Page<<pageShift+offset, int(m.Size), 0
		if offset+uint64(m.Size) > pageSize {
			a.First, a.Rest = int(pageSize-offset), m.Next<<pageShift
		}
		a.Write, a.Other, a.PC, a.Branches = m.Kind == event.Store, false, m.PC, m.Branches
		a.Atomic = m.Atomic && (x.atomics || x.options.Order == races.HappensBefore)
		a.Stack = t.calls.node
		x.sendAccess(addr)
	}
	if m.Size == 8 {
		x.trackCall(t, m, addr)
	}
}

// ignoresAccesses reports whether the thread's accesses belong to an operation or an allocator.
func (x *Reader) ignoresAccesses(t *Thread) bool {
	return t.operationDepth > 0 || t.allocatorDepth > 0 && x.options.Order == races.HappensBefore
}

// sendAccess passes x.access, which is at a virtual address, to the detector.
func (x *Reader) sendAccess(addr uint64) {
	x.counts.Accesses++
	x.access.At, x.addr, x.base = x.accessNumber, addr, x.access.Addr
	x.accessNumber++
	x.detector.Access(&x.access)
}

// passRaceOn passes a race on, with the address that the second access has.
func (x *Reader) passRaceOn(r *races.Race) {
	if a := &x.access; a.First > 0 && r.Addr>>pageShift == a.Rest>>pageShift {
		r.Addr = r.Addr - a.Rest + x.addr + uint64(a.First)
	} else {
		r.Addr = r.Addr - x.base + x.addr
	}
	x.options.Race(r)
}

// reportKernelAccess passes an access of the kernel for a thread to the detector.
func (x *Reader) reportKernelAccess(t *Thread, m *event.Memory) {
	if x.ignoresAccesses(t) {
		x.counts.Skipped++
		return
	}
	t.process.table.notePage(uint64(m.Addr)>>pageShift, m.Page)
	x.access = races.Access{
		Thread: t.Number, Addr: m.Page<<pageShift + uint64(m.Addr)%pageSize, Size: int(m.Length), Write: m.Kind == event.KernelStore,
		Other:    true,
		Branches: m.Branches, Stack: t.calls.node,
	}
	x.sendAccess(uint64(m.Addr))
}

// forgetRange makes a range of a process's addresses memory without a past.
func (x *Reader) forgetRange(p *process, from, to uint64) {
	p.table.eachPage(from, to, func(at, _, size uint64) { x.detector.Forget(at, at+size) })
}

// eachPage calls f for the parts of a range of addresses that are known to lead
// somewhere, in order, one for each page: where that is, the address, and the
// size.
func (t *pageTable) eachPage(from, to uint64, f func(at, addr, size uint64)) {
	if from >= to {
		return
	}
	one := func(number uint64) {
		page, ok := t.pages[number]
		if !ok {
			return
		}
		start := max(from, number<<pageShift)
		end := min(to-1, number<<pageShift|(pageSize-1))
		f(page<<pageShift+start%pageSize, start, end-start+1)
	}
	first, last := from>>pageShift, (to-1)>>pageShift
	if last-first < uint64(len(t.pages)) {
		for number := first; number <= last; number++ {
			one(number)
		}
		return
	}
	var list []uint64
	for number := range t.pages {
		if number >= first && number <= last {
			list = append(list, number)
		}
	}
	slices.Sort(list)
	for _, number := range list {
		one(number)
	}
}

// pageTable is which page an address of a process was last seen to lead to.
type pageTable struct {
	pages map[uint64]uint64
	near  *[nearPages]entry
}

type entry struct{ number, page uint64 }

const nearPages = 512

func newPageTable() pageTable { return pageTable{map[uint64]uint64{}, new([nearPages]entry)} }

func (t *pageTable) notePage(number, page uint64) {
	e := &t.near[number%nearPages]
	if e.number == number && e.page == page {
		return
	}
	*e = entry{number, page}
	t.pages[number] = page
}

// dropPages forgets where pages [from, to) lead.
func (t *pageTable) dropPages(from, to uint64) {
	if to-from > uint64(len(t.pages)) {
		clear(t.near[:])
		for number := range t.pages {
			if number >= from && number < to {
				delete(t.pages, number)
			}
		}
		return
	}
	for number := from; number < to; number++ {
		delete(t.pages, number)
		if e := &t.near[number%nearPages]; e.number == number {
			*e = entry{}
		}
	}
}

func (t *pageTable) pageAt(number uint64) (uint64, bool) {
	page, ok := t.pages[number]
	return page, ok
}
