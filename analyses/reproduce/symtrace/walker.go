package symtrace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Ending is where a thread's path ends.
type Ending uint8

// Endings.
const (
	// Cut: in the middle, when the process ended.
	Cut Ending = iota
	// Returned: the thread ended by itself, or the program by main's thread.
	Returned
	// InCall: in a call that is not over, Walked.Last.
	InCall
	// Failed: an assertion failed.
	Failed
	// Faulted: its next instruction is the one that a signal came from.
	Faulted
)

// Call is a call of a function that is not followed, or whatever else a thread does
// before it comes to the code that is followed.
type Call struct {
	// After is how many instructions of the thread are between the call before and
	// this one.
	After uint64
	// Entry is the function's first instruction, and Return the one behind the call.
	Entry, Return uint64
	Name          string
}

// Coordinate is where in its thread an event is.
type Coordinate struct {
	// Calls is how many calls are over, and Since how many instructions the thread
	// has executed since.
	Calls int
	Since uint64
	// Accesses, unless 0, is how many accesses of its instruction are done after the event,
	// which others follow.
	Accesses uint8
	// Within tells that it is in the next call: at its begin, or at its end.
	Within bool
	// Name tells that the program does nothing there: a large expression gets a name.
	Name bool
	spot int // of the path
}

// Walked is what came of a thread.
type Walked struct {
	ID     event.ThreadID
	Ending Ending
	Calls  []Call
	// Last is the call that is not over, LastAfter and LastEntry as in Call.
	Last      *Function
	LastAfter uint64
	LastEntry uint64
	// Message is the text of an assertion that failed.
	Message string
	// Instructions is how many were followed.
	Instructions uint64
}

// walker follows a thread along its path.
type walker struct {
	*Walked
	decisions
	b       *builder
	number  int
	path    *path
	at      position
	machine vex.Machine
	cells   [vex.StateSize]cell
	unknown int // bytes of the state that are expressions
	mem     *view
	temps   []*symbolic.Expr
	since   uint64

	clock  int32
	clocks []int

	events    []model.Event
	coords    []Coordinate
	conds     []model.Condition
	fixed     map[string]symbolic.Value
	wrong     string // why it is not the recorded path
	children  []*walker
	journal   []undo
	undoing   bool
	done      bool
	magic     uint64
	heap      uint64
	faulting  bool // the next instruction faults
	failure   error
	refused   map[string]bool // guesses that are wrong
	calling   bool            // a system call is not over
	files     map[uint64]openFile
	opened    uint64
	callAt    position // of the last system call
	atCall    *saved   // the thread where that begins, while it has made no choice
	late      error    // of a way to go on that was chosen
	sent      []sent
	raised    []uint64 // signals to the process
	lengths   []length
	starved   bool     // its path was not followed to its end
	cleanups  []uint64 // the jmp_bufs of clean-ups
	signalled []interrupted
	restarts  bool // the last system call was interrupted
	standing  *Standing
}

// undo is memory as it was before a block.
type undo struct {
	addr uint64
	was  [16]byte
	size int
}

var errUnknown = errors.New("an expression is in the way")

// errWrong tells that a thread would not take its path.
type errWrong struct {
	why string
	// unsure tells that it may only be so for what was assumed, or is not known.
	unsure bool
}

func (e errWrong) Error() string { return e.why }

func (w *walker) pc() uint64 { return w.machine.State.Word(vex.OffsetRIP) }

// walk follows the thread to the end of its path.
func (w *walker) walk() error {
	for !w.done {
		if w.b.stopped() {
			return ErrStopped
		}
		if err := w.step(); err != nil {
			if err = w.amend(err); err != nil {
				return fmt.Errorf("thread %d, instruction %d at %#x: %w", w.ID, w.Instructions, w.pc(), err)
			}
		}
	}
	return nil
}

// amend goes on where a value has to be chosen, or the thread has left its path.
func (w *walker) amend(err error) error {
	var choose errChoose
	if errors.As(err, &choose) {
		err = w.chosen(choose)
	}
	var wrong errWrong
	if !errors.As(err, &wrong) {
		return err
	}
	if w.wrong == "" {
		w.wrong = fmt.Sprintf("thread %d, instruction %d at %#x: %s", w.ID, w.Instructions, w.pc(), wrong.why)
	}
	if w.back(!wrong.unsure) {
		w.wrong = ""
		return nil
	}
	w.strayed++
	if w.starved = w.b.unfed; w.starved {
		w.finish(Cut)
		return nil
	}
	w.follow()
	return nil
}

// chosen goes on with a value for a symbol.
func (w *walker) chosen(c errChoose) error {
	if c.guess {
		w.take(c.name, c.values[0])
		return nil
	}
	if _, again := w.fixed[c.name]; again || len(c.values) == 0 {
		return errWrong{"nothing is known of the value of " + c.name, true}
	}
	values := w.b.preferred(c.name, c.values)
	var ways []func(*walker)
	for i, v := range values {
		ways = append(ways, func(w *walker) { w.rule(c.name, values[:i]); w.fix(c.name, v) })
	}
	w.choose(ways, false)
	return nil
}

// preferred puts the value that is to be tried first before others.
func (b *builder) preferred(name string, values []symbolic.Value) []symbolic.Value {
	v, ok := b.options.Prefer[name]
	if !ok {
		return values
	}
	return append([]symbolic.Value{v}, slices.DeleteFunc(slices.Clone(values), func(x symbolic.Value) bool { return x == v })...)
}

// rule notes that a symbol has none of some values, as far as the thread left its path
// under them before it made another choice.
func (w *walker) rule(name string, values []symbolic.Value) {
	if len(values) == 0 || w.decisions.settled {
		return
	}
	p, bits := w.b.pool, w.b.bits[name]
	for i, v := range values {
		if w.choices[len(w.choices)-1].out[i] {
			w.conds = append(w.conds, model.Condition{Expr: p.Not(p.Eq(p.Symbol(name, bits), p.Const(v, bits))), Thread: w.number})
		}
	}
}

// maxStrayed is how often a thread is put back on its path: what it touches then shows
// what is shared, but less and less of it is true.
const maxStrayed = 64

// follow goes on along the path, whatever the thread would do.
func (w *walker) follow() {
	if pc, ok := w.path.pc(w.at); ok && w.strayed < maxStrayed {
		w.machine.State.SetWord(vex.OffsetRIP, pc)
		return
	}
	w.finish(Cut)
}

func (w *walker) finish(e Ending) {
	w.done, w.Ending = true, e
}

// step executes a block, or what stands for a call.
func (w *walker) step() error {
	if err := w.late; err != nil {
		w.late = nil
		return err
	}
	if w.standing != nil {
		return w.resumes()
	}
	if w.calling {
		return w.system()
	}
	if w.magic != ownReturn && w.magic != 0 && w.pc() == w.magic {
		return w.returnsHome()
	}
	pc, ok := w.path.pc(w.at)
	if !ok {
		return w.end()
	}
	if have := w.pc(); have != pc {
		if pc, ok := w.cancelled(); ok {
			return w.interrupt(pc)
		}
		if have == handlerReturn && len(w.signalled) > 0 {
			w.machine.State.SetWord(vex.OffsetRIP, pc)
			return nil
		}
		if have == w.magic && w.magic != 0 {
			return w.returnsHome()
		}
		return errWrong{why: fmt.Sprintf("it would be at %#x, and its path goes to %#x", have, pc)}
	}
	if f, ok := w.b.image.Functions[pc]; ok && f.Role != Cancel && !w.inMemory(f) {
		return w.call(pc, f)
	}
	n, size := w.path.left(w.at)
	b, err := w.b.lift(pc, n, size)
	if err != nil {
		return err
	}
	return w.run(b)
}

// returnsHome is where the thread's function has returned.
func (w *walker) returnsHome() error {
	w.add(model.Event{Kind: model.End}, false)
	w.finish(Returned)
	return nil
}

// end is at the end of the path.
func (w *walker) end() error {
	if w.b.options.Fault {
		w.fault()
	}
	w.finish(Cut)
	return nil
}

// run executes a block: on numbers if it meets no expression.
func (w *walker) run(b *block) error {
	if w.unknown == 0 || !w.reads(b) {
		state := w.machine.State
		w.journal, w.undoing = w.journal[:0], true
		next, _, err := w.machine.Run(b.Block)
		w.undoing = false
		if err == nil {
			w.forget(b)
			return w.advance(b, w.machine.Count, next)
		}
		if !errors.Is(err, errUnknown) {
			return err
		}
		w.machine.State = state
		w.takeBack()
	}
	return w.express(b)
}

// takeBack undoes what a block has stored.
func (w *walker) takeBack() {
	for i := len(w.journal) - 1; i >= 0; i-- {
		u := &w.journal[i]
		w.mem.write(u.addr, u.was[:u.size])
	}
}

// advance goes on behind n instructions of a block; an instruction that repeats is
// in the path once.
func (w *walker) advance(b *block, n int, next uint64) error {
	w.since += uint64(n)
	w.Instructions += uint64(n)
	passed, from := n, w.at
	if b.repeats && next == b.last && n == b.instructions {
		passed--
	}
	w.at = w.path.after(w.at, passed)
	if b.Jump == vex.JumpSyscall && n == b.instructions {
		w.callAt = w.path.after(from, passed-1)
		return w.system()
	}
	return nil
}

// reads tells whether a block reads an expression of the state.
func (w *walker) reads(b *block) bool {
	for _, r := range b.reads {
		for i := r.From; i < r.To; i++ {
			if w.cells[i].e != nil {
				return true
			}
		}
	}
	return false
}

// forget says of what a block has written that it is known.
func (w *walker) forget(b *block) {
	if w.unknown == 0 {
		return
	}
	for _, r := range b.writes {
		w.clear(r.From, r.To)
	}
}

func (w *walker) clear(from, to int) {
	for i := from; i < to; i++ {
		if w.cells[i].e != nil {
			w.cells[i] = cell{}
			w.unknown--
		}
	}
}

// knows tells that the thread's own memory has what a read of shared memory gets.
func (w *walker) knows(addr uint64, size int) bool {
	return w.b.sharing.own(w.number, addr, size) || w.b.sharing.quiet(w.clock, addr, size)
}

// Load is vex.Memory's.
func (w *walker) Load(addr uint64, p []byte) error {
	if addr < lowest {
		return errUnknown
	}
	if w.b.sharing.shared(addr, len(p)) && !w.knows(addr, len(p)) || !w.mem.read(addr, p) {
		return errUnknown
	}
	w.touched(addr, len(p), false)
	return nil
}

// Store is vex.Memory's.
func (w *walker) Store(addr uint64, p []byte) error {
	if addr < lowest {
		return errUnknown
	}
	if w.b.sharing.shared(addr, len(p)) {
		return errUnknown
	}
	if w.undoing {
		u := undo{addr: addr, size: len(p)}
		if !w.mem.read(addr, u.was[:u.size]) {
			return errUnknown // what is there must be kept
		}
		w.journal = append(w.journal, u)
	}
	w.mem.write(addr, p)
	w.touched(addr, len(p), true)
	return nil
}

func (w *walker) touched(addr uint64, size int, write bool) {
	w.b.sharing.touched(w.clock, addr, size, write)
}

// stretch begins another stretch between forks and joins.
func (w *walker) stretch() {
	w.clocks[w.number]++
	w.clock = w.b.sharing.stretch(w.number, w.clocks)
}

// add adds an event: within tells that it is in the next call.
func (w *walker) add(e model.Event, within bool) *model.Event {
	e.Thread, e.Where = w.number, event.Addr(w.pc())
	place, since := w.at, w.since
	if w.calling { // the call is executed already
		since--
		if e.Kind != model.Read && e.Kind != model.Take {
			place = w.callAt // what may have waited is where it goes on
		}
	}
	if at := min(place.i, len(w.path.spots)-1); at >= 0 {
		s := &w.path.spots[at]
		e.Core, e.Place = s.core, s.place+uint64(place.k)
	}
	w.events = append(w.events, e)
	w.coords = append(w.coords, Coordinate{Calls: len(w.Calls), Since: since, Within: within, spot: place.i})
	return &w.events[len(w.events)-1]
}

// symbol makes the symbol of what the next event reads.
func (w *walker) symbol(bits int) *symbolic.Expr {
	name := fmt.Sprintf("r%d.%d", w.number, len(w.events))
	delete(w.b.named, name) // of an attempt that was given up
	return w.b.pool.Symbol(name, bits)
}

// condition has something hold; false: it cannot.
func (w *walker) condition(e *symbolic.Expr) error {
	e = w.settled(e)
	if e.IsConst() {
		if e.Value.Lo == 0 {
			return errWrong{why: "a branch goes the other way"}
		}
		return nil
	}
	w.conds = append(w.conds, model.Condition{Expr: e, Thread: w.number, Where: event.Addr(w.pc())})
	return nil
}

// assume has something hold that the path does not tell.
func (w *walker) assume(e *symbolic.Expr) error {
	before := len(w.conds)
	err := w.condition(e)
	if err != nil {
		return errWrong{"what is assumed does not hold", true}
	}
	for i := before; i < len(w.conds); i++ {
		w.conds[i].Assumed = true
	}
	return nil
}

// settled is an expression with the values that were chosen.
func (w *walker) settled(e *symbolic.Expr) *symbolic.Expr {
	if len(w.fixed) == 0 || e.IsConst() {
		return e
	}
	return w.b.pool.Substitute(e, func(name string) *symbolic.Expr {
		if v, ok := w.fixed[name]; ok {
			return w.b.pool.Const(v, w.b.bits[name])
		}
		return nil
	})
}
