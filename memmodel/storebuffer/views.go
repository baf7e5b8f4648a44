package storebuffer

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Views is the memory of DThreads and Consequence: each thread has a view of memory that does not
// change but by its own stores, until these are committed as a whole. When a view begins and when it
// is committed is decided by a controller, not by the architecture: Drain does nothing.
//
// It is a store buffer of TSO that commits late: a thread's stores reach the others in one step, at
// its next synchronization operation. Two threads that store to the same bytes without
// synchronization both do so, and the value of the later commit stays.
type Views struct {
	engine emu.PrivatePages
	views  map[arch.ThreadID]arch.CoreID
	free   []arch.CoreID
	most   arch.CoreID // the greatest number of a view so far
	saved  emu.SavedPages
}

var _ memmodel.StoreBuffer = (*Views)(nil)

// NewViews makes a machine's memory without a view. Nothing may have run on the CPU.
func NewViews(cpu emu.CPU) (*Views, error) {
	engine, err := cpu.UsePrivatePages()
	if err != nil {
		return nil, err
	}
	engine.UseViews()
	return &Views{engine: engine, views: map[arch.ThreadID]arch.CoreID{}}, nil
}

// Has reports whether a thread has a view.
func (v *Views) Has(t arch.ThreadID) bool {
	_, ok := v.views[t]
	return ok
}

// BeginView begins the view of a thread that has none, in its address space.
func (v *Views) BeginView(t arch.ThreadID, s *mem.Space) {
	if v.Has(t) {
		return
	}
	k := v.most + 1
	if n := len(v.free); n > 0 {
		k, v.free = v.free[n-1], v.free[:n-1]
	} else {
		v.most = k
	}
	v.views[t] = k
	v.engine.View(k, t, s)
}

// CommitView writes the stores of a thread's view to the memory that all threads see, and ends the
// view. It returns the number of pages written.
func (v *Views) CommitView(t arch.ThreadID) (pages uint64) {
	k, ok := v.views[t]
	if !ok {
		return 0
	}
	before := v.engine.ViewCounts().Published
	v.engine.Drain(k)
	delete(v.views, t)
	v.free = append(v.free, k)
	return v.engine.ViewCounts().Published - before
}

// Discard forgets the view of a thread that has ended.
func (v *Views) Discard(t arch.ThreadID) {
	if k, ok := v.views[t]; ok {
		v.engine.Discard(k)
		delete(v.views, t)
		v.free = append(v.free, k)
	}
}

// Counts returns the work so far.
func (v *Views) Counts() emu.ViewCounts { return v.engine.ViewCounts() }

// Decide implements memmodel.StoreBuffer, and so do the other methods.
func (*Views) Decide(_ arch.CoreID, _ arch.Cycles, list []event.Commit) []event.Commit { return list }

// Follow allows no commits: the controller decides them in a replay, too.
func (*Views) Follow(commits []event.Commit) (problem string) { return None{}.Follow(commits) }

// Switch does nothing.
func (*Views) Switch(arch.CoreID, arch.ThreadID) {}

// Begin makes the thread see its view, or shared memory.
func (v *Views) Begin(_ arch.CoreID, t arch.ThreadID) { v.engine.Begin(v.views[t], t) }

// End makes shared memory visible again.
func (v *Views) End(arch.CoreID, arch.ThreadID) { v.engine.End() }

// Drain does nothing.
func (*Views) Drain(arch.CoreID) {}

// DrainAll does nothing until the run is over.
func (*Views) DrainAll() {}

// IsEmpty is true where the machine asks whether the kernel could miss a store: a thread has no view
// while the kernel acts for it.
func (*Views) IsEmpty() bool { return true }

// Save makes the views part of the state.
func (v *Views) Save() { v.saved = v.engine.Save() }

// Forget removes them from the state again.
func (v *Views) Forget() {
	if v.saved != nil {
		v.saved.Release()
		v.saved = nil
	}
}

// Load gives the views back to the engine.
func (v *Views) Load(space func(arch.ThreadID) *mem.Space) {
	if v.saved != nil {
		v.saved.Load(space)
		v.Forget()
	}
}
