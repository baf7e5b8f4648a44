package slice

import (
	"slices"
	"sort"

	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/simplify"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// races are the races that inputs may cause, and what avoids them: PEREGRINE's
// section 4.1. A region is what a thread executes between two events; it is summed up
// as the set of blocks that it executes, with where they go, and regions with equal
// sets share a summary. Pairs of summaries are compared once.
type races struct {
	slice     *Slice
	sides     *sides
	items     []item
	base      []int // of the items of contexts
	summaries []*summary
	byKey     map[string]int
	threads   [][]region // by thread
	orders    map[[2]int][]crossing
	pairs     map[[2]int]*pair
}

// item is a block of a context and the successor that is taken, -1 for none or any.
type item struct {
	context *simplify.Context
	block   *cfg.Block
	taken   int
}

// ways is how many successors of a block items tell apart, and one more; callItem
// stands for what a block's call of a library does.
const (
	ways     = 5
	callItem = ways - 2
)

// summary is what regions do.
type summary struct {
	items []int
	// done are the accesses of the items, and undone those of what may be executed
	// instead.
	done, undone accesses
}

type accesses struct {
	list []access
	sets map[alias.Set]uint8
}

// access is one of an item.
type access struct {
	item   int
	set    alias.Set
	store  bool
	atomic bool
}

const (
	setRead = 1 << iota
	setWritten
	setPlain
)

// region is what a thread executes between two events.
type region struct {
	summary  int
	low, end uint64 // instructions
	after    int    // position of the event before, -1: none
	before   int    // and of the one behind
	keep     map[int]bool
}

// crossing is a constraint from one thread to another: what comes before from in the
// first one comes before what is from to on in the second.
type crossing struct{ from, to uint64 }

// pair is what two summaries have in common.
type pair struct{ first, second []int }

// regionCursor goes backwards through the regions of a thread.
type regionCursor struct {
	races *races
	list  []region
}

// back goes to the region of an instruction.
func (c *regionCursor) back(at uint64) {
	for n := len(c.list); n > 1 && c.list[n-1].low > at; n-- {
		c.list = c.list[:n-1]
	}
}

func (c *regionCursor) keeps(x *simplify.Context, b *cfg.Block, taken int) bool {
	if c == nil || len(c.list) == 0 {
		return false
	}
	k := c.list[len(c.list)-1].keep
	return k != nil && k[c.races.item(x, b, taken)]
}

// places tells whether the addresses of a block's accesses are in the slice.
func (c *regionCursor) places(x *simplify.Context, b *path.Block) bool {
	if c == nil || len(c.list) == 0 || c.list[len(c.list)-1].keep == nil {
		return false
	}
	for _, k := range c.races.slice.Run.Covers(x.Function, b) {
		if c.placed(x, k.Block) {
			return true
		}
	}
	return false
}

// calls tells whether what a block's call of a library does is in the slice.
func (c *regionCursor) calls(x *simplify.Context, b *cfg.Block) bool {
	if c == nil || len(c.list) == 0 {
		return false
	}
	return c.list[len(c.list)-1].keep[^c.races.item(x, b, callItem)]
}

func (c *regionCursor) placed(x *simplify.Context, b *cfg.Block) bool {
	keep, first := c.list[len(c.list)-1].keep, c.races.item(x, b, -1)
	for i := range ways {
		if keep[^(first+i)] && (!b.Call || i != callItem+1) {
			return true
		}
	}
	return false
}

// item is the number of one.
func (r *races) item(c *simplify.Context, b *cfg.Block, taken int) int {
	return r.base[c.Number] + b.Index*ways + min(taken, ways-2) + 1
}

// findRaces finds what must be kept.
func findRaces(s *Slice, d *sides) *races {
	r := &races{
		slice: s, sides: d, byKey: map[string]int{}, orders: map[[2]int][]crossing{},
		pairs: map[[2]int]*pair{},
	}
	for _, c := range s.Run.Contexts {
		r.base = append(r.base, len(r.items))
		for _, b := range c.Function.Blocks {
			for i := range ways {
				r.items = append(r.items, item{c, b, i - 1})
			}
		}
	}
	for _, t := range s.Run.Threads {
		r.threads = append(r.threads, r.cut(t))
		s.Stats.Regions += uint64(len(r.threads[len(r.threads)-1]))
	}
	r.order()
	for i := range r.threads {
		for k := range i {
			r.compare(k, i)
		}
	}
	return r
}

// cutter cuts a thread into regions.
type cutter struct {
	*races
	seen  []int // by item: the last region that has it
	now   int
	items []int
	list  []region
	low   uint64
	after int
	ends  int // position behind the thread's end
	last  *cfg.Block
	from  *simplify.Context
}

func (r *races) cut(t *simplify.Thread) []region {
	k := &cutter{races: r, seen: make([]int, len(r.items)), now: 1, after: -1, ends: r.slice.Run.Events.End(t.Thread)}
	events := r.slice.Run.Events.Of(t.Thread)
	moves, frame := t.Moves, -1
	c := t.Cursor(0)
	for c.Next() {
		for len(moves) > 0 && moves[0].Step <= c.Index {
			frame, moves = moves[0].Frame, moves[1:]
			k.flush(-1)
		}
		var context *simplify.Context
		if frame >= 0 {
			context = t.Frames[frame].Context
		}
		k.went(context, &c.Step)
		for len(events) > 0 && events[0].From <= c.At {
			k.end(c.At, events)
			events = events[1:]
		}
		if len(events) > 0 && events[0].Point && events[0].From < c.At+uint64(c.Instructions()) {
			k.end(c.At, events) // what is with a point is a region of its own
		}
		if context != nil {
			k.take(context, &c.Step)
		}
	}
	k.flush(-1)
	k.end(t.Instructions(), nil)
	return k.list
}

// went says where the last block went, if a step of a context tells.
func (k *cutter) went(c *simplify.Context, s *path.Step) {
	if c == nil || k.last == nil {
		return
	}
	if list := k.slice.Run.Covers(c.Function, s.Block); len(list) > 0 && list[0].Begins {
		k.flush(simplify.Successor(k.last, list[0].Block))
	}
}

// take adds what a step executes.
func (k *cutter) take(c *simplify.Context, s *path.Step) {
	for _, v := range k.slice.Run.Covers(c.Function, s.Block) {
		if v.First >= s.Done {
			break
		}
		if v.Begins && k.last != nil {
			k.flush(simplify.Successor(k.last, v.Block))
		}
		k.last, k.from = v.Block, c
	}
}

// flush adds the last block, of which it is known where it went.
func (k *cutter) flush(taken int) {
	if k.last == nil {
		return
	}
	if len(k.last.Next) < 2 {
		taken = -1
	}
	n := k.item(k.from, k.last, taken)
	if k.seen[n] != k.now {
		k.seen[n] = k.now
		k.items = append(k.items, n)
	}
	k.last = nil
}

// end ends a region at the first of some events; without one, at the thread's end.
func (k *cutter) end(at uint64, events []simplify.Event) {
	k.flush(-1)
	position, after := k.ends, k.after
	for i := range events {
		if !events[i].Point {
			position = events[i].Position
			break
		}
	}
	if len(events) > 0 {
		after = events[0].Position
	}
	slices.Sort(k.items)
	k.list = append(k.list, region{summary: k.summarize(k.items), low: k.low, end: at, after: k.after, before: position})
	k.low, k.after = at, after
	k.items = k.items[:0]
	k.now++
}

// summarize is the number of the summary of items.
func (r *races) summarize(items []int) int {
	key := make([]byte, 0, 4*len(items))
	for _, n := range items {
		key = append(key, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	if n, ok := r.byKey[string(key)]; ok {
		return n
	}
	s := &summary{items: slices.Clone(items)}
	s.done.sets, s.undone.sets = map[alias.Set]uint8{}, map[alias.Set]uint8{}
	for _, n := range items {
		r.does(s, n)
	}
	r.byKey[string(key)] = len(r.summaries)
	r.summaries = append(r.summaries, s)
	return len(r.summaries) - 1
}

// does adds what an item does.
func (r *races) does(s *summary, n int) {
	it := &r.items[n]
	for _, a := range r.slice.Alias.Accesses(it.context, it.block) {
		if _, _, own := r.slice.Alias.Own(a.Set, it.context); own && r.slice.Alias.Private(a.Set) {
			continue
		}
		s.done.add(access{n, a.Set, a.Store, a.Atomic})
	}
	if l := r.slice.Alias.Called(it.context, it.block); l != nil && !l.Model.Event {
		call := r.item(it.context, it.block, callItem)
		s.done.add(access{call, l.Reads, false, false})
		s.done.add(access{call, l.Writes, true, false})
	}
	if it.taken < 0 || len(it.block.Next) < 2 {
		return
	}
	d := r.sides.of(it.context, it.block, it.taken)
	if d.event || d.lost {
		return // it is kept anyway
	}
	for _, list := range []struct {
		sets, plain []alias.Set
		store       bool
	}{{d.reads, d.plainReads, false}, {d.writes, d.plainWrites, true}} {
		for _, set := range list.sets {
			s.undone.add(access{n, set, list.store, !slices.Contains(list.plain, set)})
		}
	}
}

func (a *accesses) add(x access) {
	if x.set == alias.Nothing {
		return
	}
	flags := uint8(setRead)
	if x.store {
		flags = setWritten
	}
	if !x.atomic {
		flags |= setPlain
	}
	a.sets[x.set] |= flags
	a.list = append(a.list, x)
}

// order finds, for each pair of threads, the constraints from one to the other.
func (r *races) order() {
	places := map[event.ThreadID]int{}
	for i, t := range r.slice.Run.Threads {
		places[t.ID] = i
	}
	r.slice.Run.Events.Constraints(func(first event.ThreadID, from uint64, second event.ThreadID, to uint64) {
		key := [2]int{places[first], places[second]}
		r.orders[key] = append(r.orders[key], crossing{from, to})
	})
	for _, list := range r.orders {
		sort.Slice(list, func(i, j int) bool { return list[i].from < list[j].from })
		for i := len(list) - 2; i >= 0; i-- {
			list[i].to = min(list[i].to, list[i+1].to)
		}
	}
}

// before tells whether constraints have all of a region of one thread come before all
// of one of another.
func (r *races) before(first int, a *region, second int, b *region) bool {
	list := r.orders[[2]int{first, second}]
	i := sort.Search(len(list), func(i int) bool { return list[i].from+1 >= a.end })
	return i < len(list) && list[i].to <= b.low
}

// compare compares the regions of two threads that are concurrent.
func (r *races) compare(first, second int) {
	a, b := r.threads[first], r.threads[second]
	from := 0
	for i := range a {
		for from < len(b) && b[from].before <= a[i].after {
			from++
		}
		for k := from; k < len(b) && b[k].after < a[i].before; k++ {
			p := r.common(a[i].summary, b[k].summary)
			if p == nil || r.before(first, &a[i], second, &b[k]) || r.before(second, &b[k], first, &a[i]) {
				continue
			}
			r.slice.Stats.Races++
			a[i].mark(p.first)
			b[k].mark(p.second)
		}
	}
}

func (g *region) mark(items []int) {
	if g.keep == nil {
		g.keep = map[int]bool{}
	}
	for _, n := range items {
		g.keep[n] = true
	}
}

// common is what two summaries have in common that may race; nil: nothing. Of accesses
// that are done the number of the item is inverted.
func (r *races) common(a, b int) *pair {
	key := [2]int{a, b}
	if p, ok := r.pairs[key]; ok {
		return p
	}
	x, y := r.summaries[a], r.summaries[b]
	p := &pair{}
	r.meet(p, &x.done, &y.done, func(n int) int { return ^n }, func(n int) int { return ^n })
	r.meet(p, &x.undone, &y.done, same, none)
	r.meet(p, &x.done, &y.undone, none, same)
	r.meet(p, &x.undone, &y.undone, same, none)
	if len(p.first)+len(p.second) == 0 {
		p = nil
	}
	r.pairs[key] = p
	return p
}

const noItem = -1 << 62

func same(n int) int { return n }

func none(int) int { return noItem }

// meet adds to a pair what accesses may race, each as a function says.
func (r *races) meet(p *pair, x, y *accesses, first, second func(int) int) {
	for s, f := range x.sets { // what is found is a set
		for u, g := range y.sets {
			if (f|g)&setWritten == 0 || (f|g)&setPlain == 0 || !r.slice.Alias.May(s, u) {
				continue
			}
			p.first = append(p.first, x.having(s, first)...)
			p.second = append(p.second, y.having(u, second)...)
		}
	}
}

func (a *accesses) having(s alias.Set, as func(int) int) []int {
	var list []int
	for _, x := range a.list {
		if n := as(x.item); x.set == s && n != noItem {
			list = append(list, n)
		}
	}
	return list
}
