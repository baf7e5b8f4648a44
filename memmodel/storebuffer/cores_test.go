package storebuffer

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Random tests draw the same numbers in every run; -rapid.seed chooses others.
func init() {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
}

// written is a Memory that notes the commits.
type written struct{ strings.Builder }

func (w *written) Commit(t arch.ThreadID, at arch.Addr, data []byte) {
	fmt.Fprintf(w, "%d:%d=%x ", t, at, data)
}

func store(at arch.Addr, value byte, made arch.Cycles) emu.Store {
	return emu.Store{Addr: at, Data: [8]byte{value}, Size: 1, Made: made}
}

func keep(c *Cores, k arch.CoreID, t arch.ThreadID, stores ...emu.Store) {
	c.Keep(k, t, func(room []emu.Store) []emu.Store { return append(room, stores...) })
}

// TestRules compares with memmodel's, which the litmus tests are explored by.
func TestRules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var stores []emu.Store
		var entries []memmodel.Entry
		for range rapid.IntRange(1, 6).Draw(rt, "n") {
			at, size := rapid.Uint64Range(0, 12).Draw(rt, "at"), rapid.SampledFrom([]uint32{0, 1, 2, 4, 8}).Draw(rt, "size")
			weak := rapid.Uint32Range(0, 1).Draw(rt, "weak")
			stores = append(stores, emu.Store{Addr: arch.Addr(at), Size: size, Weak: weak})
			entries = append(entries, memmodel.Entry{Addr: at, Size: uint8(size), Weak: weak == 1, Fence: size == 0})
		}
		for _, model := range []memmodel.Model{memmodel.TSO, memmodel.PSO} {
			c := New(1, 1, Options{Model: model.String()})
			for k := range stores {
				if got, want := c.mayCommit(stores, k), model.MayCommit(entries, k); got != want {
					rt.Fatalf("%v, entry %d of %v: %v, want %v", model, k, stores, got, want)
				}
			}
		}
	})
}

// TestDrains cites invariant 1.
func TestDrains(t *testing.T) {
	for _, c := range []struct {
		what   string
		core   arch.CoreID
		thread arch.ThreadID
		want   string
	}{
		{"the same thread on its core", 0, 7, ""},
		{"another thread on the core", 0, 9, "7:1=0a 7:2=0b "},
		{"the thread on another core", 2, 7, "7:1=0a 7:2=0b "},
		{"the thread on another thread's core", 1, 7, "7:1=0a 7:2=0b 8:3=0c "},
		{"a new thread on a free core", 2, 9, ""},
	} {
		cores := New(3, 1, Options{Model: "pso"})
		keep(cores, 0, 7, store(1, 10, 0), store(2, 11, 0))
		keep(cores, 1, 8, store(3, 12, 0))
		var w written
		cores.Turn(c.core, c.thread, &w)
		if w.String() != c.want {
			t.Errorf("%s: committed %q, want %q", c.what, w.String(), c.want)
		}
	}
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		o    Options
		now  arch.Cycles
		want string
	}{
		{Options{Model: "tso", Commit: "eager"}, 0, "7:1=0a 7:2=0b "},
		{Options{Model: "tso", Commit: "timed", Latency: 100}, 149, ""},
		{Options{Model: "tso", Commit: "timed", Latency: 100}, 150, "7:1=0a "},
		{Options{Model: "tso", Commit: "timed", Latency: 100}, 160, "7:1=0a 7:2=0b "},
		{Options{Model: "pso", Commit: "lazy", Latency: 1000}, 1049, ""},
		{Options{Model: "pso", Commit: "lazy", Latency: 1000}, 1050, "7:1=0a "},
		{Options{Model: "pso", Commit: "random", Rate: 1}, 0, "7:1=0a 7:2=0b "},
	} {
		cores := New(1, 1, c.o)
		keep(cores, 0, 7, store(1, 10, 50), store(2, 11, 60))
		var w written
		cores.Decide(c.now, &w, nil)
		if w.String() != c.want {
			t.Errorf("%+v at %d: committed %q, want %q", c.o, c.now, w.String(), c.want)
		}
	}
}

// TestFollowRepeatsDecisions: the commits of one buffer made in another.
func TestFollowRepeatsDecisions(t *testing.T) {
	for seed := range uint64(50) {
		a, b := New(2, seed, Options{Model: "pso", Rate: 0.5}), New(2, seed+1, Options{Model: "pso"})
		var wa, wb written
		for turn := range 20 {
			var stores []emu.Store
			for i := range 4 {
				stores = append(stores, store(arch.Addr((turn+i)%3), byte(turn*4+i), 0))
			}
			stores = append(stores[:2], append([]emu.Store{{}}, stores[2:]...)...) // a fence
			for _, c := range []*Cores{a, b} {
				keep(c, arch.CoreID(turn%2), 7, append(append([]emu.Store{}, c.Stores(arch.CoreID(turn%2))...), stores...)...)
			}
			if !b.Follow(a.Decide(0, &wa, nil), &wb) {
				t.Fatalf("seed %d, turn %d: a commit cannot be followed", seed, turn)
			}
		}
		if wa.String() != wb.String() {
			t.Fatalf("seed %d: committed\n%s\nand after the log\n%s", seed, wa.String(), wb.String())
		}
	}
	c := New(1, 1, Options{Model: "tso"})
	keep(c, 0, 7, store(1, 1, 0), store(2, 2, 0))
	for _, x := range []event.Commit{{Core: 0, Entry: 1}, {Core: 0, Entry: 2}, {Core: 1}, {Core: -1}} {
		if c.Follow([]event.Commit{x}, &written{}) {
			t.Errorf("%v is followed", x)
		}
	}
}

// TestRateIsTheRate: the share of first stores that one decision commits.
func TestRateIsTheRate(t *testing.T) {
	c := New(1, 3, Options{Model: "tso", Rate: 0.25})
	n := 0
	for range 4000 {
		keep(c, 0, 7, store(1, 1, 0))
		n += len(c.Decide(0, &written{}, nil))
	}
	if n < 900 || n > 1100 { // 1000, with a standard deviation of 27
		t.Errorf("%d of 4000 committed at rate 0.25", n)
	}
}

func TestValidate(t *testing.T) {
	for want, o := range map[string]Options{
		`model is "rmo"; allowed: sc, tso, pso`:                                  {Model: "rmo"},
		`commit is "soon"; allowed: eager, random, timed, lazy`:                  {Commit: "soon"},
		`engine is "fast"; allowed: exact, pages`:                                {Engine: "fast"},
		`engine is "pages" with the model pso; allowed: exact, or the model tso`: {Model: "pso", Engine: Pages},
		`engine is "pages" with the model sc; allowed: exact, or the model tso`:  {Engine: Pages},
		`rate is 1.5; allowed: 0 to 1`:                                           {Rate: 1.5},
		`capacity is -1; allowed: 0 to 1048576`:                                  {Capacity: -1},
		`latency is 2000000000000; allowed: 0 to 1000000000000`:                  {Latency: 2_000_000_000_000},
	} {
		if err := o.Validate(); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
	if err := (Options{}).WithDefaults().Validate(); err != nil {
		t.Error(err)
	}
}
