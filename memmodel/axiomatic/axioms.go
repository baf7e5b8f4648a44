package axiomatic

import (
	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/iterator"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"github.com/heddle-dmt/heddle/memmodel"
)

// preserved reports whether the model keeps two events of a thread, a before b,
// in order.
func preserved(m memmodel.Model, a, b event) bool {
	switch {
	case m == memmodel.SC:
		return true
	case a.kind == fullFence || b.kind == fullFence || a.locked || b.locked:
		return true
	case a.kind == read:
		return b.kind == read || b.kind == write
	case a.kind == storeFence:
		return b.kind == write || b.kind == storeFence
	case b.kind == storeFence: // a is a write
		return true
	case b.kind == read: // a later read overtakes a write
		return false
	}
	return m == memmodel.TSO && !a.weak && !b.weak
}

// order is a relation on up to 64 nodes, for gonum's algorithms.
type order [64]uint64

func (o *order) addEdge(a, b int) { o[a] |= 1 << b }

// Node implements graph.Directed.
func (o *order) Node(id int64) graph.Node { return simple.Node(id) }

// Nodes implements graph.Directed.
func (o *order) Nodes() graph.Nodes {
	used := uint64(0)
	for a, to := range o {
		if to != 0 {
			used |= to | 1<<a
		}
	}
	return graphNodes(used)
}

// From implements graph.Directed.
func (o *order) From(id int64) graph.Nodes { return graphNodes(o[id]) }

// To implements graph.Directed.
func (o *order) To(id int64) graph.Nodes {
	var from uint64
	for a, to := range o {
		from |= to >> id & 1 << a
	}
	return graphNodes(from)
}

// HasEdgeBetween implements graph.Directed.
func (o *order) HasEdgeBetween(a, b int64) bool {
	return o.HasEdgeFromTo(a, b) || o.HasEdgeFromTo(b, a)
}

// HasEdgeFromTo implements graph.Directed.
func (o *order) HasEdgeFromTo(a, b int64) bool { return o[a]>>b&1 != 0 }

// Edge implements graph.Directed.
func (o *order) Edge(a, b int64) graph.Edge {
	if !o.HasEdgeFromTo(a, b) {
		return nil
	}
	return simple.Edge{F: simple.Node(a), T: simple.Node(b)}
}

func graphNodes(bits uint64) graph.Nodes {
	var list []graph.Node
	for i := range 64 {
		if bits>>i&1 != 0 {
			list = append(list, simple.Node(i))
		}
	}
	return iterator.NewOrderedNodes(list)
}

// isAcyclic reports whether the relation has no cycle.
func (o *order) isAcyclic() bool {
	for i, to := range o {
		if to>>i&1 != 0 {
			return false
		}
	}
	_, err := topo.Sort(o)
	return err == nil
}
