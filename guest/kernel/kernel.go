// Package kernel is the guest's Linux: processes and threads, system calls, futexes, signals,
// timers. It executes no instruction itself. The driver of the machine runs a thread until the
// engine stops and passes the stop to Handle; the kernel changes memory, registers and its own
// state, and reports to a Scheduler which threads can run.
//
// It has no notion of schedules or recordings. The order in which the driver steps threads is the
// only source of interleaving; given that order, every effect is determined.
//
// Invariants:
//
// 1. All state reachable from a Kernel is plain data and can be copied with internal/deepcopy, so
// that a snapshot restores the kernel exactly.
// 2. A blocked system call holds no state outside Task.call and Task.waiting: its handler is called
// again from the start when the task wakes.
// 3. No result depends on the order of a map: iteration is over sorted or insertion-ordered lists.
// 4. Errors that a guest can see are unix.Errno values, negated in one place.
package kernel

import (
	"math/rand/v2"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/inotify"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/pipe"
	"github.com/heddle-dmt/heddle/guest/requests"
	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
	"github.com/heddle-dmt/heddle/internal/nearmap"
)

// Scheduler is notified which threads can run. Times are those of the kernel's clock at the call.
type Scheduler interface {
	// Ready reports that a thread is new or was woken.
	Ready(arch.ThreadID)
	// Block reports that the running thread blocks.
	Block(arch.ThreadID)
	// Exit reports that a thread has ended.
	Exit(arch.ThreadID)
	// Yield reports that the running thread gives way to others.
	Yield(arch.ThreadID)
	// SetAffinity restricts the cores that a thread may use.
	SetAffinity(t arch.ThreadID, mask uint64)
	// SetPrecedence sets a thread's precedence over others. Initially a thread has none.
	SetPrecedence(arch.ThreadID, Precedence)
	// Core returns the core on which a thread runs, or ran last.
	Core(arch.ThreadID) arch.CoreID
}

// Observer is notified of events, in order. It must not change anything.
type Observer interface {
	// Syscall reports a completed system call; ret is the raw result.
	Syscall(t *Task, number uint64, args [6]uint64, ret uint64)
	// Signal reports a signal that is delivered to a handler or that kills.
	Signal(d *Delivery)
	// Exit reports the end of a thread.
	Exit(t arch.ThreadID, status int)
	// Memory reports an address space that ends or is replaced.
	Memory(process int32, digest [16]byte)
}

// Config configures the guest's Linux.
type Config struct {
	Cores         int
	Level         arch.Level // of the processor
	Seed          uint64
	UID, GID      uint32
	EpochNS       int64 // the real-time clock at the start of the run
	UnknownENOSYS bool
	RandomLayout  bool
	MaxMemory     uint64 // bytes
	// Service names the programs, as the last component of their paths, whose processes are the
	// service: see Service. Empty: there is none.
	Service  []string
	Requests []uint16 // TCP ports whose requests are observed
}

// Kernel is the state of the guest's Linux.
type Kernel struct {
	cpu      CPU
	override Override
	ram      *mem.RAM
	sched    Scheduler
	observer Observer
	config   Config
	fs       *vfs.FS
	memory   *kmem.Account // charged with the kernel's own objects

	host       *clock // of all processes outside of the service
	clock      *clock // of the process that the kernel acts for
	service    *Service
	lastID     arch.ThreadID
	tasks      nearmap.Map[arch.ThreadID, *Task]
	processes  map[int32]*Process
	init       *Process // the first process
	futexes    map[futexKey]*futexQueue
	piLocks    map[futexKey]*piLock
	suppressed []*posixTimer // timers in the phase timerSuppressed
	entropy    *rand.ChaCha8 // random bytes for the guest (getrandom)
	layout     *rand.ChaCha8 // random offsets in address spaces
	extraCost  arch.Cycles   // kernel work to be charged to the running core
	costs      arch.Costs

	scratch      *scratch
	pipes        *pipe.Account
	net          *sock.Stack
	ipc          ipcObjects
	inotify      *inotify.System
	terminals    int    // pseudo-terminals
	freeTerminal uint32 // lower numbers are in use
	current      *Task  // the thread that the kernel acts for
	// signalQueue is woken when any signal arrives, for signalfd.
	signalQueue wait.Queue
	hostname    string
	bootID      [16]byte
	cores       []coreTime
	shortage    Shortage
	realtime    realtimeClock
	invalid     *InvalidInstruction // the first one that killed a process
	ptraceScope int                 // of Yama: see mayTrace

	stats Stats
	fatal string // the reason for which the run must end at once, if any
	done  bool
}

// coreTime is the time that a core spent in user mode and in the kernel.
type coreTime struct{ user, kernel arch.Cycles }

// Stats counts events of a run.
type Stats struct {
	Threads, Processes int
	Syscalls           map[string]uint64
	Unsupported        map[string]uint64
}

// New makes a kernel without processes; Start makes the first.
func New(cpu CPU, ram *mem.RAM, fs *vfs.FS, sched Scheduler, observer Observer, costs arch.Costs, config Config) *Kernel {
	k := &Kernel{
		cpu: cpu, override: noOverride{}, ram: ram, sched: sched, observer: observer, config: config, costs: costs, fs: fs,
		processes: map[int32]*Process{}, futexes: map[futexKey]*futexQueue{}, piLocks: map[futexKey]*piLock{},
		entropy: newRandomStream(config.Seed, "entropy"), layout: newRandomStream(config.Seed, "layout"),
		lastID: firstID - 1, scratch: &scratch{}, net: sock.New(fs, fs.Memory()), hostname: "heddle",
		stats: Stats{Syscalls: map[string]uint64{}, Unsupported: map[string]uint64{}},
	}
	k.host = newClock()
	k.clock = k.host
	if len(config.Service) > 0 {
		k.sched = &serviceScheduler{sched, k}
		fs.NumbersByName = true
	}
	k.cores = make([]coreTime, config.Cores)
	_, _ = newRandomStream(config.Seed, "boot id").Read(k.bootID[:])
	fs.Clock, fs.Entropy = k, k
	if len(config.Service) > 0 {
		fs.Clock = stampClock{k}
	}
	k.memory = fs.Memory()
	k.pipes = &pipe.Account{Memory: k.memory}
	k.ipc = k.newIPC()
	k.inotify = inotify.New(k.memory)
	if len(config.Requests) > 0 {
		k.net.Observe(requests.NewLog(config.Requests, k))
	}
	return k
}

// newRandomStream makes a random stream of its own for one use of the seed, so that drawing a
// number from one stream does not change another.
func newRandomStream(seed uint64, use string) *rand.ChaCha8 {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	copy(key[8:], use)
	return rand.NewChaCha8(key)
}

// Read fills p from the guest's random stream.
func (k *Kernel) Read(p []byte) {
	if s := k.service; s != nil && k.clock == s.clock {
		_, _ = s.entropy.Read(p)
		return
	}
	_, _ = k.entropy.Read(p)
}

// Network is the guest's sockets.
func (k *Kernel) Network() *sock.Stack { return k.net }

// Now is the monotonic clock in nanoseconds since the start of the run.
func (k *Kernel) Now() int64 { return k.host.now }

// CommandOf is the name of a process's main thread (comm), or empty if there is no such process.
func (k *Kernel) CommandOf(pid int32) string {
	if t := k.tasks.At(arch.ThreadID(pid)); t != nil {
		return t.name
	}
	if p := k.processes[pid]; p != nil {
		return p.name
	}
	return ""
}

// RealtimeNS is the real-time clock in nanoseconds since 1970.
func (k *Kernel) RealtimeNS() int64 { return k.realtimeBase() + k.override.Clock(k.readClock()) }

// SetNow moves the clock forward; an earlier time is ignored, so that no thread sees time decrease.
func (k *Kernel) SetNow(ns int64) { k.host.now = max(k.host.now, ns) }

// Task finds a live thread.
func (k *Kernel) Task(id arch.ThreadID) *Task { return k.tasks.At(id) }

// Tasks lists the live threads by id.
func (k *Kernel) Tasks() []*Task {
	list := make([]*Task, 0, k.tasks.Len())
	for _, t := range k.tasks.All() {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *Task) int { return int(a.id) - int(b.id) })
	return list
}

// sortedProcesses lists the processes, zombies included, by id.
func (k *Kernel) sortedProcesses() []*Process {
	list := make([]*Process, 0, len(k.processes))
	for _, p := range k.processes {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Process) int { return int(a.pid) - int(b.pid) })
	return list
}

// Done reports whether the first process has ended or the run cannot continue.
func (k *Kernel) Done() bool { return k.done }

// Fatal is the reason for which the run could not continue, or empty.
func (k *Kernel) Fatal() string { return k.fatal }

// Status is the exit code of the first process, or the signal that killed it.
func (k *Kernel) Status() (code, signal int) {
	s := k.init.status
	return s.code, s.signal
}

// Stats returns the counts so far.
func (k *Kernel) Stats() Stats { return k.stats }

// TakeCost returns the cycles of kernel work since the last call.
func (k *Kernel) TakeCost() arch.Cycles {
	c := k.extraCost
	k.extraCost = 0
	return c
}

// stopRun ends the run at once; why is a sentence for the user.
func (k *Kernel) stopRun(why string) {
	if k.fatal == "" {
		k.fatal = why
	}
	k.done = true
}

// newID makes the id of a thread that the process p creates; nil: the first process.
func (k *Kernel) newID(p *Process) arch.ThreadID {
	last := &k.lastID
	if p != nil && p.service != nil {
		last = &p.service.lastID
	}
	*last++
	return *last
}

// noErrno is success.
const noErrno unix.Errno = 0
