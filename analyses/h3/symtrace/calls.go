package symtrace

import (
	"errors"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Offsets of registers in the state.
const (
	offsetRSP = vex.OffsetRAX + 8*4
	offsetRDI = vex.OffsetRAX + 8*7
)

// argumentRegisters are where arguments are (System V ABI, section 3.2.3).
var argumentRegisters = [...]int{7, 6, 2, 1, 8, 9}

// callArgument is an argument of the function that the thread is about to execute.
func (w *threadExec) callArgument(n int) *symbolic.Expr {
	return w.substituteFixed(w.readRegister(vex.OffsetRAX+8*argumentRegisters[n-1], 8))
}

// constantArgument is an argument that must be a number.
func (w *threadExec) constantArgument(n int) (uint64, error) {
	e := w.callArgument(n)
	if e.IsConst() {
		return e.Value.Lo, nil
	}
	return 0, w.needsValue(e)
}

// needsValue is the error that an expression needs a value.
func (w *threadExec) needsValue(e *symbolic.Expr) error {
	var first *symbolic.Expr
	symbolic.Symbols(e, func(s *symbolic.Expr) {
		if first == nil {
			first = s
		}
	})
	if first == nil {
		return errors.New("an expression without symbols has no value")
	}
	return errNeedsValue{name: first.Name, values: w.pass.likelyValuesFirst(first.Name, w.pass.symbolValues(w, first.Name))}
}

// simulateCall stands for a call of a function that is not followed.
func (w *threadExec) simulateCall(pc uint64, f Function) error {
	back := w.memory.Load(w.pass.pool, w.machine.State.Word(offsetRSP), 8)
	if !back.IsConst() {
		return errOffPath{"it would return to an address that depends on the schedule", true}
	}
	c := &functionCall{Function: f, Call: Call{After: w.sinceCall, Entry: pc, Return: back.Value.Lo, Name: f.Name}}
	c.returnAt, c.returned = w.path.FindBlock(w.path.Advance(w.at, 1), c.Return)
	switch f.Role {
	case Synchronize:
		return w.synchronize(c)
	case Unwind:
		return w.unwindToCleanup(c)
	}
	if !c.returned && allocates[f.Role] && w.aborts() {
		return w.endInAllocator(c)
	}
	if !c.returned || f.Role == Stop || f.Role == StopThread || f.Role == Fail {
		return w.endInCall(c)
	}
	if f.Role == Register || f.Role == Unregister {
		return w.changeCleanups(c)
	}
	result, err := w.callResult(c)
	if err != nil {
		return err
	}
	w.returnFromCall(c, result)
	return nil
}

// fileStream is the flag of the C library's streams that are files (_IO_IS_FILEBUF, in
// the first word).
const fileStream = 0x2000

// isMemoryStream reports whether the call uses a stream in memory (open_memstream(3)).
func (w *threadExec) isMemoryStream(f Function) bool {
	if f.Stream == 0 {
		return false
	}
	at := w.callArgument(f.Stream)
	if !at.IsConst() || at.Value.Lo < lowest {
		return false
	}
	flags := w.memory.Load(w.pass.pool, at.Value.Lo, 4)
	return flags.IsConst() && flags.Value.Lo&fileStream == 0
}

// functionCall is a call on its way.
type functionCall struct {
	Function
	Call
	returnAt paths.Position // where the thread continues
	returned bool           // it returned
}

// noteLastCall notes the call in which a thread's path ends.
func (w *threadExec) noteLastCall(c *functionCall) {
	w.Last, w.LastCall = &c.Function, c.Call
}

// endInCall is where a thread does not come back.
func (w *threadExec) endInCall(c *functionCall) error {
	w.noteLastCall(c)
	switch c.Role {
	case Fail:
		w.Message = w.stringArgument(1)
		w.endPath(Failed)
	case StopThread:
		w.addEvent(model.Event{Kind: model.End}, true)
		w.endPath(Returned)
	case Stop:
		w.endPath(Returned)
		switch status := w.callArgument(1); {
		case c.Value == 1 && !status.IsConst():
			w.pass.status = status
		case c.Value == 1 && status.Value.Lo&0xff != 0:
			w.Ending = Failed
		}
	default:
		w.endPath(InCall)
		if c.Role == Free {
			return w.freeMemory()
		}
	}
	return nil
}

// stringArgument is the string that an argument points to.
func (w *threadExec) stringArgument(n int) string {
	at, err := w.constantArgument(n)
	if err != nil {
		return ""
	}
	s, _ := w.stringAt(at)
	return s
}

// returnFromCall gives the thread its state after a call; it adds no events.
func (w *threadExec) returnFromCall(c *functionCall, result *symbolic.Expr) {
	w.Calls = append(w.Calls, c.Call)
	w.sinceCall, w.at = 0, c.returnAt
	w.setRegister(vex.OffsetRAX, result)
	w.machine.State.SetWord(offsetRSP, w.machine.State.Word(offsetRSP)+8)
	w.machine.State.SetWord(vex.OffsetRIP, c.Return)
}

// callResult returns the result of a function that synchronizes nothing.
func (w *threadExec) callResult(c *functionCall) (*symbolic.Expr, error) {
	p := w.pass.pool
	switch c.Role {
	case Print:
		w.compareOutput(int(c.Value))
		return p.Word(1, 64), nil
	case Argument:
		return w.callArgument(int(c.Value)), nil
	case Free:
		return p.Word(0, 64), w.freeMemory()
	case Allocate, Calloc:
		size, err := w.constantArgument(1)
		if err == nil && c.Role == Calloc {
			var each uint64
			each, err = w.constantArgument(2)
			size *= each
		}
		if err != nil {
			return nil, err
		}
		return p.Word(w.allocateMemory(size), 64), nil
	case Resize:
		return w.reallocate()
	case Duplicate:
		from := w.stringArgument(1)
		at := w.allocateMemory(uint64(len(from) + 1))
		w.memory.Write(at, append([]byte(from), 0))
		return p.Word(at, 64), nil
	}
	return p.Word(c.Value, 64), nil
}

// allocateMemory gives out memory that nothing else has.
func (w *threadExec) allocateMemory(size uint64) uint64 {
	const align = 64 // so that nothing shares a granule
	at := w.heap
	w.heap += (size + 2*align) &^ (align - 1)
	w.pass.addObject(Object{at, max(size, 1)})
	return at
}

// reallocate is realloc: the old content is copied.
func (w *threadExec) reallocate() (*symbolic.Expr, error) {
	old, err := w.constantArgument(1)
	if err != nil {
		return nil, err
	}
	size, err := w.constantArgument(2)
	if err != nil {
		return nil, err
	}
	at := w.allocateMemory(size)
	if o, ok := w.pass.objectAt(old); ok && old != 0 {
		for i := uint64(0); i < min(o.Size, size); i++ {
			w.memory.Store(at+i, w.memory.Load(w.pass.pool, old+i, 1))
			w.noteAccess(old+i, 1, false)
		}
	}
	return w.pass.pool.Word(at, 64), nil
}

// synchronize stands for a synchronization operation.
func (w *threadExec) synchronize(c *functionCall) error {
	object, err := w.constantArgument(1)
	if err != nil {
		if _, ok := err.(errNeedsValue); ok && !c.returned && w.pass.options.Fault {
			w.noteLastCall(c)
			w.noteFault(w.pass.unmappedCondition(w.callArgument(1)))
			w.endPath(InCall)
			return nil
		}
		return err
	}
	o := &syncOperation{functionCall: c, thread: w, object: object}
	if c.Op == event.OpCondWait || c.Op == event.OpCondTimedWait || c.Op == event.OpCondClockWait {
		if o.second, err = w.constantArgument(2); err != nil {
			return err
		}
	}
	if !c.returned {
		if w.pass.options.Fault && !w.pass.image.isMapped(object) && !w.pass.isAllocated(object) {
			w.noteFault(nil)
		}
		o.beginOperation()
		w.noteLastCall(c)
		w.endPath(InCall)
		return nil
	}
	ways := o.possibleEnds()
	w.otherOutcomes += len(ways) - 1
	w.tryWays(ways, false)
	return nil
}
