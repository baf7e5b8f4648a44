package simplify

import (
	"sort"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// Run is what threads executed, call by call.
type Run struct {
	Trace    *path.Trace
	Events   *Events
	Graph    *cfg.Graph
	Contexts []*Context
	// Threads are as in the trace.
	Threads []*Thread

	options  Options
	roots    map[int]map[child]*Context
	merged   map[child]*Context
	coverage map[covers][]Cover
}

// Thread is a thread's calls.
type Thread struct {
	*path.Thread
	Place  int
	Frames []Frame
	// Moves are where the thread changes from frame to frame.
	Moves []Move
}

// Frame is a call: of a function of the program, or of one of a library with all
// that it does but for calls back.
type Frame struct {
	// Context is nil for a library's.
	Context *Context
	// Parent is the frame that it was called from, -1: none. Site is the block of
	// the program that called; of what a library calls nil.
	Parent int
	Site   *cfg.Block
	// Slot is where the stack has its return address.
	Slot uint64
	// First is its first step, and Last the one behind its last.
	First, Last int
	// Round is of a library's call what Context.Round is.
	Round int
	// Back tells that a library's call has called back.
	Back bool

	events int // of the thread before
	rounds map[*cfg.Block]*rounds
}

// rounds counts the calls from a block of a frame with events between them.
type rounds struct{ events, n int }

// Move is a change to a frame before a step.
type Move struct{ Step, Frame int }

// Cover is a part of a step: statements of a block of the program, from First to
// behind Last, that are in a block of the graph. Begins and Ends tell that they are
// from its begin and up to its end.
type Cover struct {
	Block        *cfg.Block
	First, Last  int
	Begins, Ends bool
}

type covers struct {
	f      *cfg.Function
	number int
}

// Observe finds out what building the graph of an image needs.
func Observe(t *path.Trace, m *cfg.Image) *cfg.Observed {
	o := &cfg.Observed{Targets: map[uint64][]uint64{}}
	entries := map[uint64]bool{}
	seen := map[[2]uint64]bool{}
	for _, th := range t.Threads {
		c := th.Cursor(0)
		var last *path.Block
		exited := false
		for c.Next() {
			at := c.Block.Addr
			if m.Owns(at) && !entries[at] && begins(m, last, exited) {
				entries[at] = true
				o.Entries = append(o.Entries, at)
			}
			if last != nil && !exited && m.Owns(last.Addr) && m.Owns(at) {
				observe(o, seen, last, at)
			}
			last, exited = c.Block, c.Exited
		}
	}
	sort.Slice(o.Entries, func(i, j int) bool { return o.Entries[i] < o.Entries[j] })
	return o
}

// begins tells whether what comes behind a block begins a function.
func begins(m *cfg.Image, last *path.Block, exited bool) bool {
	switch {
	case last == nil:
		return true
	case exited:
		return !m.Owns(last.Addr)
	}
	return last.Jump == vex.JumpCall || !m.Owns(last.Addr) && last.Jump != vex.JumpRet
}

func observe(o *cfg.Observed, seen map[[2]uint64]bool, last *path.Block, at uint64) {
	if _, direct := last.Next.(*vex.Const); direct || last.Jump == vex.JumpRet {
		return
	}
	from := lastInstruction(last.Block)
	if key := [2]uint64{from, at}; !seen[key] {
		seen[key] = true
		o.Targets[from] = append(o.Targets[from], at)
	}
}

func lastInstruction(b *vex.Block) uint64 {
	at := b.Addr
	for _, s := range b.Stmts {
		if m, ok := s.(*vex.Mark); ok {
			at = m.Addr
		}
	}
	return at
}

// Follow finds the calls of all threads.
func Follow(t *path.Trace, g *cfg.Graph, e *Events, o Options) *Run {
	r := &Run{
		Trace: t, Events: e, Graph: g, options: o, roots: map[int]map[child]*Context{},
		merged: map[child]*Context{}, coverage: map[covers][]Cover{},
	}
	for i, th := range t.Threads {
		r.Threads = append(r.Threads, &Thread{Thread: th, Place: i})
	}
	for _, th := range r.Threads {
		f := &follower{run: r, Thread: th, current: -1, pending: e.Of(th.Thread)}
		f.follow()
	}
	return r
}

// follower goes through a thread's steps.
type follower struct {
	*Thread
	run     *Run
	current int
	pending []Event
	events  int
	last    *path.Block // nil: the step did not go to its end
	stack   uint64      // what the last step's last access was to
	before  *cfg.Block  // of the current frame: gone through to its end
}

func (f *follower) follow() {
	c := f.Thread.Cursor(0)
	for c.Next() {
		for len(f.pending) > 0 && f.pending[0].From < c.At {
			f.pending = f.pending[1:]
			f.events++
		}
		f.move(c.Index, c.Block)
		f.note(&c.Step)
		f.last = c.Block
		if n := len(c.Addrs); n > 0 {
			f.stack = c.Addrs[n-1]
		}
		if c.Exited {
			f.last = nil
		}
	}
	for i := range f.Frames {
		if f.Frames[i].Last == 0 {
			f.Frames[i].Last = f.Len()
		}
	}
}

// move finds the frame of a step.
func (f *follower) move(step int, b *path.Block) {
	own := f.run.Graph.Image.Owns(b.Addr)
	switch {
	case f.current < 0:
		f.enter(step, b, own, 0)
	case f.Frames[f.current].Context == nil:
		if own {
			f.fromLibrary(step, b)
		}
	case f.last == nil:
	case f.last.Jump == vex.JumpCall:
		f.enter(step, b, own, f.stack)
	case f.last.Jump == vex.JumpRet:
		f.leave(step, f.stack)
	case !own || f.run.Graph.At(b.Addr) != nil && f.Frames[f.current].Context.Function.Block(b.Addr) == nil:
		f.enter(step, b, own, f.Frames[f.current].Slot)
	}
}

// fromLibrary goes from a library to the program: back, or by a call.
func (f *follower) fromLibrary(step int, b *path.Block) {
	if f.last != nil && f.last.Jump == vex.JumpRet && f.returns(f.stack, b.Addr) {
		f.leave(step, f.stack)
		return
	}
	slot := f.Frames[f.current].Slot
	if f.last != nil && f.last.Jump == vex.JumpCall {
		slot = f.stack
	}
	f.enter(step, b, true, slot)
}

// returns tells whether a return through a slot is one to the program at an address.
func (f *follower) returns(slot, to uint64) bool {
	for i := f.current; i >= 0; i = f.Frames[i].Parent {
		if fr := &f.Frames[i]; fr.Slot > slot {
			return fr.Context != nil && fr.Context.Function.Block(to) != nil
		}
	}
	return false
}

// enter begins a frame.
func (f *follower) enter(step int, b *path.Block, own bool, slot uint64) {
	fr := Frame{Parent: f.current, Slot: slot, First: step, events: f.events}
	var parent *Context
	if f.current >= 0 {
		from := &f.Frames[f.current]
		if from.Context != nil {
			fr.Site, parent = f.before, from.Context
			fr.Round = from.round(f.before, f.events, f.run.options.Rounds)
		} else {
			from.Back = true
			parent = f.above(f.current)
		}
	}
	if own {
		function := f.run.Graph.At(b.Addr)
		if function == nil {
			return // it is in the middle of one
		}
		fr.Context = f.run.Call(parent, fr.Site, function, fr.Round, f.Place)
	}
	f.Frames = append(f.Frames, fr)
	f.to(step, len(f.Frames)-1)
}

// above is the context that a frame of a library was called from, or nil.
func (f *follower) above(i int) *Context {
	for ; i >= 0; i = f.Frames[i].Parent {
		if c := f.Frames[i].Context; c != nil {
			return c
		}
	}
	return nil
}

// round is which iteration of a loop a call is of.
func (fr *Frame) round(site *cfg.Block, events, most int) int {
	if fr.rounds == nil {
		fr.rounds = map[*cfg.Block]*rounds{}
	}
	n := fr.rounds[site]
	if n == nil {
		n = &rounds{events: events, n: -1}
		fr.rounds[site] = n
	}
	if n.n < 0 || events > n.events && n.n < most-1 {
		n.n++
	}
	n.events = events
	return n.n
}

// leave ends the frames up to a return address.
func (f *follower) leave(step int, slot uint64) {
	i := f.current
	for i >= 0 && f.Frames[i].Slot <= slot {
		f.Frames[i].Last, f.Frames[i].rounds = step, nil
		i = f.Frames[i].Parent
	}
	if i < 0 {
		f.Frames = append(f.Frames, Frame{Parent: -1, Slot: ^uint64(0), First: step})
		i = len(f.Frames) - 1
	}
	f.to(step, i)
}

func (f *follower) to(step, frame int) {
	f.current = frame
	f.before = nil
	f.Moves = append(f.Moves, Move{step, frame})
}

// note notes what a step executes of the graph.
func (f *follower) note(s *path.Step) {
	if f.current < 0 || f.Frames[f.current].Context == nil {
		return
	}
	c := f.Frames[f.current].Context
	for _, k := range f.run.Covers(c.Function, s.Block) {
		if k.First >= s.Done {
			break
		}
		if k.Begins {
			c.Executed[k.Block.Index]++
			if f.before != nil {
				f.took(c, k.Block)
			}
		}
		f.before = nil
		if k.Ends && k.Last <= s.Done || s.Exited {
			f.before = k.Block
		}
	}
}

func (f *follower) took(c *Context, next *cfg.Block) {
	if i := Successor(f.before, next); i >= 0 {
		c.Taken[f.before.Index] |= 1 << i
	}
}

// Covers are the parts of a step of a function.
func (r *Run) Covers(f *cfg.Function, b *path.Block) []Cover {
	key := covers{f, b.Number}
	if list, ok := r.coverage[key]; ok {
		return list
	}
	list := []Cover{}
	for i, s := range b.Stmts {
		m, ok := s.(*vex.Mark)
		if !ok {
			continue
		}
		g := f.Block(m.Addr)
		if g == nil {
			continue
		}
		if n := len(list); n > 0 && list[n-1].Block == g && m.Addr != g.Addr {
			continue
		}
		if n := len(list); n > 0 {
			list[n-1].Last, list[n-1].Ends = i, true
		}
		list = append(list, Cover{Block: g, First: i, Begins: m.Addr == g.Addr})
	}
	if n := len(list); n > 0 {
		list[n-1].Last = len(b.Stmts)
		list[n-1].Ends = b.Addr+uint64(b.Size) >= list[n-1].Block.Addr+uint64(list[n-1].Block.Size)
	}
	r.coverage[key] = list
	return list
}
