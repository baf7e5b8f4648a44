package symtrace

import (
	"errors"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
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

// argument is an argument of the function that the thread is about to execute.
func (w *walker) argument(n int) *symbolic.Expr {
	return w.settled(w.register(vex.OffsetRAX+8*argumentRegisters[n-1], 8))
}

// known is an argument that must be a number.
func (w *walker) known(n int) (uint64, error) {
	e := w.argument(n)
	if e.IsConst() {
		return e.Value.Lo, nil
	}
	return 0, w.chooses(e)
}

// chooses is the error that an expression needs a value.
func (w *walker) chooses(e *symbolic.Expr) error {
	var first *symbolic.Expr
	symbolic.Symbols(e, func(s *symbolic.Expr) {
		if first == nil {
			first = s
		}
	})
	if first == nil {
		return errors.New("an expression without symbols has no value")
	}
	return errChoose{name: first.Name, values: w.b.likelyFirst(first.Name, w.b.values(w, first.Name))}
}

// call stands for a call of a function that is not followed.
func (w *walker) call(pc uint64, f Function) error {
	back := w.mem.load(w.b.pool, w.machine.State.Word(offsetRSP), 8)
	if !back.IsConst() {
		return errWrong{"it would return to what is not known", true}
	}
	c := &called{Function: f, Call: Call{After: w.since, Entry: pc, Return: back.Value.Lo, Name: f.Name}}
	c.end, c.over = w.path.find(w.path.after(w.at, 1), c.Return)
	switch f.Role {
	case Synchronize:
		return w.synchronize(c)
	case Unwind:
		return w.unwind(c)
	}
	if !c.over || f.Role == Stop || f.Role == StopThread || f.Role == Fail {
		return w.leaves(c)
	}
	if f.Role == Register || f.Role == Unregister {
		return w.cleanup(c)
	}
	result, err := w.result(c)
	if err != nil {
		return err
	}
	w.returns(c, result)
	return nil
}

// fileStream is the flag of the C library's streams that are files (_IO_IS_FILEBUF, in
// the first word).
const fileStream = 0x2000

// inMemory tells that a function is about a stream in memory (open_memstream(3)).
func (w *walker) inMemory(f Function) bool {
	if f.Stream == 0 {
		return false
	}
	at := w.argument(f.Stream)
	if !at.IsConst() || at.Value.Lo < lowest {
		return false
	}
	flags := w.mem.load(w.b.pool, at.Value.Lo, 4)
	return flags.IsConst() && flags.Value.Lo&fileStream == 0
}

// called is a call on its way.
type called struct {
	Function
	Call
	end  position // behind it
	over bool     // it returned
}

// last notes the call in which a thread's path ends.
func (w *walker) last(c *called) {
	w.Last, w.LastAfter, w.LastEntry = &c.Function, c.After, c.Entry
}

// leaves is where a thread does not come back.
func (w *walker) leaves(c *called) error {
	w.last(c)
	switch c.Role {
	case Fail:
		w.Message = w.text(1)
		w.finish(Failed)
	case StopThread:
		w.add(model.Event{Kind: model.End}, true)
		w.finish(Returned)
	case Stop:
		w.finish(Returned)
		if status := w.argument(1); c.Value == 1 && status.IsConst() && status.Value.Lo&0xff != 0 {
			w.Ending = Failed
		}
	default:
		w.finish(InCall)
	}
	return nil
}

// text is the string that an argument points to.
func (w *walker) text(n int) string {
	at, err := w.known(n)
	if err != nil {
		return ""
	}
	s, _ := w.textAt(at)
	return s
}

// begin gives the thread what it has behind a call, but for events.
func (w *walker) returns(c *called, result *symbolic.Expr) {
	w.Calls = append(w.Calls, c.Call)
	w.since, w.at = 0, c.end
	w.setRegister(vex.OffsetRAX, result)
	w.machine.State.SetWord(offsetRSP, w.machine.State.Word(offsetRSP)+8)
	w.machine.State.SetWord(vex.OffsetRIP, c.Return)
}

// result is what a function returns that synchronizes nothing.
func (w *walker) result(c *called) (*symbolic.Expr, error) {
	p := w.b.pool
	switch c.Role {
	case Print:
		w.prints(int(c.Value))
		return p.Word(1, 64), nil
	case Argument:
		return w.argument(int(c.Value)), nil
	case Free:
		w.freed()
	case Allocate, Calloc:
		size, err := w.known(1)
		if err == nil && c.Role == Calloc {
			var each uint64
			each, err = w.known(2)
			size *= each
		}
		if err != nil {
			return nil, err
		}
		return p.Word(w.allocate(size), 64), nil
	case Resize:
		return w.resize()
	case Duplicate:
		from := w.text(1)
		at := w.allocate(uint64(len(from) + 1))
		w.mem.write(at, append([]byte(from), 0))
		return p.Word(at, 64), nil
	}
	return p.Word(c.Value, 64), nil
}

// allocate gives out memory that nothing else has.
func (w *walker) allocate(size uint64) uint64 {
	const align = 64 // so that nothing shares a granule
	at := w.heap
	w.heap += (size + 2*align) &^ (align - 1)
	w.b.allocate(Object{at, max(size, 1)})
	return at
}

// resize is realloc: what was there is copied.
func (w *walker) resize() (*symbolic.Expr, error) {
	old, err := w.known(1)
	if err != nil {
		return nil, err
	}
	size, err := w.known(2)
	if err != nil {
		return nil, err
	}
	at := w.allocate(size)
	if o, ok := w.b.object(old); ok && old != 0 {
		for i := uint64(0); i < min(o.Size, size); i++ {
			w.mem.store(at+i, w.mem.load(w.b.pool, old+i, 1))
			w.touched(old+i, 1, false)
		}
	}
	return w.b.pool.Word(at, 64), nil
}

// synchronize stands for a synchronization operation.
func (w *walker) synchronize(c *called) error {
	object, err := w.known(1)
	if err != nil {
		if _, ok := err.(errChoose); ok && !c.over && w.b.options.Fault {
			w.last(c)
			w.faults(w.b.unmapped(w.argument(1)))
			w.finish(InCall)
			return nil
		}
		return err
	}
	o := &operation{called: c, w: w, object: object}
	if c.Op == event.OpCondWait || c.Op == event.OpCondTimedWait || c.Op == event.OpCondClockWait {
		if o.second, err = w.known(2); err != nil {
			return err
		}
	}
	if !c.over {
		if w.b.options.Fault && !w.b.image.mapped(object) && !w.b.allocated(object) {
			w.faults(nil)
		}
		o.begin()
		w.last(c)
		w.finish(InCall)
		return nil
	}
	ways := o.ways()
	w.outcomes += len(ways) - 1
	w.choose(ways, false)
	return nil
}

// faults notes that the thread can fault here.
func (w *walker) faults(condition *symbolic.Expr) {
	w.b.faults = append(w.b.faults, fault{w, condition, event.Addr(w.pc())})
}
