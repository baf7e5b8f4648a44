package explore

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// polls are accesses of a thread that has run for a quantum without an event. If they repeat themselves, with
// their values, the thread waits for another one to store to memory that it loads, which no other thread has
// used so far.
type polls struct {
	on   bool
	list []memlog.Entry
}

// Bounds of the accesses that are compared, and of those of a round.
const (
	polledAccesses = 2048
	longestRound   = 128
)

// end ends the collection of accesses.
func (p *polls) end() { p.on, p.list = false, p.list[:0] }

// add adds an access.
func (p *polls) add(e *memlog.Entry) {
	if p.on && len(p.list) < polledAccesses {
		p.list = append(p.list, memlog.Entry{Kind: e.Kind, Flags: e.Flags, Size: e.Size, PC: e.PC, Addr: e.Addr, Value: e.Value})
	}
}

// round returns the accesses that are repeated; nil: they are not repeated.
func (p *polls) round() []memlog.Entry {
	if len(p.list) < polledAccesses {
		return nil
	}
	for n := 1; n <= longestRound; n++ {
		same := true
		for i := n; i < len(p.list) && same; i++ {
			same = p.list[i] == p.list[i-n]
		}
		if same {
			return p.list[:n]
		}
	}
	return nil
}

// notePolling notes that a thread has run for a quantum without an event. The memory that it polls is shared from the next
// execution on; that loop then has events.
func (r *runner) notePolling(t *thread) {
	if r.log == nil {
		return
	}
	round := r.polls.round()
	// Memory that this thread alone has used, such as its stack, is shared only if it polls nothing else.
	if !r.sharePolled(t, round, false) {
		r.sharePolled(t, round, true)
	}
	if r.polls.end(); r.sharing.grown && round != nil {
		r.over, r.ending = true, explored
	}
	r.polls.on = true
}

// sharePolled shares the memory that the loads of a round read, and reports whether there was any. With own, that of
// pages that the thread alone has used is shared, too.
func (r *runner) sharePolled(t *thread, round []memlog.Entry, own bool) (any bool) {
	for i := range round {
		e := &round[i]
		if e.Kind != memlog.Load || !own && r.sharing.isOwn(t.id, uint64(e.Addr)) {
			continue
		}
		kind := loads
		if e.Flags&memlog.FlagAtomic != 0 {
			kind |= locked
		}
		r.sharing.share(uint64(e.Addr), int(e.Size), arch.Addr(e.PC), kind)
		any = true
	}
	return any
}
