package deepcopy

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// node has a field of every kind that state is made of.
type node struct {
	id     int
	name   string
	next   *node
	list   []*node
	byName map[string]*node
	known  map[*node]int
	any    any
	pair   [2]*node
	raw    []byte
	inner  struct{ up *node }
	host   *handle
	own    *custom
	none   func()
}

// handle is shared between copies.
type handle struct{ file int }

func (*handle) SharedInSnapshot() {}

// number is shared by value.
type number struct{ list []int }

func (number) SharedInSnapshot() {}

// custom copies itself, and refers back.
type custom struct {
	owner    *node
	copies   int
	released int
}

func (x *custom) CopyForSnapshot(c *Copier) any {
	n := &custom{copies: x.copies + 1}
	c.Made(x, n)
	n.owner = Copy(c, x.owner)
	return n
}

func (x *custom) Release() { x.released++ }

func TestSharingIsKept(t *testing.T) {
	host := &handle{3}
	a, b := &node{id: 1, name: "a", raw: []byte("abc"), host: host}, &node{id: 2}
	a.next, b.next = b, a
	a.list = []*node{b, a, nil}
	a.byName = map[string]*node{"a": a, "b": b}
	a.known = map[*node]int{a: 1, b: 2}
	b.any, a.pair, b.inner.up = a, [2]*node{b, nil}, a
	a.own = &custom{owner: b}
	b.own = a.own

	x := Copy(New(), a)
	y := x.next
	switch {
	case x == a, y == b, x.name != "a", y.next != x, x.list[0] != y, x.list[1] != x, x.list[2] != nil:
		t.Error("pointers and slices")
	case x.byName["a"] != x, x.byName["b"] != y, x.known[x] != 1, x.known[y] != 2, len(x.known) != 2:
		t.Error("maps")
	case y.any != any(x), x.pair[0] != y, y.inner.up != x:
		t.Error("interfaces, arrays and structs")
	case x.own == a.own, x.own != y.own, x.own.copies != 1, x.own.owner != y:
		t.Error("types that copy themselves")
	case x.host != host:
		t.Error("shared types")
	}
	x.raw[0] = 'x'
	x.byName["c"] = nil
	if string(a.raw) != "abc" || len(a.byName) != 2 {
		t.Error("a change of the copy shows in the original")
	}
}

func TestNilStaysNil(t *testing.T) {
	if x := Copy(New(), &node{}); !reflect.DeepEqual(*x, node{}) {
		t.Errorf("%+v", x)
	}
	empty := Copy(New(), &node{list: []*node{}, byName: map[string]*node{}})
	if empty.list == nil || empty.byName == nil {
		t.Error("an empty value is nil")
	}
}

func TestInterfacesHoldValuesAndSharedOnes(t *testing.T) {
	list := []int{1}
	in := []any{7, "x", []int{2}, number{list}, map[int]int{1: 2}}
	out := Copy(New(), in)
	if !reflect.DeepEqual(in, out) {
		t.Errorf("%v became %v", in, out)
	}
	if out[2].([]int)[0] = 3; in[2].([]int)[0] != 2 {
		t.Error("a slice in an interface is shared")
	}
	if out[3].(number).list[0] = 4; list[0] != 4 {
		t.Error("a shared value was copied")
	}
}

func TestOneCopierKeepsSharingBetweenCopies(t *testing.T) {
	shared := &node{id: 1}
	c := New()
	a, b := Copy(c, &node{next: shared}), Copy(c, &node{next: shared})
	if a.next != b.next || a.next == shared {
		t.Error("two copies by one copier do not share")
	}
}

func TestWhatCannotBeCopiedPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"function": func() { Copy(New(), &node{none: func() {}}) },
		"channel":  func() { Copy(New(), make(chan int)) },
		"by value": func() { Copy(New(), struct{ c custom }{}) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "bug: ") {
					t.Errorf("%s: panic %q", name, text)
				}
			}()
			f()
		}()
	}
}

func TestReleaseCallsEachOnce(t *testing.T) {
	x, y := &custom{}, &custom{}
	x.owner = &node{own: y, any: x, known: map[*node]int{{own: y}: 1}}
	Release([]any{x, y, x.owner, &handle{}})
	if x.released != 1 || y.released != 1 {
		t.Errorf("released %d and %d times", x.released, y.released)
	}
}

// TestCopiesAreIsomorphic copies random graphs, walks original and copy side by
// side, and demands a bijection between their nodes.
func TestCopiesAreIsomorphic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := make([]*node, rapid.IntRange(1, 12).Draw(t, "nodes"))
		for i := range nodes {
			nodes[i] = &node{id: i}
		}
		pick := rapid.SampledFrom(append(slices.Clone(nodes), nil))
		for _, n := range nodes {
			n.next = pick.Draw(t, "next")
			n.list = rapid.SliceOfN(pick, 0, 3).Draw(t, "list")
			n.any = pick.Draw(t, "any")
			if rapid.Bool().Draw(t, "map") {
				n.known = map[*node]int{pick.Draw(t, "key"): 1, n: 2}
			}
			if rapid.Bool().Draw(t, "custom") {
				n.own = &custom{owner: pick.Draw(t, "owner")}
			}
		}
		image, inverse := map[*node]*node{}, map[*node]*node{}
		var same func(a, b *node)
		same = func(a, b *node) {
			if (a == nil) != (b == nil) {
				t.Fatal("nil on one side")
			}
			if a == nil || image[a] != nil {
				if image[a] != b {
					t.Fatalf("node %d has two images", a.id)
				}
				return
			}
			if a == b || inverse[b] != nil || a.id != b.id || len(a.list) != len(b.list) || len(a.known) != len(b.known) {
				t.Fatalf("node %d became %d", a.id, b.id)
			}
			image[a], inverse[b] = b, a
			same(a.next, b.next)
			same(a.any.(*node), b.any.(*node))
			for i := range a.list {
				same(a.list[i], b.list[i])
			}
			if a.own != nil {
				same(a.own.owner, b.own.owner)
			}
		}
		same(nodes[0], Copy(New(), nodes[0]))
		for a, b := range image {
			for key, x := range a.known {
				if key != nil && image[key] != nil && b.known[image[key]] != x {
					t.Fatalf("the map of node %d has lost a key", a.id)
				}
			}
		}
	})
}

func BenchmarkCopy(b *testing.B) {
	list := make([]*node, 1000)
	for i := range list {
		list[i] = &node{id: i, raw: make([]byte, 32), host: &handle{}}
		list[i].next = list[i/2]
	}
	for b.Loop() {
		Copy(New(), list)
	}
}

// engine belongs to an owner of graphs.
type engine struct{ name string }

func (*engine) BoundInSnapshot() {}

// runner refers to one.
type runner struct {
	engine *engine
	same   any
	none   *engine
	others []*runner
}

// TestCopiesForAnotherOwner: values that belong to the owner of the original are replaced
// by those of the other one, and never copied.
func TestCopiesForAnotherOwner(t *testing.T) {
	a, b := &engine{"a"}, &engine{"b"}
	r := &runner{engine: a, same: a}
	r.others = []*runner{r, {engine: a}}
	if got := Bounds(r); len(got) != 1 || got[0] != Bound(a) {
		t.Fatalf("bound: %v", got)
	}
	if n := Copy(New(), r); n == r || n.engine != a || n.same != any(a) {
		t.Errorf("for the same owner: %+v", n)
	}
	c := For(b)
	n := Copy(c, r)
	if n.engine != b || n.same != any(b) || n.none != nil || n.others[0] != n || n.others[1].engine != b || !c.Foreign() {
		t.Errorf("for another owner: %+v", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("an owner without an engine got one")
		}
	}()
	Copy(For(), r)
}
