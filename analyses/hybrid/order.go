package hybrid

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Rules are the properties of operations and system calls by which a schedule is enforced.
type Rules struct {
	// Ordered reports whether a system call has a position when it is not part of an operation, and
	// Transparent whether an operation has none.
	Ordered func(number uint64) bool
	// Forks reports whether a system call creates threads: it precedes them, and so has a position
	// before its return.
	Forks func(number uint64) bool
	// Free, if set, reports whether a system call that has a position by its number has none all
	// the same, because of its first argument.
	Free        func(number uint64, descriptor int64) bool
	Transparent func(event.SyncOp) bool
	// Allocations are the calls of allocators that have a position, by their numbers in
	// the run, from 1.
	Allocations map[int]bool
}

// OrderBuilder makes the total order of a run's synchronization operations and system
// calls out of its events. An operation that releases something has the position
// of its call, any other that of its return: in between it may have waited. One
// that does both has two positions, and so has a once routine.
//
// It takes the events in their order; Finish gives the result.
type OrderBuilder struct {
	rules       Rules
	s           event.Schedule
	numbers     map[arch.ThreadID]int
	byName      map[string]int
	threads     []*orderThread
	lives       map[arch.ThreadID][]life
	ending      map[int32]int          // the index of the system call that ended a process
	replaced    map[int32][]processEnd // threads of a process that have ended, by execve if one succeeds next
	killed      int                    // the thread whose signal was the last event of any, or -1
	sent        bool                   // that signal has a position
	processEnds []processEnd
	deaths      []death
	dropped     []bool        // by the index of an operation: it has no position
	living      map[int32]int // how many threads a process has
	marks       []Mark
	// allocations are the calls of allocators so far, and acting those of them, besides
	// those with a position, that make system calls which have one elsewhere.
	allocations int
	acting      []int
	innerCalls  []innerCall
	objects     map[arch.Addr]bool // where the objects are that operations have acted on
}

// orderThread is the state of a thread.
type orderThread struct {
	id      arch.ThreadID
	process int32
	open    []openOperation
	last    int  // the index of its last operation, for the events after it
	futex   bool // its system call is one of an operation of its own
	heap    bool // it is in a function of an allocator
	// allocation is the number in the run of its last call of an allocator, and allocations how
	// many calls follow its last operation.
	allocation, allocations int
	issue                   *event.Syscall
	nested                  bool   // that was made within an operation
	forks                   int    // the index of the fork that it is in, or -1
	base                    uint64 // its instructions up to the end of its last operation
	gone                    bool
	renames                 []rename
	inner                   bool // its system call is the last of OrderBuilder.innerCalls that it has made
}

// life is the time from one event, by its number, in which a thread, by the schedule's number, has an id.
type life struct {
	from   uint64
	thread int
}

// rename is a change of a thread's id: a thread that is not its process's first takes the id of that with
// execve(2), and its counts start again from 0.
type rename struct {
	before int // the index of the first operation after it; after Finish, how many operations of the thread come before it
	life   Life
}

// Life is a use of a thread id: the number of threads that had it before, which have ended or changed their id.
type Life struct {
	ID     arch.ThreadID
	Number int
}

// openOperation is an operation that was called and has not returned.
type openOperation struct {
	op         event.SyncOp
	beginIndex int // the index of its BeginPart or WholePart, or -1
	once       bool
	mark       int // the index of the mark of its call
	// instructions is how many the thread had retired.
	instructions uint64
	// entry is the index of its BeginPart, which has no position unless a signal interrupts its
	// wait; split says that one did.
	entry int
	split bool
	// handler: it is the handler of a signal that interrupted an operation, and not an operation.
	handler bool
	waits   kernelWaits
}

// Mark is a place in a run where an operation of a thread, or a part of it, begins or ends: the
// accesses between marks are examined.
type Mark struct {
	Seq    uint64
	Thread int
	// Position is that of the operation that takes place here, or -1.
	Position int
	// Open and Close: an operation begins or ends whose instructions are part of it.
	Open, Close bool
	// Over: the thread was the last of its process, and ends.
	Over bool
	// Branches and Instructions are the thread's counts.
	Branches, Instructions uint64
}

// NewOrderBuilder makes an Order of a run that has not begun.
func NewOrderBuilder(r Rules) *OrderBuilder {
	o := &OrderBuilder{
		rules: r, numbers: map[arch.ThreadID]int{}, byName: map[string]int{}, living: map[int32]int{}, ending: map[int32]int{}, killed: -1,
		lives: map[arch.ThreadID][]life{}, replaced: map[int32][]processEnd{},
	}
	o.s.Objects, o.objects = map[event.ObjectID]string{}, map[arch.Addr]bool{}
	return o
}

// AddStart adds a thread.
func (o *OrderBuilder) AddStart(e *event.Start) {
	n, known := o.byName[e.Name]
	if !known {
		n = len(o.threads)
		o.byName[e.Name] = n
		o.threads = append(o.threads, &orderThread{last: -1, forks: -1})
		o.s.Threads = append(o.s.Threads, e.Name)
	}
	t := o.threads[n]
	if known {
		o.renameThread(n, e)
	}
	o.numbers[e.Thread] = n
	t.id, t.process = e.Thread, e.Process
	t.renames = append(t.renames, rename{len(o.s.Operations), Life{e.Thread, len(o.lives[e.Thread])}})
	o.lives[e.Thread] = append(o.lives[e.Thread], life{e.Seq, n})
	o.living[e.Process]++
}

// renameThread takes the start of a thread that was there before: execve(2) has given it the id of its process's
// first thread. The end that was recorded just before is not one, and its counts start again.
func (o *OrderBuilder) renameThread(n int, e *event.Start) {
	t := o.threads[n]
	t.gone, t.issue, t.open = false, nil, nil
	delete(o.replaced, t.process)
	if last := len(o.marks) - 1; last >= 0 && o.marks[last].Over && o.marks[last].Thread == n {
		o.marks = o.marks[:last]
	}
	o.addMark(event.Stamp{Seq: e.Seq}, Mark{Thread: n, Position: -1, Close: true})
}

// ThreadAt is the number of the thread that has an id at an event, or -1.
func (o *OrderBuilder) ThreadAt(id arch.ThreadID, seq uint64) int {
	lives := o.lives[id]
	for i := len(lives) - 1; i >= 0; i-- {
		if lives[i].from <= seq || i == 0 {
			return lives[i].thread
		}
	}
	return -1
}

// LifeAfter is the id of a thread after a number of its operations. It is valid after Finish.
func (o *OrderBuilder) LifeAfter(n, done int) Life {
	renames := o.threads[n].renames
	i := len(renames) - 1
	for i > 0 && renames[i].before > done {
		i--
	}
	return renames[i].life
}

// Thread is the number of a thread that is there at the last event, or -1.
func (o *OrderBuilder) Thread(id arch.ThreadID) int {
	if n, ok := o.numbers[id]; ok {
		return n
	}
	return -1
}

// Process is the process that a thread belongs to.
func (o *OrderBuilder) Process(n int) int { return int(o.threads[n].process) }

// AddObject adds the name of an object.
func (o *OrderBuilder) AddObject(e *event.Object) { o.s.Objects[e.ID] = e.Name }

// addOperation adds an operation.
func (o *OrderBuilder) addOperation(at event.Stamp, p event.Operation) int {
	p.At = at.Time
	o.s.Operations = append(o.s.Operations, p)
	o.dropped = append(o.dropped, false)
	n := len(o.s.Operations) - 1
	o.threads[p.Thread].last, o.threads[p.Thread].allocations = n, 0
	return n
}

// addMark adds a mark at a place of a thread's run.
func (o *OrderBuilder) addMark(at event.Stamp, m Mark) {
	m.Seq, m.Branches, m.Instructions = at.Seq, at.Branches, at.Instructions
	o.marks = append(o.marks, m)
	if m.Close || m.Position >= 0 {
		o.threads[m.Thread].base = at.Instructions
	}
}

// isInsideOperation reports whether a thread is in an operation whose instructions are part of it.
func (t *orderThread) isInsideOperation() bool {
	if len(t.open) == 0 {
		return false
	}
	c := &t.open[len(t.open)-1]
	return !c.once && !c.handler
}

// AddSync adds an operation's call or return.
func (o *OrderBuilder) AddSync(e *event.Sync) {
	n := o.Thread(e.Thread)
	if n < 0 || o.rules.Transparent(e.Op) {
		return
	}
	t := o.threads[n]
	if !t.gone {
		o.noteAlive(n)
	}
	switch {
	case t.gone && n != o.killed:
		// It was in there when its process ended.
	case e.Op == event.OpThreadReturn:
		at := o.addOperation(e.Stamp, event.Operation{Thread: n, Part: event.WholePart, Op: e.Op})
		o.addMark(e.Stamp, Mark{Thread: n, Position: at, Close: true})
	case e.Op == event.OpThreadStart:
		at := o.addOperation(e.Stamp, event.Operation{Thread: n, Part: event.StartPart})
		o.addMark(e.Stamp, Mark{Thread: n, Position: at, Close: true})
	case e.Op == event.OpFutexWait || e.Op == event.OpFutexWake:
		t.futex = t.futex || e.Phase == event.Enter
		if e.Effects&event.Inner != 0 && e.Phase == event.Enter {
			o.enterInnerCall(n, e)
		}
	case e.Phase == event.Whole:
	case e.Phase == event.Enter:
		o.objects[e.Addr] = true
		o.enterOperation(n, e)
	default:
		o.leaveOperation(n, e)
	}
}

const (
	releases = event.Release | event.ReleaseSecond
	acquires = event.Acquire | event.AcquireSecond
)

// enterOperation takes the call of an operation.
func (o *OrderBuilder) enterOperation(n int, e *event.Sync) {
	t := o.threads[n]
	c := openOperation{op: e.Op, beginIndex: -1, mark: len(o.marks), once: e.Op == event.OpOnce || e.Op == event.OpC11CallOnce, instructions: e.Instructions}
	last := t.last
	position := o.addOperation(e.Stamp, event.Operation{Thread: n, Part: event.WholePart, Op: e.Op, Object: e.Object})
	c.entry = position
	base := t.base
	t.open = append(t.open, c)
	o.addMark(e.Stamp, Mark{Thread: n, Position: position, Open: !c.once})
	if e.Effects&releases != 0 || c.once {
		t.open[len(t.open)-1].beginIndex = position
	} else {
		o.dropped[position], t.last, t.base = true, last, base
	}
}

// leaveOperation takes its return.
func (o *OrderBuilder) leaveOperation(n int, e *event.Sync) {
	t := o.threads[n]
	t.leaveHandlers()
	if len(t.open) == 0 || t.open[len(t.open)-1].op != e.Op {
		return // the recording begins within it
	}
	c := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	end := event.Operation{Thread: n, Part: event.WholePart, Op: e.Op, Object: e.Object, Result: e.Result}
	position := -1
	switch {
	case c.once && e.Effects&event.Release == 0:
		// Another thread has run the routine: this one waits for that.
		o.dropped[c.beginIndex] = true
		o.marks[c.mark].Open = true
		position = o.addOperation(e.Stamp, end)
	case c.beginIndex >= 0 && (c.once || c.split || waitsAtReturn(e)):
		o.s.Operations[c.beginIndex].Part = event.BeginPart
		end.Part = event.EndPart
		position = o.addOperation(e.Stamp, end)
	case c.beginIndex >= 0:
		o.s.Operations[c.beginIndex].Result = e.Result
		t.last = c.beginIndex
	default:
		position = o.addOperation(e.Stamp, end)
	}
	o.addMark(e.Stamp, Mark{Thread: n, Position: position, Close: true})
}

// waitsAtReturn reports whether an operation that releases something at its call acquires something
// at its return.
func waitsAtReturn(e *event.Sync) bool { return alwaysWaits(e.Op) || e.Effects&acquires != 0 }

func alwaysWaits(op event.SyncOp) bool {
	switch op {
	case event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait, event.OpC11CndWait, event.OpC11CndTimedWait,
		event.OpBarrierWait:
		return true
	}
	return false
}

// AddAllocation adds the call of an allocator, or its return: system calls within it have no
// position, and some calls have one as wholes.
func (o *OrderBuilder) AddAllocation(e *event.Heap) {
	o.s.Allocators = true
	if e.Phase == event.Enter {
		o.allocations++
	}
	n := o.Thread(e.Thread)
	if n < 0 {
		return
	}
	t := o.threads[n]
	if t.heap = e.Phase == event.Enter; t.heap {
		t.allocation = o.allocations
		t.allocations++
	}
	switch {
	case !o.rules.Allocations[t.allocation]:
	case t.heap:
		o.addMark(e.Stamp, Mark{Thread: n, Position: -1, Open: true})
	default:
		at := o.addOperation(e.Stamp, event.Operation{Thread: n, Part: event.WholePart, Op: event.OpAllocate, Result: int64(t.allocations)})
		o.addMark(e.Stamp, Mark{Thread: n, Position: at, Close: true})
	}
}

// ActingAllocations are the calls of allocators without a position that made system calls which have
// one elsewhere.
func (o *OrderBuilder) ActingAllocations() []int { return o.acting }

// AddSyscall adds the issue or the return of a system call.
func (o *OrderBuilder) AddSyscall(e *event.Syscall) {
	n := o.Thread(e.Thread)
	if n < 0 {
		return
	}
	t := o.threads[n]
	if !t.gone {
		o.noteAlive(n)
	}
	if e.Phase == event.Enter {
		t.futex, t.inner = false, false
		issue := *e
		t.issue, t.nested = &issue, t.isInsideOperation()
		if e.Number == linux.RtSigreturn {
			o.returnFromHandler(n, e)
		}
		o.beginKernelWait(n, e)
		if o.rules.Forks(e.Number) && !t.isInsideOperation() && o.rules.Ordered(e.Number) {
			t.forks = o.addSyscallOperation(n, e)
		}
		return
	}
	o.endKernelWait(n, e)
	switch {
	case t.forks >= 0:
		o.s.Operations[t.forks].Result, t.forks = int64(e.Result), -1
	case t.heap:
		if o.rules.Ordered(e.Number) && e.Number != linux.Futex && !o.rules.Allocations[t.allocation] {
			o.acting = append(o.acting, t.allocation)
		}
	case t.issue == nil || e.Number == linux.Futex && !t.futex || e.Number != linux.Futex && t.nested || !o.rules.Ordered(e.Number):
	case o.rules.Free != nil && o.rules.Free(e.Number, int64(int32(e.Args[0]))):
	default:
		at := o.addSyscallOperation(n, e)
		if t.inner {
			o.leaveInnerCall(n, at, e.Result)
		}
		if linux.Has(e.Number, linux.Executes) && e.Result == 0 {
			o.replaceProgram(n, at)
		}
	}
	t.issue = nil
}

// addSyscallOperation gives a system call that is not part of an operation its position: that of
// its return or, if it creates a thread, of its issue, as the thread comes after it.
func (o *OrderBuilder) addSyscallOperation(n int, e *event.Syscall) int {
	at := o.addOperation(e.Stamp, event.Operation{
		Thread: n, Part: event.SystemCall, Number: e.Number, Result: int64(e.Result), Time: e.Time - min(e.Time, o.threads[n].issue.Time),
	})
	o.addMark(e.Stamp, Mark{Thread: n, Position: at, Close: true})
	if e.Number == linux.ExitGroup {
		o.ending[o.threads[n].process] = at
	}
	return at
}

// AddInput adds the data that a system call returned, after its return.
func (o *OrderBuilder) AddInput(e *event.Input) {
	n := o.Thread(e.Thread)
	if n < 0 || e.Source != event.InputTime && e.Source != event.InputRandom || len(e.Data) == 0 {
		return
	}
	if at := o.threads[n].last; at >= 0 && o.s.Operations[at].Part == event.SystemCall && o.s.Operations[at].Number == e.Syscall {
		p := &o.s.Operations[at]
		p.Writes = append(p.Writes, event.Write{Addr: e.Addr, Data: slices.Clone(e.Data)})
	}
}

// Finish gives the order and its marks, both in the order of the run.
func (o *OrderBuilder) Finish() (*event.Schedule, []Mark) {
	o.s.Stuck = o.isStuck()
	for _, t := range o.threads {
		for _, c := range t.open {
			if c.beginIndex >= 0 && (c.once || c.split || alwaysWaits(c.op)) {
				o.s.Operations[c.beginIndex].Part = event.BeginPart // its end never came
			}
		}
	}
	o.dropInnerCalls()
	index := make([]int, len(o.s.Operations))
	for i := range index {
		index[i] = i
	}
	index = slices.DeleteFunc(index, func(i int) bool { return o.dropped[i] })
	position := make([]int, len(o.dropped))
	for i := range position {
		position[i] = -1
	}
	operations := make([]event.Operation, len(index))
	for p, i := range index {
		operations[p], position[i] = o.s.Operations[i], p
	}
	for n, t := range o.threads {
		for i := 1; i < len(t.renames); i++ { // the first life begins before all operations
			t.renames[i].before = o.countBefore(t.renames[i].before, n)
		}
	}
	for i := range o.processEnds {
		if x := &o.processEnds[i]; x.by >= 0 {
			x.at = o.countBefore(x.at, x.by)
		}
	}
	o.s.Operations = operations
	for i := range o.marks {
		if m := &o.marks[i]; m.Position >= 0 {
			m.Position = position[m.Position]
		}
	}
	return &o.s, o.marks
}

// countBefore is how many operations of a thread that have a position come before the one with an index.
func (o *OrderBuilder) countBefore(index, thread int) int {
	n := 0
	for i := range o.s.Operations[:index] {
		if o.s.Operations[i].Thread == thread && !o.dropped[i] {
			n++
		}
	}
	return n
}

// isStuck reports whether some threads were left at the end of the run, all in operations or system
// calls.
func (o *OrderBuilder) isStuck() bool {
	left := 0
	for _, t := range o.threads {
		switch {
		case t.gone:
		case t.isInsideOperation() || t.issue != nil:
			left++
		default:
			return false
		}
	}
	return left > 0
}

// ThreadID is the guest's number of a thread in the recorded run.
func (o *OrderBuilder) ThreadID(n int) arch.ThreadID { return o.threads[n].id }
