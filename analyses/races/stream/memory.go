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

// memory acts on an access or another change of memory.
func (x *Run) memory(m *event.Memory) error {
	if m.Kind <= event.Store {
		t := x.current
		if t == nil {
			return errStamps.New(m.Thread, m.Seq)
		}
		x.guest(t, m)
		return nil
	}
	switch m.Kind {
	case event.KernelStore:
		if x.current != nil && m.Data != nil {
			x.kernel(x.current, m)
		}
		x.values.put(m)
	case event.KernelLoad:
		if x.current != nil {
			x.kernel(x.current, m)
		}
	case event.View:
		x.values.put(m)
	case event.Content:
		x.detector.Forget(m.Page<<pageShift, (m.Page+1)<<pageShift)
		x.values.content(m.Page, m.Data)
	case event.Copy:
		if x.current != nil {
			x.detector.Copy(m.Page, m.From, int(x.current.Process))
		}
		x.values.copy(m.Page, m.From)
	}
	return nil
}

// guest tells the detector of a load or store.
func (x *Run) guest(t *Thread, m *event.Memory) {
	addr, offset := uint64(m.Addr), uint64(m.Addr)%pageSize
	t.process.table.note(addr>>pageShift, m.Page)
	if !t.begun {
		x.begin(t, addr)
	}
	a := &x.access
	a.Value, a.Old, a.Valued = 0, 0, false
	if x.values != nil && m.Kind == event.Store {
		x.values.store(m, a)
	}
	if x.ignores(t) || m.Atomic && m.Kind == event.Store && x.o.Order == races.HappensBefore {
		x.counts.Skipped++
	} else {
		a.Thread, a.Addr, a.Size, a.First = t.Number, m.Page<<pageShift+offset, int(m.Size), 0
		if offset+uint64(m.Size) > pageSize {
			a.First, a.Rest = int(pageSize-offset), m.Next<<pageShift
		}
		a.Write, a.Other, a.PC, a.Branches = m.Kind == event.Store, false, m.PC, m.Branches
		a.Atomic = m.Atomic && (x.atomics || x.o.Order == races.HappensBefore)
		a.Stack = t.calls.node
		x.tell(addr)
	}
	if m.Size == 8 {
		x.call(t, m, addr)
	}
}

// ignores tells whether what the thread does is part of something else.
func (x *Run) ignores(t *Thread) bool {
	return t.within > 0 || t.heap > 0 && x.o.Order == races.HappensBefore
}

// tell tells the detector of x.access, which is at a virtual address.
func (x *Run) tell(addr uint64) {
	x.counts.Accesses++
	x.access.At, x.addr, x.base = x.at, addr, x.access.Addr
	x.at++
	x.detector.Access(&x.access)
}

// found passes a race on, with the address that the second access has.
func (x *Run) found(r *races.Race) {
	if a := &x.access; a.First > 0 && r.Addr>>pageShift == a.Rest>>pageShift {
		r.Addr = r.Addr - a.Rest + x.addr + uint64(a.First)
	} else {
		r.Addr = r.Addr - x.base + x.addr
	}
	x.o.Race(r)
}

// kernel tells the detector of what the kernel wrote or read for a thread.
func (x *Run) kernel(t *Thread, m *event.Memory) {
	if x.ignores(t) {
		x.counts.Skipped++
		return
	}
	t.process.table.note(uint64(m.Addr)>>pageShift, m.Page)
	x.access = races.Access{
		Thread: t.Number, Addr: m.Page<<pageShift + uint64(m.Addr)%pageSize, Size: int(m.Length), Write: m.Kind == event.KernelStore,
		Other:    true,
		Branches: m.Branches, Stack: t.calls.node,
	}
	x.tell(uint64(m.Addr))
}

// forget makes a range of a process's addresses memory without a past.
func (x *Run) forget(p *process, from, to uint64) {
	p.table.each(from, to, func(at, _, size uint64) { x.detector.Forget(at, at+size) })
}

// each calls f for the parts of a range of addresses that are known to lead
// somewhere, in order, one for each page: where that is, the address, and the
// size.
func (t *table) each(from, to uint64, f func(at, addr, size uint64)) {
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

// table is which page an address of a process was last seen to lead to.
type table struct {
	pages map[uint64]uint64
	near  *[nearPages]entry
}

type entry struct{ number, page uint64 }

const nearPages = 512

func newTable() table { return table{map[uint64]uint64{}, new([nearPages]entry)} }

func (t *table) note(number, page uint64) {
	e := &t.near[number%nearPages]
	if e.number == number && e.page == page {
		return
	}
	*e = entry{number, page}
	t.pages[number] = page
}

// drop forgets where pages [from, to) lead.
func (t *table) drop(from, to uint64) {
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

func (t *table) page(number uint64) (uint64, bool) {
	page, ok := t.pages[number]
	return page, ok
}
