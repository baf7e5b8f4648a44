package explore

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched/dpor"
)

// Under TSO and PSO the stores of a thread wait in the buffer of its core, and their commits are the events
// of a process of their own: one for each thread under TSO, one for each thread and address under PSO. The
// store itself is no event, since no other thread notices it. Stores to memory that is not shared are
// committed as soon as the model lets them, or with the store that waits for them.

// buffers returns the store buffers; nil: the model is SC.
func (r *runner) buffers() *storebuffer.ByStore {
	b, _ := r.m.StoreBuffer().(*storebuffer.ByStore)
	return b
}

// coreOf returns the core in whose buffer the stores of a thread are.
func (r *runner) coreOf(b *storebuffer.ByStore, t *thread) (k arch.CoreID, has bool) {
	for k := range arch.CoreID(r.m.Cluster().Cores()) {
		if len(b.Stores(k)) > 0 && b.Thread(k) == t.id {
			return k, true
		}
	}
	return 0, false
}

// hasStores reports whether stores of a thread wait.
func (r *runner) hasStores(t *thread) bool {
	b := r.buffers()
	if b == nil {
		return false
	}
	_, has := r.coreOf(b, t)
	return has
}

// bufferProcess is the process that commits a store of a thread.
func (r *runner) bufferProcess(t *thread, at arch.Addr, weak bool) dpor.Process {
	if r.model != memmodel.PSO && !weak {
		return t.process() | 1
	}
	// The addresses of user space have 47 bits.
	return t.process() | 1<<(threadShift-1) | dpor.Process(at)
}

// visitCommits calls visit for each commit that a process can make: of store i of core k.
func (r *runner) visitCommits(visit func(p dpor.Process, t *thread, k arch.CoreID, i int)) {
	b := r.buffers()
	if b == nil {
		return
	}
	for _, t := range r.order {
		k, has := r.coreOf(b, t)
		if !has {
			continue
		}
		stores := b.Stores(k)
		for i := range stores {
			s := &stores[i]
			if s.Size == 0 || !r.sharing.hasShared(uint64(s.Addr), int(s.Size)) {
				continue
			}
			if !slices.ContainsFunc(b.WaitsFor(k, i), func(j int) bool { return r.sharing.hasShared(uint64(stores[j].Addr), int(stores[j].Size)) }) {
				visit(r.bufferProcess(t, s.Addr, s.Weak != 0), t, k, i)
			}
		}
	}
}

// appendBuffers appends the processes that can commit a store.
func (r *runner) appendBuffers(list []dpor.Process) []dpor.Process {
	r.visitCommits(func(p dpor.Process, _ *thread, _ arch.CoreID, _ int) { list = append(list, p) })
	return list
}

// appendCommits appends the commits that are possible.
func (r *runner) appendCommits(list []dpor.Event) []dpor.Event {
	r.visitCommits(func(p dpor.Process, t *thread, k arch.CoreID, i int) { list = append(list, r.commitEvent(p, t, k, i)) })
	return list
}

func (r *runner) commitEvent(p dpor.Process, t *thread, k arch.CoreID, i int) dpor.Event {
	s := &r.buffers().Stores(k)[i]
	return dpor.Event{
		Process: p, Owner: t.process(),
		Accesses: []dpor.Access{{Start: uint64(s.Addr), End: uint64(s.Addr) + uint64(s.Size), Write: true}, drainAccess(false)},
	}
}

// commitPrivate commits the stores to memory that is not shared which the model lets commit.
func (r *runner) commitPrivate() {
	b := r.buffers()
	if b == nil {
		return
	}
	for k := range arch.CoreID(r.m.Cluster().Cores()) {
		for r.commitOnePrivate(b, k) {
		}
	}
}

// commitOnePrivate commits a store of a core to memory that is not shared, and reports whether there was one.
func (r *runner) commitOnePrivate(b *storebuffer.ByStore, k arch.CoreID) bool {
	stores := b.Stores(k)
	for i := range stores {
		s := &stores[i]
		if s.Size == 0 || r.sharing.hasShared(uint64(s.Addr), int(s.Size)) {
			if r.model == memmodel.TSO && s.Size > 0 && s.Weak == 0 && !slices.ContainsFunc(stores[i+1:], isWeakStore) {
				return false // all others wait for it
			}
			continue
		}
		if !b.Waits(k, i) {
			b.Commit(event.Commit{Core: k, Entry: uint32(i)})
			return true
		}
	}
	return false
}

func isWeakStore(s emu.Store) bool { return s.Weak != 0 }

// commit executes the event of a store buffer.
func (r *runner) commit(p dpor.Process) {
	done := false
	r.visitCommits(func(q dpor.Process, t *thread, k arch.CoreID, i int) {
		if done || q != p {
			return
		}
		done = true
		r.event = r.commitEvent(p, t, k, i)
		b := r.buffers()
		if from := t.stored[b.Stores(k)[i].Made]; from >= 0 {
			r.event.After = []int{from}
		}
		for _, before := range t.commits {
			if a := r.history[before].Accesses[0]; a.Start < r.event.Accesses[0].End && r.event.Accesses[0].Start < a.End {
				r.event.After = append(r.event.After, before)
			}
		}
		b.CommitWithOlder(k, i)
		t.commits = append(t.commits, len(r.history))
		r.add()
		r.commitPrivate()
	})
}

// noteStores notes which event of a thread came last before the stores of its quantum.
func (r *runner) noteStores(t *thread, number int) {
	b := r.buffers()
	if b == nil {
		return
	}
	k, has := r.coreOf(b, t)
	if !has {
		clear(t.stored)
		return
	}
	fenced, weak := false, false
	for _, s := range b.Stores(k) {
		fenced, weak = fenced || s.Size == 0, weak || s.Weak != 0
		if _, known := t.stored[s.Made]; !known {
			t.stored[s.Made] = number
		}
	}
	if fenced && (weak || r.model == memmodel.PSO) {
		r.err = errRefused.New("executes SFENCE while stores wait")
	}
}

// objectBuffers is written by system calls that drain the buffers of all threads, and read by commits and by
// events after which a thread makes a store that waits, up to its next event.
const objectBuffers = others + 1<<8

func drainAccess(write bool) dpor.Access {
	return dpor.Access{Start: objectBuffers, End: objectBuffers + 1, Write: write}
}

// drainAll has the event that begins commit the stores that wait.
func (r *runner) drainAll() {
	b := r.buffers()
	r.event.Prevents = r.appendCommits(r.event.Prevents)
	for _, t := range r.order {
		k, has := r.coreOf(b, t)
		if !has {
			continue
		}
		for _, s := range b.Stores(k) {
			if s.Size > 0 && r.sharing.hasShared(uint64(s.Addr), int(s.Size)) {
				r.event.Accesses = append(r.event.Accesses, dpor.Access{Start: uint64(s.Addr), End: uint64(s.Addr) + uint64(s.Size), Write: true})
			}
		}
		t.commits = append(t.commits, len(r.history))
	}
}
