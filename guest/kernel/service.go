package kernel

import (
	"container/heap"
	"math/rand/v2"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/loader"
)

// clock is a monotonic clock with its timers. Others refer to it and to its timers by pointers, which a copy of the kernel
// keeps only to whole objects.
type clock struct {
	now    int64 // ns since the start of the run
	timers *timerQueue
}

func newClock() *clock { return &clock{timers: &timerQueue{}} }

func (c *clock) nextTimer() (deadline int64, found bool) {
	if len(c.timers.heap) == 0 {
		return 0, false
	}
	return max(0, c.timers.heap[0].deadline), true
}

// fireTimers expires the timers of a clock that are due.
func (k *Kernel) fireTimers(c *clock) {
	k.clock = c
	for len(c.timers.heap) > 0 && c.timers.heap[0].deadline <= c.now {
		heap.Pop(&c.timers.heap).(*timer).target.expire(k)
	}
}

// actFor has the kernel act for a thread: on the clock of its process.
func (k *Kernel) actFor(t *Task) {
	k.current = t
	k.clock, k.fs.Serving = k.host, false
	if s := t.proc.service; s != nil {
		k.clock, k.fs.Serving = s.clock, true
	}
}

// Service is a group of processes that lives on its own time: those of the programs of
// Config.Service and their descendants. The service's clock, on which its clocks, timers, waits
// and time stamps are, is moved by the driver alone, and its threads have ids of their own, so
// that neither depends on the processes outside. (Linux has time_namespaces(7) and
// pid_namespaces(7); there the ids are also seen from outside by other numbers.)
type Service struct {
	k       *Kernel
	clock   *clock
	lastID  arch.ThreadID
	entropy *rand.ChaCha8
	// holding: the signals that other processes send wait in held.
	holding bool
	held    []heldSignal
	ready   map[arch.ThreadID]bool // the threads that can run
}

// heldSignal is a signal to a process, or to one of its threads.
type heldSignal struct {
	process *Process
	thread  *Task // or nil
	info    sigInfo
}

// HoldSignals says whether signals that processes outside of the service send to it with kill(2)
// and its kin wait: SIGKILL, SIGSTOP and SIGCONT never do. Off delivers those that wait.
func (s *Service) HoldSignals(on bool) {
	if s.holding = on; on {
		return
	}
	held := s.held
	s.held = nil
	for _, h := range held {
		if h.thread != nil && h.thread.state != dead {
			s.k.sendTask(h.thread, h.info)
		} else if h.thread == nil {
			s.k.sendProcess(h.process, h.info)
		}
	}
}

// HasHeldSignals reports whether signals wait.
func (s *Service) HasHeldSignals() bool { return len(s.held) > 0 }

// holdsBackSignal keeps a signal that the thread sends to a process, or to one of its threads, if
// it is to wait, and reports whether it does.
func (t *Task) holdsBackSignal(p *Process, thread *Task, info sigInfo) bool {
	s := p.service
	if s == nil || !s.holding || t.proc.service != nil {
		return false
	}
	switch unix.Signal(info.number()) {
	case unix.SIGKILL, unix.SIGSTOP, unix.SIGCONT:
		return false
	}
	s.held = append(s.held, heldSignal{p, thread, info})
	return true
}

// readStep is the time in ns by which the service's clock seems to advance each time that a thread
// reads it. It is prime: a program that compares two readings each, as mariadbd does to find the
// resolution of a clock, would never see one begin a new millisecond if its parts were whole readings.
const readStep = 1009

// readClock is the time that clocks show. A thread of the service that reads them again and again
// while its clock stands sees them advance: programs wait for that in loops. It depends on the
// thread alone.
func (k *Kernel) readClock() int64 {
	if s := k.service; s == nil || k.clock != s.clock || k.current == nil {
		return k.clock.now
	}
	t := k.current
	t.shown = max(t.shown+readStep, k.clock.now)
	return t.shown
}

// stampClock is the clock of the time stamps of files and of the network, in runs that may have a
// service: the service's, also for other processes, so that the files that these make do not show it
// how fast they have run.
type stampClock struct{ k *Kernel }

// RealtimeNS implements vfs.Clock.
func (s stampClock) RealtimeNS() int64 {
	now := int64(0)
	if s.k.service != nil {
		now = s.k.service.clock.now
	}
	return s.k.realtimeBase() + now
}

// serviceScheduler notes which threads of the service can run.
type serviceScheduler struct {
	Scheduler
	k *Kernel
}

// Ready implements Scheduler, and so do Block and Exit.
func (s *serviceScheduler) Ready(t arch.ThreadID) {
	if task := s.k.tasks.At(t); task != nil && task.proc.service != nil {
		task.proc.service.ready[t] = true
	}
	s.Scheduler.Ready(t)
}

func (s *serviceScheduler) Block(t arch.ThreadID) {
	s.removeReady(t)
	s.Scheduler.Block(t)
}

func (s *serviceScheduler) Exit(t arch.ThreadID) {
	s.removeReady(t)
	s.Scheduler.Exit(t)
}

func (s *serviceScheduler) removeReady(t arch.ThreadID) {
	if s.k.service != nil {
		delete(s.k.service.ready, t)
	}
}

// IsBusy reports whether a thread of the service can run.
func (s *Service) IsBusy() bool { return len(s.ready) > 0 }

// firstServiceID is less than the ids of the threads that the service creates, and more than
// any other that a run can have: Linux has no more than 4194304.
const firstServiceID = 2 << 20

// Service returns the service; nil: no program of it was executed yet.
func (k *Kernel) Service() *Service { return k.service }

// Now is the service's clock in nanoseconds.
func (s *Service) Now() int64 { return s.clock.now }

// NextTimer is the deadline of the service's earliest timer.
func (s *Service) NextTimer() (deadline int64, found bool) { return s.clock.nextTimer() }

// DueTimers lists the service's timers that expire when its clock is moved to a time: their kinds, their processes or threads
// and their numbers there, three numbers each, in the order of these and not in that in which they expire.
func (s *Service) DueTimers(now int64) (list []uint64) {
	var due []timerName
	for _, t := range s.clock.timers.heap {
		if t.deadline <= now {
			due = append(due, t.target.timerName())
		}
	}
	slices.SortFunc(due, timerName.compare)
	for _, n := range due {
		list = append(list, uint64(n.kind), uint64(n.owner), n.number)
	}
	return list
}

// FireTimers moves the service's clock forward to now and expires the timers that are due.
func (s *Service) FireTimers(now int64) {
	s.clock.now = max(s.clock.now, now)
	s.k.fireTimers(s.clock)
}

// Processes lists the live processes of the service by id.
func (s *Service) Processes() []*Process {
	var list []*Process
	for _, p := range s.k.sortedProcesses() {
		if p.service != nil && len(p.threads) > 0 && !p.status.zombie {
			list = append(list, p)
		}
	}
	return list
}

// InService reports whether the thread belongs to the service.
func (t *Task) InService() bool { return t.proc.service != nil }

// MemoryDigest is a digest of the bytes that the process can read: see mm.AddressSpace.Digest.
func (p *Process) MemoryDigest() [16]byte { return digestOf(p.space.Digest) }

// separateExec has the random numbers that a program gets at its start depend on its name, and not
// on the programs that were started before, if there may be a service.
func (k *Kernel) separateExec(name string, o *loader.Options) {
	if len(k.config.Service) == 0 {
		return
	}
	r := newRandomStream(k.config.Seed, "exec "+path.Base(name))
	_, _ = r.Read(o.Random[:])
	if o.Randomize {
		o.LayoutSeed = r.Uint64()
	}
}

// joinService makes a process part of the service, if the program that it is about to start is
// one of the service's, under the name given or under its own.
func (p *Process) joinService(files *execFiles) {
	k := p.k
	if p.service != nil || len(k.config.Service) == 0 {
		return
	}
	opened := files.opened[0]
	if !slices.Contains(k.config.Service, path.Base(opened.name)) && !slices.Contains(k.config.Service, path.Base(p.path)) {
		return
	}
	if k.service == nil {
		k.service = &Service{k: k, clock: newClock(), lastID: firstServiceID, entropy: newRandomStream(k.config.Seed, "service"), ready: map[arch.ThreadID]bool{}}
	}
	p.service = k.service
	for _, t := range p.threads {
		if t.state == running {
			p.service.ready[t.id] = true
		}
	}
	if k.current != nil && k.current.proc == p {
		k.actFor(k.current)
	}
	if i := p.itimer; i != nil && i.timer != nil {
		left := i.deadline - k.host.now
		i.timer.cancel()
		i.deadline = saturatingAdd(k.service.clock.now, left)
		i.timer = k.service.clock.timers.add(i.deadline, i)
	}
}
