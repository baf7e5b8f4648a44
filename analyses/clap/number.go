package clap

import (
	"cmp"
	"slices"
)

// maxPaths is how many paths there may be from a block to the end: from one with more
// every edge ends the path.
const maxPaths = 1 << 40

// numberEdges gives edges their numbers (Ball and Larus, section 3.2), and finds which end
// paths.
func (f *Function) numberEdges() {
	heads := map[*Block]bool{}
	order := f.finishOrder(heads)
	for _, b := range order {
		if b.countPaths(); b.paths > maxPaths {
			for _, e := range b.next {
				if e.to != nil && !e.back {
					e.back = true
					heads[e.to] = true
				}
			}
			b.countPaths()
		}
	}
	f.addEntryEdges(heads)
	f.weighEdges(order, heads)
}

// countPaths numbers the edges of a block: the numbers of each follow those of the paths of the
// edges before it.
func (b *Block) countPaths() {
	b.paths = 0
	for _, e := range b.next {
		e.value = b.paths
		if e.endsPath() {
			b.paths++
		} else {
			b.paths += e.to.paths
		}
	}
}

// finishOrder are the blocks in the order in which a depth-first search finishes them: each after
// the targets of its edges, except for edges that go back, whose targets are noted.
func (f *Function) finishOrder(heads map[*Block]bool) []*Block {
	const open, done = 1, 2
	state := make([]int, len(f.Blocks))
	type visit struct {
		b    *Block
		next int
	}
	var order []*Block
	stack := []visit{{f.firstBlock(), 0}}
	state[f.firstBlock().index] = open
	for len(stack) > 0 {
		v := &stack[len(stack)-1]
		if v.next == len(v.b.next) {
			state[v.b.index] = done
			order = append(order, v.b)
			stack = stack[:len(stack)-1]
			continue
		}
		e := v.b.next[v.next]
		v.next++
		switch {
		case e.to == nil:
		case state[e.to.index] == open:
			e.back = true
			heads[e.to] = true
		case state[e.to.index] == 0:
			state[e.to.index] = open
			stack = append(stack, visit{e.to, 0})
		}
	}
	return order
}

// addEntryEdges makes the edges from the begin: numbered like those of a block.
func (f *Function) addEntryEdges(heads map[*Block]bool) {
	list := make([]*Block, 0, len(heads))
	for b := range heads {
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b *Block) int { return cmp.Compare(a.Addr, b.Addr) })
	init := map[*Block]*edge{}
	for _, b := range list {
		init[b] = &edge{to: b, addr: b.Addr, afterBackEdge: true}
		f.entryEdges = append(f.entryEdges, init[b])
	}
	for _, e := range f.entryEdges {
		e.value = f.Paths
		f.Paths += e.to.paths
	}
	for _, b := range f.Blocks {
		for _, e := range b.next {
			if e.back {
				e.init = init[e.to]
			}
		}
	}
}

// weighEdges estimates how often edges are passed: a block leaves by all its edges equally
// often, and a loop has ten rounds (Ball and Larus, section 3.1, of the choice of
// weights without a profile).
func (f *Function) weighEdges(order []*Block, heads map[*Block]bool) {
	often := make([]float64, len(f.Blocks))
	often[f.firstBlock().index] = 1
	for i := len(order) - 1; i >= 0; i-- {
		b := order[i]
		if heads[b] {
			often[b.index] = max(often[b.index], 1) * 10
		}
		for _, e := range b.next {
			e.weight = often[b.index] / float64(len(b.next))
			if !e.endsPath() {
				often[e.to.index] += e.weight
			}
		}
	}
}

// placeIncrements puts the increments at the edges that are not of a maximum spanning tree (Ball
// and Larus, section 3.3). The edges from the begin and to the end have no weight: their increments
// are part of the constant that the register is set to, or of the number that is written.
func (f *Function) placeIncrements() {
	begin, end := len(f.Blocks), len(f.Blocks)+1
	at := func(b *Block, none int) int {
		if b == nil {
			return none
		}
		return b.index
	}
	var inner, all []*edge
	for _, b := range f.Blocks {
		for _, e := range b.next {
			if all = append(all, e); !e.endsPath() {
				inner = append(inner, e)
			}
		}
	}
	slices.SortStableFunc(inner, func(a, b *edge) int { return cmp.Compare(b.weight, a.weight) })
	t := newTree(len(f.Blocks) + 2)
	t.addEdge(end, begin, 0)
	for _, e := range inner {
		t.addEdge(e.from.index, e.to.index, e.value)
	}
	all = append(all, f.entryEdges...)
	for _, e := range all {
		if e.endsPath() || e.from == nil {
			t.addEdge(at(e.from, begin), t.targetNode(e, end), e.value)
		}
	}
	potential := t.sumsFrom(begin)
	for _, b := range f.Blocks {
		b.potential = potential[b.index]
	}
	for _, e := range all {
		e.increment = e.value + potential[at(e.from, begin)] - potential[t.targetNode(e, end)]
	}
}
