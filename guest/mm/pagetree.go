package mm

import (
	"math"

	"github.com/heddle-dmt/heddle/emu"
)

// objectPage is a resident page of an object. A page that is older than the
// machine's last snapshot may be part of it and is copied before it is written.
type objectPage struct {
	page  emu.Page // ZeroPage: absent
	stamp uint64   // the generation in which it came, times 2, and 1 if it is dirty
}

func (p objectPage) present() bool { return p.page != emu.ZeroPage }

// dirty tells whether the page was asked for to be written.
func (p objectPage) dirty() bool { return p.stamp&1 != 0 }

func (p objectPage) generation() uint64 { return p.stamp >> 1 }

func stampFor(generation uint64, dirty bool) uint64 {
	if dirty {
		return generation<<1 | 1
	}
	return generation << 1
}

// pageTree is a sparse array of pages. Like the page tables it is persistent:
// cloning one costs a counter, and clones share what neither has changed. The
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

// pageNode is a node of the tree: a leaf has pages, any other kids. A node with
// more than one owner is copied before it is changed, and so is one of another
// machine's RAM, whose owners are not counted here.
type pageNode struct {
	ram   *emu.RAM
	refs  int
	live  int // entries present
	kids  []*pageNode
	pages []objectPage
}

// SharedInSnapshot marks that clones of a tree share nodes.
func (*pageNode) SharedInSnapshot() {}

func newPageNode(ram *emu.RAM, leaf bool) *pageNode {
	if leaf {
		return &pageNode{ram: ram, refs: 1, pages: make([]objectPage, treeFan)}
	}
	return &pageNode{ram: ram, refs: 1, kids: make([]*pageNode, treeFan)}
}

// hold adds an owner to n.
func (n *pageNode) hold(ram *emu.RAM) {
	if n.ram == ram {
		n.refs++
	}
}

func treeSlot(i uint64, level int) int { return int(i>>(treeBits*level)) & (treeFan - 1) }

// covers tells whether the tree is high enough for the index.
func (t *pageTree) covers(i uint64) bool {
	return t.height*treeBits >= 64 || i>>(t.height*treeBits) == 0
}

// get returns the page of index i, which may be absent.
func (t *pageTree) get(i uint64) objectPage {
	if t.root == nil || !t.covers(i) {
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

// set puts p at index i in place of what is there, and takes over the caller's
// reference to its page.
func (t *pageTree) set(ram *emu.RAM, i uint64, p objectPage) {
	for t.root == nil || !t.covers(i) {
		t.grow(ram)
	}
	at := &t.root
	for level := t.height - 1; level > 0; level-- {
		n := own(ram, at)
		s := treeSlot(i, level)
		if n.kids[s] == nil {
			n.kids[s] = newPageNode(ram, level == 1)
			n.live++
		}
		at = &n.kids[s]
	}
	n := own(ram, at)
	e := &n.pages[treeSlot(i, 0)]
	if e.present() {
		ram.Unref(e.page)
	} else {
		n.live++
		t.count++
	}
	*e = p
}

// remove takes the page of index i out, which must be present.
func (t *pageTree) remove(ram *emu.RAM, i uint64) {
	n := own(ram, &t.root)
	for level := t.height - 1; level > 0; level-- {
		n = own(ram, &n.kids[treeSlot(i, level)])
	}
	e := &n.pages[treeSlot(i, 0)]
	ram.Unref(e.page)
	*e = objectPage{}
	n.live--
	t.count--
}

// grow adds a level at the top.
func (t *pageTree) grow(ram *emu.RAM) {
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

// own makes the node in *at the caller's own.
func own(ram *emu.RAM, at **pageNode) *pageNode {
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
			k.hold(ram)
		}
	}
	for _, p := range c.pages {
		if p.present() {
			ram.Ref(p.page)
		}
	}
	*at = c
	return c
}

// clone returns an independent copy, of the same RAM or another one: as
// emu.Space.CloneTo.
func (t *pageTree) clone(ram *emu.RAM) pageTree {
	if ram.Adopting() {
		n := pageTree{}
		t.each(0, math.MaxUint64, func(i uint64, p objectPage) {
			n.set(ram, i, objectPage{ram.Bring(p.page), p.stamp})
		})
		return n
	}
	if t.root != nil {
		t.root.hold(ram)
	}
	return *t
}

// dropFrom removes the pages from index first on.
func (t *pageTree) dropFrom(ram *emu.RAM, first uint64) {
	if t.root == nil || !t.covers(first) {
		return
	}
	if first > 0 {
		t.count -= dropIn(ram, &t.root, t.height-1, first)
		return
	}
	giveUp(ram, t.root)
	*t = pageTree{}
}

// dropIn removes the pages from index first on below the node in *at, whose own
// first index is 0, and returns how many there were.
func dropIn(ram *emu.RAM, at **pageNode, level int, first uint64) int {
	n := own(ram, at)
	gone := 0
	s := treeSlot(first, level)
	if level == 0 {
		for i := s; i < treeFan; i++ {
			if n.pages[i].present() {
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
			gone += dropIn(ram, &n.kids[i], level-1, below)
		default:
			gone += countPages(k)
			giveUp(ram, k)
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

// giveUp takes an owner from n, and gives up what it holds with the last.
func giveUp(ram *emu.RAM, n *pageNode) {
	if n.ram != ram {
		return
	}
	if n.refs--; n.refs > 0 {
		return
	}
	for _, k := range n.kids {
		if k != nil {
			giveUp(ram, k)
		}
	}
	for _, p := range n.pages {
		if p.present() {
			ram.Unref(p.page)
		}
	}
}

// each calls f for the pages with indices in [first, end), in order.
func (t *pageTree) each(first, end uint64, f func(i uint64, p objectPage)) {
	if t.root != nil {
		eachIn(t.root, t.height-1, 0, first, end, f)
	}
}

func eachIn(n *pageNode, level int, base, first, end uint64, f func(uint64, objectPage)) {
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
				eachIn(k, level-1, at, first, end, f)
			}
		} else if n.pages[i].present() {
			f(at, n.pages[i])
		}
	}
}
