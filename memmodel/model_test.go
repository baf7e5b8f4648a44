package memmodel

import (
	"slices"
	"testing"
)

func entry(addr uint64, size uint8) Entry { return Entry{Addr: addr, Size: size} }

// TestMayCommit cites the invariants of the package.
func TestMayCommit(t *testing.T) {
	weak := func(e Entry) Entry { e.Weak = true; return e }
	fence := Entry{Fence: true}
	for _, c := range []struct {
		name     string
		buffer   []Entry
		tso, pso []int
	}{
		{"apart", []Entry{entry(0, 4), entry(4, 4), entry(8, 8)}, []int{0}, []int{0, 1, 2}},
		{"one byte in common (2)", []Entry{entry(0, 4), entry(3, 2), entry(5, 1)}, []int{0}, []int{0, 2}},
		{"fence", []Entry{entry(0, 4), fence, entry(8, 4)}, []int{0}, []int{0}},
		{"weak passes", []Entry{entry(0, 4), weak(entry(8, 4)), entry(16, 4)}, []int{0, 1}, []int{0, 1, 2}},
		{"weak is passed", []Entry{weak(entry(0, 4)), entry(8, 4), entry(16, 4)}, []int{0, 1}, []int{0, 1, 2}},
		{"weak to the same place", []Entry{entry(0, 4), weak(entry(2, 4))}, []int{0}, []int{0}},
		{"fence holds weak", []Entry{entry(0, 4), fence, weak(entry(8, 4))}, []int{0}, []int{0}},
	} {
		for model, want := range map[Model][]int{TSO: c.tso, PSO: c.pso} {
			var got []int
			for k := range c.buffer {
				if model.MayCommit(c.buffer, k) {
					got = append(got, k)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: under %v the entries %v may be committed, want %v", c.name, model, got, want)
			}
		}
	}
}

func TestOverlayTakesTheNewest(t *testing.T) {
	memory := []byte{9, 9, 9, 9, 9, 9}
	old, recent := entry(100, 4), entry(102, 8)
	old.Data, recent.Data = [MaxStore]byte{1, 1, 1, 1}, [MaxStore]byte{2, 2, 2, 2, 2, 2, 2, 2}
	Overlay(memory, 99, []Entry{old, recent})
	if want := []byte{9, 1, 1, 2, 2, 2}; !slices.Equal(memory, want) {
		t.Errorf("the core sees %v, want %v", memory, want)
	}
}

func TestNames(t *testing.T) {
	for _, m := range Models() {
		if got, ok := Parse(m.String()); !ok || got != m {
			t.Errorf("%v is parsed as %v", m, got)
		}
	}
	if _, ok := Parse("rmo"); ok {
		t.Error("an unknown model is accepted")
	}
}
