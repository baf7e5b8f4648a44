package windows

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Options are the parameters of windows.
type Options struct {
	// Size is the number of requests of a full window, at least 1.
	Size int
	// Timeout is after how many cycles a window that is not full begins, and TimeoutNS the same in
	// nanoseconds.
	Timeout   arch.Cycles
	TimeoutNS int64
	// Bubble, if it is not 0, replaces windows by time bubbling: input is also admitted within a
	// window, each time that the server's logical clock has advanced by this number.
	Bubble uint64
}

// Tick is the time in nanoseconds by which the server's clock advances at the begin of a window,
// and IdleStep the unit, rounded to the nearest, in which it advances for the time that it has
// waited for the window: what the noise of the machine adds to that time is far less.
const (
	Tick     = 1_000_000
	IdleStep = 100_000_000
)

// Begin says which event begins a task of a connection, and End which one ends it.
type (
	Begin uint8
	End   uint8
)

const (
	// AtRead: the server reads what a client has sent while no task of the connection is open.
	AtRead Begin = iota
	// AtAccept: the same, and the server accepts the connection.
	AtAccept
)

const (
	// AtReply: the server has written to the connection and waits.
	AtReply End = iota
	// AtClose: the server has closed the connection.
	AtClose
)

// Connection is a client's connection as the World shows it to the Engine.
type Connection struct {
	// Number identifies the connection; Client and Ordinal do as well, and do not depend on how
	// fast clients run.
	Number  uint64
	Client  int32
	Ordinal uint64
	Begin   Begin
	End     End
	Closed  bool // by the server
	// Read and Written count bytes of the server, Inputs and Outputs are hashes of those that it
	// was sent and has sent.
	Read, Written   uint64
	Inputs, Outputs uint64
	// The input that is held: that the connection was made, bytes, and that the client has sent
	// all or has reset the connection.
	HoldsConnection bool
	HeldBytes       int
	HoldsEnd        bool

	task
}

// task is the Engine's part of a Connection.
type task struct {
	since   arch.Cycles // when the input that is held arrived
	epoch   int         // windows that had begun then
	waits   bool        // input is held
	open    bool        // a task of the current window
	carried bool        // a task of an earlier one
	arrived arch.Cycles // when its request arrived
	written uint64      // bytes written when the task began
	seen    uint64      // bytes written at the last look
	replied arch.Cycles // when these were first seen
}

// compareClients orders connections.
func compareClients(a, b *Connection) int {
	return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Ordinal, b.Ordinal))
}

// World is server and clients as the Engine sees them.
type World interface {
	// IsBusy reports whether a thread of the server can run, and IsSettled whether no thread of the
	// machine can.
	IsBusy() bool
	IsSettled() bool
	// Now is the virtual time. Pass lets idle time pass, up to a later time.
	Now() arch.Cycles
	Pass(to arch.Cycles)
	// NextOutside is the earliest timer outside of the server, or the present if something outside may act before time passes.
	NextOutside() (arch.Cycles, bool)
	// ServerNow is the server's clock in nanoseconds, NextTimer its earliest timer. FireTimers moves
	// the clock forward and fires the timers that are due. Cycles converts a duration.
	ServerNow() int64
	NextTimer() (int64, bool)
	FireTimers(now int64)
	// DueTimers lists numbers that name the server's timers that are due at a time of its clock.
	DueTimers(now int64) []uint64
	Cycles(ns int64) arch.Cycles
	// Changes is a number that changes with the connections; Connections lists them by number,
	// connections closed since the last Closing included.
	Changes() uint64
	Connections() []*Connection
	// Admit lets the input that is held of a connection reach the server.
	Admit(c *Connection)
	// OpenCalls is the number of open tasks that functions or marks of the program bound.
	OpenCalls() int
	// LogicalClock counts the server's synchronization operations and system calls.
	LogicalClock() uint64
	// Progress is a number that changes while the server works, and does not while its threads wait in loops.
	Progress() uint64
	// Beginning is called before a window begins, with hashes of the input that it will be given, without and with
	// its content, and the connections that have it; Closing when it has ended. Closing fills in the rest of the window's fields.
	Beginning(shape, input uint64, of []*Connection)
	// Force ends what holds other threads and signals back until the end of the window.
	Force()
	Closing(w *Window)
}

// State is a state of the Engine.
type State uint8

const (
	// Starting: the server has not quiesced yet.
	Starting State = iota
	// Running: a window.
	Running
	// Gathering: between two windows; input is held back until the next one begins.
	Gathering
)

func (s State) String() string { return [...]string{"starting", "running", "gathering"}[s] }

// Cause is why a window began.
type Cause string

const (
	// Start is the cause of the window from the server's first instruction until it quiesces.
	Start Cause = "start"
	// Full windows have Size requests; Partial ones begin because the timeout has passed.
	Full    Cause = "full"
	Partial Cause = "partial"
	// Timer windows begin because a timer of the server is due.
	Timer Cause = "timer"
	// Other windows begin because something else has woken the server: a signal, a pipe, a child.
	Other Cause = "other"
)

// Window is a window that has ended.
type Window struct {
	Number   int   `json:"number"`
	Cause    Cause `json:"cause"`
	Requests int   `json:"requests"`
	// Rounds counts how often further parts of requests were admitted within the window, and Timers how often the server's
	// timers fired while all of its threads waited.
	Rounds int `json:"rounds,omitempty"`
	Timers int `json:"timers,omitempty"`
	// Forced counts how often the window was forced to continue, because the server ran for long without
	// waiting.
	Forced int `json:"forced,omitempty"`
	// Carried counts the tasks that were open at the end.
	Carried int `json:"carried,omitempty"`
	// Begin and End are virtual times in cycles; Waited is the sum of the times that its requests
	// have waited for the begin.
	Begin  arch.Cycles `json:"begin"`
	End    arch.Cycles `json:"end"`
	Waited arch.Cycles `json:"waited"`
	// Input is a hash of what was admitted, Output of what the connections of the window were sent,
	// and State of the server when it has quiesced.
	Input  string `json:"input"`
	Output string `json:"output"`
	State  string `json:"state"`
	Order
}

// Engine is the state machine of windows.
type Engine struct {
	options Options
	world   World
	state   State
	windows int // that have begun
	changes uint64
	quiet   arch.Cycles // since when no thread of the server can run
	isQuiet bool
	closed  arch.Cycles // when the last window ended
	// admitted is when the last window that began with input, or the start, ended.
	admitted arch.Cycles
	limit    int64 // of the server's clock in this window
	current  Window
	touched  map[uint64]bool // connections of the current window
	forced   arch.Cycles     // when the window began, or was forced to continue
	worked   arch.Cycles     // when the server's progress was seen last
	progress uint64          // then
	clock    uint64          // the logical clock when input was admitted last
	response []arch.Cycles
	acts     uint64
}

// New makes the Engine of a server that is about to start.
func New(o Options, w World) *Engine {
	return &Engine{options: o, world: w, touched: map[uint64]bool{}, current: Window{Cause: Start}}
}

// State returns the state.
func (e *Engine) State() State { return e.state }

// Responses lists the time from the arrival of each request to the last byte of its reply.
func (e *Engine) Responses() []arch.Cycles { return e.response }

// Acts counts the windows that have begun and ended, and what was admitted and fired within them.
func (e *Engine) Acts() uint64 { return e.acts }

// Next is the time at which the engine will act if nothing happens before, when no thread of the server can run; false: it will
// not. It may be past.
func (e *Engine) Next() (at arch.Cycles, found bool) {
	if e.state != Gathering {
		return e.quiet + e.options.Timeout, true
	}
	_, at, found = e.due(e.waiting())
	return at, found
}

// Step acts before a decision of the machine: it ends the window if that is over, and begins the
// next one if that is due.
func (e *Engine) Step() {
	// A window may have nothing for the server to do.
	for n := 0; n < maxIdleWindows && e.step() && !e.world.IsBusy(); n++ {
	}
}

// maxIdleWindows is how many windows in which the server does nothing may follow each other while no
// thread of the machine can run: timers that expire and wake no thread never end a deadlock.
const maxIdleWindows = 1000

// step reports whether a window has begun.
func (e *Engine) step() bool {
	e.observe()
	if e.world.IsBusy() {
		e.isQuiet = false
		switch {
		case e.state == Gathering:
			e.begin(Other, nil)
		case e.isOverlong():
			e.force()
		case e.options.Bubble > 0 && e.state == Running && e.world.LogicalClock()-e.clock >= e.options.Bubble:
			e.endTasks()
			e.admitDuringWindow(func(*Connection) bool { return true })
			e.clock = e.world.LogicalClock()
		}
		return false
	}
	if !e.isQuiet {
		e.isQuiet, e.quiet = true, e.world.Now()
	}
	if e.state != Gathering {
		if !e.mayEnd() {
			return false
		}
		e.end()
		if e.world.IsBusy() { // a signal has waited for the end
			e.begin(Other, nil)
			return false
		}
	}
	return e.gather()
}

// overlong is after how many timeouts without progress a window is forced to continue, and endless after how many in any case.
const (
	overlong = 20
	endless  = 100 * overlong
)

// isOverlong reports whether the server has run for so long without waiting that the window is to be forced.
func (e *Engine) isOverlong() bool {
	now := e.world.Now()
	if p := e.world.Progress(); p != e.progress {
		e.progress, e.worked = p, now
	}
	return now >= max(e.forced, e.worked)+overlong*e.options.Timeout || now >= e.forced+endless*e.options.Timeout
}

// force has a window continue in which the server has run for long without waiting, as a server does
// whose threads wait in loops for others: its clock advances as much as the virtual time, and all
// input that is held is admitted. What follows in the window depends on timing.
func (e *Engine) force() {
	e.current.Forced++
	w := e.world
	w.FireTimers(w.ServerNow() + overlong*e.options.TimeoutNS)
	e.endTasks()
	e.admitDuringWindow(func(*Connection) bool { return true })
	w.Force()
	e.forced = w.Now()
}

// Finish ends the window at the end of the run.
func (e *Engine) Finish() {
	if e.state != Gathering {
		e.observe()
		e.end()
	}
}

// observe notes when input arrives and when tasks end.
func (e *Engine) observe() {
	changes := e.world.Changes()
	if changes == e.changes {
		return
	}
	e.changes = changes
	now := e.world.Now()
	for _, c := range e.world.Connections() {
		if waits := c.HoldsConnection || c.HeldBytes > 0 || c.HoldsEnd; waits != c.waits {
			c.waits = waits
			if waits {
				c.since, c.epoch = now, e.windows
			}
		}
		if c.Written != c.seen {
			c.seen, c.replied = c.Written, now
			e.touched[c.Number] = true
		}
	}
}

// isRequest reports whether the held input of a connection begins a request.
func (c *Connection) isRequest() bool {
	return !c.open && !c.carried && (c.HeldBytes > 0 || c.HoldsConnection && c.Begin == AtAccept)
}

// endTasks ends the tasks of connections that are over, and returns how many tasks of the window are
// open.
func (e *Engine) endTasks() int {
	open := e.world.OpenCalls()
	for _, c := range e.world.Connections() {
		if !c.open && !c.carried {
			continue
		}
		over := c.Closed || c.End == AtReply && c.Written > c.written
		switch {
		case over:
			c.open, c.carried = false, false
			if c.Written == c.written {
				c.replied = e.world.Now() // closed without a reply
			}
			e.response = append(e.response, c.replied-min(c.replied, c.arrived))
		case c.open:
			open++
		}
	}
	return open
}

// mayEnd reports whether the window is over. If tasks are open, it admits what continues them or
// fires the server's timers, as long as the timeout allows.
func (e *Engine) mayEnd() bool {
	if e.endTasks() == 0 {
		return true
	}
	w := e.world
	settled := w.IsSettled()
	late := e.quiet + e.options.Timeout
	if !settled && w.Now() < late {
		return false
	}
	if e.admitDuringWindow(func(c *Connection) bool { return c.open }) {
		e.current.Rounds++
		e.acts++
		e.isQuiet = false
		return false
	}
	if at, found := w.NextTimer(); found && at <= e.limit {
		w.FireTimers(at)
		e.current.Timers++
		e.acts++
		e.isQuiet = false
		return false
	}
	at, found := w.NextOutside()
	return !settled || !found || at > late
}

// admitDuringWindow admits held input of some connections, and reports whether there was any.
func (e *Engine) admitDuringWindow(of func(*Connection) bool) bool {
	found := false
	for _, c := range e.waiting() {
		if of(c) {
			if c.isRequest() {
				e.openTask(c)
			}
			e.admit(c)
			found = true
		}
	}
	return found
}

// waiting lists the connections with held input, in the order in which windows take them.
func (e *Engine) waiting() []*Connection {
	var list []*Connection
	for _, c := range e.world.Connections() {
		if c.waits {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b *Connection) int {
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), compareClients(a, b))
	})
	return list
}

// timeout is when the input of a list has waited for the timeout.
func (e *Engine) timeout(list []*Connection) (at arch.Cycles) {
	for i, c := range list {
		if due := max(c.since, e.admitted) + e.options.Timeout; i == 0 || due < at {
			at = due
		}
	}
	return at
}

// due is when the next window begins if nothing else is to come, and its cause; false: never.
func (e *Engine) due(list []*Connection) (cause Cause, at arch.Cycles, found bool) {
	if len(list) > 0 {
		cause, at, found = Partial, e.timeout(list), true
	}
	if deadline, ticks := e.world.NextTimer(); ticks {
		if timer := e.closed + e.world.Cycles(max(0, deadline-e.world.ServerNow())); !found || timer < at {
			cause, at, found = Timer, timer, true
		}
	}
	return cause, at, found
}

// gather begins the next window if it is due, and reports whether it did. If no thread of the machine
// can run, idle time passes up to then.
func (e *Engine) gather() bool {
	w, now := e.world, e.world.Now()
	list := e.waiting()
	requests := 0
	for _, c := range list {
		if c.isRequest() {
			requests++
		}
	}
	settled := w.IsSettled()
	if requests >= e.options.Size && settled {
		e.begin(Full, list)
		return true
	}
	cause, at, found := e.due(list)
	switch {
	case len(list) > 0 && now >= e.timeout(list):
		e.begin(Partial, list)
		return true
	case !settled || !found:
		return false
	}
	if outside, found := w.NextOutside(); found && outside < at {
		return false
	}
	w.Pass(at)
	if cause == Timer {
		list = nil
	}
	e.begin(cause, list)
	return true
}

// begin begins a window with the input of a list: all of it but requests beyond the size.
func (e *Engine) begin(cause Cause, list []*Connection) {
	w, now := e.world, e.world.Now()
	e.windows++
	e.acts++
	e.current = Window{Number: e.windows, Cause: cause, Begin: now}
	clear(e.touched)
	var chosen []*Connection
	for _, c := range list {
		if c.isRequest() {
			if e.current.Requests == e.options.Size && e.options.Bubble == 0 {
				continue
			}
			e.openTask(c)
		}
		chosen = append(chosen, c)
	}
	if e.current.Requests >= e.options.Size && cause == Partial {
		e.current.Cause = Full
	}
	server := w.ServerNow() + Tick
	if idle := w.Cycles(IdleStep); idle > 0 && now > e.closed {
		server += int64((now-e.closed+idle/2)/idle) * IdleStep
	}
	if deadline, found := w.NextTimer(); found && cause == Timer {
		server = max(w.ServerNow(), deadline)
	}
	// A connection that is continued is known by its place among the server's: it may be any one of its client's.
	open := slices.DeleteFunc(slices.Clone(w.Connections()), func(c *Connection) bool { return c.HoldsConnection || c.Closed })
	slices.SortFunc(open, compareClients)
	h, shape := xxh3.New(), xxh3.New()
	hashWords(h, uint64(len(cause)))
	hashWords(shape, uint64(len(cause)))
	for _, c := range chosen {
		hashWords(h, uint64(c.Client), c.Ordinal, c.Inputs, uint64(c.HeldBytes), flags(c.HoldsConnection, c.HoldsEnd))
		hashWords(shape, uint64(c.HeldBytes), flags(c.HoldsConnection, c.HoldsEnd))
		if !c.HoldsConnection {
			hashWords(shape, uint64(slices.Index(open, c)))
		}
	}
	due := w.DueTimers(server)
	hashWords(h, due...)
	hashWords(shape, due...)
	sum := h.Sum64()
	e.current.Input = HexText(sum)
	w.Beginning(shape.Sum64(), sum, chosen)
	e.limit = server + e.options.TimeoutNS
	w.FireTimers(server)
	for _, c := range chosen {
		e.admit(c)
	}
	e.state, e.isQuiet, e.clock, e.forced = Running, false, w.LogicalClock(), now
}

// openTask begins the task of a request that is about to be admitted.
func (e *Engine) openTask(c *Connection) {
	now := e.world.Now()
	e.current.Requests++
	e.current.Waited += now - min(now, c.since)
	c.open, c.written = true, c.Written
	c.arrived = c.since
}

func (e *Engine) admit(c *Connection) {
	e.touched[c.Number] = true
	c.waits = false
	e.world.Admit(c)
}

// end ends the window.
func (e *Engine) end() {
	e.acts++
	e.endTasks()
	e.current.Carried = e.world.OpenCalls()
	h := xxh3.New()
	for _, c := range slices.SortedFunc(slices.Values(e.world.Connections()), compareClients) {
		if c.open || c.carried {
			c.open, c.carried = false, true
			e.current.Carried++
		}
		if e.touched[c.Number] {
			hashWords(h, uint64(c.Client), c.Ordinal, c.Outputs, flags(c.Closed))
		}
	}
	e.closed = e.world.Now()
	if e.current.Cause != Timer && e.current.Cause != Other { // windows without input do not make it wait
		e.admitted = e.closed
	}
	e.current.End, e.current.Output = e.closed, HexText(h.Sum64())
	e.state = Gathering
	e.world.Closing(&e.current)
}

func flags(list ...bool) uint64 {
	n := uint64(0)
	for i, b := range list {
		if b {
			n |= 1 << i
		}
	}
	return n
}

func hashWords(h *xxh3.Hasher, list ...uint64) {
	var b [8]byte
	for _, w := range list {
		binary.LittleEndian.PutUint64(b[:], w)
		_, _ = h.Write(b[:])
	}
}

const hexDigits = "0123456789abcdef"

// HexText writes a hash as 16 digits.
func HexText(n uint64) string {
	var b [16]byte
	for i := range b {
		b[i] = hexDigits[n>>(60-4*i)&15]
	}
	return string(b[:])
}
