package mem

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// twins are two machines in one mapping. The first pair of each is the snapshot of the leader with
// which the other one has started.
type twins struct {
	leader, other *machine
	came          map[*modelPage]*modelPage // from the other's model to the leader's
}

func newTwins(t *rapid.T) *twins {
	rams, err := NewRAMs(1024*arch.PageSize, 2)
	if err != nil {
		t.Fatal(err)
	}
	empty := func() pair { return pair{NewSpace(rams[0]), modelSpace{}} }
	w := &twins{
		leader: &machine{ram: rams[0], pairs: []pair{empty(), empty()}, fixed: 1, private: true},
		other:  &machine{ram: rams[1], fixed: 1, private: true},
	}
	w.startOther(t)
	return w
}

// startOther starts the other machine with a snapshot of the leader.
func (w *twins) startOther(t *rapid.T) {
	l, o := w.leader, w.other
	l.pairs[0].space.Release() // the other's spaces may outlive it
	for _, p := range w.other.pairs[min(1, len(w.other.pairs)):] {
		p.space.Release()
	}
	l.pairs[0] = l.drawPair(t).clonePair()
	level := Level{Used: l.ram.Used() + 1, Tables: l.ram.Tables()}
	o.ram.Import(l.ram.Generation(), level)
	o.base = int(level.Used)
	w.came = map[*modelPage]*modelPage{}
	first := pair{l.pairs[0].space, copyModel(l.pairs[0].model, map[*modelPage]*modelPage{})}
	for va, e := range first.model {
		w.came[e.page] = l.pairs[0].model[va].page
	}
	second := pair{l.pairs[0].space.CloneTo(o.ram), modelSpace{}}
	for va, e := range first.model {
		second.model[va] = e
	}
	o.pairs = []pair{first, second}
}

// copyModel copies a model, with copies of the pages that are not in the list.
func copyModel(m modelSpace, list map[*modelPage]*modelPage) modelSpace {
	n := modelSpace{}
	for va, e := range m {
		if e.page != nil {
			if list[e.page] == nil {
				c := *e.page
				list[e.page] = &c
			}
			e.page = list[e.page]
		}
		n[va] = e
	}
	return n
}

// adoptSpace makes the leader continue with a space of the other machine as well.
func (w *twins) adoptSpace(t *rapid.T) {
	if len(w.leader.pairs) > 5 {
		t.Skip("there are as many spaces as the test takes")
	}
	from := w.other.drawPair(t)
	w.leader.ram.Adopt(w.other.ram.Generation())
	space := from.space.CloneTo(w.leader.ram)
	if !w.leader.ram.Adopted() {
		t.Fatal("no room")
	}
	list := map[*modelPage]*modelPage{}
	for a, b := range w.came {
		list[a] = b
	}
	w.leader.pairs = append(w.leader.pairs, pair{space, copyModel(from.model, list)})
}

// TestMachinesInOneMapping runs random operations on a machine, on another one that has started
// with a snapshot of it, and on maps: neither machine sees the other's changes.
func TestMachinesInOneMapping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		actions := map[string]func(*rapid.T){"begin": w.startOther, "adopt": w.adoptSpace}
		for name, m := range map[string]*machine{"leader ": w.leader, "other ": w.other} {
			for what, do := range map[string]func(*rapid.T){
				"set": m.setPage, "alias": m.aliasPage, "fillZero": m.fillWithZeros, "unmap": m.unmapRange, "protect": m.protectRange,
				"move": m.moveRange, "clone": m.cloneSpace, "release": m.releaseSpace, "write": m.writeBytes, "read": m.readBytes, "diff": m.compareSpaces,
			} {
				actions[name+what] = do
			}
		}
		actions[""] = func(t *rapid.T) {
			w.leader.checkAll(t)
			w.other.checkAll(t)
		}
		t.Repeat(actions)
		for _, p := range w.other.pairs[1:] {
			p.space.Release()
		}
		for _, p := range w.leader.pairs {
			p.space.Release()
		}
		checkGivenBack(t, w.leader.ram)
		if n := w.other.ram.ownLevel(); n != (Level{}) {
			t.Errorf("the other has %+v left", n)
		}
		w.leader.ram.Close()
		w.other.ram.Close()
	})
}
