package axiomatic

import (
	"slices"

	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/litmus"
)

// candidate is a trace for each thread, with the search for rf and co.
type candidate struct {
	checker *checker
	traces  []trace
	events  []event
	node    []int // of each event: the halves of an atomic instruction are one
	cells   []cell
	base    order // the preserved program order
}

// cell is a piece of memory that no access cuts.
type cell struct {
	at, size int
	reads    []int // events
	writes   []int
	source   []int // for each read the write that it reads from, -1: the initial value
	co       []int // the writes in coherence order
}

// buildEvents lists the events, gives them nodes and cuts memory into cells.
func (c *candidate) buildEvents() {
	for _, t := range c.traces {
		first := len(c.events)
		for _, e := range t.events {
			n := len(c.events)
			c.events = append(c.events, e)
			if p := n - 1; e.locked && e.kind == write && p >= first && c.events[p].locked && c.events[p].instr == e.instr {
				n = p
			}
			c.node = append(c.node, n)
		}
	}
	for i, a := range c.events {
		for j, b := range c.events {
			if i < j && a.thread == b.thread && c.node[i] != c.node[j] && preserved(c.checker.model, a, b) {
				c.base.addEdge(c.node[i], c.node[j])
			}
		}
	}
	c.cutCells()
}

func (c *candidate) cutCells() {
	var edges []int
	for _, e := range c.events {
		if e.kind <= write {
			edges = append(edges, e.at, e.at+e.size)
		}
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	for i := 0; i+1 < len(edges); i++ {
		cl := cell{at: edges[i], size: edges[i+1] - edges[i]}
		for n, e := range c.events {
			if e.at > cl.at || e.at+e.size <= cl.at {
				continue
			}
			switch e.kind {
			case read:
				cl.reads = append(cl.reads, n)
			case write:
				cl.writes = append(cl.writes, n)
			}
		}
		if len(cl.reads)+len(cl.writes) > 0 {
			c.cells = append(c.cells, cl)
		}
	}
}

// cellValue is the value of a cell in an event's access.
func (c *candidate) cellValue(event int, cl *cell) uint64 {
	e := &c.events[event]
	return e.value >> (8 * (cl.at - e.at)) & sizeMask(cl.size)
}

func (c *candidate) initialValue(cl *cell) uint64 {
	var v uint64
	for k := range cl.size {
		v |= uint64(c.checker.init[cl.at+k]) << (8 * k)
	}
	return v
}

// searchCells goes through the cells from number k on, with the order so far.
func (c *candidate) searchCells(k int, so order) {
	if k == len(c.cells) {
		c.checker.addAllowed(c)
		return
	}
	cl := &c.cells[k]
	cl.source = make([]int, len(cl.reads))
	c.chooseSources(k, 0, so)
}

// chooseSources chooses the write that each read of a cell reads from, from read number n on.
func (c *candidate) chooseSources(k, n int, so order) {
	cl := &c.cells[k]
	if n == len(cl.reads) {
		cl.co = cl.co[:0]
		c.chooseCoherence(k, 0, so)
		return
	}
	r := cl.reads[n]
	want := c.cellValue(r, cl)
	own := -1
	for _, w := range cl.writes {
		if c.events[w].thread == c.events[r].thread && w < r {
			own = w
		}
	}
	if own < 0 && c.initialValue(cl) == want {
		cl.source[n] = -1
		c.chooseSources(k, n+1, so)
	}
	for _, w := range cl.writes {
		if c.cellValue(w, cl) != want || c.events[w].thread == c.events[r].thread && w != own {
			continue
		}
		cl.source[n] = w
		c.chooseSources(k, n+1, so)
	}
}

// chooseCoherence orders the writes of a cell; used marks the placed ones. The
// writes of a thread stay in their order.
func (c *candidate) chooseCoherence(k int, used uint64, so order) {
	cl := &c.cells[k]
	if len(cl.co) == len(cl.writes) {
		c.communicate(k, so)
		return
	}
	for i, w := range cl.writes {
		if used>>i&1 != 0 || c.earlierOwn(cl, i, used) {
			continue
		}
		cl.co = append(cl.co, w)
		c.chooseCoherence(k, used|1<<i, so)
		cl.co = cl.co[:len(cl.co)-1]
	}
}

// earlierOwn reports whether a write of the same thread before write i is not
// placed yet.
func (c *candidate) earlierOwn(cl *cell, i int, used uint64) bool {
	for j, w := range cl.writes[:i] {
		if used>>j&1 == 0 && c.events[w].thread == c.events[cl.writes[i]].thread {
			return true
		}
	}
	return false
}

// communicate checks a cell's coherence and adds its communication to the
// order: co, reads from other threads, and fr.
func (c *candidate) communicate(k int, so order) {
	cl := &c.cells[k]
	place := func(w int) int { return slices.Index(cl.co, w) } // -1 for the initial value
	if !c.isCoherent(cl, place) {
		return
	}
	add := func(a, b int) {
		if c.node[a] != c.node[b] {
			so.addEdge(c.node[a], c.node[b])
		}
	}
	for i := 1; i < len(cl.co); i++ {
		add(cl.co[i-1], cl.co[i])
	}
	for i, r := range cl.reads {
		w := cl.source[i]
		if w >= 0 && (c.checker.model == memmodel.SC || c.events[w].thread != c.events[r].thread) {
			add(w, r)
		}
		for _, later := range cl.co[place(w)+1:] {
			add(r, later)
		}
	}
	if so.isAcyclic() {
		c.searchCells(k+1, so)
	}
}

// isCoherent checks the accesses of each thread to a cell: none sees an older
// write than one before it did or made.
func (c *candidate) isCoherent(cl *cell, place func(int) int) bool {
	newest := map[int]int{} // by thread: the newest write seen
	type access struct{ event, place int }
	var all []access
	for i, r := range cl.reads {
		all = append(all, access{r, place(cl.source[i])})
	}
	for _, w := range cl.writes {
		all = append(all, access{w, place(w)})
	}
	slices.SortFunc(all, func(a, b access) int { return a.event - b.event })
	for _, a := range all {
		e := &c.events[a.event]
		last, seen := newest[e.thread]
		if seen && (a.place < last || e.kind == write && a.place == last) {
			return false
		}
		newest[e.thread] = a.place
	}
	return true
}

// finalMemory is the final content of the locations.
func (c *candidate) finalMemory() []byte {
	m := slices.Clone(c.checker.init)
	for i := range c.cells {
		cl := &c.cells[i]
		if len(cl.co) == 0 {
			continue
		}
		v := c.cellValue(cl.co[len(cl.co)-1], cl)
		for k := range cl.size {
			m[cl.at+k] = byte(v >> (8 * k))
		}
	}
	return m
}

// finalState is the state that the test observes.
func (c *candidate) finalState(o *litmus.Observer) litmus.State {
	reg := func(thread int, r litmus.Reg) uint64 { return c.traces[thread].regs[r] }
	return o.State(reg, c.finalMemory())
}
