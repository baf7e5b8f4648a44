package symtrace

import (
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
)

// buildResult makes the trace.
func (b *pass) buildResult(rounds int, k *Facts) *Result {
	t := model.New(b.pool)
	out := &Result{Trace: t, Passes: rounds, Excluded: b.sharing.Excluded, Facts: k}
	for _, w := range b.threads {
		n := t.AddThread(fmt.Sprint(w.ID))
		t.Threads[n].CreationOrder = int(w.ID)
	}
	b.prependCheckpointEvents()
	for _, o := range slices.Sorted(maps.Keys(b.arrays)) {
		a := b.arrays[o]
		t.Arrays = append(t.Arrays, model.Array{Addr: o, Elem: a.elem, Count: int(a.object.Size) / a.elem})
	}
	for _, w := range b.threads {
		if b.options.Hang {
			w.orderLastRound(b)
		}
		for i := range w.events {
			t.Add(w.events[i])
			out.Coordinates = append(out.Coordinates, w.coordinates[i])
		}
		t.Path = append(t.Path, w.conditions...)
		out.OtherOutcomes += w.otherOutcomes
		for _, c := range w.conditions {
			if c.Assumed {
				out.Assumed++
			}
		}
		out.Instructions += w.Instructions
		for name := range w.fixed {
			if _, guessed := b.guesses[name]; guessed {
				out.Guesses++
			}
		}
	}
	b.addFailure(t)
	for _, w := range b.threads {
		out.Threads = append(out.Threads, w.ThreadTrace)
	}
	out.Faults = len(b.faults)
	b.fillInitialMemory(t)
	out.Shared = b.sharedRanges()
	return out
}

// sortFaults puts threads that certainly fault before threads that may.
func (b *pass) sortFaults() {
	slices.SortStableFunc(b.faults, func(x, y fault) int {
		switch {
		case x.condition == nil && y.condition != nil:
			return -1
		case x.condition != nil && y.condition == nil:
			return 1
		}
		return 0
	})
}

// addFailure adds the condition of the failure: for an assertion, the branch before it.
func (b *pass) addFailure(t *model.Trace) {
	b.sortFaults()
	t.Deadlocked, t.FIFOSignals = b.options.Deadlock, true
	if n := b.options.Faulting; n < len(b.faults) {
		f := &b.faults[n]
		f.thread.Ending = Faulted
		if f.condition != nil {
			t.Bug = append(t.Bug, model.Condition{Expr: f.condition, Thread: f.thread.number, PC: f.where})
		}
	}
	if b.options.Output != nil {
		t.Bug = append(t.Bug, model.Condition{Expr: b.outputDiffers, Thread: -1})
	}
	if n := b.options.Status; n != 0 && b.status != nil {
		t.Bug = append(t.Bug, model.Condition{Expr: b.pool.Eq(b.pool.Extract(b.status, 0, 8), b.pool.Word(uint64(n), 8)), Thread: -1})
	}
	for i := len(t.Path) - 1; i >= 0; i-- {
		if w := b.threads[t.Path[i].Thread]; w.Ending == Failed {
			t.Bug = append(t.Bug, t.Path[i])
			t.Path = slices.Delete(t.Path, i, i+1)
			return
		}
	}
}

// fillInitialMemory gives the trace the initial content of memory.
func (b *pass) fillInitialMemory(t *model.Trace) {
	put := func(addr uint64, n int) {
		content := make([]byte, n)
		b.image.peekChanged(addr, content)
		for i, x := range content {
			if x != 0 {
				t.Initial[addr+uint64(i)] = x
			}
		}
	}
	for i := range t.Arrays {
		put(t.Arrays[i].Addr, t.Arrays[i].Elem*t.Arrays[i].Count)
	}
	for i := range t.Events {
		if e := &t.Events[i]; (e.Kind.Reads() || e.Kind.Writes()) && e.Index == nil {
			put(e.Addr, e.Size)
		}
	}
	for addr, id := range b.objectIDs { // each its own
		var value [4]byte
		b.image.peekChanged(addr, value[:])
		if n := int(symmem.ValueOf(value[:]).Lo); n > 0 {
			t.Semaphores[id] = n
		}
	}
}

// sharedRanges are the shared ranges; adjacent granules are joined.
func (b *pass) sharedRanges() []Range {
	var all []Range
	for _, g := range slices.Sorted(maps.Keys(b.sharing.Shared)) {
		if g*symmem.Granule >= freedPlaces {
			break
		}
		if n := len(all); n > 0 && all[n-1].End == g*symmem.Granule {
			all[n-1].End += symmem.Granule
			continue
		}
		all = append(all, Range{g * symmem.Granule, (g + 1) * symmem.Granule})
	}
	return all
}

// orderLastRound has all other threads that end do so before the last round of a loop that a
// thread never leaves.
func (w *threadExec) orderLastRound(b *pass) {
	if w.path.Loop == 0 {
		return
	}
	from := len(w.events)
	for i := len(w.coordinates) - 1; i >= 0 && w.coordinates[i].block >= len(w.path.Blocks)-w.path.Loop; i-- {
		from = i
	}
	var joins []model.Event
	var coords []Coordinate
	at := Coordinate{Calls: len(w.Calls), SinceCall: w.sinceCall}
	if from < len(w.coordinates) {
		at = w.coordinates[from]
	}
	for _, o := range b.threads {
		if o != w && o.Ending == Returned && o.number > 0 {
			j := model.Event{Kind: model.Join, Thread: w.number, Peer: o.number}
			if n := len(w.events); n > 0 {
				e := &w.events[min(from, n-1)]
				j.Core, j.CoreInstructions = e.Core, e.CoreInstructions
			}
			joins, coords = append(joins, j), append(coords, at)
		}
	}
	w.events = slices.Insert(w.events, from, joins...)
	w.coordinates = slices.Insert(w.coordinates, from, coords...)
}
