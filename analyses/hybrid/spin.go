package hybrid

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// SpinLoop is an instruction by which threads wait in a loop for the stores of others: the loop changes
// nothing, neither memory nor the values that it reads, until another thread has stored. It is
// synchronization that the program has made itself.
type SpinLoop struct {
	// PC is the instruction that reads the others' stores, Waits how often threads waited there, and
	// Iterations how often they read all in all.
	PC                arch.Addr
	Waits, Iterations uint64
	// Writers are the instructions whose stores the threads waited for, or 0 for an operation.
	Writers []arch.Addr
	// Note says where PC and the first of Writers are in the source.
	Note string
}

// maxSpinAccesses is the number of accesses of an iteration, and minSpins the number of iterations from
// which on a loop counts as one.
const (
	maxSpinAccesses = 8
	minSpins        = 3
)

// spinAccess is what an iteration has in common with the next: an access with its value.
type spinAccess struct {
	pc, addr arch.Addr
	kind     event.MemoryKind
	size     uint8
	value    [2]uint64
}

// spinWait is a thread's wait in a loop. Its further iterations are the repetitions of the first.
type spinWait struct {
	from, to         uint64 // the places of the first repetition, and of the last
	syncs            uint64 // the thread's operations before
	branches, branch uint64 // at the first repetition, and how many an iteration has
	before           uint64 // repetitions in the thread's waits since its last operation before this one
	repeats          uint64
	counted          bool // by SpinLoop.Waits
}

// repeatsUpTo is the number of repetitions up to a point of the wait.
func (w *spinWait) repeatsUpTo(i *races.Instance) uint64 {
	switch {
	case i.At >= w.to:
		return w.before + w.repeats
	case w.branch == 0:
		return w.before
	}
	return w.before + min(w.repeats, (i.Branches-min(i.Branches, w.branches))/w.branch+minSpins-1)
}

// spinFinder finds the waits of one thread.
type spinFinder struct {
	latest  [maxSpinAccesses]spinAccess // a ring
	n       uint64                      // accesses since the last operation
	period  uint64                      // of the repetition that the thread is in; 0: none
	matched uint64                      // accesses that repeat those one period earlier
	acted   uint64                      // accesses since another thread acted
	waits   map[arch.Addr][]*spinWait   // by instruction, in order
	current [maxSpinAccesses]*spinWait  // of the instructions of the present loop
	// repeated are the accesses of the latest iteration that the detector does not have, by their places in
	// the loop.
	repeated [maxSpinAccesses]races.Access
}

// reset notes that the thread does something else.
func (f *spinFinder) reset() { f.n, f.period, f.matched = 0, 0, 0 }

// add takes an access outside of operations, at a place, and reports whether it only repeats one of a wait that is
// known already: not the first iteration after another thread has acted.
func (f *spinFinder) add(e *event.Memory, place, syncs, branches uint64) bool {
	a := spinAccess{pc: e.PC, addr: e.Addr, kind: e.Kind, size: e.Size, value: e.Value}
	if f.period == 0 || a != f.latest[(f.n-f.period)%maxSpinAccesses] {
		f.period, f.matched = f.periodBefore(&a), 0
	}
	f.latest[f.n%maxSpinAccesses] = a
	f.n++
	f.acted++
	if f.period == 0 {
		return false
	}
	f.matched++
	if f.matched >= (minSpins-1)*f.period && a.kind == event.Load {
		f.repeat(a.pc, place, syncs, branches)
	}
	return f.matched >= minSpins*f.period && f.acted > f.period
}

// defers keeps an access that repeats one of a wait: as long as no other thread acts, it is the same as that one,
// and of all such accesses the last one counts.
func (f *spinFinder) defers(a *races.Access) { f.repeated[f.n%f.period] = *a }

// addRepetitions gives the detector the latest repetitions of the thread that acts.
func (m *ConstraintFinder) addRepetitions() {
	if !m.deferred {
		return
	}
	m.deferred = false
	list := m.threads[m.latest].spins.repeated[:]
	slices.SortFunc(list, func(a, b races.Access) int { return cmp.Compare(a.At, b.At) })
	for k := range list {
		if list[k].At > 0 {
			m.detector.Access(&list[k])
			m.prunePending()
		}
		list[k] = races.Access{}
	}
}

// periodBefore is how many accesses ago the same access was, 0 if that is too long ago.
func (f *spinFinder) periodBefore(a *spinAccess) uint64 {
	for p := uint64(1); p <= min(f.n, maxSpinAccesses); p++ {
		if f.latest[(f.n-p)%maxSpinAccesses] == *a {
			return p
		}
	}
	return 0
}

// repeat notes a repetition of an instruction, with those that came before the loop was known as one.
func (f *spinFinder) repeat(pc arch.Addr, place, syncs, branches uint64) {
	if f.waits == nil {
		f.waits = map[arch.Addr][]*spinWait{}
	}
	list := f.waits[pc]
	w := f.current[f.n%f.period]
	if isFirst := f.matched < minSpins*f.period; isFirst || w == nil {
		x := &spinWait{from: place, to: place, syncs: syncs, branches: branches, repeats: minSpins - 1}
		if k := len(list); k > 0 && list[k-1].syncs == syncs {
			x.before = list[k-1].before + list[k-1].repeats
		}
		f.waits[pc], f.current[f.n%f.period] = append(list, x), x
		return
	}
	if w.branch == 0 {
		w.branch = branches - w.branches
	}
	w.repeats++
	w.to = place
}

// waitAt returns the last wait at an instruction that began before a point, or nil.
func (f *spinFinder) waitAt(i *races.Instance) *spinWait {
	list := f.waits[i.PC]
	k, _ := slices.BinarySearchFunc(list, i.At+1, func(w *spinWait, at uint64) int { return cmp.Compare(w.from, at) })
	if k == 0 || list[k-1].syncs != i.Syncs {
		return nil
	}
	return list[k-1]
}

// spinsAt returns the number of repetitions among the arrivals of a thread at a point's instruction since
// its last operation.
func (m *ConstraintFinder) spinsAt(i *races.Instance) uint64 {
	if i.PC == 0 {
		return 0
	}
	if w := m.threads[i.Thread].spins.waitAt(i); w != nil {
		return w.repeatsUpTo(i)
	}
	return 0
}

// SpinLoops returns the loops in which threads waited for stores that constraints order, by address.
func (m *ConstraintFinder) SpinLoops() []SpinLoop {
	loops := map[arch.Addr]*SpinLoop{}
	for i := range m.kept {
		c := &m.kept[i]
		m.addSpinLoop(loops, &c.First, &c.Second)
		m.addSpinLoop(loops, &c.Second, &c.First)
	}
	list := make([]SpinLoop, 0, len(loops))
	for _, l := range loops {
		slices.Sort(l.Writers)
		list = append(list, *l)
	}
	slices.SortFunc(list, func(a, b SpinLoop) int { return cmp.Compare(a.PC, b.PC) })
	return list
}

// addSpinLoop adds the wait that a point of a constraint belongs to, if it is one for another thread's store.
func (m *ConstraintFinder) addSpinLoop(loops map[arch.Addr]*SpinLoop, at, other *races.Instance) {
	if at.PC == 0 || at.PC == other.PC && other.Thread == at.Thread {
		return
	}
	w := m.threads[at.Thread].spins.waitAt(at)
	if w == nil {
		return
	}
	l := loops[at.PC]
	if l == nil {
		l = &SpinLoop{PC: at.PC}
		loops[at.PC] = l
	}
	if !w.counted {
		w.counted = true
		l.Waits++
		l.Iterations += w.repeats + 1
	}
	if !slices.Contains(l.Writers, other.PC) {
		l.Writers = append(l.Writers, other.PC)
	}
}
