package cfg

import (
	"gonum.org/v1/gonum/graph/flow"
	"gonum.org/v1/gonum/graph/simple"
)

// PostDominator is the block that every way from a block to the function's end comes
// through first; nil: the end itself. A block from which there is no way to the end
// has none but that.
func (b *Block) PostDominator() *Block {
	f := b.Function
	if !f.solved {
		f.solved = true
		f.immediate = PostDominators(f.Blocks)
	}
	return f.immediate[b.Index]
}

// PostDominators are those of blocks, which are numbered by their Index; nil is the end,
// to which blocks that leave or are unknown go.
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

// findNever finds functions that do not return; it tells whether there are new ones.
func (g *Graph) findNever() bool {
	returns := map[*Function]bool{}
	for changed := true; changed; {
		changed = false
		for _, f := range g.Functions {
			if !returns[f] && f.returns(returns) {
				returns[f], changed = true, true
			}
		}
	}
	more := false
	for _, f := range g.Functions {
		if !returns[f] && !g.never[f.Entry] {
			g.never[f.Entry], more = true, true
		}
	}
	return more
}

// returns tells whether there is a way from the entry to a return, where only some
// functions return.
func (f *Function) returns(known map[*Function]bool) bool {
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
		stuck := b.Never
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

// Between are the blocks that can be come to from some of a block's successors
// without passing its post-dominator; without says which successor is not meant.
func (b *Block) Between(without *Block) []*Block {
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
