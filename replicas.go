package heddle

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/sched"
)

var errReplicas = errs.Define("run-cannot-have-replicas",
	"a run with replicas cannot have {option}",
	"Replicas are executed from states of the same run, again and again: what records, replays or controls one run has no place there, and stores that wait in buffers have no place in an epoch's end.",
	"Leave the option out.")

// Replicas executes a run epoch by epoch, and each epoch as often as wanted:
// thread-parallel, which makes its partial order of synchronization operations and
// system calls, and from the same state under that order by priorities of
// threads. (Frost, sections 3.1 and 3.2.) What the guest writes to standard output
// and standard error stays with the replica.
//
// All replicas are executed on one machine, one after the other. It is for one
// goroutine, and must be closed.
type Replicas struct {
	m      *Machine
	shared *sched.Shared
	tap    *tap
	// objects are the synchronization objects that were used so far.
	objects map[event.ObjectID]object
}

// Checkpoint is a state between two epochs. It must be released.
type Checkpoint struct {
	snapshot *Snapshot
	threads  []sched.Standing
	floors   map[event.ThreadID]floor
	byOrder  bool   // it is that of an epoch-parallel replica
	ended    bool   // the run is over
	outcome  string // how, if it is
	idle     uint64 // effort without progress so far
}

// Done tells that the run is over.
func (c *Checkpoint) Done() bool { return c.ended }

// Release gives up the state.
func (c *Checkpoint) Release() { c.snapshot.Release() }

// NewReplicas builds the machine.
func NewReplicas(c Config) (*Replicas, error) {
	if err := c.allowsReplicas(); err != nil {
		return nil, err
	}
	c.CustomSync = append(append([]syncops.Custom(nil), c.CustomSync...), libraryFunctions()...)
	c.Control = sched.Control{Policy: sched.FCFS} // its place is taken in each epoch
	c.atomics = true
	m, err := New(c)
	if err != nil {
		return nil, err
	}
	r := &Replicas{m: m, shared: sharedFunctions(), tap: &tap{m: m}, objects: map[event.ObjectID]object{}}
	m.state.clock.oneCore = true
	m.state.recording.rec.Add(r.tap)
	m.host.stdout, m.host.stderr = stream{r.tap, 1}, stream{r.tap, 2}
	return r, nil
}

// allowsReplicas finds what a run with replicas cannot have.
func (c *Config) allowsReplicas() error {
	for _, x := range []struct {
		bad    bool
		option string
	}{
		{c.Record != nil, "a recording"},
		{c.Replay != nil, "a replay"},
		{c.Enforce != nil, "a schedule"},
		{c.Control.Policy != "", "a controller"},
		{c.Strace != nil, "a trace of system calls"},
		{c.EventLog != nil, "a log of events"},
		{c.Memory.MemoryModel() != memmodel.SC, "a memory model other than sc"},
	} {
		if x.bad {
			return errReplicas.New(x.option)
		}
	}
	return nil
}

// Close gives everything back but checkpoints.
func (r *Replicas) Close() { r.m.Close() }

// Start is the state before the first instruction.
func (r *Replicas) Start() *Checkpoint { return &Checkpoint{snapshot: r.m.Snapshot()} }

// EpochOptions bound an epoch.
type EpochOptions struct {
	// Length is when the epoch is to end, in milliseconds of virtual time.
	Length float64
	// AtOutput has it end when the guest writes to standard output or error.
	AtOutput bool
	// Hang is how many instructions a replica may run without a synchronization
	// operation or system call until it counts as hanging.
	Hang uint64
	// Seed, if it is not 0, makes the scheduling policy anew. Priority, if it is not
	// empty, has the thread that comes first in it run on one core until it cannot
	// go on, as in an epoch-parallel replica, but under no order: nothing is
	// preempted.
	Seed     uint64
	Priority []event.ThreadID
}

// Replica is an execution of an epoch.
type Replica struct {
	// End is the state at the end.
	End *Checkpoint
	// Failed is how the replica failed, self-evidently, or empty.
	Failed string
	// Order is what a thread-parallel replica found. Diverged tells what an
	// epoch-parallel one did that was not in it, and Softly what does not count.
	Order            *sched.PartialOrder
	Diverged, Softly string
	Output           []Output
	// Instructions are those of all threads. Cycles is the time of a
	// thread-parallel replica on its cores, of an epoch-parallel one on its core.
	Instructions uint64
	Cycles       event.Cycles
	// Effort is instructions with something for each slice: what Hang bounds.
	Effort uint64
	// Sent sums up, by thread, what was written to files and sockets.
	sent map[event.ThreadID]uint64
	used []sched.Step
	gone map[event.ThreadID]event.Addr // stacks of threads that ended
}

// Output is something that the guest wrote.
type Output struct {
	FD   int
	Data []byte
}

// begin puts the machine to a checkpoint.
func (r *Replicas) begin(from *Checkpoint, controller sched.Controller) *epochRun {
	m := r.m
	m.Restore(from.snapshot)
	m.state.gating.controller = controller
	r.tap.begin(from)
	m.state.clock.now = m.state.cluster.Makespan()
	return &epochRun{r: r, m: m, instructions: m.state.digest.instructions, began: m.state.cluster.Makespan(), since: -from.idle}
}

// epochRun is a replica that runs.
type epochRun struct {
	r            *Replicas
	m            *Machine
	instructions uint64
	began        event.Cycles
	length       event.Cycles
	closes       bool   // there was output
	steps        uint64 // when progress was last seen
	since        uint64 // effort then, less than 0 if it was in an epoch before
	slices       uint64
	hangs        bool
}

// settle does what the controller wants before anything runs.
func (e *epochRun) settle() { e.m.settle(event.NoThread, event.NoCore, noStop) }

// ran is how many instructions the replica has run.
func (e *epochRun) ran() uint64 { return e.m.state.digest.instructions - e.instructions }

// pauseCost is what a slice counts in instructions when loops without end are
// looked for: one that yields has slices of a few instructions.
const pauseCost = 1000

// effort is how much the replica has run.
func (e *epochRun) effort() uint64 { return e.ran() + pauseCost*e.slices }

// stuck notes progress, and tells whether there was none for too long.
func (e *epochRun) stuck(progress, most uint64) bool {
	e.slices++
	if progress != e.steps {
		e.steps, e.since = progress, e.effort()
	}
	e.hangs = e.effort()-e.since > most
	return e.hangs
}

// Parallel executes an epoch thread-parallel, under the run's scheduling policy.
func (r *Replicas) Parallel(ctx context.Context, from *Checkpoint, o EpochOptions) (*Replica, error) {
	rec := sched.NewOrderRecorder(r.shared, from.threads)
	e := r.begin(from, rec)
	m := e.m
	if from.byOrder {
		m.state.kernel.SetPatient(false)
	}
	if len(o.Priority) > 0 {
		m.state.cluster.Follow(sched.NewPriority(o.Priority))
	} else if o.Seed != 0 || from.byOrder {
		m.state.cluster.FollowOptions(cmp.Or(o.Seed, m.config.Seed), m.config.Sched)
	}
	r.tap.recorder = rec
	rec.Begin(&m.state.gating.gate)
	e.settle()
	e.length = event.Cycles(o.Length * 1000 * float64(m.config.Costs.MHz))
	for n := 0; !m.done && r.tap.failed == ""; n++ {
		if rec.Closed() && m.state.cluster.Runnable() == 0 {
			break
		}
		m.Step()
		if o.AtOutput && len(r.tap.output) > 0 {
			e.soon()
		}
		if !rec.Closing() && m.state.cluster.Makespan() >= e.began+e.length {
			rec.Close()
		}
		if e.stuck(rec.Steps(), o.Hang) {
			break
		}
		if n%256 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	x, err := e.finish(rec)
	if err != nil {
		return nil, err
	}
	x.End.byOrder, x.End.idle = len(o.Priority) > 0, e.effort()-e.since
	x.Order = rec.Order(x.Failed != "")
	x.Order.Endless = e.hangs
	x.Cycles = m.state.cluster.Makespan() - e.began
	return x, nil
}

// grace is how long, in milliseconds of virtual time, an epoch goes on behind
// output: the message of a failed assertion and the abort that follows are in one.
const grace = 0.05

// soon has the epoch end soon.
func (e *epochRun) soon() {
	if e.closes {
		return
	}
	e.closes = true
	ran := e.m.state.cluster.Makespan() - e.began
	e.length = min(e.length, ran+event.Cycles(grace*1000*float64(e.m.config.Costs.MHz)))
}

// mostTimers bounds the timers that fire in an epoch-parallel replica in which
// nothing else happens.
const mostTimers = 1000

// mostIdle bounds what an epoch-parallel replica in which no thread can run does
// about it, until it counts as hanging.
const mostIdle = 10_000

// Follow executes an epoch on one core, under the partial order of a
// thread-parallel replica, by priorities of threads. It fails when it runs more
// than Hang instructions and than most instructions.
func (r *Replicas) Follow(ctx context.Context, from *Checkpoint, order *sched.PartialOrder, priority []event.ThreadID, most uint64) (*Replica, error) {
	f := sched.NewOrderFollower(r.shared, order)
	e := r.begin(from, f)
	m := e.m
	s := m.state
	s.kernel.SetPatient(true)
	for core := range s.cluster.Cores() {
		s.cluster.Lift(event.CoreID(core), e.began)
	}
	s.cluster.Follow(sched.NewPriority(priority))
	r.tap.recorder = nil
	f.Begin(&s.gating.gate)
	e.settle()
	if err := e.follow(ctx, f, most); err != nil {
		return nil, err
	}
	x, err := e.finish(f)
	if err != nil {
		return nil, err
	}
	x.Diverged, x.Softly = f.Diverged(), f.Softly()
	if x.Diverged == "" && x.Failed == "" && f.Short() {
		x.Diverged = "a thread has done less"
	}
	x.End.byOrder = true
	x.Cycles = s.cluster.Makespan() - e.began
	if x.Diverged != "" && x.Failed == "" && !m.done {
		// It may be about to fail: abort takes some steps.
		f.Probe(&s.gating.gate, probeSteps)
		e.settle()
		if err := e.follow(ctx, f, e.effort()+probeEffort); err != nil {
			return nil, err
		}
		if x.Failed = r.tap.failed; x.Failed != "" {
			x.Failed += ", soon"
		}
	}
	return x, nil
}

// What a thread that has diverged may do behind the epoch's end, in steps, and all
// threads together in instructions.
const (
	probeSteps  = 40
	probeEffort = 1_000_000
)

// follow runs an epoch-parallel replica until its epoch is over.
func (e *epochRun) follow(ctx context.Context, f *sched.OrderFollower, most uint64) error {
	m, s := e.m, e.m.state
	timers, idle := 0, 0
	for n := 0; !m.done && e.r.tap.failed == "" && !e.hangs; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.cluster.Runnable() > 0 {
			m.Step()
			timers, idle = 0, 0
			e.slices++
			e.hangs = e.effort() > most
			continue
		}
		_, has := s.kernel.NextTimer()
		has = has && timers < mostTimers
		if f.Idle(&s.gating.gate, has) {
			break
		}
		if has {
			timers++
			m.Step()
			continue
		}
		e.settle()
		idle++
		e.hangs = idle > mostIdle
	}
	return nil
}

// orderController is an OrderRecorder or OrderFollower.
type orderController interface {
	Standings() []sched.Standing
	Used() []sched.Step
}

// finish makes the replica of an execution that is over.
func (e *epochRun) finish(c orderController) (*Replica, error) {
	m, t := e.m, e.r.tap
	x := &Replica{
		Failed: t.failed, Output: slices.Clone(t.output), Instructions: e.ran(), Effort: e.effort(),
		sent: maps.Clone(t.sent), gone: maps.Clone(t.gone), used: c.Used(),
	}
	e.r.know(x.used)
	switch {
	case x.Failed != "":
	case e.hangs:
		x.Failed = "it does not end"
	case m.done && m.result.Outcome == outcomeDeadlock:
		x.Failed = "deadlock"
	case m.done && m.state.kernel.Fatal() != "":
		return nil, errStopped.New(m.state.kernel.Fatal())
	}
	x.End = &Checkpoint{ended: m.done || x.Failed != "", outcome: m.result.Outcome, threads: c.Standings(), floors: t.floorsNow(m.state.kernel)}
	x.End.snapshot = m.Snapshot()
	return x, nil
}

var errStopped = errs.Define("run-with-replicas-stopped",
	"the run cannot go on: {problem}",
	"The program made a system call that heddle does not know; the rest of the sentence names it.",
	"See heddle syscalls; with --unknown-syscalls=enosys such calls fail instead.")

// Finish ends the run in a state: writable mounts are written to the host, and the
// result is that of a run that had come there by itself.
func (r *Replicas) Finish(at *Checkpoint) (*Result, error) {
	m := r.m
	m.Restore(at.snapshot)
	m.done, m.result.Outcome = true, at.outcome
	if m.result.Outcome == "" {
		m.result.Outcome = outcomeInterrupted
		m.result.Message = "the run was ended before the program did"
	}
	err := m.finish()
	return &m.result, err
}

// PeakMemory is the largest number of bytes that all states held together.
func (r *Replicas) PeakMemory() uint64 { return r.m.ram.Peak() * pageBytes }

// functions that lock for themselves, by what they act on.
var (
	allocating = []string{
		"__libc_thread_freeres", "__malloc_arena_thread_freeres", "__nptl_free_tcb", "__nptl_deallocate_stack",
		"malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc",
		"free", "cfree", "malloc_trim", "mallinfo", "mallinfo2", "malloc_usable_size",
	}
	streaming = []string{
		"printf", "vprintf", "fprintf", "vfprintf", "dprintf", "vdprintf", "__printf_chk", "__fprintf_chk",
		"__vprintf_chk", "__vfprintf_chk", "puts", "fputs", "fputc", "putc", "putchar", "fwrite", "fflush", "fopen",
		"fopen64", "fdopen", "freopen", "fclose", "perror", "getc", "fgetc", "getchar", "ungetc", "fgets", "fread",
		"getline", "getdelim", "scanf", "fscanf", "vfscanf", "fseek", "fseeko", "ftell", "ftello", "rewind", "setvbuf",
		"opendir", "readdir", "closedir",
	}
)

// libraryFunctions are those functions as operations.
func libraryFunctions() (list []syncops.Custom) {
	for _, names := range [][]string{allocating, streaming} {
		for _, name := range names {
			list = append(list, syncops.Custom{Name: name, Effect: "both"})
		}
	}
	return list
}

func sharedFunctions() *sched.Shared {
	s := &sched.Shared{Arity: kernel.SyscallArgs}
	for _, name := range allocating {
		s.Memory = append(s.Memory, functionID(name))
	}
	for _, name := range streaming {
		s.Files = append(s.Files, functionID(name))
	}
	return s
}

// functionID is the object of an operation that is on none but its function
// (docs/sync.md).
func functionID(name string) event.ObjectID {
	return event.ObjectID(xxh3.HashString("function:" + name))
}

// fatal are the signals that tell of a failure when they kill: the processor's and
// abort's. Others are sent on purpose.
func fatal(signal int) bool {
	switch unix.Signal(signal) {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGABRT, unix.SIGTRAP, unix.SIGSYS:
		return true
	}
	return false
}
