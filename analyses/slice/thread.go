package slice

import (
	"math"
	"slices"
	"sort"

	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/specialize"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// noPosition is a position after all others.
const noPosition = math.MaxInt

// runSlicer goes backwards through a run.
type runSlicer struct {
	slice    *Slice
	mode     Mode
	marks    bool
	late     bool // functions that were entered before the trace are kept whole
	trace    *blocktrace.Trace
	run      *specialize.CallTrace
	alias    *alias.Result
	sides    *sideCache
	threads  []*threadSlicer
	byID     map[arch.ThreadID]*threadSlicer
	live     map[uint64]*liveMemory // by address space
	overlaps []sparseSet            // by set: the sets that may overlap it
	stores   map[storeKey][]alias.Set
	written  map[*blocktrace.Block]*stateBytes
	// outcome, if set, is called for each branch of the program: whether it is kept.
	outcome func(c *specialize.Context, b *cfg.Block, taken int, kept bool)
}

type storeKey struct{ context, block int }

// threadSlicer goes backwards through a thread.
type threadSlicer struct {
	*runSlicer
	*specialize.Thread
	cursor    *blocktrace.Cursor
	space     *liveMemory
	registers liveState
	events    []specialize.Event // that are still to be reached
	moves     int                // frame changes before the current frame
	frame     *frameState
	states    []*frameState
	temps     []int // by temporary: the position after the last one that reads it, 0: it is dead
	at        int   // the current position
	needed    []neededValue
	regions   *regionCursor

	step      *blocktrace.Step
	alone     bool   // all other threads have been joined
	tempsLive bool   // temporaries of the step are live
	reason    Reason // for keeping the current branch
	// given is the index of the step before a library function whose data is in the slice;
	// -1: there is no such step.
	given int
}

// frameState is the state of a call.
type frameState struct {
	*specialize.Frame
	number int
	// visits are, by block, the position of its next execution; next is the block that was
	// executed next.
	visits []int
	next   *cfg.Block
	// saved are the caller's registers that the function preserves, and savedUses where they are read.
	saved     stateBytes
	savedUses [16]int

	// For a library call: whether it is skipped, whether its data are in the slice, and
	// whether its constraints are kept.
	skip, data, keep bool
	model            *cfg.Model
	uses             bool // its arguments are needed
	all              bool // all of them
}

func newRunSlicer(s *Slice, o Options) *runSlicer {
	w := &runSlicer{
		slice: s, mode: o.Mode, marks: o.Marks, late: o.Clone.Late, trace: s.Calls.Trace, run: s.Calls, byID: map[arch.ThreadID]*threadSlicer{},
		live: map[uint64]*liveMemory{}, stores: map[storeKey][]alias.Set{}, written: map[*blocktrace.Block]*stateBytes{},
	}
	for i, t := range s.Calls.Threads {
		k := &threadSlicer{
			runSlicer: w, Thread: t, cursor: t.Cursor(t.Len()), moves: len(t.FrameChanges),
			states: make([]*frameState, len(t.Frames)), events: slices.Clone(s.Calls.Events.OfThread(t.Thread)), given: -1,
		}
		w.threads = append(w.threads, k)
		w.byID[t.ID] = k
		if o.Marks {
			s.marks = append(s.marks, make([]Membership, w.threads[i].Len()))
		}
		s.Stats.Instructions += t.Instructions()
	}
	return w
}

// sliceRun goes through the run, from its end.
func (w *runSlicer) sliceRun() {
	events := w.trace.Events
	for p := len(w.trace.Pieces) - 1; p >= 0; p-- {
		for n := len(events); n > 0 && events[n-1].Piece > p; n-- {
			w.sliceKernelEvent(&events[n-1])
			events = events[:n-1]
		}
		piece := &w.trace.Pieces[p]
		t := w.threads[piece.Thread]
		t.space = w.liveIn(piece.Space)
		for range piece.Count {
			t.cursor.Prev()
			t.sliceStep(&t.cursor.Step)
		}
	}
	for i := range w.slice.kept {
		slices.Reverse(w.slice.kept[i])
		slices.Reverse(w.slice.because[i])
	}
}

// liveIn returns the live memory of an address space.
func (w *runSlicer) liveIn(n uint64) *liveMemory {
	l := w.live[n]
	if l == nil {
		l = newLiveMemory()
		w.live[n] = l
	}
	return l
}

// neededValue is something in the slice: an event, with noPosition, or a write of a value that the slice reads until a
// position.
type neededValue struct{ at, until int }

// need records that the current instruction has to be executed, if something is hit: an event, or a write of a value that
// is read until a position. It returns hit.
func (t *threadSlicer) need(until int, hit bool) bool {
	if !hit || until <= t.at || t.mode == Lower && until != noPosition {
		return hit
	}
	at := t.at
	for n := len(t.needed); n > 0; n-- {
		last := t.needed[n-1]
		at = min(at, last.at)
		if last.until > until {
			break
		}
		t.needed = t.needed[:n-1]
	}
	t.needed = append(t.needed, neededValue{at, until})
	return true
}

// isNeededBefore reports whether something in the slice lies between the current position and another one, and is an event
// or is read from that position on. The code between may be left out otherwise: its results are read by itself alone.
func (t *threadSlicer) isNeededBefore(back int) bool {
	i := sort.Search(len(t.needed), func(i int) bool { return t.needed[i].at < back })
	return i < len(t.needed) && t.needed[i].until >= back
}

// position orders the executions of a thread: a part of a step.
func position(step, part int) int { return step<<3 | min(part, 7) }

// sliceStep slices a step.
func (t *threadSlicer) sliceStep(s *blocktrace.Step) {
	t.sides.meter.Add(1)
	t.step, t.at = s, position(s.Index, 0)
	t.alone = t.run.Events.IsAlone(t.Thread.Thread, s.At)
	t.enterFrame(s)
	if t.frame == nil {
		return
	}
	for n := len(t.events); n > 0 && t.events[n-1].From >= s.At && t.events[n-1].To >= s.At; n-- {
		t.addEvent(&t.events[n-1])
		t.events = t.events[:n-1]
	}
	if t.regions != nil {
		t.regions.moveBack(s.At)
	}
	if t.given == s.Index {
		t.keepGiven(s)
	}
	if t.frame.Context != nil {
		t.sliceProgramStep(s)
	} else {
		t.sliceLibraryStep(s)
	}
	t.countConstraints(s)
	if s.Index == t.frame.First {
		t.leaveFrame()
	}
}

// countConstraints counts the constraints of a step.
func (t *threadSlicer) countConstraints(s *blocktrace.Step) {
	for i := range s.Constraints {
		t.slice.Stats.countConstraint(&s.Constraints[i])
	}
}

// enterFrame finds the frame of a step, which may differ from that of the next step.
func (t *threadSlicer) enterFrame(s *blocktrace.Step) {
	for t.moves > 0 && t.FrameChanges[t.moves-1].Step > s.Index {
		t.moves--
		t.frame = nil
	}
	if t.frame != nil {
		return
	}
	if t.moves == 0 {
		return
	}
	n := t.FrameChanges[t.moves-1].Frame
	if t.states[n] == nil {
		t.states[n] = t.newFrame(n)
	}
	t.frame = t.states[n]
}

// newFrame begins a frame, at its end.
func (t *threadSlicer) newFrame(n int) *frameState {
	f := &frameState{Frame: &t.Frames[n], number: n}
	f.saved = t.registers.intersection(&preservedState)
	if f.Parent >= 0 && f.Last < t.Len() {
		t.registers.stateBytes = t.registers.minus(&preservedState)
		copy(f.savedUses[:], t.registers.uses[registerOffset(0)/8:])
	} else {
		f.saved = stateBytes{}
	}
	if f.Context != nil {
		f.visits = make([]int, len(f.Context.Function.Blocks))
		for i := range f.visits {
			f.visits[i] = noPosition
		}
		if m := f.Context.Function.Model; m != nil {
			t.prepareLibraryCall(f, m)
		} else if f.Parent >= 0 && t.states[f.Parent] != nil {
			f.skip = t.states[f.Parent].skip
		}
		return f
	}
	switch {
	case f.Linkage:
		f.skip = true
		return f
	case f.Site == nil:
		f.data, f.keep = true, t.late
		return f
	}
	t.prepareLibraryCall(f, t.modelOf(f.Site))
	return f
}

func (t *threadSlicer) modelOf(site *cfg.Block) *cfg.Model {
	if site.Import != "" {
		return t.run.Graph.Models.Of(site.Import)
	}
	return t.run.Graph.Models.Of("")
}

// leaveFrame goes from a frame to its caller.
func (t *threadSlicer) leaveFrame() {
	f := t.frame
	t.states[f.number] = nil
	t.frame = nil
	if f.Parent < 0 {
		return
	}
	t.restoreRegisters(f)
	if f.uses || f.all {
		t.useArguments(f)
	}
	if f.Context == nil && f.data {
		t.given = f.First - 1
	}
	n := f.Parent
	if t.states[n] == nil {
		t.states[n] = t.newFrame(n)
	}
}

// useArguments makes the relevant arguments of a call live.
func (t *threadSlicer) useArguments(f *frameState) {
	for i, r := range argumentRegisters {
		if f.all && i < 4 || f.model != nil && slices.Contains(f.model.Uses, i+1) {
			t.registers.use(registerOffset(r), 8, t.at)
		}
	}
}

// restoreRegisters makes the registers live that a function preserves and its caller reads.
func (t *threadSlicer) restoreRegisters(f *frameState) {
	for n := range f.savedUses {
		if slot := registerOffset(n) / 8; !f.saved.isEmpty(slot) {
			if t.registers.isEmpty(slot) {
				t.registers.uses[slot] = 0
			}
			t.registers.uses[slot] = max(t.registers.uses[slot], f.savedUses[n])
		}
	}
	t.registers.addAll(&f.saved)
}

// addEvent puts an event into the slice.
func (t *threadSlicer) addEvent(e *specialize.Event) {
	f := t.frame
	if f.Context == nil && f.model != nil && f.model.Opaque {
		return
	}
	t.need(noPosition, true)
	f.uses = true
	f.keep = f.keep || !e.Point && f.decisionsMatter()
	t.markStep(Target)
}

func (t *threadSlicer) markStep(y Membership) {
	if t.marks {
		t.slice.marks[t.Place][t.step.Index] |= y
	}
}

// sliceKernelEvent slices an effect of the kernel.
func (w *runSlicer) sliceKernelEvent(e *blocktrace.Event) {
	t := w.byID[e.Thread]
	if t == nil || w.mode == Lower || w.mode == TERN {
		return
	}
	switch e.Kind {
	case blocktrace.Return:
		// The schedule determines the result.
		until, hit := t.registers.kill(registerOffset(rax), 8)
		t.at = t.at&^7 - 1 // the call is in the step before
		t.need(until, hit)
		t.registers.remove(registerOffset(rcx), 8)
		t.registers.remove(registerOffset(r11), 8)
	case blocktrace.KernelWrite, blocktrace.Input:
		if until, hit := w.liveIn(e.Space).killBytes(e.Addr, int(e.Size), t.Place); hit {
			t.keepSyscall(until)
		}
	case blocktrace.MovePages:
		w.liveIn(e.Space).killBytes(e.To, int(e.Size), t.Place)
	}
}

// keepSyscall puts the arguments of a system call into the slice, which has written what is read until a position.
func (t *threadSlicer) keepSyscall(until int) {
	if t.cursor.Prev() {
		t.step, t.at = &t.cursor.Step, position(t.cursor.Index, 0)
		t.enterFrame(t.step)
		if f := t.frame; f != nil {
			t.need(until, true)
			f.skip, f.data, f.keep = false, true, f.decisionsMatter()
			t.markStep(Value)
			for i := range t.step.Constraints {
				if t.step.Constraints[i].Stmt < 0 {
					t.keepConstraint(&t.step.Constraints[i])
				}
			}
		}
		t.cursor.Next()
	}
	for _, r := range callRegisters[:3] {
		t.registers.use(registerOffset(r), 8, t.at)
	}
	t.registers.use(registerOffset(rax), 8, t.at)
}

// keepConstraint keeps a constraint.
func (t *threadSlicer) keepConstraint(c *blocktrace.Constraint) {
	list := &t.slice.kept[t.Place]
	for i := len(*list) - 1; i >= 0 && (*list)[i].Step == c.Step; i-- {
		if (*list)[i] == *c {
			return
		}
	}
	*list = append(*list, *c)
	r := t.reasonFor(c)
	t.slice.because[t.Place] = append(t.slice.because[t.Place], r)
	t.slice.Stats.Reasons[r]++
	t.slice.Stats.KeptConstraints++
	if isBranch(c.Kind) {
		t.slice.Stats.KeptBranches++
	}
}

// keepAll keeps all constraints of a step, except those on system calls.
func (t *threadSlicer) keepAll(s *blocktrace.Step) {
	for i := len(s.Constraints) - 1; i >= 0; i-- {
		if s.Constraints[i].Kind != concolic.Call {
			t.keepConstraint(&s.Constraints[i])
		}
	}
}

// keepGiven keeps the constraints on the arguments of a summarized function that begins
// after a step.
func (t *threadSlicer) keepGiven(s *blocktrace.Step) {
	for i := len(s.Constraints) - 1; i >= 0; i-- {
		if c := &s.Constraints[i]; c.Stmt < 0 && c.Kind != concolic.Call {
			t.keepConstraint(c)
		}
	}
}

// stateWrites returns the bytes of the state that a block may write.
func (w *runSlicer) stateWrites(b *blocktrace.Block) *stateBytes {
	s := w.written[b]
	if s == nil {
		s = w.sides.writtenState(b.Block)
		w.written[b] = s
	}
	return s
}
