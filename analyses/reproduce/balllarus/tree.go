package balllarus

// tree is a spanning tree that grows: of edges that would close a circle it takes
// none.
type tree struct {
	parent []int // of the sets of nodes that hang together
	ways   [][]way
}

// way is an edge of the tree seen from one of its ends: what a register that is to
// have the sum of the numbers gets on the way.
type way struct {
	to   int
	adds uint64
}

func newTree(nodes int) *tree {
	t := &tree{parent: make([]int, nodes), ways: make([][]way, nodes)}
	for i := range t.parent {
		t.parent[i] = i
	}
	return t
}

// to is the node that an edge goes to: the end, if a path ends with it.
func (t *tree) to(e *edge, end int) int {
	if e.ends() {
		return end
	}
	return e.to.index
}

func (t *tree) set(n int) int {
	for t.parent[n] != n {
		t.parent[n] = t.parent[t.parent[n]]
		n = t.parent[n]
	}
	return n
}

// join takes an edge if it hangs together what did not.
func (t *tree) join(from, to int, value uint64) {
	a, b := t.set(from), t.set(to)
	if a == b {
		return
	}
	t.parent[a] = b
	t.ways[from] = append(t.ways[from], way{to, value})
	t.ways[to] = append(t.ways[to], way{from, -value})
}

// potentials are the sums of the numbers on the tree's way from a node to each.
func (t *tree) potentials(from int) []uint64 {
	sums, seen := make([]uint64, len(t.ways)), make([]bool, len(t.ways))
	seen[from] = true
	work := []int{from}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		for _, w := range t.ways[n] {
			if !seen[w.to] {
				seen[w.to] = true
				sums[w.to] = sums[n] + w.adds
				work = append(work, w.to)
			}
		}
	}
	return sums
}
