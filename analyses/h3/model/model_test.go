package model_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// write adds a write of zeros to a thread.
func write(t *model.Trace, thread int, addr uint64, size int) model.ID {
	return t.Add(model.Event{Kind: model.Write, Thread: thread, Addr: addr, Size: size, Value: t.Pool.Word(0, 8*size)})
}

// Cells are the pieces between the borders of accesses; each access has all of the
// pieces that it covers.
func TestCells(t *testing.T) {
	tr := model.New(symbolic.NewPool())
	tr.AddThread("1")
	write(tr, 0, 0x10, 8)
	write(tr, 0, 0x12, 2)
	write(tr, 0, 0x16, 4)
	write(tr, 0, 0x30, 1)
	type cell struct {
		addr   uint64
		size   int
		events []model.ID
		lows   []int
	}
	want := []cell{
		{0x10, 2, []model.ID{0}, []int{0}},
		{0x12, 2, []model.ID{0, 1}, []int{16, 0}},
		{0x14, 2, []model.ID{0}, []int{32}},
		{0x16, 2, []model.ID{0, 2}, []int{48, 0}},
		{0x18, 2, []model.ID{2}, []int{16}},
		{0x30, 1, []model.ID{3}, []int{0}},
	}
	got := tr.Cells()
	if len(got) != len(want) {
		t.Fatalf("%d cells, want %d", len(got), len(want))
	}
	for i, w := range want {
		c := cell{addr: got[i].Addr, size: got[i].Size}
		for _, a := range got[i].Writes {
			c.events, c.lows = append(c.events, a.Event), append(c.lows, a.Low)
		}
		if c.addr != w.addr || c.size != w.size || !slices.Equal(c.events, w.events) || !slices.Equal(c.lows, w.lows) {
			t.Errorf("cell %d is %v, want %v", i, c, w)
		}
	}
}

// A thread that goes to another core and back has three turns: events before a context switch
// precede those after it, under every model.
func TestSlicesOfAMigratingThread(t *testing.T) {
	tr := model.New(symbolic.NewPool())
	tr.AddThread("1")
	tr.AddThread("2")
	add := func(thread, core int, place uint64) model.ID {
		e := model.Event{Kind: model.Write, Thread: thread, Addr: 16 * place, Size: 1, Value: tr.Pool.Word(0, 8), CoreInstructions: place}
		e.Core = arch.CoreID(core)
		return tr.Add(e)
	}
	a, b, c := add(0, 0, 1), add(0, 1, 2), add(0, 0, 3)
	d := add(1, 1, 4)
	for _, m := range []model.MemoryModel{model.SC, model.TSO, model.PSO} {
		g, err := model.NewGraph(len(tr.Events), append(tr.ProgramOrder(m), tr.CoreOrder(m)...))
		if err != nil {
			t.Fatal(err)
		}
		if !g.Before(a, b) || !g.Before(b, c) || !g.Before(a, c) || !g.Before(b, d) || g.Before(c, d) || g.Before(d, c) {
			t.Errorf("%v: the order of the slices is wrong", m)
		}
	}
}

func TestWhatCannotBe(t *testing.T) {
	for _, c := range []struct {
		why  string
		make func(*model.Trace)
	}{
		{"no sleep before it", func(tr *model.Trace) { tr.Add(model.Event{Kind: model.Wake}) }},
		{"no arrival before it", func(tr *model.Trace) { tr.Add(model.Event{Kind: model.Leave}) }},
		{"no symbol of 32 bits", func(tr *model.Trace) { tr.Add(model.Event{Kind: model.Read, Size: 4}) }},
		{"no value of 8 bits", func(tr *model.Trace) { tr.Add(model.Event{Kind: model.Write, Size: 1}) }},
		{"first event of a thread", func(tr *model.Trace) {
			write(tr, 0, 1, 1)
			tr.Add(model.Event{Kind: model.Begin})
		}},
		{"behind the end", func(tr *model.Trace) {
			tr.Add(model.Event{Kind: model.End})
			write(tr, 0, 1, 1)
		}},
		{"has no index", func(tr *model.Trace) {
			tr.Arrays = []model.Array{{Addr: 0x10, Elem: 4, Count: 4}}
			write(tr, 0, 0x1e, 4)
		}},
		{"2 or more use it", func(tr *model.Trace) {
			for i := range 2 {
				tr.Add(model.Event{Kind: model.Arrive, Thread: i, Count: 1})
			}
		}},
	} {
		tr := model.New(symbolic.NewPool())
		tr.AddThread("1")
		tr.AddThread("2")
		c.make(tr)
		if err := tr.Check(); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%v, want something with %q", err, c.why)
		}
	}
}

func TestCircle(t *testing.T) {
	if _, err := model.NewGraph(3, []model.Edge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 0}}); err != model.ErrCycle {
		t.Errorf("%v", err)
	}
}
