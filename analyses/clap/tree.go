package clap

// spanningTree is a spanning tree that grows: of edges that would close a circle it takes
// none.
type spanningTree struct {
	parent []int // of the sets of nodes that hang together
	ways   [][]treeEdge
}

// treeEdge is an edge of the tree seen from one of its ends, with the number that is added along
// it.
type treeEdge struct {
	to   int
	adds uint64
}

func newTree(nodes int) *spanningTree {
	t := &spanningTree{parent: make([]int, nodes), ways: make([][]treeEdge, nodes)}
	for i := range t.parent {
		t.parent[i] = i
	}
	return t
}

// targetNode is the node that an edge goes to: the end, if a path ends with it.
func (t *spanningTree) targetNode(e *edge, end int) int {
	if e.endsPath() {
		return end
	}
	return e.to.index
}

func (t *spanningTree) findRoot(n int) int {
	for t.parent[n] != n {
		t.parent[n] = t.parent[t.parent[n]]
		n = t.parent[n]
	}
	return n
}

// addEdge takes an edge if it connects two components.
func (t *spanningTree) addEdge(from, to int, value uint64) {
	a, b := t.findRoot(from), t.findRoot(to)
	if a == b {
		return
	}
	t.parent[a] = b
	t.ways[from] = append(t.ways[from], treeEdge{to, value})
	t.ways[to] = append(t.ways[to], treeEdge{from, -value})
}

// sumsFrom are the sums of the numbers on the tree's way from a node to each.
func (t *spanningTree) sumsFrom(from int) []uint64 {
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
