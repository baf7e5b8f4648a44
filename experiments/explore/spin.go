package explore

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/sched/dpor"
)

// visits are the loads that a thread was before since it last had an effect on others, by which it is seen
// to spin: it is before the same load with the same registers, and between the two it has stored nothing,
// or the same as in the round before. Then it repeats what it does until another thread stores to what it
// loads, and its rounds before that have no effect.
type visits struct {
	list  []visit
	made  []madeStore
	reads []int // numbers of the events of the round in which it spins
}

type visit struct {
	pc   arch.Addr
	regs arch.Regs
	// repeated: it is not the first one, and the rest of the registers is known.
	repeated bool
	fp       [arch.FPSize]byte
	high     [arch.YMMHighSize]byte
	stores   int // made before
	round    int // the length of the round that ended there, in stores; -1: none did
	event    int // the number of the next event
}

// madeStore is a store to memory that is not shared.
type madeStore struct {
	pc, at, value uint64
	size          uint16
}

// mostStores bounds the stores of the rounds that are compared.
const mostStores = 256

// forget begins anew: the thread has had an effect.
func (v *visits) forget() {
	v.list, v.made = v.list[:0], v.made[:0]
}

// noteEffect notes the access that is entry i of a log. An atomic operation that stores what it has loaded
// has no effect.
func (t *thread) noteEffect(r *runner, entries []memlog.Entry, i int) {
	e := &entries[i]
	if e.Kind != memlog.Store {
		return
	}
	if r.sharing.hasShared(uint64(e.Addr), int(e.Size)) {
		if i == 0 || e.Flags&memlog.FlagAtomic == 0 || e.Size > 8 || !storesWhatIsLoaded(&entries[i-1], e) {
			t.forget()
			r.changes = true
		} else {
			r.keeps = true
		}
		return
	}
	if len(t.made) == mostStores || e.Size > 8 {
		t.forget()
		return
	}
	t.made = append(t.made, madeStore{e.PC, uint64(e.Addr), e.Value, e.Size})
}

func storesWhatIsLoaded(load, store *memlog.Entry) bool {
	return load.Kind == memlog.Load && load.PC == store.PC && load.Addr == store.Addr && load.Size == store.Size && load.Value == store.Value
}

// isSpinning reports whether a thread that is before a load does what it did when it was there last.
func (r *runner) isSpinning(t *thread) bool {
	if t.call || r.log == nil {
		return false
	}
	now := visit{pc: t.pc, stores: len(t.made), round: -1, event: len(r.history)}
	r.m.CPU().Regs(&now.regs)
	at := slices.IndexFunc(t.list, func(v visit) bool { return v.pc == t.pc })
	if at < 0 {
		t.list = append(t.list, now)
		return false
	}
	before := &t.list[at]
	r.m.CPU().FP(&now.fp)
	r.m.CPU().YMMHigh(&now.high)
	now.repeated, now.round = true, now.stores-before.stores
	same := before.repeated && now.regs == before.regs && now.fp == before.fp && now.high == before.high && t.repeatsStores(before, now.round)
	first := before.event
	*before = now
	if !same {
		return false
	}
	t.noteReads(r.history, first)
	return len(t.reads) > 0 && !r.isOutdated(t, 0)
}

// mostReads bounds the events of a thread that is set aside after which another one's store has an effect on it.
const mostReads = 256

// noteReads notes the events of a thread from a number on.
func (t *thread) noteReads(history []dpor.Event, first int) {
	t.reads = t.reads[:0]
	for i := max(0, first); i < len(history); i++ {
		if history[i].Process == t.process() {
			t.reads = append(t.reads, i)
		}
	}
}

// repeatsStores reports whether a round has made no stores, or those of the round before.
func (t *thread) repeatsStores(before *visit, round int) bool {
	if round == 0 {
		return true
	}
	n := len(t.made)
	return before.round == round && slices.Equal(t.made[n-round:], t.made[n-2*round:n-round])
}

// isOutdated reports whether another thread has stored, in an event from a number on, to what a thread that spins has
// loaded before.
func (r *runner) isOutdated(t *thread, from int) bool {
	for _, i := range t.reads {
		mine := r.history[i]
		for a := range mine.Accesses {
			mine := mine.Accesses[a]
			for k := max(i+1, from); k < len(r.history); k++ {
				other := &r.history[k]
				if other.Owner == t.process() || r.idle[k] {
					continue
				}
				for _, o := range other.Accesses {
					if o.Write && o.Start < mine.End && mine.Start < o.End {
						return true
					}
				}
			}
		}
	}
	return false
}
