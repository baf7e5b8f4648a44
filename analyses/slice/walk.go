package slice

import (
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/alias"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/analyses/simplify"
	"github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// never is a place behind all.
const never = math.MaxInt

// walk goes backwards through a run.
type walk struct {
	slice   *Slice
	mode    Mode
	marks   bool
	trace   *path.Trace
	run     *simplify.Run
	alias   *alias.Result
	sides   *sides
	threads []*walker
	byID    map[event.ThreadID]*walker
	live    map[uint64]*live // by address space
	clashes []sparse         // by set: those that it may have a place in common with
	stores  map[storeKey][]alias.Set
	written map[*path.Block]*bytesOfState
	// outcome, if set, is told of each branch of the program: whether it is kept.
	outcome func(c *simplify.Context, b *cfg.Block, taken int, kept bool)
}

type storeKey struct{ context, block int }

// walker is a thread on its way back.
type walker struct {
	*walk
	*simplify.Thread
	cursor    *path.Cursor
	space     *live
	registers bytesOfState
	events    []simplify.Event // that are not come to yet
	moves     int              // moves before the current frame
	frame     *frame
	states    []*frame
	temps     []bool
	regions   *regionCursor

	step   *path.Step
	alone  bool   // all other threads have been waited for
	busy   bool   // temporaries of the step are live
	reason Reason // for which the branch that is looked at is kept
	// given is the step before a library's function of which data is in the slice; -1:
	// there is none.
	given int
}

// frame is a call on the way back.
type frame struct {
	*simplify.Frame
	number int
	// nearest is the place of the first thing in the slice behind the current place,
	// in the frame or what it calls.
	nearest int
	// visits are, by block, the first place behind where it was executed, and next is
	// the block that was executed next.
	visits []int
	next   *cfg.Block
	// saved are the registers of the caller that the function keeps.
	saved bytesOfState

	// Of a library's: whether it is looked at at all, and whether its constraints are
	// kept.
	skip, data, keep bool
	model            *cfg.Model
	uses             bool // its arguments are needed
	all              bool // all of them
}

func newWalk(s *Slice, o Options) *walk {
	w := &walk{
		slice: s, mode: o.Mode, marks: o.Marks, trace: s.Run.Trace, run: s.Run, byID: map[event.ThreadID]*walker{},
		live: map[uint64]*live{}, stores: map[storeKey][]alias.Set{}, written: map[*path.Block]*bytesOfState{},
	}
	for i, t := range s.Run.Threads {
		k := &walker{
			walk: w, Thread: t, cursor: t.Cursor(t.Len()), moves: len(t.Moves),
			states: make([]*frame, len(t.Frames)), events: slices.Clone(s.Run.Events.Of(t.Thread)), given: -1,
		}
		w.threads = append(w.threads, k)
		w.byID[t.ID] = k
		if o.Marks {
			s.marks = append(s.marks, make([]Why, w.threads[i].Len()))
		}
		s.Stats.Instructions += t.Instructions()
	}
	return w
}

// back goes through the run, from its end.
func (w *walk) back() {
	events := w.trace.Events
	for p := len(w.trace.Pieces) - 1; p >= 0; p-- {
		for n := len(events); n > 0 && events[n-1].Piece > p; n-- {
			w.kernel(&events[n-1])
			events = events[:n-1]
		}
		piece := &w.trace.Pieces[p]
		t := w.threads[piece.Thread]
		t.space = w.space(piece.Space)
		for range piece.Count {
			t.cursor.Prev()
			t.take(&t.cursor.Step)
		}
	}
	for i := range w.slice.kept {
		slices.Reverse(w.slice.kept[i])
		slices.Reverse(w.slice.because[i])
	}
}

// space is what is live in an address space.
func (w *walk) space(n uint64) *live {
	l := w.live[n]
	if l == nil {
		l = newLive()
		w.live[n] = l
	}
	return l
}

// place orders what a thread executes: a part of a step.
func place(step, part int) int { return step<<3 | min(part, 7) }

// take goes over a step.
func (t *walker) take(s *path.Step) {
	t.step, t.alone = s, t.run.Events.Alone(t.Thread.Thread, s.At)
	t.enter(s)
	if t.frame == nil {
		return
	}
	for n := len(t.events); n > 0 && t.events[n-1].From >= s.At && t.events[n-1].To >= s.At; n-- {
		t.event(&t.events[n-1])
		t.events = t.events[:n-1]
	}
	if t.regions != nil {
		t.regions.back(s.At)
	}
	if t.given == s.Index {
		t.keepGiven(s)
	}
	if t.frame.Context != nil {
		t.program(s)
	} else {
		t.library(s)
	}
	t.count(s)
	if s.Index == t.frame.First {
		t.leave()
	}
}

// count counts the constraints of a step, of which there are not many.
func (t *walker) count(s *path.Step) {
	for i := range s.Constraints {
		t.slice.Stats.count(&s.Constraints[i])
	}
}

// enter finds the frame of a step, which may be another than that of the step behind.
func (t *walker) enter(s *path.Step) {
	for t.moves > 0 && t.Moves[t.moves-1].Step > s.Index {
		t.moves--
		t.frame = nil
	}
	if t.frame != nil {
		return
	}
	if t.moves == 0 {
		return
	}
	n := t.Moves[t.moves-1].Frame
	if t.states[n] == nil {
		t.states[n] = t.begin(n)
	}
	t.frame = t.states[n]
}

// begin begins with a frame, at its end.
func (t *walker) begin(n int) *frame {
	f := &frame{Frame: &t.Frames[n], number: n, nearest: never}
	f.saved = t.registers.common(&kept)
	if f.Parent >= 0 && f.Last < t.Len() {
		t.registers = t.registers.without(&kept)
	} else {
		f.saved = bytesOfState{}
	}
	if f.Context != nil {
		f.visits = make([]int, len(f.Context.Function.Blocks))
		for i := range f.visits {
			f.visits[i] = never
		}
		if m := f.Context.Function.Model; m != nil {
			t.decide(f, m)
		}
		return f
	}
	if f.Site == nil {
		f.data = true
		return f
	}
	t.decide(f, t.modelOf(f.Site))
	return f
}

func (t *walker) modelOf(site *cfg.Block) *cfg.Model {
	if site.Import != "" {
		return t.run.Graph.Models.Of(site.Import)
	}
	return t.run.Graph.Models.Of("")
}

// leave goes from a frame to the one that called it.
func (t *walker) leave() {
	f := t.frame
	t.states[f.number] = nil
	t.frame = nil
	if f.Parent < 0 {
		return
	}
	t.registers.join(&f.saved)
	if f.uses || f.all {
		t.arguments(f)
	}
	if f.Context == nil && f.data {
		t.given = f.First - 1
	}
	n := f.Parent
	if t.states[n] == nil {
		t.states[n] = t.begin(n)
	}
	t.states[n].nearest = min(t.states[n].nearest, f.nearest)
}

// arguments makes those of a call live that it is about.
func (t *walker) arguments(f *frame) {
	for i, r := range argumentRegisters {
		if f.all && i < 4 || f.model != nil && slices.Contains(f.model.Uses, i+1) {
			t.registers.add(register(r), 8)
		}
	}
}

// event puts an event into the slice.
func (t *walker) event(e *simplify.Event) {
	f := t.frame
	if f.Context == nil && f.model != nil && f.model.Opaque {
		return
	}
	f.nearest = place(t.step.Index, 0)
	f.uses = true
	f.keep = f.keep || !e.Point && f.decides()
	t.mark(Target)
}

func (t *walker) mark(y Why) {
	if t.marks {
		t.slice.marks[t.Place][t.step.Index] |= y
	}
}

// kernel goes over what the kernel did.
func (w *walk) kernel(e *path.Event) {
	t := w.byID[e.Thread]
	if t == nil || w.mode == Lower || w.mode == TERN {
		return
	}
	switch e.Kind {
	case path.Return:
		// The result is the schedule's.
		t.registers.take(register(rax), 8)
		t.registers.take(register(rcx), 8)
		t.registers.take(register(r11), 8)
	case path.Wrote, path.Input:
		if w.space(e.Space).kill(e.Addr, int(e.Size)) {
			t.called()
		}
	case path.Move:
		w.space(e.Space).kill(e.To, int(e.Size))
	}
}

// called puts a system call into the slice: what it was asked for.
func (t *walker) called() {
	if t.cursor.Prev() {
		t.step = &t.cursor.Step
		t.enter(t.step)
		if f := t.frame; f != nil {
			f.nearest = place(t.step.Index, 0)
			f.skip, f.data, f.keep = false, true, f.decides()
			t.mark(Value)
			for i := range t.step.Constraints {
				if t.step.Constraints[i].Stmt < 0 {
					t.keep(&t.step.Constraints[i])
				}
			}
		}
		t.cursor.Next()
	}
	for _, r := range callRegisters[:3] {
		t.registers.add(register(r), 8)
	}
	t.registers.add(register(rax), 8)
}

// keep keeps a constraint.
func (t *walker) keep(c *path.Constraint) {
	list := &t.slice.kept[t.Place]
	for i := len(*list) - 1; i >= 0 && (*list)[i].Step == c.Step; i-- {
		if (*list)[i] == *c {
			return
		}
	}
	*list = append(*list, *c)
	r := t.because(c)
	t.slice.because[t.Place] = append(t.slice.because[t.Place], r)
	t.slice.Stats.Reasons[r]++
	t.slice.Stats.KeptConstraints++
	if isBranch(c.Kind) {
		t.slice.Stats.KeptBranches++
	}
}

// keepAll keeps all constraints of a step, but for those on system calls.
func (t *walker) keepAll(s *path.Step) {
	for i := len(s.Constraints) - 1; i >= 0; i-- {
		if s.Constraints[i].Kind != exec.Call {
			t.keep(&s.Constraints[i])
		}
	}
}

// keepGiven keeps what a summary has fixed of the arguments of a function that begins
// behind a step.
func (t *walker) keepGiven(s *path.Step) {
	for i := len(s.Constraints) - 1; i >= 0; i-- {
		if c := &s.Constraints[i]; c.Stmt < 0 && c.Kind != exec.Call {
			t.keep(c)
		}
	}
}

// writes are the bytes of the state that a block may write.
func (w *walk) writes(b *path.Block) *bytesOfState {
	s := w.written[b]
	if s == nil {
		s = w.sides.written(b.Block)
		w.written[b] = s
	}
	return s
}
