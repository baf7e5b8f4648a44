package stream

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// batch is accesses of one thread between two events, as entries of a memory log.
type batch struct {
	thread   arch.ThreadID
	seq      uint64
	branches uint64 // of the thread before the first entry
	latest   uint64 // branches before the last one
	entries  []memlog.Entry
	bytes    []byte
	near     [nearPages]lead
}

// lead is where a page of addresses leads, as the entries so far have it.
type lead struct {
	number, page uint64
	known        bool
}

// Bounds of a batch.
const (
	mostEntries = 4096
	mostBytes   = 1 << 20
	nearPages   = 1024
)

// beginPiece begins with a number of branches.
func (b *batch) beginPiece(m *event.Memory) { b.branches, b.latest = m.Branches, m.Branches }

// hasRoom reports whether an access can be added. Entries have the low bits of numbers of branches,
// and changes of memory have the number of the access before.
func (b *batch) hasRoom(m *event.Memory) bool {
	if m.Kind > event.Store && m.Branches != b.latest {
		return false
	}
	return len(b.entries) < mostEntries && len(b.bytes) < mostBytes && m.Branches-b.branches < 1<<32
}

// add adds an access or another change of memory.
func (b *batch) add(m *event.Memory) {
	e := memlog.Entry{Addr: m.Addr, PC: m.Page & pageMask}
	switch m.Kind {
	case event.Load, event.Store:
		b.addAccess(m)
		return
	case event.KernelStore, event.View:
		e.Kind, e.Branches = memlog.Kernel, uint32(m.Length)
		if m.Kind == event.View {
			e.Flags = memlog.FlagBuffered
		}
		if m.Data == nil {
			e.Flags |= memlog.FlagLater
		}
	case event.KernelLoad:
		e.Kind, e.Branches = memlog.Read, uint32(m.Length)
	case event.Content:
		e.Kind = memlog.Zero
		if m.Data != nil {
			e.Kind = memlog.Content
		}
	case event.Copy:
		e.Kind, e.Value = memlog.Copy, m.From&pageMask
	}
	if m.Data != nil {
		e.Value = uint64(len(b.bytes))
		b.bytes = append(b.bytes, m.Data...)
	}
	b.entries = append(b.entries, e)
}

// pageMask has the bits of a page's number.
const pageMask = 1<<(64-pageShift) - 1

func (b *batch) addAccess(m *event.Memory) {
	number := uint64(m.Addr) >> pageShift
	b.addMapping(number, m.Page&pageMask)
	if end := (uint64(m.Addr) + uint64(m.Size) - 1) >> pageShift; end != number {
		b.addMapping(end, m.Next&pageMask)
	}
	e := memlog.Entry{
		Addr: m.Addr, Value: m.Value[0], PC: uint64(m.PC), Branches: uint32(m.Branches), Size: uint16(m.Size), Kind: memlog.Load,
	}
	if m.Kind == event.Store {
		e.Kind = memlog.Store
	}
	if m.Atomic {
		e.Flags = memlog.FlagAtomic
	}
	b.latest = m.Branches
	b.entries = append(b.entries, e)
	if m.Size > 8 {
		b.entries = append(b.entries, memlog.Entry{Addr: m.Addr + 8, Value: m.Value[1], Kind: memlog.High})
	}
}

// addMapping says where a page of addresses leads, unless the entries say so already.
func (b *batch) addMapping(number, page uint64) {
	l := &b.near[number%nearPages]
	if *l == (lead{number, page, true}) {
		return
	}
	*l = lead{number, page, true}
	b.entries = append(b.entries, memlog.Entry{Kind: memlog.Map, Addr: arch.Addr(number << pageShift), PC: page})
}
