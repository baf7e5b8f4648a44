package windows

import (
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/region"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/windows"
)

var errRaces = errs.Define("windows-without-memory-log",
	"races cannot be looked for in windows",
	"The engine does not log the accesses to memory; the rest of the sentence is its own.",
	"Run without --window-hybrid: the windows then have schedules without constraints on races.")

// Driver is the windows of one run: a machine.Hook, and the windows.World of its Engine.
type Driver struct {
	machine.NoHook
	m          *machine.Machine
	inMachine  *machine.Service
	rules      Rules
	options    windows.Options
	mhz        uint64
	seed       uint64
	cores      int
	engine     *windows.Engine
	controller *windows.Controller
	store      *windows.Store
	gate       *sock.Gate
	calls      *region.Watcher // nil unless a function or marks bound tasks, or declared state is to be named
	known      map[uint64]*connection
	list       []*connection
	shown      []*windows.Connection // of list
	finished   []windows.Window
	undigested bool
	atomics    bool
	started    bool
	races      *raceFinder // nil: none are looked for
	hybrid     bool
	conditions bool   // preconditions on the bytes of requests are computed
	registers  uint64 // of the present window
	hidden     hiddenState
	preconditions
	found int // races
	// unexamined are the windows with too many accesses to look for races in them.
	unexamined int
	// before are the connections with input that came before the signals that are held; nil: none are.
	before    map[uint64]bool
	addresses []arch.Addr // at which the controller is asked
}

// connection is a connection as the gate and as the Engine have it.
type connection struct {
	gated *sock.Gated
	shown windows.Connection
}

// New makes the windows of a run with a configuration. Orders of the store are followed where they
// fit, and new ones are added. The configuration is changed: functions are looked up at the start of
// programs, since otherwise the first thread that calls one looks it up.
func New(c *machine.Config, p Parameters, store *windows.Store) *Driver {
	c.Env = append(slices.Clone(c.Env), "LD_BIND_NOW=1")
	d := &Driver{
		rules: p.Rules, mhz: uint64(c.Costs.MHz), known: map[uint64]*connection{}, store: store, seed: c.Seed, cores: c.Cores,
		undigested: p.NoStates, atomics: p.Atomics, hybrid: p.Hybrid, conditions: p.Preconditions,
	}
	if store.Seed != 0 || store.Cores != 0 {
		d.seed, d.cores = store.Seed, store.Cores
	} else {
		store.Seed, store.Cores = d.seed, d.cores
	}
	timeout := p.timeout()
	d.options = windows.Options{
		Size: p.Size, Timeout: d.Cycles(timeout.Nanoseconds()), TimeoutNS: timeout.Nanoseconds(), Bubble: p.Bubble,
	}
	costs := sched.Costs{Sync: arch.Cycles(c.Costs.Sync), SpinCheck: arch.Cycles(c.Costs.SpinCheck)}
	d.controller = windows.NewController(store, costs, d, p.Atomics, p.reuse())
	if p.Preconditions {
		d.controller.Allocated = d.noteAllocation
	}
	d.engine = windows.New(d.options, d)
	d.inMachine = &machine.Service{Programs: p.Rules.Programs, Controller: d.controller, Seed: d.seed, Cores: d.cores, Next: d.next}
	spec, bounded := region.Parse(p.Rules.Function)
	if !bounded {
		spec.Kind = region.Nowhere
	}
	if bounded || p.Preconditions {
		d.calls = region.Watch(spec)
	}
	if p.Preconditions {
		d.calls.OnState = d.noteDeclaration
	}
	return d
}

// Options are those that give a machine the windows.
func (d *Driver) Options() []machine.Option {
	list := []machine.Option{
		machine.WithHook(d),
		machine.WithService(d.inMachine),
	}
	if d.atomics {
		list = append(list, machine.WithAtomics())
	}
	return list
}

// Prepare implements machine.Hook.
func (d *Driver) Prepare(m *machine.Machine) error {
	d.m = m
	if d.calls != nil {
		d.calls.Attach(m.CPU(), m.Instructions)
		m.AddRecording(d.calls)
	}
	if !d.hybrid && !d.conditions {
		return nil
	}
	if err := m.CPU().LogMemory(memlog.Filter{}); err != nil {
		return errRaces.Wrap(err)
	}
	d.races = newRaceFinder(func(id arch.ThreadID) *kernel.Task { return d.m.Kernel().Task(id) })
	if !d.hybrid {
		d.races.most = 0
	}
	d.controller.Cut = d.races.beginSegment
	d.races.forked = d.hidden.names.noteFork
	m.AddRecording(d.races)
	return nil
}

// EngineStarts implements machine.Hook: calls of functions begin and end tasks.
func (d *Driver) EngineStarts(t *kernel.Task) machine.Reaction {
	if d.calls != nil {
		d.calls.Arrive(t, 0)
	}
	return machine.Proceed
}

// EngineStopped implements machine.Hook.
func (d *Driver) EngineStopped(t *kernel.Task, s arch.Stop) machine.Reaction {
	if d.calls != nil && s.Reason == arch.StopBreakpoint {
		d.calls.Arrive(t, s.Instructions)
	}
	return machine.Proceed
}

// noteAllocation keeps which memory the server has allocated, and where.
func (d *Driver) noteAllocation(e *event.Heap) {
	if t := d.m.Kernel().Task(e.Thread); t != nil {
		d.hidden.names.noteAllocation(t.Process().PID(), e)
	}
}

// noteDeclaration keeps which state the server has declared.
func (d *Driver) noteDeclaration(t *kernel.Task, at arch.Addr, size uint64, name string) {
	if t.InService() {
		d.hidden.names.noteDeclaration(t.Process().PID(), declaredState{at, size, name})
	}
}

// service returns the server; nil: it was not started yet.
func (d *Driver) service() *kernel.Service { return d.m.Kernel().Service() }

// BeforeDecision implements machine.Hook.
func (d *Driver) BeforeDecision() {
	if d.gate == nil {
		d.gate = d.m.Kernel().Network().OpenGate()
	}
	switch {
	case d.service() == nil:
		return
	case !d.started:
		d.started = true
		d.controller.StartAlone()
		d.service().HoldSignals(true)
	}
	d.noteSignals()
	d.engine.Step()
	d.inMachine.Acts = d.engine.Acts()
	if d.engine.State() == windows.Gathering {
		d.holdSignals()
	}
}

// noteSignals notes which input of clients waits for a window when a signal has been sent to the server: the signal waits for
// it.
func (d *Driver) noteSignals() {
	if !d.service().HasHeldSignals() || d.before != nil {
		return
	}
	d.before = map[uint64]bool{}
	for _, c := range d.list {
		if !c.gated.Held().IsEmpty() {
			d.before[c.shown.Number] = true
		}
	}
}

// holdSignals has signals wait, between windows, while input waits that came before them: if none was sent yet, any input.
func (d *Driver) holdSignals() {
	waits := func(c *connection) bool {
		return !c.gated.Held().IsEmpty() && (d.before == nil || d.before[c.shown.Number])
	}
	hold := slices.ContainsFunc(d.list, waits)
	if !hold {
		d.before = nil
	}
	d.service().HoldSignals(hold)
}

// next is when the windows act if nothing happens before.
func (d *Driver) next() (arch.Cycles, bool) {
	if !d.started {
		return 0, false
	}
	return d.engine.Next()
}

// InService implements windows.Members.
func (d *Driver) InService(t arch.ThreadID) bool {
	if d.m == nil {
		return false
	}
	task := d.m.Kernel().Task(t)
	return task != nil && task.InService()
}

// IsBusy implements windows.World, and so do the methods below.
func (d *Driver) IsBusy() bool    { return d.service().IsBusy() }
func (d *Driver) IsSettled() bool { return d.m.Cluster().Runnable() == 0 }

// Now is the time of the core that has advanced the most: no core will execute anything earlier
// than the ones waiting for input.
func (d *Driver) Now() arch.Cycles { return d.Cycles(d.m.Kernel().Now()) }

// Pass lets idle time pass.
func (d *Driver) Pass(to arch.Cycles) { d.m.PassTo(to) }

// NextOutside is the earliest timer outside of the server. Clients on the host may act at any time.
func (d *Driver) NextOutside() (arch.Cycles, bool) {
	if !d.m.MayTimePass() {
		return d.Now(), true
	}
	at, found := d.m.Kernel().NextTimer()
	return d.Cycles(at), found
}

// ServerNow is the server's clock.
func (d *Driver) ServerNow() int64 { return d.service().Now() }

// NextTimer is the server's earliest timer.
func (d *Driver) NextTimer() (int64, bool) { return d.service().NextTimer() }

// DueTimers names the server's timers that are due.
func (d *Driver) DueTimers(now int64) []uint64 { return d.service().DueTimers(now) }

// FireTimers moves the server's clock.
func (d *Driver) FireTimers(now int64) { d.service().FireTimers(now) }

// Cycles converts nanoseconds.
func (d *Driver) Cycles(ns int64) arch.Cycles {
	return arch.Cycles(uint64(ns)/1000*d.mhz + uint64(ns)%1000*d.mhz/1000)
}

// Changes counts the inputs of the gate.
func (d *Driver) Changes() uint64 { return d.gate.Changes() }

// Connections lists the connections.
func (d *Driver) Connections() []*windows.Connection {
	for _, g := range slices.Clone(d.gate.Connections()) {
		if d.known[g.Number] != nil {
			continue
		}
		if len(d.rules.Ports) > 0 && !slices.Contains(d.rules.Ports, g.Port) {
			if !g.Held().IsEmpty() {
				g.Admit() // it has no part in windows
			}
			continue
		}
		c := &connection{gated: g, shown: windows.Connection{
			Number: g.Number, Client: g.Client, Ordinal: g.Ordinal, Begin: d.rules.BeginOfTasks(), End: d.rules.EndOfTasks(),
		}}
		d.known[g.Number] = c
		d.list = append(d.list, c)
		d.shown = append(d.shown, &c.shown)
	}
	for _, c := range d.list {
		g, s, held := c.gated, &c.shown, c.gated.Held()
		s.Closed, s.Read, s.Written = g.Closed, g.Read, g.Written
		s.HoldsConnection, s.HeldBytes, s.HoldsEnd = held.Connection, held.Bytes, held.End || held.Reset
		s.Inputs, s.Outputs = g.Digests()
	}
	return d.shown
}

// Admit lets held input reach the server.
func (d *Driver) Admit(c *windows.Connection) {
	delete(d.before, c.Number)
	d.known[c.Number].gated.Admit()
}

// OpenCalls is the number of open tasks that functions or marks bound.
func (d *Driver) OpenCalls() int {
	if d.calls == nil {
		return 0
	}
	return d.calls.Depth()
}

// LogicalClock counts turns.
func (d *Driver) LogicalClock() uint64 { return d.controller.Clock() }

// Progress counts system calls of the server.
func (d *Driver) Progress() uint64 { return d.controller.Progress() }

// Beginning begins a window: its key is the shape of its input and where the server's threads wait.
func (d *Driver) Beginning(shape, input uint64, of []*windows.Connection) {
	h := xxh3.New()
	putWords(h, shape)
	waiting := map[arch.ThreadID]uint64{}
	for _, p := range d.service().Processes() {
		for _, t := range p.Threads() {
			number, blocked := t.BlockedIn()
			waiting[t.ID()] = number
			putWords(h, uint64(t.ID()), number)
			if !blocked {
				putWords(h, 1)
			}
		}
	}
	d.registers = d.registersDigest()
	a := windows.Admission{Key: h.Sum64(), Exact: input, Registers: d.registers, Peek: d.peek()}
	var given []givenBytes
	for _, c := range of {
		g := d.known[c.Number].gated
		b := slices.Clone(g.HeldBytes())
		a.Bytes = append(a.Bytes, b)
		given = append(given, givenBytes{connection: g, bytes: b, from: g.Read + uint64(g.Unread()), begun: g.Read})
	}
	d.controller.Begin(a)
	if list := d.controller.Addresses(); !slices.Equal(list, d.addresses) {
		d.addresses = list
		d.m.SetControlAddresses(list)
	}
	if d.races != nil {
		d.races.beginWindow()
		if d.conditions && !d.controller.Follows() && hasBytes(given) {
			d.noteObstacles(&a)
			d.races.requests = followRequests(d.races.recorder, d.gate, given, waiting, d.races)
		}
	}
	d.service().HoldSignals(true)
}

// registersDigest is a hash of where the server's threads wait. Their other registers are hidden state.
func (d *Driver) registersDigest() uint64 {
	h := xxh3.New()
	var r arch.Regs
	var fp [arch.FPSize]byte
	for _, p := range d.service().Processes() {
		for _, t := range p.Threads() {
			t.Registers(&r, &fp)
			putWords(h, uint64(t.ID()), r.RIP, r.FSBase, r.GPR[arch.RSP])
		}
	}
	return h.Sum64()
}

// peek returns a function that reads the server's memory at the begin of a window.
func (d *Driver) peek() func(int32, arch.Addr, []byte) int {
	processes := map[int32]*kernel.Process{}
	for _, p := range d.service().Processes() {
		processes[p.PID()] = p
	}
	var registers registerReader
	return func(process int32, at arch.Addr, b []byte) int {
		if _, _, ok := registerAt(at); ok {
			if registers == nil {
				registers = newRegisterReader(d.service().Processes())
			}
			return registers.peek(at, b)
		}
		p := processes[process]
		if p == nil || p.Space() == nil {
			return 0
		}
		return p.Space().Peek(at, b)
	}
}

func hasBytes(given []givenBytes) bool {
	return slices.ContainsFunc(given, func(g givenBytes) bool { return len(g.bytes) > 0 })
}

// Force lets other threads and signals through.
func (d *Driver) Force() {
	d.service().HoldSignals(false)
	d.controller.AdmitOthers(d.m.Gate())
	d.m.ApplyVerdict()
}

// Closing completes the description of a window that has ended, and forgets the connections that
// the server has closed.
func (d *Driver) Closing(w *windows.Window) {
	var constraints []windows.Constraint
	var precondition windows.Precondition
	if d.races != nil && d.hybrid {
		var n int
		constraints, n = d.races.constraints()
		d.found += n
		if d.races.isOverfull() {
			d.unexamined++
		}
	}
	if d.races != nil && d.races.requests != nil {
		q := d.races.requests
		d.races.requests = nil
		p, known := q.precondition()
		if known = known && w.Rounds == 0 && w.Timers == 0 && w.Forced == 0 && d.options.Bubble == 0; known { // nothing was given later
			p.Registers = d.registers
			precondition = p
		}
		d.noteFollowed(q, &precondition)
	}
	w.Order = d.controller.End(constraints, precondition)
	if !d.undigested {
		w.State = d.stateDigest()
	}
	d.finished = append(d.finished, *w)
	d.noteSignals()
	d.holdSignals()
	if w.Cause == windows.Start {
		d.controller.AdmitOthers(d.m.Gate())
		d.m.ApplyVerdict()
	}
	keep := func(c *connection) bool { return !c.gated.Closed }
	for _, c := range d.list {
		if !keep(c) {
			delete(d.known, c.shown.Number)
		}
	}
	d.list = slices.DeleteFunc(d.list, func(c *connection) bool { return !keep(c) })
	d.shown = d.shown[:0]
	for _, c := range d.list {
		d.shown = append(d.shown, &c.shown)
	}
}

// stateDigest is a digest of the server: the ids of its processes and threads, the registers of
// each thread and the system call that it waits in, and the bytes of its memory.
func (d *Driver) stateDigest() string {
	h := xxh3.New()
	var r arch.Regs
	var fp [arch.FPSize]byte
	for _, p := range d.service().Processes() {
		sum := p.MemoryDigest()
		putWords(h, uint64(p.PID()))
		_, _ = h.Write(sum[:])
		for _, t := range p.Threads() {
			t.Registers(&r, &fp)
			number, _ := t.BlockedIn()
			putWords(h, uint64(t.ID()), number, r.RIP, r.FSBase)
			putWords(h, r.GPR[:]...)
			_, _ = h.Write(fp[:])
		}
	}
	return windows.HexText(h.Sum64())
}

func putWords(h *xxh3.Hasher, list ...uint64) {
	var b [8]byte
	for _, w := range list {
		binary.LittleEndian.PutUint64(b[:], w)
		_, _ = h.Write(b[:])
	}
}
