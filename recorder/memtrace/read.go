package memtrace

import (
	"iter"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Key is the stream of a trace that has the accesses.
var Key = trace.Key{Kind: trace.Memory}

// Select chooses among the accesses of a trace; the zero value chooses all. Contents
// and copies of pages have neither address nor instruction: they are left out as
// soon as addresses, instructions or threads are chosen.
type Select struct {
	// Where bounds the pieces of runs, by their stamps.
	Where trace.Where
	// Threads, Data and Code are the threads, the addresses and the
	// instructions, if not empty.
	Threads    []arch.ThreadID
	Data, Code []memlog.Range
}

// isAll reports whether all accesses are selected.
func (s *Select) isAll() bool {
	return s.Where == trace.Where{} && len(s.Threads)+len(s.Data)+len(s.Code) == 0
}

func (s *Select) isSelected(m *event.Memory) bool {
	if len(s.Threads) > 0 && !slices.Contains(s.Threads, m.Thread) {
		return false
	}
	if !s.Where.Has(m.Stamp) {
		return false
	}
	if len(s.Threads)+len(s.Data)+len(s.Code) == 0 {
		return true
	}
	switch m.Kind {
	case event.Load, event.Store:
		return touchesRange(s.Data, m.Addr, uint64(m.Size)) && touchesRange(s.Code, m.PC, 1)
	case event.KernelStore, event.KernelLoad, event.View:
		return touchesRange(s.Data, m.Addr, m.Length) && len(s.Code) == 0
	}
	return false
}

func touchesRange(ranges []memlog.Range, at arch.Addr, size uint64) bool {
	for _, r := range ranges {
		if at < r.End && at+arch.Addr(size) > r.Start {
			return true
		}
	}
	return len(ranges) == 0
}

// Read iterates over the accesses of a trace. An access is valid until the
// next one. Damage gives an error in its place; continuing gives the next block.
func Read(r *trace.Reader, s Select) iter.Seq2[*event.Memory, error] {
	return func(yield func(*event.Memory, error) bool) {
		d := NewDecoder()
		for record, err := range r.Records(Key, s.Where) {
			if err == nil {
				err = d.Block(record)
			}
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			if !d.eachAccess(&s, yield) {
				return
			}
		}
	}
}

// eachAccess yields the accesses of a block, and reports whether to continue.
func (d *Decoder) eachAccess(s *Select, yield func(*event.Memory, error) bool) bool {
	all := s.isAll()
	for {
		m, err := d.Next()
		if err != nil {
			return yield(nil, err)
		}
		if m == nil {
			return true
		}
		if (all || s.isSelected(m)) && !yield(m, nil) {
			return false
		}
	}
}
