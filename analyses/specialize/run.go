package specialize

import (
	"sort"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// CallTrace is the trace of a run, divided into calls.
type CallTrace struct {
	Trace    *blocktrace.Trace
	Events   *Events
	Graph    *cfg.Graph
	Contexts []*Context
	// Threads are in the order of the trace.
	Threads []*Thread

	options  Options
	roots    map[int]map[childKey]*Context
	merged   map[childKey]*Context
	coverage map[coverKey][]Cover
}

// Thread is a thread's calls.
type Thread struct {
	*blocktrace.Thread
	Place  int
	Frames []Frame
	// FrameChanges are where the thread changes from frame to frame.
	FrameChanges []FrameChange
}

// Frame is a call: of a function of the program, or of a library function with everything
// that it executes except callbacks into the program.
type Frame struct {
	// Context is nil for a library call.
	Context *Context
	// Parent is the index of the calling frame, -1 for the first. Site is the block of the
	// program that made the call; nil if a library made it.
	Parent int
	Site   *cfg.Block
	// Slot is the stack address of its return address, or UnknownSlot.
	Slot uint64
	// First is the index of its first step, Last the index after its last step.
	First, Last int
	// Round is Context.Round for a library call.
	Round int
	// CallsBack is set for a library call that has called back into the program.
	CallsBack bool
	// Linkage is set for code of a linkage table that jumps to a function of the program.
	Linkage bool

	events int // events of the thread before the call
	rounds map[*cfg.Block]*roundCounter
}

// UnknownSlot is the Slot of a frame that was not called: the thread began in it. It is
// above all stack addresses, as the frame's own memory is above that of its callees.
const UnknownSlot = ^uint64(0)

// roundCounter counts the calls from a block of a frame that have events between them.
type roundCounter struct{ events, n int }

// FrameChange is a change to a frame before a step.
type FrameChange struct{ Step, Frame int }

// Cover is a part of a block in the trace that belongs to one block of the graph: the
// statements in [First, Last). Begins and Ends are set if it reaches to the beginning and
// to the end of that block.
type Cover struct {
	Block        *cfg.Block
	First, Last  int
	Begins, Ends bool
}

type coverKey struct {
	f      *cfg.Function
	number int
}

// Observe collects from a trace the information that building the graph of an image needs.
func Observe(t *blocktrace.Trace, m *cfg.Image) *cfg.Observations {
	o := &cfg.Observations{Targets: map[uint64][]uint64{}}
	entries := map[uint64]bool{}
	seen := map[[2]uint64]bool{}
	for _, th := range t.Threads {
		c := th.Cursor(0)
		var last *blocktrace.Block
		exited := false
		for c.Next() {
			at := c.Block.Addr
			if m.OwnsCode(at) && !entries[at] && beginsFunction(m, last, exited) {
				entries[at] = true
				o.Entries = append(o.Entries, at)
			}
			if last != nil && !exited && m.OwnsCode(last.Addr) && m.OwnsCode(at) {
				addTarget(o, seen, last, at)
			}
			last, exited = c.Block, c.Exited
		}
	}
	sort.Slice(o.Entries, func(i, j int) bool { return o.Entries[i] < o.Entries[j] })
	return o
}

// beginsFunction reports whether the code executed after a block begins a function.
func beginsFunction(m *cfg.Image, last *blocktrace.Block, exited bool) bool {
	switch {
	case last == nil:
		return true
	case exited:
		return !m.OwnsCode(last.Addr)
	}
	return last.Jump == vex.JumpCall || !m.OwnsCode(last.Addr) && last.Jump != vex.JumpRet
}

func addTarget(o *cfg.Observations, seen map[[2]uint64]bool, last *blocktrace.Block, at uint64) {
	if _, direct := last.Next.(*vex.Const); direct || last.Jump == vex.JumpRet {
		return
	}
	from := lastInstructionAddr(last.Block)
	if key := [2]uint64{from, at}; !seen[key] {
		seen[key] = true
		o.Targets[from] = append(o.Targets[from], at)
	}
}

func lastInstructionAddr(b *vex.Block) uint64 {
	at := b.Addr
	for _, s := range b.Stmts {
		if m, ok := s.(*vex.Mark); ok {
			at = m.Addr
		}
	}
	return at
}

// Late reports whether the trace begins when threads are inside functions, whose earlier instructions are not known.
func (r *CallTrace) Late() bool { return r.options.Late }

// TraceCalls finds the calls of all threads.
func TraceCalls(t *blocktrace.Trace, g *cfg.Graph, e *Events, o Options) *CallTrace {
	r := &CallTrace{
		Trace: t, Events: e, Graph: g, options: o, roots: map[int]map[childKey]*Context{},
		merged: map[childKey]*Context{}, coverage: map[coverKey][]Cover{},
	}
	for i, th := range t.Threads {
		r.Threads = append(r.Threads, &Thread{Thread: th, Place: i})
	}
	for _, th := range r.Threads {
		f := &callTracer{run: r, Thread: th, current: -1, pending: e.OfThread(th.Thread)}
		f.traceThread()
	}
	return r
}

// callTracer finds the calls of one thread.
type callTracer struct {
	*Thread
	run          *CallTrace
	current      int
	pending      []Event
	passedEvents int
	lastStep     *blocktrace.Block // nil: a side exit was taken
	lastAccess   uint64            // address of the last step's last access
	lastBlock    *cfg.Block        // last block of the current frame that was executed to its end
}

func (f *callTracer) traceThread() {
	c := f.Thread.Cursor(0)
	for c.Next() {
		for len(f.pending) > 0 && f.pending[0].From < c.At {
			f.pending = f.pending[1:]
			f.passedEvents++
		}
		f.updateFrame(c.Index, c.Block)
		f.recordCoverage(&c.Step)
		f.lastStep = c.Block
		if n := len(c.Addrs); n > 0 {
			f.lastAccess = c.Addrs[n-1]
		}
		if c.Exited {
			f.lastStep = nil
		}
	}
	for i := range f.Frames {
		if f.Frames[i].Last == 0 {
			f.Frames[i].Last = f.Len()
		}
	}
}

// updateFrame finds the frame of a step.
func (f *callTracer) updateFrame(step int, b *blocktrace.Block) {
	own := f.run.Graph.Image.OwnsCode(b.Addr)
	switch {
	case f.current < 0:
		f.enterFrame(step, b, own, UnknownSlot)
	case f.Frames[f.current].Context == nil:
		if own {
			f.leaveLibrary(step, b)
		}
	case f.lastStep == nil:
	case f.lastStep.Jump == vex.JumpCall:
		f.enterFrame(step, b, own, f.lastAccess)
	case f.lastStep.Jump == vex.JumpRet:
		f.leaveFrames(step, f.lastAccess)
	case !own || f.run.Graph.FunctionAt(b.Addr) != nil && f.Frames[f.current].Context.Function.Block(b.Addr) == nil:
		f.enterFrame(step, b, own, f.Frames[f.current].Slot)
	}
}

// leaveLibrary handles a change from a library to the program: a return or a callback.
func (f *callTracer) leaveLibrary(step int, b *blocktrace.Block) {
	if f.lastStep != nil && f.lastStep.Jump == vex.JumpRet && f.isProgramReturn(f.lastAccess, b.Addr) {
		f.leaveFrames(step, f.lastAccess)
		return
	}
	if f.isLinkage(step) {
		f.enterLinked(step, b)
		return
	}
	slot := f.Frames[f.current].Slot
	if f.lastStep != nil && f.lastStep.Jump == vex.JumpCall {
		slot = f.lastAccess
	}
	f.enterFrame(step, b, true, slot)
}

// isLinkage reports whether all steps of the current frame so far are of a linkage table, which the program called.
func (f *callTracer) isLinkage(step int) bool {
	fr := &f.Frames[f.current]
	if fr.Parent < 0 || f.Frames[fr.Parent].Context == nil || fr.Site == nil || step-fr.First > maxLinkageSteps {
		return false
	}
	c := f.Thread.Cursor(fr.First)
	for c.Next() && c.Index < step {
		if !f.run.Graph.Image.IsLinkage(c.Block.Addr) {
			return false
		}
	}
	return true
}

// maxLinkageSteps is the most steps from the beginning of an entry of a linkage table to the function.
const maxLinkageSteps = 3

// enterLinked enters a function of the program that was called through a linkage table, the current frame.
func (f *callTracer) enterLinked(step int, b *blocktrace.Block) {
	through := &f.Frames[f.current]
	function := f.run.Graph.FunctionAt(b.Addr)
	if function == nil {
		f.enterFrame(step, b, true, through.Slot)
		return
	}
	through.Last, through.Linkage = step, true
	f.Frames = append(f.Frames, Frame{
		Parent: through.Parent, Site: through.Site, Slot: through.Slot, Round: through.Round, First: step, events: f.passedEvents,
		Context: f.run.CallContext(f.Frames[through.Parent].Context, through.Site, function, through.Round, f.Place),
	})
	f.switchFrame(step, len(f.Frames)-1)
}

// isProgramReturn reports whether a return through a stack slot returns to the program at
// an address.
func (f *callTracer) isProgramReturn(slot, to uint64) bool {
	for i := f.current; i >= 0; i = f.Frames[i].Parent {
		if fr := &f.Frames[i]; fr.Slot > slot {
			return fr.Context != nil && fr.Context.Function.Block(to) != nil
		}
	}
	return false
}

// enterFrame begins a frame.
func (f *callTracer) enterFrame(step int, b *blocktrace.Block, own bool, slot uint64) {
	fr := Frame{Parent: f.current, Slot: slot, First: step, events: f.passedEvents}
	var parent *Context
	if f.current >= 0 {
		from := &f.Frames[f.current]
		if from.Context != nil {
			fr.Site, parent = f.lastBlock, from.Context
			fr.Round = from.nextRound(f.lastBlock, f.passedEvents, f.run.options.MaxRounds)
		} else {
			from.CallsBack = true
			parent = f.callingContext(f.current)
		}
	}
	if own {
		function := f.run.Graph.FunctionAt(b.Addr)
		if function == nil { // in the middle of a function
			if f.current < 0 && f.run.options.Late {
				f.Frames = append(f.Frames, fr)
				f.switchFrame(step, len(f.Frames)-1)
			}
			return
		}
		fr.Context = f.run.CallContext(parent, fr.Site, function, fr.Round, f.Place)
	}
	f.Frames = append(f.Frames, fr)
	f.switchFrame(step, len(f.Frames)-1)
}

// callingContext returns the context that called into a library frame, or nil.
func (f *callTracer) callingContext(i int) *Context {
	for ; i >= 0; i = f.Frames[i].Parent {
		if c := f.Frames[i].Context; c != nil {
			return c
		}
	}
	return nil
}

// nextRound returns the iteration of a loop that a call belongs to.
func (fr *Frame) nextRound(site *cfg.Block, events, most int) int {
	if fr.rounds == nil {
		fr.rounds = map[*cfg.Block]*roundCounter{}
	}
	n := fr.rounds[site]
	if n == nil {
		n = &roundCounter{events: events, n: -1}
		fr.rounds[site] = n
	}
	if n.n < 0 || events > n.events && n.n < most-1 {
		n.n++
	}
	n.events = events
	return n.n
}

// leaveFrames ends the frames up to a return address.
func (f *callTracer) leaveFrames(step int, slot uint64) {
	i := f.current
	for i >= 0 && f.Frames[i].Slot <= slot {
		f.Frames[i].Last, f.Frames[i].rounds = step, nil
		i = f.Frames[i].Parent
	}
	if i < 0 {
		f.Frames = append(f.Frames, Frame{Parent: -1, Slot: UnknownSlot, First: step})
		i = len(f.Frames) - 1
	}
	f.switchFrame(step, i)
}

func (f *callTracer) switchFrame(step, frame int) {
	f.current = frame
	f.lastBlock = nil
	f.FrameChanges = append(f.FrameChanges, FrameChange{step, frame})
}

// recordCoverage records the blocks and edges of the graph that a step executes.
func (f *callTracer) recordCoverage(s *blocktrace.Step) {
	if f.current < 0 || f.Frames[f.current].Context == nil {
		return
	}
	c := f.Frames[f.current].Context
	for _, k := range f.run.CoversOf(c.Function, s.Block) {
		if k.First >= s.Done {
			break
		}
		if k.Begins {
			c.Executed[k.Block.Index]++
			if f.lastBlock != nil {
				f.recordEdge(c, k.Block)
			}
		}
		f.lastBlock = nil
		if k.Ends && k.Last <= s.Done || s.Exited {
			f.lastBlock = k.Block
		}
	}
}

func (f *callTracer) recordEdge(c *Context, next *cfg.Block) {
	if i := Successor(f.lastBlock, next); i >= 0 {
		c.Taken[f.lastBlock.Index] |= 1 << i
	}
}

// CoversOf returns the parts of a block in the trace that belong to a function.
func (r *CallTrace) CoversOf(f *cfg.Function, b *blocktrace.Block) []Cover {
	key := coverKey{f, b.Number}
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
