package mm

import (
	"math"

	"github.com/heddle-dmt/heddle/emu/mem"
)

// objectPage is a resident page of an object. A page that is older than the
// machine's last snapshot may be part of it and is copied before it is written.
type objectPage struct {
	page  mem.Page // ZeroPage: absent
	stamp uint64   // the generation in which it was added, times 2, and 1 if it is dirty
}

func (p objectPage) isPresent() bool { return p.page != mem.ZeroPage }

// isDirty reports whether the page was requested for writing.
func (p objectPage) isDirty() bool { return p.stamp&1 != 0 }

func (p objectPage) generation() uint64 { return p.stamp >> 1 }

func stampFor(generation uint64, dirty bool) uint64 {
	if dirty {
		return generation<<1 | 1
	}
	return generation << 1
}

// pageTree is a sparse array of pages. Like the page tables it is persistent:
// cloning one costs a counter, and clones share the nodes that neither has changed. The
// tree holds a reference to each page.
type pageTree struct {
	root   *pageNode
	height int // levels of nodes
	count  int // pages present
}

const (
	treeBits = 6
	treeFan  = 1 << treeBits
)

// pageNode is a node of the tree: a leaf has pages, every other node has children. A
// node with more than one owner is copied before it is changed, and so is one of
// another machine's RAM, whose owners are not counted here.
type pageNode struct {
	ram   *mem.RAM
	refs  int
	live  int // entries present
	kids  []*pageNode
	pages []objectPage
}

// SharedInSnapshot marks that clones of a tree share nodes.
func (*pageNode) SharedInSnapshot() {}

func newPageNode(ram *mem.RAM, leaf bool) *pageNode {
	if leaf {
		return &pageNode{ram: ram, refs: 1, pages: make([]objectPage, treeFan)}
	}
	return &pageNode{ram: ram, refs: 1, kids: make([]*pageNode, treeFan)}
}

// addOwner adds an owner to n.
func (n *pageNode) addOwner(ram *mem.RAM) {
	if n.ram == ram {
		n.refs++
	}
}

func treeSlot(i uint64, level int) int { return int(i>>(treeBits*level)) & (treeFan - 1) }

// coversIndex reports whether the tree is high enough for the index.
func (t *pageTree) coversIndex(i uint64) bool {
	return t.height*treeBits >= 64 || i>>(t.height*treeBits) == 0
}

// get returns the page of index i, which may be absent.
func (t *pageTree) get(i uint64) objectPage {
	if t.root == nil || !t.coversIndex(i) {
		return objectPage{}
	}
	n := t.root
	for level := t.height - 1; level > 0; level-- {
		if n = n.kids[treeSlot(i, level)]; n == nil {
			return objectPage{}
		}
	}
	return n.pages[treeSlot(i, 0)]
}

// set replaces the page at index i by p, and takes over the caller's reference to its
// page.
func (t *pageTree) set(ram *mem.RAM, i uint64, p objectPage) {
	for t.root == nil || !t.coversIndex(i) {
		t.addLevel(ram)
	}
	at := &t.root
	for level := t.height - 1; level > 0; level-- {
		n := makeExclusive(ram, at)
		s := treeSlot(i, level)
		if n.kids[s] == nil {
			n.kids[s] = newPageNode(ram, level == 1)
			n.live++
		}
		at = &n.kids[s]
	}
	n := makeExclusive(ram, at)
	e := &n.pages[treeSlot(i, 0)]
	if e.isPresent() {
		ram.Unref(e.page)
	} else {
		n.live++
		t.count++
	}
	*e = p
}

// remove removes the page of index i, which must be present.
func (t *pageTree) remove(ram *mem.RAM, i uint64) {
	n := makeExclusive(ram, &t.root)
	for level := t.height - 1; level > 0; level-- {
		n = makeExclusive(ram, &n.kids[treeSlot(i, level)])
	}
	e := &n.pages[treeSlot(i, 0)]
	ram.Unref(e.page)
	*e = objectPage{}
	n.live--
	t.count--
}

// addLevel adds a level at the top.
func (t *pageTree) addLevel(ram *mem.RAM) {
	t.height++
	if t.root == nil {
		t.root = newPageNode(ram, true)
		t.height = 1
		return
	}
	root := newPageNode(ram, false)
	root.kids[0], root.live = t.root, 1
	t.root = root
}

// makeExclusive makes the node in *at the caller's own, by a copy if it has other
// owners.
func makeExclusive(ram *mem.RAM, at **pageNode) *pageNode {
	n := *at
	if n.ram == ram && n.refs == 1 {
		return n
	}
	if n.ram == ram {
		n.refs--
	}
	c := newPageNode(ram, n.pages != nil)
	c.live = n.live
	copy(c.kids, n.kids)
	copy(c.pages, n.pages)
	for _, k := range c.kids {
		if k != nil {
			k.addOwner(ram)
		}
	}
	for _, p := range c.pages {
		if p.isPresent() {
			ram.Ref(p.page)
		}
	}
	*at = c
	return c
}

// cloneTo returns an independent copy, of the same RAM or another one: as
// mem.Space.CloneTo.
func (t *pageTree) cloneTo(ram *mem.RAM) pageTree {
	if ram.Adopting() {
		n := pageTree{}
		t.forEach(0, math.MaxUint64, func(i uint64, p objectPage) {
			n.set(ram, i, objectPage{ram.Bring(p.page), p.stamp})
		})
		return n
	}
	if t.root != nil {
		t.root.addOwner(ram)
	}
	return *t
}

// dropFrom removes the pages from index first on.
func (t *pageTree) dropFrom(ram *mem.RAM, first uint64) {
	if t.root == nil || !t.coversIndex(first) {
		return
	}
	if first > 0 {
		t.count -= dropSubtree(ram, &t.root, t.height-1, first)
		return
	}
	removeOwner(ram, t.root)
	*t = pageTree{}
}

// dropSubtree removes the pages from index first on in the subtree of the node in *at, whose
// own first index is 0, and returns how many there were.
func dropSubtree(ram *mem.RAM, at **pageNode, level int, first uint64) int {
	n := makeExclusive(ram, at)
	gone := 0
	s := treeSlot(first, level)
	if level == 0 {
		for i := s; i < treeFan; i++ {
			if n.pages[i].isPresent() {
				ram.Unref(n.pages[i].page)
				n.pages[i] = objectPage{}
				gone++
			}
		}
		n.live -= gone
		return gone
	}
	for i := s; i < treeFan; i++ {
		k := n.kids[i]
		below := first & (1<<(treeBits*level) - 1)
		switch {
		case k == nil:
		case i == s && below != 0:
			gone += dropSubtree(ram, &n.kids[i], level-1, below)
		default:
			gone += countPages(k)
			removeOwner(ram, k)
			n.kids[i] = nil
			n.live--
		}
	}
	return gone
}

func countPages(n *pageNode) int {
	if n.pages != nil {
		return n.live
	}
	sum := 0
	for _, k := range n.kids {
		if k != nil {
			sum += countPages(k)
		}
	}
	return sum
}

// removeOwner removes an owner from n, and drops the references of n with the last.
func removeOwner(ram *mem.RAM, n *pageNode) {
	if n.ram != ram {
		return
	}
	if n.refs--; n.refs > 0 {
		return
	}
	for _, k := range n.kids {
		if k != nil {
			removeOwner(ram, k)
		}
	}
	for _, p := range n.pages {
		if p.isPresent() {
			ram.Unref(p.page)
		}
	}
}

// forEach calls f for the pages with indices in [first, end), in order.
func (t *pageTree) forEach(first, end uint64, f func(i uint64, p objectPage)) {
	if t.root != nil {
		forEachIn(t.root, t.height-1, 0, first, end, f)
	}
}

func forEachIn(n *pageNode, level int, base, first, end uint64, f func(uint64, objectPage)) {
	step := uint64(1) << (treeBits * level)
	from := 0
	if first > base {
		from = int(min((first-base)/step, treeFan))
	}
	for i := from; i < treeFan; i++ {
		at := base + uint64(i)*step
		if at >= end {
			return
		}
		if level > 0 {
			if k := n.kids[i]; k != nil {
				forEachIn(k, level-1, at, first, end, f)
			}
		} else if n.pages[i].isPresent() {
			f(at, n.pages[i])
		}
	}
}
