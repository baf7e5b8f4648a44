package memtrace

import (
	"context"
	"iter"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// ReadRun iterates over the accesses of a run that takes place meanwhile: execute carries it out, with the
// listener in place of a trace, until it is over or its context is. They are what Read has of a trace of the
// run. An access is valid until the next one. The error of execute is the last thing, unless the loop has ended.
func ReadRun(ctx context.Context, s Select, execute func(context.Context, trace.Listener) error) iter.Seq2[*event.Memory, error] {
	return func(yield func(*event.Memory, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		x := &runReader{pages: map[uint64]uint64{}}
		all := s.isAll()
		x.pass = func(m *event.Memory) {
			if !x.ended && (all || s.isSelected(m)) && !yield(m, nil) {
				x.ended = true
				cancel()
			}
		}
		if err := execute(ctx, x); err != nil && !x.ended {
			yield(nil, err)
		}
	}
}

// runReader is a Listener that makes events of the engine's log.
type runReader struct {
	pass  func(*event.Memory)
	ended bool // the loop has ended

	pages map[uint64]uint64
	front [frontSize]place

	stamp event.Stamp // of the piece
	begun bool        // there is a piece
	count uint64      // branches before the last access
	// part and parts are those of the next access.
	part, parts uint8
	memory      event.Memory
}

// SharedInSnapshot marks that copies of a machine's state share it.
func (x *runReader) SharedInSnapshot() {}

// Event implements trace.Listener.
func (x *runReader) Event(any) {}

// Document implements trace.Listener.
func (x *runReader) Document(trace.Kind, []byte) {}

// BeginRun implements Listener: all is to come in the log.
func (x *runReader) BeginRun(event.Stamp, uint64) memlog.Consumer { return nil }

// MemorySaved implements Listener.
func (x *runReader) MemorySaved() { x.begun = false }

// Memory implements Listener.
func (x *runReader) Memory(log *memlog.Buffer, start event.Stamp, counted uint64) {
	entries := log.Entries()
	if x.ended || len(entries) == 0 {
		return
	}
	if s := &x.stamp; !x.begun || s.Thread != start.Thread || s.Seq != start.Seq || s.Core != start.Core {
		x.stamp, x.begun, x.count = start, true, start.Branches
	}
	x.memory = event.Memory{Stamp: x.stamp}
	for i := 0; i < len(entries) && !x.ended; i++ {
		e := &entries[i]
		if e.Kind > memlog.Store {
			x.takeChange(e, log)
			continue
		}
		x.count = start.Branches + uint64(e.Branches-uint32(counted))
		high := uint64(0)
		if e.Size > 8 {
			i++
			high = entries[i].Value
		}
		x.takeAccess(e, high)
	}
}

// takeAccess passes on a load or store. Of the event only the fields are set that differ from the last one.
func (x *runReader) takeAccess(e *memlog.Entry, high uint64) {
	m := &x.memory
	m.Kind = event.Load
	if e.Kind == memlog.Store {
		m.Kind = event.Store
	}
	m.Branches = x.count
	m.Atomic = e.Flags&memlog.FlagAtomic != 0
	m.Part, m.Parts = x.part, x.parts
	x.part, x.parts = 0, 0
	m.Size = uint8(e.Size)
	addr := uint64(e.Addr) & (1<<addrBits - 1)
	m.PC, m.Addr, m.Next = arch.Addr(e.PC), arch.Addr(addr), 0
	m.Value = [2]uint64{e.Value, high}
	m.Page = x.pageOf(addr)
	if end := addr + uint64(m.Size) - 1; end>>pageShift != addr>>pageShift {
		m.Next = x.pageOf(end)
	}
	x.pass(m)
}

// takeChange takes another entry.
func (x *runReader) takeChange(e *memlog.Entry, log *memlog.Buffer) {
	m := event.Memory{Stamp: x.stamp, Page: e.PC}
	m.Branches = x.count
	switch e.Kind {
	case memlog.Map:
		number := uint64(e.Addr) >> pageShift
		x.pages[number] = e.PC
		x.front[number&(frontSize-1)] = place{number, e.PC, true}
		return
	case memlog.Part:
		x.part, x.parts = uint8(e.PC), uint8(e.Addr)
		return
	case memlog.Kernel:
		m.Kind, m.Addr, m.Length, m.Data = event.KernelStore, e.Addr, uint64(e.Branches), log.Bytes(e)
		if e.Flags&memlog.FlagBuffered != 0 {
			m.Kind = event.View
		}
	case memlog.Read:
		m.Kind, m.Addr, m.Length = event.KernelLoad, e.Addr, uint64(e.Branches)
	case memlog.Content, memlog.Zero:
		m.Kind, m.Data = event.Content, log.Bytes(e)
	case memlog.Copy:
		m.Kind, m.From = event.Copy, e.Value
	}
	x.pass(&m)
}

// pageOf is the page of an address, of which the log has had the mapping.
func (x *runReader) pageOf(addr uint64) uint64 {
	number := addr >> pageShift
	p := &x.front[number&(frontSize-1)]
	if p.number != number || !p.known {
		*p = place{number, x.pages[number], true}
	}
	return p.page
}
