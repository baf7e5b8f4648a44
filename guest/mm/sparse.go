package mm

import "github.com/heddle-dmt/heddle/emu"

// Refs is the number of references: that of the creator and one for each
// mapping.
func (o *Object) Refs() int { return o.refs }

// NextData returns the first offset from off on that holds data, or a number
// not below the size if only a hole follows. What the source says is data.
func (o *Object) NextData(off int64) int64 {
	if off < o.sourceEnd && o.source != nil {
		return off
	}
	index := uint64(off) / emu.PageSize
	next, ok := o.pages.next(index)
	if !ok {
		return max(off, o.size)
	}
	return max(off, int64(next)*emu.PageSize)
}

// NextHole returns the first offset from off on that lies in a hole; there is
// one at the end of every object.
func (o *Object) NextHole(off int64) int64 {
	if o.source != nil {
		off = max(off, o.sourceEnd)
	}
	for off < o.size && o.pages.get(uint64(off)/emu.PageSize).present() {
		off += int64(pageRoom(off))
	}
	return min(off, o.size)
}

// next finds the first page at index i or later.
func (t *pageTree) next(i uint64) (uint64, bool) {
	if t.root == nil || !t.covers(i) {
		return 0, false
	}
	return nextIn(t.root, t.height-1, i)
}

// nextIn is next below a node whose own first index is 0.
func nextIn(n *pageNode, level int, i uint64) (uint64, bool) {
	for s := treeSlot(i, level); s < treeFan; s++ {
		base := uint64(s) << (treeBits * level)
		if level == 0 {
			if n.pages[s].present() {
				return base, true
			}
			continue
		}
		if k := n.kids[s]; k != nil {
			below := uint64(0)
			if base < i {
				below = i - base
			}
			if found, ok := nextIn(k, level-1, below); ok {
				return base + found, true
			}
		}
	}
	return 0, false
}
