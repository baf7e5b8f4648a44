// Package kernel is the guest's Linux: processes and threads, system calls,
// futexes, signals, timers. It runs no instruction itself. Whoever drives the
// machine runs a thread until the engine stops and hands the stop to Handle;
// the kernel changes memory, registers and its own state, and tells a Scheduler
// which threads can run.
//
// It knows nothing of schedules or recordings. The order in which the driver
// steps threads is the only source of interleaving; given that order, every
// effect is determined.
//
// Invariants:
//
//  1. All state reachable from a Kernel is plain data and can be copied with
//     internal/deepcopy, so that a snapshot restores the kernel exactly.
//  2. A blocked system call holds no state outside Task.call and Task.wait: it
//     is carried out again from the start when the task wakes.
//  3. No order depends on a map: what is iterated is a sorted or insertion
//     ordered list.
//  4. Errors that a guest can see are unix.Errno values, negated in one place.
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
	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
	"github.com/heddle-dmt/heddle/internal/nearmap"
)

// Scheduler is told which threads can run. Times are those of the kernel's
// clock at the call.
type Scheduler interface {
	// Ready tells that a thread is new or was woken.
	Ready(arch.ThreadID)
	// Block tells that the running thread cannot go on.
	Block(arch.ThreadID)
	// Exit tells that a thread is gone.
	Exit(arch.ThreadID)
	// Yield tells that the running thread lets others go first.
	Yield(arch.ThreadID)
	// SetAffinity bounds the cores that a thread may use.
	SetAffinity(t arch.ThreadID, mask uint64)
	// SetPrecedence says how a thread comes before others. A thread for which it was not
	// said does not.
	SetPrecedence(arch.ThreadID, Precedence)
	// Core is the core a thread runs on, or ran on last.
	Core(arch.ThreadID) arch.CoreID
}

// Observer is told what happens, in order. It must not change anything.
type Observer interface {
	// Syscall tells of a completed system call; ret is the raw result.
	Syscall(t *Task, number uint64, args [6]uint64, ret uint64)
	// Signal tells of a signal that is delivered to a handler or that kills.
	Signal(d *Delivery)
	// Exit tells of the end of a thread.
	Exit(t arch.ThreadID, status int)
	// Memory tells of an address space that ends or is replaced.
	Memory(process int32, digest [16]byte)
}

// Config is what the guest's Linux is set up with.
type Config struct {
	Cores         int
	Seed          uint64
	UID, GID      uint32
	EpochNS       int64 // the real-time clock at the start of the run
	UnknownENOSYS bool
	RandomLayout  bool
	MaxMemory     uint64 // bytes
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
	memory   *kmem.Account // that the kernel's own objects take

	now       int64 // ns since the start of the run, monotonic
	lastID    arch.ThreadID
	tasks     nearmap.Map[arch.ThreadID, *Task]
	processes map[int32]*Process
	init      *Process // the first process
	futexes   map[futexKey]*futexQueue
	piLocks   map[futexKey]*piLock
	timers    timerQueue
	unheard   []*posixTimer // that nobody hears: timerUnheard
	entropy   *rand.ChaCha8 // what the guest gets from getrandom
	layout    *rand.ChaCha8 // where things are put in address spaces
	extraCost arch.Cycles   // kernel work to be charged to the running core
	costs     arch.Costs

	scratch      *scratch
	pipes        pipe.Account
	net          *sock.Stack
	ipc          ipcObjects
	inotify      *inotify.System
	terminals    int    // pseudo-terminals
	freeTerminal uint32 // lower numbers are in use
	current      *Task  // that acts in the kernel now
	// signalQueue is woken when any signal comes, for signalfd.
	signalQueue wait.Queue
	hostname    string
	bootID      [16]byte
	cores       []coreTime
	shortage    Shortage
	realtime    realtimeClock
	invalid     *InvalidInstruction // the first that killed a process
	ptraceScope int                 // of Yama: see mayTrace

	stats Stats
	fatal string // why the run must end at once, if it must
	done  bool
}

// coreTime is what a core was busy with.
type coreTime struct{ user, kernel arch.Cycles }

// Stats counts what a run did.
type Stats struct {
	Threads, Processes int
	Syscalls           map[string]uint64
	Unsupported        map[string]uint64
}

// New makes a kernel without processes; Exec starts the first.
func New(cpu CPU, ram *mem.RAM, fs *vfs.FS, sched Scheduler, observer Observer, costs arch.Costs, config Config) *Kernel {
	k := &Kernel{
		cpu: cpu, override: noOverride{}, ram: ram, sched: sched, observer: observer, config: config, costs: costs, fs: fs,
		processes: map[int32]*Process{}, futexes: map[futexKey]*futexQueue{}, piLocks: map[futexKey]*piLock{},
		entropy: stream(config.Seed, "entropy"), layout: stream(config.Seed, "layout"),
		lastID: firstID - 1, scratch: &scratch{}, net: sock.New(fs, fs.Memory()), hostname: "heddle",
		stats: Stats{Syscalls: map[string]uint64{}, Unsupported: map[string]uint64{}},
	}
	k.cores = make([]coreTime, config.Cores)
	_, _ = stream(config.Seed, "boot id").Read(k.bootID[:])
	fs.Clock, fs.Entropy = k, k
	k.memory = fs.Memory()
	k.pipes.Memory = k.memory
	k.ipc = k.newIPC()
	k.inotify = inotify.New(k.memory)
	return k
}

// stream makes a random stream of its own for one use of the seed, so that one
// more number drawn here moves nothing there.
func stream(seed uint64, use string) *rand.ChaCha8 {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	copy(key[8:], use)
	return rand.NewChaCha8(key)
}

// Read fills p from the guest's random stream.
func (k *Kernel) Read(p []byte) { _, _ = k.entropy.Read(p) }

// Now is the monotonic clock in nanoseconds since the start of the run.
func (k *Kernel) Now() int64 { return k.now }

// RealtimeNS is the real-time clock in nanoseconds since 1970.
func (k *Kernel) RealtimeNS() int64 { return k.realtimeBase() + k.override.Clock(k.now) }

// SetNow moves the clock forward; a time that has passed already is ignored, so
// that no thread sees time go back.
func (k *Kernel) SetNow(ns int64) { k.now = max(k.now, ns) }

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

// Done tells that the first process has ended, or that the run cannot go on.
func (k *Kernel) Done() bool { return k.done }

// Fatal says why the run could not go on, or is empty.
func (k *Kernel) Fatal() string { return k.fatal }

// Status is how the first process ended: its exit code, or the signal that
// killed it.
func (k *Kernel) Status() (code, signal int) {
	s := k.init.status
	return s.code, s.signal
}

// Stats returns what was counted so far.
func (k *Kernel) Stats() Stats { return k.stats }

// TakeCost returns the cycles of kernel work since the last call.
func (k *Kernel) TakeCost() arch.Cycles {
	c := k.extraCost
	k.extraCost = 0
	return c
}

// stop ends the run at once; why is a sentence for the user.
func (k *Kernel) stop(why string) {
	if k.fatal == "" {
		k.fatal = why
	}
	k.done = true
}

func (k *Kernel) newID() arch.ThreadID {
	k.lastID++
	return k.lastID
}

// noErrno is success.
const noErrno unix.Errno = 0
