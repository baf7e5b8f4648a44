package schedule

import (
	"fmt"
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Values are the values that were read, by the names of their symbols.
type Values map[string]symbolic.Value

// Run executes a schedule from the initial memory. It is an error if a step cannot
// be taken, if an event is left over, if a condition does not hold.
func Run(t *model.Trace, m model.MemoryModel, s Schedule) (Values, error) {
	r := newRunner(t, m, s)
	for i, step := range s {
		r.currentStep = i
		do := r.executeEvent
		if step.Commit {
			do = r.commitWrite
		}
		if why := do(step.Event); why != "" {
			return nil, fmt.Errorf("step %d, %s: %s", i, t.EventName(step.Event), why)
		}
	}
	return r.values, r.checkEnd()
}

// runner is the state of an abstract machine.
type runner struct {
	*model.Trace
	model         model.MemoryModel
	currentStep   int
	nextEvents    []int // by thread, the next event
	memory        map[uint64]byte
	buffers       [][]pending // by thread
	values        Values
	places        map[model.ID]int // of executions in the schedule
	locks         map[event.ObjectID]*lock
	units         map[event.ObjectID]int
	arrived       map[event.ObjectID]int
	waiting       map[event.ObjectID][]waiter
	previousForks map[model.ID]model.ID // by Fork, the one before
}

// pending is a write that has not reached memory, or a store fence (no bytes).
type pending struct {
	id    model.ID
	addr  uint64
	bytes []byte
}

type lock struct {
	owner, depth int
	readers      map[int]int
}

// waiter is a thread that sleeps, until it is woken.
type waiter struct {
	thread int
	sleep  model.ID
	woken  bool
}

func newRunner(t *model.Trace, m model.MemoryModel, s Schedule) *runner {
	r := &runner{
		Trace: t, model: m, nextEvents: make([]int, len(t.Threads)), memory: map[uint64]byte{}, buffers: make([][]pending, len(t.Threads)),
		values: Values{}, places: map[model.ID]int{}, locks: map[event.ObjectID]*lock{}, units: map[event.ObjectID]int{},
		arrived: map[event.ObjectID]int{}, waiting: map[event.ObjectID][]waiter{},
	}
	r.previousForks = map[model.ID]model.ID{}
	for _, e := range t.CreationEdges() {
		r.previousForks[e.To] = e.From
	}
	for a, b := range t.Initial {
		r.memory[a] = b
	}
	for o, n := range t.Semaphores {
		r.units[o] = n
	}
	for i, step := range s {
		if !step.Commit {
			r.places[step.Event] = i
		}
	}
	return r
}

func (r *runner) executeEvent(id model.ID) string {
	e := &r.Events[id]
	if r.nextEvents[e.Thread] != e.Number {
		return fmt.Sprintf("the thread is at its event %d", r.nextEvents[e.Thread])
	}
	if e.Kind.DrainsWrites() && len(r.buffers[e.Thread]) > 0 {
		r.dropFences(e.Thread)
		if len(r.buffers[e.Thread]) > 0 {
			return "earlier writes have not reached memory"
		}
	}
	var why string
	if e.Kind.Reads() || e.Kind.Writes() {
		why = r.executeAccess(id, e)
	} else {
		why = r.synchronize(id, e)
	}
	r.nextEvents[e.Thread]++
	return why
}

// dropFences takes fences from the front of a buffer.
func (r *runner) dropFences(thread int) {
	b := r.buffers[thread]
	for len(b) > 0 && b[0].bytes == nil {
		b = b[1:]
	}
	r.buffers[thread] = b
}

func (r *runner) executeAccess(id model.ID, e *model.Event) string {
	addr, why := r.targetAddress(e)
	if why != "" {
		return why
	}
	if e.Kind.Reads() {
		r.values[e.Symbol.Name] = r.loadValue(e.Thread, addr, e.Size)
	}
	if !e.Kind.Writes() {
		return ""
	}
	v, err := r.evaluateExpr(e.Value)
	if err != nil {
		return err.Error()
	}
	bytes := make([]byte, e.Size)
	for i := range bytes {
		bytes[i] = byteOf(v, i)
	}
	if e.Kind == model.Update || r.model == model.SC {
		r.storeBytes(addr, bytes)
	} else {
		r.buffers[e.Thread] = append(r.buffers[e.Thread], pending{id, addr, bytes})
	}
	return ""
}

// targetAddress is where an access goes, in an array by the element's number.
func (r *runner) targetAddress(e *model.Event) (uint64, string) {
	if e.Index == nil {
		return e.Addr, ""
	}
	v, err := r.evaluateExpr(e.Index)
	if err != nil {
		return 0, err.Error()
	}
	return e.Addr + v.Lo*uint64(e.Size), ""
}

func byteOf(v symbolic.Value, i int) byte {
	if i < 8 {
		return byte(v.Lo >> (8 * i))
	}
	return byte(v.Hi >> (8 * (i - 8)))
}

// loadValue sees, byte by byte, the newest write in the thread's buffer, or memory.
func (r *runner) loadValue(thread int, addr uint64, size int) symbolic.Value {
	var v symbolic.Value
	for i := range size {
		at := addr + uint64(i)
		b := r.memory[at]
		for _, p := range r.buffers[thread] {
			if at >= p.addr && at < p.addr+uint64(len(p.bytes)) {
				b = p.bytes[at-p.addr]
			}
		}
		if i < 8 {
			v.Lo |= uint64(b) << (8 * i)
		} else {
			v.Hi |= uint64(b) << (8 * (i - 8))
		}
	}
	return v
}

func (r *runner) storeBytes(addr uint64, bytes []byte) {
	for i, b := range bytes {
		r.memory[addr+uint64(i)] = b
	}
}

func (r *runner) evaluateExpr(e *symbolic.Expr) (symbolic.Value, error) {
	return symbolic.NewEvaluator(func(name string) (symbolic.Value, bool) {
		v, ok := r.values[name]
		return v, ok
	}).Value(e)
}

// commitWrite takes a write from its buffer: the oldest under TSO, one that shares no
// byte with an older one and has no fence before it under PSO.
func (r *runner) commitWrite(id model.ID) string {
	thread := r.Events[id].Thread
	r.dropFences(thread)
	buffer := r.buffers[thread]
	i := slices.IndexFunc(buffer, func(p pending) bool { return p.id == id })
	if i < 0 {
		return "it is not in the buffer"
	}
	p := buffer[i]
	for _, o := range buffer[:i] {
		shares := o.addr < p.addr+uint64(len(p.bytes)) && p.addr < o.addr+uint64(len(o.bytes))
		if r.model == model.TSO || o.bytes == nil || shares {
			return "it overtakes an earlier write"
		}
	}
	r.storeBytes(p.addr, p.bytes)
	r.buffers[thread] = slices.Delete(slices.Clone(buffer), i, i+1)
	return ""
}

// checkEnd looks at the end.
func (r *runner) checkEnd() error {
	for i := range r.Threads {
		if n := len(r.Threads[i].Events); r.nextEvents[i] < n {
			return fmt.Errorf("thread %s has executed %d of %d events", r.Threads[i].Name, r.nextEvents[i], n)
		}
		r.dropFences(i)
		if len(r.buffers[i]) > 0 {
			return fmt.Errorf("%s has not reached memory", r.EventName(r.buffers[i][0].id))
		}
	}
	for _, c := range slices.Concat(r.Path, r.Bug) {
		v, err := r.evaluateExpr(c.Expr)
		if err != nil {
			return err
		}
		if v.Lo == 0 {
			return fmt.Errorf("the condition %v does not hold", c.Expr)
		}
	}
	return nil
}

// Deadlines of threads that no signal may wake, and of others that never continue.
const (
	never = math.MaxInt
	late  = never - 1
)

// wakeDeadline is when a sleeping thread continues: a signal wakes the one with the earliest
// deadline, and one that never continues last.
func (r *runner) wakeDeadline(w waiter) int {
	switch wake := r.WakeOf(w.sleep); {
	case wake == model.None && r.Deadlocked, wake != model.None && r.Events[wake].TimedOut:
		return never
	case wake == model.None:
		return late
	default:
		return r.places[wake]
	}
}
