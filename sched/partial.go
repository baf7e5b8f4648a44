package sched

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// StepKind says what of an operation is a Step.
type StepKind uint8

// Kinds of steps.
const (
	// WholeStep is an operation from its call to its return.
	WholeStep StepKind = iota
	// BeginStep is the part of an operation up to where it waits, EndStep the
	// rest: of waits on conditions and barriers, and of once routines. An
	// operation that an epoch ends in has an EndStep in the next one.
	BeginStep
	EndStep
	// CallStep is a system call, CalledStep the end of one that an epoch ended in.
	CallStep
	CalledStep
	// StartStep is before a new thread's first instruction.
	StartStep
	// AtomicStep is an atomic instruction outside of operations.
	AtomicStep
	// SignalStep is where a thread gets a signal that no instruction of its own has
	// caused. HandlerStep has no place: it tells of a thread within an operation that
	// it is in the handler of a signal.
	SignalStep
	HandlerStep
)

// Step is what a thread does at one place of an epoch's partial order.
type Step struct {
	Kind   StepKind
	Op     event.SyncOp
	Object event.ObjectID
	Second event.ObjectID // the mutex of a wait
	Addr   event.Addr     // of the object
	Whom   event.ThreadID // that it cancels
	Number uint64         // of a system call or signal
	Args   [6]uint64      // of a system call
	// Result is what the operation or system call returned. Writes are what a
	// system call left in memory that is not carried out again: see Told. Of a signal
	// the first is its siginfo_t, and others what the call wrote that it has ended.
	Result uint64
	Writes []event.Write
	// Place is where a signal comes, and where an interrupted system call is made: behind
	// so many instructions of the thread since its last step. Within tells of a signal
	// that comes while the thread waits in the kernel, Interrupted of a system call that
	// one has ended, Split of an operation that has a part of its own before it waits
	// because one has come there.
	Place                      uint64
	Within, Interrupted, Split bool
	// Meets is, of an operation that cancels a thread, where that has to be before it: one
	// more than the number of its step that is the signal, and 0 otherwise.
	Meets, Peer int
	// Clock is the vector clock: how many steps of each thread, by its number,
	// come before. Missing ones are 0.
	Clock []uint32
	on    []entity
	done  bool
	exits bool // Visit.Exits
}

// same tells whether two steps are the same one of the program, as far as can be
// told before they are done.
func (s *Step) same(o *Step) bool {
	if s.Kind == AtomicStep {
		return o.Kind == AtomicStep // where it acts is not known before
	}
	kind := s.Kind
	if s.Split {
		kind = WholeStep
	}
	return kind == o.Kind && s.Op == o.Op && s.Object == o.Object && s.Number == o.Number && s.Args == o.Args
}

// Standing is where a thread is between two epochs.
type Standing struct {
	ID   event.ThreadID
	Name string
	// Held tells that it is held, before Next or, if Woken, behind a wait in the
	// innermost of Within. Otherwise it waits in the kernel. Within are the steps
	// that it is in, from the outermost on.
	Held, Woken bool
	Next        Step
	Within      []Step
	// Exits tells that nobody may detach it any more.
	Exits bool
}

// ThreadLog is what a thread did in an epoch.
type ThreadLog struct {
	ID    event.ThreadID
	Steps []Step
	// Free counts the system calls without a place in the order behind the last
	// step, which is where the epoch ends.
	Free int
	// Open tells that the epoch ends within the last step: the thread waits.
	Open bool
	// Stands tells that the thread is held at the end of the epoch, before what it
	// does next.
	Stands bool
}

// PartialOrder is the order of the synchronization operations and system calls
// of an epoch (Frost section 3.1). A thread's number is its place in Threads. It
// does not change.
type PartialOrder struct {
	Begin   []Standing
	Threads []ThreadLog
	// Constraints are pairs of threads, by number, of which one waited for a step
	// of the other, once for each.
	Constraints [][2]int
	// Endless tells that the epoch was given up in what seemed to be a loop without
	// end. It may be one of atomic instructions, or of calls without a place in the
	// order: behind the last step there may be any number of them.
	Endless bool
}

// SharedInSnapshot marks that copies of the machine's state share it.
func (*PartialOrder) SharedInSnapshot() {}

// Length is the number of steps.
func (o *PartialOrder) Length() (n int) {
	for i := range o.Threads {
		n += len(o.Threads[i].Steps)
	}
	return n
}

// Shared is what is known of operations besides what they say themselves.
type Shared struct {
	// Memory and Files are functions of libraries that lock for themselves: those
	// that allocate, and those that read and write.
	Memory, Files []event.ObjectID
	// Arity is the number of arguments of a system call.
	Arity func(number uint64) int
}

// SharedInSnapshot marks that it does not change.
func (*Shared) SharedInSnapshot() {}

// entity is something with a vector clock of its own.
type entity struct {
	kind entityKind
	id   event.ObjectID
}

type entityKind uint8

const (
	syncEntity   entityKind = iota
	memoryEntity            // the address space and the allocator
	kernelEntity            // everything else in the kernel
	exitEntity              // whether a thread exits, and is detached
)

var (
	memoryOnly = []entity{{kind: memoryEntity}}
	kernelOnly = []entity{{kind: kernelEntity}}
	both       = []entity{{kind: memoryEntity}, {kind: kernelEntity}}
)

// ofOperation lists what an operation acts on.
func (s *Shared) ofOperation(e *event.Sync) []entity {
	switch {
	case slices.Contains(s.Memory, e.Object):
		return memoryOnly
	case slices.Contains(s.Files, e.Object):
		return both
	}
	var list []entity
	switch e.Op {
	case event.OpDetach, event.OpC11ThrdDetach:
		list = append(slices.Clone(both), exitOf(e.Peer))
	case event.OpPthreadExit, event.OpC11ThrdExit, event.OpTestCancel:
		return nil // it may never come back
	case event.OpCreate, event.OpC11ThrdCreate, event.OpJoin, event.OpTryJoin, event.OpTimedJoin, event.OpClockJoin,
		event.OpC11ThrdJoin, event.OpFork, event.OpCancel,
		event.OpSemOpen, event.OpSemClose, event.OpSemUnlink:
		list = slices.Clone(both)
	}
	if e.Object != 0 {
		list = append(list, entity{syncEntity, e.Object})
	}
	if e.Second != 0 && e.Second != e.Object {
		list = append(list, entity{syncEntity, e.Second})
	}
	return list
}

// exitOf is whether a thread exits.
func exitOf(t event.ThreadID) entity { return entity{exitEntity, event.ObjectID(t)} }

// ofMemory are the system calls that change the address space alone, sorted by
// number: they do not commute (section 3.1).
var ofMemory = []uint64{
	unix.SYS_MPROTECT, unix.SYS_MUNMAP, unix.SYS_BRK, unix.SYS_MREMAP, unix.SYS_MSYNC, unix.SYS_MINCORE, unix.SYS_MADVISE,
	unix.SYS_MLOCK, unix.SYS_MUNLOCK, unix.SYS_MLOCKALL, unix.SYS_MUNLOCKALL,
}

// alone are the system calls that concern the thread alone, sorted by number.
// They have results that are the same in every replica, or are told.
var alone = []uint64{
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_GETITIMER,
	unix.SYS_UNAME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRUSAGE, unix.SYS_SYSINFO, unix.SYS_TIMES, unix.SYS_SIGALTSTACK,
	unix.SYS_PRCTL, unix.SYS_ARCH_PRCTL, unix.SYS_TIME, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_SET_TID_ADDRESS, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_SET_ROBUST_LIST,
	unix.SYS_GETCPU, unix.SYS_RSEQ,
}

// ofCall lists what a system call acts on. Whether memory is there that it reads or writes
// is told by no order.
func ofCall(number uint64) []entity {
	if _, found := slices.BinarySearch(ofMemory, number); found {
		return memoryOnly
	}
	if _, found := slices.BinarySearch(alone, number); found {
		return nil
	}
	switch number {
	case unix.SYS_MMAP, unix.SYS_SHMAT, unix.SYS_SHMDT, unix.SYS_REMAP_FILE_PAGES, unix.SYS_CLONE, unix.SYS_CLONE3,
		unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_EXIT, unix.SYS_EXIT_GROUP:
		return both
	}
	return kernelOnly
}

// free are the system calls without a place in the order, sorted by number: a
// replica may make more or fewer of them than another (section 3.3). What waits
// for a futex waits for memory to change, which is ordered by what changes it.
var free = []uint64{
	unix.SYS_SCHED_YIELD, unix.SYS_NANOSLEEP, unix.SYS_GETPID, unix.SYS_GETUID, unix.SYS_GETGID, unix.SYS_GETEUID,
	unix.SYS_GETEGID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_FUTEX, unix.SYS_CLOCK_NANOSLEEP,
}

// Free tells that a system call has no place in the order.
func Free(number uint64) bool {
	_, found := slices.BinarySearch(free, number)
	return found
}

// told are the system calls that tell the time or what else depends on when they
// are made, sorted by number: the first replica's results are delivered again.
var told = []uint64{
	unix.SYS_GETITIMER, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRUSAGE, unix.SYS_SYSINFO, unix.SYS_TIMES, unix.SYS_TIME,
	unix.SYS_CLOCK_GETTIME, unix.SYS_GETCPU,
}

// Told tells that the result of a system call, and what it writes, is taken from
// the first replica and not found out again.
func Told(number uint64) bool {
	_, found := slices.BinarySearch(told, number)
	return found
}

// parted tells which operations have a part of their own before they wait.
func parted(op event.SyncOp) bool {
	switch op {
	case event.OpCondWait, event.OpCondTimedWait, event.OpCondClockWait, event.OpC11CndWait, event.OpC11CndTimedWait,
		event.OpBarrierWait:
		return true
	case event.OpCondSignal, event.OpCondBroadcast, event.OpC11CndSignal, event.OpC11CndBroadcast:
		return true // they wait until the threads of the last signals have gone on
	case event.OpCancel:
		return true // the signal that it sends may come before it is over
	}
	return once(op)
}

// step is the first step of an operation.
func (s *Shared) step(e *event.Sync) Step {
	x := Step{Op: e.Op, Object: e.Object, Second: e.Second, Addr: e.Addr, Whom: e.Peer, on: s.ofOperation(e)}
	if parted(e.Op) {
		x.Kind = BeginStep
	}
	return x
}

// call is that of a system call. Arguments beyond the call's own are left out:
// they are whatever the registers held.
func (s *Shared) call(e *event.Syscall) Step {
	x := Step{Kind: CallStep, Number: e.Number, on: ofCall(e.Number)}
	copy(x.Args[:s.Arity(e.Number)], e.Args[:])
	return x
}

// free tells that a step has no place in the order.
func (s *Step) free() bool { return s.Kind == CallStep && Free(s.Number) }

// ends tells which steps end their thread.
func (s *Step) ends() bool {
	if s.Kind == CallStep {
		return s.Number == unix.SYS_EXIT || s.Number == unix.SYS_EXIT_GROUP
	}
	return s.Op == event.OpPthreadExit || s.Op == event.OpC11ThrdExit
}

// rest is the step that completes one in which an epoch ends.
func (s *Step) rest() Step {
	r := Step{
		Kind: EndStep, Op: s.Op, Object: s.Object, Second: s.Second, Addr: s.Addr, Whom: s.Whom, Number: s.Number, Args: s.Args, on: s.on,
	}
	switch s.Kind {
	case CallStep, CalledStep:
		r.Kind = CalledStep
	case HandlerStep:
		r.Kind = HandlerStep
	}
	return r
}

// joined makes a vector clock the least that is at least both.
func joined(a, b []uint32) []uint32 {
	if len(b) > len(a) {
		a = append(a, make([]uint32, len(b)-len(a))...)
	}
	for i, n := range b {
		a[i] = max(a[i], n)
	}
	return a
}

// ticked is the clock with one thread's component at least n.
func ticked(a []uint32, thread int, n uint32) []uint32 {
	if thread >= len(a) {
		a = append(a, make([]uint32, thread+1-len(a))...)
	}
	a[thread] = max(a[thread], n)
	return a
}

func component(a []uint32, thread int) uint32 {
	if thread >= len(a) {
		return 0
	}
	return a[thread]
}

// locks and unlocks tell which steps are a pair that changes nothing.
func (s *Step) locks() bool {
	return s.Kind == WholeStep && (s.Op == event.OpMutexLock || s.Op == event.OpC11MtxLock || s.Op == event.OpSpinLock ||
		s.Op == event.OpRWReadLock || s.Op == event.OpRWWriteLock)
}

func (s *Step) unlocks() bool {
	return s.Kind == WholeStep && (s.Op == event.OpMutexUnlock || s.Op == event.OpC11MtxUnlock ||
		s.Op == event.OpSpinUnlock || s.Op == event.OpRWUnlock)
}

// String names a step for a sentence.
func (s *Step) String() string {
	switch s.Kind {
	case CallStep:
		return fmt.Sprintf("system call %d", s.Number)
	case CalledStep:
		return fmt.Sprintf("the end of system call %d", s.Number)
	case StartStep:
		return "its start"
	case EndStep:
		return "the end of " + s.Op.String()
	case SignalStep:
		return fmt.Sprintf("signal %d", s.Number)
	}
	return s.Op.String()
}
