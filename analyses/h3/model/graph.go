package model

import "errors"

// ErrCycle says that orders contradict each other: no schedule has them all.
var ErrCycle = errors.New("the required order of events has a cycle")

// Graph answers which events come before which in every schedule.
type Graph struct {
	words int
	// reachable has a bit for each event that comes after, by event.
	reachable []uint64
	// Order is an order of all events that has every edge.
	Order []ID
}

// NewGraph makes the graph of edges between n events.
func NewGraph(n int, edges []Edge) (*Graph, error) {
	next := make([][]ID, n)
	missing := make([]int, n)
	for _, e := range edges {
		next[e.From] = append(next[e.From], e.To)
		missing[e.To]++
	}
	g := &Graph{words: (n + 63) / 64}
	for id := range n {
		if missing[id] == 0 {
			g.Order = append(g.Order, ID(id))
		}
	}
	for i := 0; i < len(g.Order); i++ {
		for _, to := range next[g.Order[i]] {
			if missing[to]--; missing[to] == 0 {
				g.Order = append(g.Order, to)
			}
		}
	}
	if len(g.Order) < n {
		return nil, ErrCycle
	}
	g.reachable = make([]uint64, n*g.words)
	for i := n - 1; i >= 0; i-- {
		from := g.successors(g.Order[i])
		for _, to := range next[g.Order[i]] {
			from[to/64] |= 1 << (to % 64)
			for w, bits := range g.successors(to) {
				from[w] |= bits
			}
		}
	}
	return g, nil
}

func (g *Graph) successors(id ID) []uint64 { return g.reachable[int(id)*g.words : (int(id)+1)*g.words] }

// Before reports whether a comes before b.
func (g *Graph) Before(a, b ID) bool { return g.successors(a)[b/64]>>(b%64)&1 != 0 }
