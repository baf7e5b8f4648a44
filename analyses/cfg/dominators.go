package cfg

import (
	"gonum.org/v1/gonum/graph/flow"
	"gonum.org/v1/gonum/graph/simple"
)

// PostDominator returns the immediate post-dominator of a block: the first block that every
// path from it to the function's end passes; nil: the end itself, also for a block that
// does not reach the end.
func (b *Block) PostDominator() *Block {
	f := b.Function
	if !f.dominatorsKnown {
		f.dominatorsKnown = true
		f.postDominators = PostDominators(f.Blocks)
	}
	return f.postDominators[b.Index]
}

// PostDominators returns the immediate post-dominator of each block. Blocks are numbered by
// their Index; nil is the end, the successor of blocks that leave or are unknown.
func PostDominators(blocks []*Block) []*Block {
	end := int64(len(blocks))
	reversed := simple.NewDirectedGraph()
	reversed.AddNode(simple.Node(end))
	for _, b := range blocks {
		for _, next := range b.Next {
			if next != b {
				reversed.SetEdge(simple.Edge{F: simple.Node(next.Index), T: simple.Node(b.Index)})
			}
		}
		if b.Leaves || b.Unknown {
			reversed.SetEdge(simple.Edge{F: simple.Node(end), T: simple.Node(b.Index)})
		}
	}
	tree := flow.Dominators(simple.Node(end), reversed)
	immediate := make([]*Block, len(blocks))
	for i := range blocks {
		if d := tree.DominatorOf(int64(i)); d != nil && d.ID() != end {
			immediate[i] = blocks[d.ID()]
		}
	}
	return immediate
}

// findNonReturning finds functions that do not return and reports whether it found new
// ones.
func (g *Graph) findNonReturning() bool {
	returns := map[*Function]bool{}
	for changed := true; changed; {
		changed = false
		for _, f := range g.Functions {
			if !returns[f] && f.mayReturn(returns) {
				returns[f], changed = true, true
			}
		}
	}
	more := false
	for _, f := range g.Functions {
		if !returns[f] && !g.nonReturning[f.Entry] {
			g.nonReturning[f.Entry], more = true, true
		}
	}
	return more
}

// mayReturn reports whether a path leads from the entry to a return, where only the given
// functions return.
func (f *Function) mayReturn(known map[*Function]bool) bool {
	if f.First == nil {
		return true
	}
	seen := make([]bool, len(f.Blocks))
	work := []*Block{f.First}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[b.Index] {
			continue
		}
		seen[b.Index] = true
		stuck := b.NoReturn
		for _, c := range b.Calls {
			stuck = stuck || !known[c] && !b.Unknown
		}
		if stuck {
			continue
		}
		if b.Leaves || b.Unknown {
			return true
		}
		work = append(work, b.Next...)
	}
	return false
}

// ReachableWithout returns the blocks that a block's successors reach without passing its
// post-dominator, where one successor is excluded; nil excludes no successor.
func (b *Block) ReachableWithout(without *Block) []*Block {
	stop := b.PostDominator()
	seen := make([]bool, len(b.Function.Blocks))
	var list, work []*Block
	for _, next := range b.Next {
		if next != without {
			work = append(work, next)
		}
	}
	for len(work) > 0 {
		c := work[len(work)-1]
		work = work[:len(work)-1]
		if c == stop || seen[c.Index] {
			continue
		}
		seen[c.Index] = true
		list = append(list, c)
		work = append(work, c.Next...)
	}
	return list
}
