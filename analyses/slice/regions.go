package slice

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/specialize"
)

// threadRegion is the execution of a thread between two events.
type threadRegion struct {
	summary  int
	low, end uint64 // instructions
	after    int    // position of the event before, -1: no event
	before   int    // position of the event after
	keep     map[int]bool
}

// regionCursor goes backwards through the regions of a thread.
type regionCursor struct {
	races *raceAnalysis
	list  []threadRegion
}

// moveBack moves to the region of an instruction.
func (c *regionCursor) moveBack(at uint64) {
	for n := len(c.list); n > 1 && c.list[n-1].low > at; n-- {
		c.list = c.list[:n-1]
	}
}

func (c *regionCursor) keepsBranch(x *specialize.Context, b *cfg.Block, taken int) bool {
	if c == nil || len(c.list) == 0 {
		return false
	}
	k := c.list[len(c.list)-1].keep
	return k != nil && k[c.races.itemNumber(x, b, taken)]
}

// keepsAddresses reports whether the addresses of a block's accesses are in the slice.
func (c *regionCursor) keepsAddresses(x *specialize.Context, b *blocktrace.Block) bool {
	if c == nil || len(c.list) == 0 || c.list[len(c.list)-1].keep == nil {
		return false
	}
	for _, k := range c.races.slice.Calls.CoversOf(x.Function, b) {
		if c.keepsBlockAddresses(x, k.Block) {
			return true
		}
	}
	return false
}

// keepsCall reports whether the effects of a block's call of a library are in the slice.
func (c *regionCursor) keepsCall(x *specialize.Context, b *cfg.Block) bool {
	if c == nil || len(c.list) == 0 {
		return false
	}
	return c.list[len(c.list)-1].keep[^c.races.itemNumber(x, b, callItem)]
}

func (c *regionCursor) keepsBlockAddresses(x *specialize.Context, b *cfg.Block) bool {
	keep, first := c.list[len(c.list)-1].keep, c.races.itemNumber(x, b, -1)
	for i := range ways {
		if keep[^(first+i)] && (!b.Call || i != callItem+1) {
			return true
		}
	}
	return false
}

// regionCutter cuts a thread into regions.
type regionCutter struct {
	*raceAnalysis
	seen  []int // by item: the last region that contains it
	now   int
	items []int
	list  []threadRegion
	low   uint64
	after int
	ends  int // position after the thread's end
	last  *cfg.Block
	from  *specialize.Context
}

func (r *raceAnalysis) cutRegions(t *specialize.Thread) []threadRegion {
	k := &regionCutter{raceAnalysis: r, seen: make([]int, len(r.items)), now: 1, after: -1, ends: r.slice.Calls.Events.JoinPosition(t.Thread)}
	events := r.slice.Calls.Events.OfThread(t.Thread)
	moves, frame := t.FrameChanges, -1
	c := t.Cursor(0)
	for c.Next() {
		for len(moves) > 0 && moves[0].Step <= c.Index {
			frame, moves = moves[0].Frame, moves[1:]
			k.flushBlock(-1)
		}
		var context *specialize.Context
		if frame >= 0 {
			context = t.Frames[frame].Context
		}
		k.recordSuccessor(context, &c.Step)
		for len(events) > 0 && events[0].From <= c.At {
			k.endRegion(c.At, events)
			events = events[1:]
		}
		if len(events) > 0 && events[0].Point && events[0].From < c.At+uint64(c.Instructions()) {
			k.endRegion(c.At, events) // the block of a point is a region of its own
		}
		if context != nil {
			k.addStep(context, &c.Step)
		}
	}
	k.flushBlock(-1)
	k.endRegion(t.Instructions(), nil)
	return k.list
}

// recordSuccessor records the successor of the last block, if a step of a context
// determines it.
func (k *regionCutter) recordSuccessor(c *specialize.Context, s *blocktrace.Step) {
	if c == nil || k.last == nil {
		return
	}
	if list := k.slice.Calls.CoversOf(c.Function, s.Block); len(list) > 0 && list[0].Begins {
		k.flushBlock(specialize.Successor(k.last, list[0].Block))
	}
}

// addStep adds the blocks of a step.
func (k *regionCutter) addStep(c *specialize.Context, s *blocktrace.Step) {
	for _, v := range k.slice.Calls.CoversOf(c.Function, s.Block) {
		if v.First >= s.Done {
			break
		}
		if v.Begins && k.last != nil {
			k.flushBlock(specialize.Successor(k.last, v.Block))
		}
		k.last, k.from = v.Block, c
	}
}

// flushBlock adds the last block, whose successor is now known.
func (k *regionCutter) flushBlock(taken int) {
	if k.last == nil {
		return
	}
	if len(k.last.Next) < 2 {
		taken = -1
	}
	n := k.itemNumber(k.from, k.last, taken)
	if k.seen[n] != k.now {
		k.seen[n] = k.now
		k.items = append(k.items, n)
	}
	k.last = nil
}

// endRegion ends a region at the first of some events; without one, at the thread's end.
func (k *regionCutter) endRegion(at uint64, events []specialize.Event) {
	k.flushBlock(-1)
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
	k.list = append(k.list, threadRegion{summary: k.summarize(k.items), low: k.low, end: at, after: k.after, before: position})
	k.low, k.after = at, after
	k.items = k.items[:0]
	k.now++
}

func (g *threadRegion) keepItems(items []int) {
	if g.keep == nil {
		g.keep = map[int]bool{}
	}
	for _, n := range items {
		g.keep[n] = true
	}
}
