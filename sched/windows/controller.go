package windows

import (
	"fmt"
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Members says which threads are the server's.
type Members interface {
	InService(arch.ThreadID) bool
}

// Point is a turn: a thread passes a synchronization point. What is the operation, or the number of
// the system call.
type Point struct {
	Thread string
	Kind   sched.PointKind
	What   uint64
}

func (p Point) String() string { return fmt.Sprintf("%s %v %d", p.Thread, p.Kind, p.What) }

// Order is how the server's threads were ordered in a window.
type Order struct {
	// Turns counts the synchronization operations, system calls and wake-ups of the window.
	Turns int `json:"turns"`
	// Schedule numbers the order that the window had among all that are stored, and Reused reports
	// that it was stored before. Left is the number of stored orders that were given up because
	// the threads could not follow them.
	Schedule int  `json:"schedule"`
	Reused   bool `json:"reused"`
	Left     int  `json:"left,omitempty"`
	// Why says where the threads could not follow the first of them.
	Why string `json:"why,omitempty"`
	// Spun counts the operations that waited in a loop and gave their turn away: what follows them
	// is not determined by the order.
	Spun int `json:"spun,omitempty"`
	// Exact and Admitted are the numbers of stored schedules that the window could follow: schedules for the same input, and
	// others whose preconditions admit it.
	Exact    int `json:"exact,omitempty"`
	Admitted int `json:"admitted,omitempty"`
	// Constraints is the number of constraints that the schedule has, and Added how many this window has
	// added. Enforced counts the followed ones, Stalled the waits for them, and Missed the ones whose
	// instructions were not reached, or not in their order.
	Constraints int `json:"constraints,omitempty"`
	Added       int `json:"added,omitempty"`
	Enforced    int `json:"enforced,omitempty"`
	Stalled     int `json:"stalled,omitempty"`
	Missed      int `json:"missed,omitempty"`
}

// threadState is the state of a thread with regard to turns.
type threadState uint8

const (
	running threadState = iota // it can run, and needs no turn now
	asking                     // it is held until it has a turn
	acting                     // it has the turn
	away                       // it waits in the kernel
	stalled                    // it is held until the first instruction of a constraint was executed
)

// serverThread is a thread of the server.
type serverThread struct {
	id      arch.ThreadID
	state   threadState
	point   Point // that it asks for
	depth   int   // operations and calls that it is in
	private bool  // its system call needs no turn
	loose   bool  // it gave its turn away in a loop

	name     string
	cuts     int
	arrivals arrivals
	awaits   int         // the constraint that it is stalled for
	resumed  threadState // when it is not stalled any more
}

// Controller serializes the server's operations and system calls, in a total order: in the order of
// arrival, as TERN's first come, first served recorder (section 5.1), or in a stored order. Clients
// continue as they would without it. Wake-ups are turns, too: a thread that waited in the kernel
// checks again, in its turn, whether its wait is over.
type Controller struct {
	sched.Pass
	// Cut, if it is not nil, is called when a segment of a thread begins (Place).
	Cut func(id arch.ThreadID, name string)
	// Allocated, if it is not nil, is called when an allocator's function returns to a thread of the server.
	Allocated func(*event.Heap)

	members Members
	costs   sched.Costs
	threads map[arch.ThreadID]*serverThread
	busy    *serverThread
	ran     uint64 // instructions of the one that is busy
	queue   []*serverThread
	store   *Store
	atomics bool
	alone   bool            // others than the server's threads are held
	others  []arch.ThreadID // that are held

	reuse     Reuse
	admission Admission
	candidate []int // stored orders that begin as this window has, the first one is followed
	order     []Point
	result    Order
	clock     uint64
	progress  uint64
	set       constraintSet
}

// NewController makes the controller of a run that has not begun. Atomics makes atomic instructions
// outside of operations turns as well.
func NewController(store *Store, costs sched.Costs, members Members, atomics bool, reuse Reuse) *Controller {
	c := &Controller{members: members, costs: costs, threads: map[arch.ThreadID]*serverThread{}, store: store, atomics: atomics, reuse: reuse}
	c.Begin(Admission{})
	return c
}

// Begin begins a window.
func (c *Controller) Begin(a Admission) {
	c.admission, c.order, c.result, c.candidate = a, nil, Order{}, nil
	if c.reuse != Off {
		list, exact := c.store.find(&a)
		c.result.Exact, c.result.Admitted = exact, len(list)-exact
		if c.reuse == Online {
			c.candidate = list
		}
	}
	for _, t := range c.threads {
		t.cuts, t.arrivals = 0, arrivals{}
	}
	c.follow()
}

// Follows reports whether the window has a stored schedule.
func (c *Controller) Follows() bool { return len(c.candidate) > 0 }

// End ends a window and returns how it was ordered. Found are constraints on the races that were found in it; a
// schedule that it has followed gets the ones that it lacks. Precondition is that of the window's schedule,
// if it is a new one.
func (c *Controller) End(found []Constraint, precondition Precondition) Order {
	r := c.result
	r.Turns = len(c.order)
	if len(c.candidate) > 0 && len(c.store.schedules[c.candidate[0]].Turns) == len(c.order) {
		r.Schedule, r.Reused = c.candidate[0], true
	} else {
		// The threads have all come to wait before the stored order ended, or it had no end.
		r.Left += len(c.candidate)
		r.Schedule, r.Reused = c.store.Add(c.admission.Key, Schedule{Exact: c.admission.Exact, Precondition: precondition, Turns: c.order})
	}
	r.Added = c.store.constrain(r.Schedule, found)
	r.Constraints = len(c.store.schedules[r.Schedule].Constraints)
	return r
}

// StartAlone has no thread but the server's run from now on, and AdmitOthers ends that. A client
// that looks whether the server answers does so when it has started, however long that takes.
func (c *Controller) StartAlone() { c.alone = true }

// AdmitOthers lets the other threads continue.
func (c *Controller) AdmitOthers(g *sched.Gate) {
	for _, t := range c.others {
		g.Release(t, 0)
	}
	c.alone, c.others = false, nil
}

// MayRun implements sched.Controller.
func (c *Controller) MayRun(t arch.ThreadID, _ uint64) bool {
	if !c.alone || c.members.InService(t) {
		return true
	}
	c.others = append(c.others, t)
	return false
}

// Clock is the logical clock: the number of turns since the start.
func (c *Controller) Clock() uint64 { return c.clock }

// Progress counts the turns since the start that a thread which waits in a loop has not: system calls other than those by which
// threads wait, give way and look at the time.
func (c *Controller) Progress() uint64 { return c.progress }

// isProgress reports whether a turn counts.
func isProgress(p Point) bool {
	return p.Kind == sched.AtCall && !linux.Has(p.What, linux.Unordered|linux.Polls|linux.Sleeps|linux.TimeDependent)
}

// Needs implements sched.Controller.
func (c *Controller) Needs() sched.Needs {
	return sched.Needs{Creations: true, MayRun: true, SchedulePoints: true, WholeOperations: true, Stops: true, Atomics: c.atomics, Allocations: c.Allocated != nil}
}

func (c *Controller) threadOf(id arch.ThreadID) *serverThread {
	t := c.threads[id]
	if t == nil && c.members.InService(id) {
		t = &serverThread{id: id}
		c.threads[id] = t
	}
	return t
}

// Observe implements sched.Controller.
func (c *Controller) Observe(g *sched.Gate, e sched.ThreadEvent) {
	switch e.Kind {
	case sched.ThreadCreated:
		c.threadOf(e.Thread)
	case sched.AllocatorLeft:
		if e.Heap.Phase == event.Return && c.threads[e.Thread] != nil {
			c.Allocated(e.Heap)
		}
	case sched.AtomicExecuted:
		if t := c.threads[e.Thread]; t != nil {
			c.leave(g, t)
		}
	}
}

// Woken implements sched.Controller.
func (c *Controller) Woken(_ *sched.Gate, id arch.ThreadID) {
	if t := c.threadOf(id); t != nil && t.state == away {
		t.state = running
	}
}

// Ask implements sched.Controller.
func (c *Controller) Ask(g *sched.Gate, v *sched.SyncPoint) bool {
	t := c.threadOf(v.Thread)
	if t == nil {
		return true
	}
	t.name = v.Name
	p := Point{Thread: v.Name, Kind: v.Kind}
	switch v.Kind {
	case sched.AtStart:
	case sched.AtEnter:
		p.What = uint64(v.Sync.Op)
	case sched.AtAtomic:
		if v.Private {
			return true
		}
	case sched.AtWake:
		if t.private {
			return true
		}
	case sched.AtCall:
		if isFree(v) {
			t.private = true
			return true
		}
		p.What = v.Call.Number
	case sched.AtReturn:
		c.leave(g, t)
		return true
	case sched.AtAddress:
		return c.arrive(g, t, v)
	case sched.AtInstruction:
		c.cross(g, t, v.PC)
		return true
	default:
		return true
	}
	if c.busy == t || t.loose {
		t.depth++ // of a once routine
		return true
	}
	t.point, t.state = p, asking
	if c.busy == nil && c.isNext(t) {
		c.grant(g, t)
		return true
	}
	c.queue = append(c.queue, t)
	return false
}

// isFree reports whether a system call needs no turn: the C library makes it or not depending on
// timing, and others cannot observe it. Calls that change the address space do: where a mapping is
// depends on those before it.
func isFree(v *sched.SyncPoint) bool {
	n := v.Call.Number
	return v.Private && (!linux.Has(n, linux.AddressSpace) || linux.Has(n, linux.ThreadLocal))
}

// isNext reports whether the point of a thread that asks is the next one of the order.
func (c *Controller) isNext(t *serverThread) bool {
	if len(c.candidate) == 0 {
		return len(c.queue) == 0 || c.queue[0] == t
	}
	return c.isItsTurn(t) && c.awaited(t, t.cuts+1, 0, 0) < 0
}

// isItsTurn reports whether the stored order has the point of a thread next.
func (c *Controller) isItsTurn(t *serverThread) bool {
	turns := c.store.schedules[c.candidate[0]].Turns
	return len(c.order) < len(turns) && turns[len(c.order)] == t.point
}

// grant gives a thread its turn. A thread that starts has it for no time.
func (c *Controller) grant(g *sched.Gate, t *serverThread) {
	c.order = append(c.order, t.point)
	c.clock++
	if isProgress(t.point) {
		c.progress++
	}
	g.Charge(c.costs.Sync)
	c.cut(g, t)
	if t.point.Kind == sched.AtStart {
		t.state = running
		return
	}
	c.busy, c.ran, t.state = t, 0, acting
	if t.point.Kind != sched.AtWake {
		t.depth++
	} else if t.depth == 0 {
		c.busy, t.state = nil, running // a call without a turn
	}
}

// grantNext gives turns to threads that ask, as long as no thread has one.
func (c *Controller) grantNext(g *sched.Gate) {
	for {
		if at := slices.IndexFunc(c.queue, c.isNext); c.busy == nil && at >= 0 {
			t := c.queue[at]
			c.queue = slices.Delete(c.queue, at, at+1)
			c.grant(g, t)
			g.Release(t.id, c.costs.Sync+c.costs.SpinCheck)
			continue
		}
		if !c.isStuck() || c.releaseStalled(g) {
			return
		}
		if c.releaseTurn(g) {
			continue
		}
		if len(c.queue) == 0 || len(c.candidate) == 0 {
			return
		}
		c.leaveOrder()
	}
}

// isStuck reports whether every thread of the server waits, in the kernel or for its turn.
func (c *Controller) isStuck() bool {
	for _, t := range c.threads {
		if t.state == running || t.state == acting {
			return false
		}
	}
	return true
}

// leaveOrder gives up the stored order that is followed, for another one that begins with the turns
// that there were, or for the order of arrival.
func (c *Controller) leaveOrder() {
	c.result.Left++
	n := len(c.order)
	if c.result.Why == "" {
		c.result.Why = c.mismatch()
	}
	c.candidate = slices.DeleteFunc(c.candidate[1:], func(i int) bool {
		o := c.store.schedules[i].Turns
		return len(o) < n || !slices.Equal(o[:n], c.order)
	})
	c.follow()
}

// mismatch describes what the stored order has next, and what the threads ask for.
func (c *Controller) mismatch() string {
	n, next := len(c.order), "its end"
	if turns := c.store.schedules[c.candidate[0]].Turns; n < len(turns) {
		next = turns[n].String()
	}
	text := fmt.Sprintf("after %d turns schedule %d has %s, and there are", n, c.candidate[0], next)
	for _, t := range c.queue {
		text += " (" + t.point.String() + ")"
	}
	return text
}

// leave leaves an operation or call, and gives the turn away if it was the outermost.
func (c *Controller) leave(g *sched.Gate, t *serverThread) {
	if t.depth == 0 {
		return
	}
	if t.depth--; t.depth > 0 {
		return
	}
	if t.loose {
		t.loose = false
		return
	}
	c.passTurn(g, t, running)
}

// passTurn takes the turn from a thread, if it has it.
func (c *Controller) passTurn(g *sched.Gate, t *serverThread, to threadState) {
	if c.busy != t {
		return
	}
	c.busy, t.state = nil, to
	c.cut(g, t)
	c.grantNext(g)
}

// Called implements sched.Controller.
func (c *Controller) Called(g *sched.Gate, id arch.ThreadID, _ uint64) {
	t := c.threads[id]
	switch {
	case t == nil:
	case t.private:
		t.private = false
	default:
		c.leave(g, t)
	}
}

// Blocked implements sched.Controller.
func (c *Controller) Blocked(g *sched.Gate, id arch.ThreadID, _ bool) {
	t := c.threadOf(id)
	switch {
	case t == nil || t.state == asking:
	case c.busy == t:
		c.passTurn(g, t, away)
	default:
		t.state = away
		c.grantNext(g)
	}
}

// Exited implements sched.Controller.
func (c *Controller) Exited(g *sched.Gate, id arch.ThreadID) {
	t := c.threads[id]
	if t == nil {
		return
	}
	c.postUpTo(g, t, math.MaxInt)
	delete(c.threads, id)
	c.queue = slices.DeleteFunc(c.queue, func(o *serverThread) bool { return o == t })
	c.passTurn(g, t, away)
	c.grantNext(g)
}

// patience is how many instructions an operation takes at most that does not wait in a loop.
const patience = 2_000_000

// Stepped implements sched.Controller.
func (c *Controller) Stepped(g *sched.Gate, id arch.ThreadID, instructions uint64, _ arch.Cycles) {
	if c.busy != nil && c.busy.id == id {
		if c.ran += instructions; c.ran > patience {
			c.result.Spun++
			c.busy.loose = true
			c.passTurn(g, c.busy, running)
		}
	}
	c.grantNext(g)
}

// Stuck implements sched.Controller.
func (c *Controller) Stuck(g *sched.Gate) { c.grantNext(g) }
