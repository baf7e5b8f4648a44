package hybrid

import (
	"testing"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// reader plays the accesses of a thread to a spinFinder.
type reader struct {
	finder                 spinFinder
	place, branches, syncs uint64
}

func (r *reader) load(pc, addr arch.Addr, value uint64) {
	r.access(event.Load, pc, addr, value)
}

func (r *reader) access(kind event.MemoryKind, pc, addr arch.Addr, value uint64) {
	r.place++
	r.finder.add(&event.Memory{Kind: kind, PC: pc, Addr: addr, Size: 4, Value: [2]uint64{value}}, r.place, r.syncs, r.branches)
}

// repeats returns the repetitions up to now at an instruction.
func (r *reader) repeats(pc arch.Addr) uint64 {
	i := races.Instance{PC: pc, At: r.place, Branches: r.branches, Syncs: r.syncs}
	if w := r.finder.waitAt(&i); w != nil {
		return w.repeatsUpTo(&i)
	}
	return 0
}

// A loop that reads a pointer and then a flag until the flag changes is a wait; its iterations but the first, and
// the last, which reads another value, are repetitions.
func TestSpinFinder(t *testing.T) {
	r := &reader{}
	wait := func(iterations int, old, fresh uint64) {
		for range iterations {
			r.load(0x10, 0x1000, 0x2000)
			r.load(0x14, 0x2000, old)
			r.branches++
		}
		r.load(0x10, 0x1000, 0x2000)
		r.load(0x14, 0x2000, fresh)
	}
	wait(100, 0, 1)
	if n := r.repeats(0x14); n != 99 {
		t.Errorf("%d repetitions of 100 iterations", n)
	}
	r.access(event.Store, 0x18, 0x3000, 5)
	wait(50, 1, 0)
	if n := r.repeats(0x14); n != 99+49 {
		t.Errorf("%d repetitions of 100 and 50 iterations", n)
	}
	if n := len(r.finder.waits[0x14]); n != 2 {
		t.Errorf("%d waits", n)
	}
	r.syncs++
	r.finder.reset()
	wait(2, 0, 1)
	if n := r.repeats(0x14); n != 0 {
		t.Errorf("%d repetitions after an operation, in a loop of 2 iterations", n)
	}
}

// Points within a wait have the repetitions before them.
func TestPointsWithinWaits(t *testing.T) {
	r := &reader{}
	for n := uint64(1); n <= 40; n++ {
		r.load(0x10, 0x1000, 0)
		if got := r.repeats(0x10); n >= minSpins && got != n-1 {
			t.Fatalf("%d repetitions in iteration %d", got, n)
		}
		r.branches++
	}
	middle := races.Instance{PC: 0x10, At: 20, Branches: 19}
	if got := r.finder.waitAt(&middle).repeatsUpTo(&middle); got != 19 {
		t.Errorf("%d repetitions in iteration 20", got)
	}
}

// Loops that count, store or read other memory are no waits.
func TestOtherLoops(t *testing.T) {
	for name, body := range map[string]func(r *reader, i uint64){
		"a counter in memory": func(r *reader, i uint64) {
			r.load(0x10, 0x1000, i)
			r.access(event.Store, 0x14, 0x1000, i+1)
		},
		"an array": func(r *reader, i uint64) { r.load(0x10, arch.Addr(0x1000+8*i), 0) },
		"more accesses than are compared": func(r *reader, _ uint64) {
			for k := range arch.Addr(maxSpinAccesses + 1) {
				r.load(0x10+4*k, 0x1000+4*k, 0)
			}
		},
	} {
		r := &reader{}
		for i := range uint64(50) {
			body(r, i)
			r.branches++
		}
		if len(r.finder.waits) != 0 {
			t.Errorf("%s: %d waits", name, len(r.finder.waits))
		}
	}
}
