package mm

import "github.com/heddle-dmt/heddle/emu/arch"

// Refs is the number of references: the creator's and one for each mapping.
func (o *Object) Refs() int { return o.refs }

// NextData returns the first offset from off on that holds data, or a number not below
// the size if only a hole follows. All bytes of the source are data.
func (o *Object) NextData(off int64) int64 {
	if off < o.sourceEnd && o.source != nil {
		return off
	}
	index := uint64(off) / arch.PageSize
	next, ok := o.pages.nextPresent(index)
	if !ok {
		return max(off, o.size)
	}
	return max(off, int64(next)*arch.PageSize)
}

// NextHole returns the first offset from off on that lies in a hole; there is
// one at the end of every object.
func (o *Object) NextHole(off int64) int64 {
	if o.source != nil {
		off = max(off, o.sourceEnd)
	}
	for off < o.size && o.pages.get(uint64(off)/arch.PageSize).isPresent() {
		off += int64(bytesToPageEnd(off))
	}
	return min(off, o.size)
}

// nextPresent finds the first page at index i or later.
func (t *pageTree) nextPresent(i uint64) (uint64, bool) {
	if t.root == nil || !t.coversIndex(i) {
		return 0, false
	}
	return nextPresentIn(t.root, t.height-1, i)
}

// nextPresentIn is nextPresent in the subtree of a node whose own first index is 0.
func nextPresentIn(n *pageNode, level int, i uint64) (uint64, bool) {
	for s := treeSlot(i, level); s < treeFan; s++ {
		base := uint64(s) << (treeBits * level)
		if level == 0 {
			if n.pages[s].isPresent() {
				return base, true
			}
			continue
		}
		if k := n.kids[s]; k != nil {
			below := uint64(0)
			if base < i {
				below = i - base
			}
			if found, ok := nextPresentIn(k, level-1, below); ok {
				return base + found, true
			}
		}
	}
	return 0, false
}
