package sched

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Plan is a schedule made ready to be followed, by any number of runs: it does not
// change.
type Plan struct {
	s     *event.Schedule
	names map[string]int
	own   [][]int // by thread, the positions of its operations
	// posts and waits are the constraints whose first or second point is the
	// operation at a position as a whole.
	posts, waits map[int][]int
	actions      [][]action     // by thread, in the order in which it comes to them
	waiter       []int32        // by constraint, the thread of its second point, or turnWaits
	clock        []event.Cycles // what clocks show at each position
	memory       bool           // calls that change the address space have positions
	// alone is the position from which on a schedule for other inputs need not be
	// followed.
	alone int
}

// SharedInSnapshot marks that copies of an Enforcer share it.
func (*Plan) SharedInSnapshot() {}

type actionKind uint8

const (
	post    actionKind = iota // the first instruction of a constraint was executed
	wait                      // before the second one
	deliver                   // where the thread gets a signal
	halt                      // where the thread was at the end of the run
)

// action is what a thread does when it has done so many operations and then
// retired so many instructions. There may be tens of thousands.
type action struct {
	at       uint64
	branches uint64     // that it has gone through since its operation
	pc       event.Addr // that it is at then; 0: not known
	done     int32
	// accesses is how many accesses of the next instruction are done there, too.
	accesses uint8
	// of is the number of the constraint, or the position of the signal.
	of   int32
	kind actionKind
	// look tells that it is the first to wait for behind its operation: the thread
	// stops there to be looked at, whether or not it has to wait.
	look bool
}

// NewPlan makes a schedule ready; syncOnly leaves its constraints out.
func NewPlan(s *event.Schedule, syncOnly bool) *Plan {
	p := &Plan{
		s: s, names: map[string]int{}, own: make([][]int, len(s.Threads)), actions: make([][]action, len(s.Threads)),
		posts: map[int][]int{}, waits: map[int][]int{}, alone: len(s.Operations),
	}
	if s.Portable {
		p.alone = s.Alone()
	}
	for i, name := range s.Threads {
		p.names[name] = i
	}
	for position := range s.Operations {
		o := &s.Operations[position]
		n := o.Thread
		if o.Part == event.SignalPart && o.Result >= 0 {
			p.actions[n] = append(p.actions[n], action{done: int32(len(p.own[n])), at: uint64(o.Result), kind: deliver, of: int32(position), pc: o.Writes[0].Addr})
		}
		p.own[n] = append(p.own[n], position)
		p.memory = p.memory || o.Part == event.SystemCall && AddressSpace(o.Number)
		if position > 0 {
			p.clock = append(p.clock, max(p.clock[position-1], s.Operations[position].At))
		} else {
			p.clock = append(p.clock, s.Operations[position].At)
		}
	}
	if !syncOnly {
		p.reserve()
		for c := range s.Constraints {
			p.add(c)
		}
	}
	for n := range p.actions {
		p.arrange(n)
	}
	return p
}

// turnWaits stands for a constraint for which an operation as a whole waits.
const turnWaits = -1

// reserve makes room for the actions: there are two for each constraint, and often as
// many for each thread.
func (p *Plan) reserve() {
	share := 2 * len(p.s.Constraints) / max(1, len(p.actions))
	for n := range p.actions {
		p.actions[n] = slices.Grow(p.actions[n], share+share/8)
	}
	p.waiter = make([]int32, len(p.s.Constraints))
}

// add adds the actions of a constraint.
func (p *Plan) add(c int) {
	first, second := &p.s.Constraints[c].First, &p.s.Constraints[c].Second
	if first.PC == 0 && !first.Ends {
		at := p.own[first.Thread][first.Done]
		p.posts[at] = append(p.posts[at], c)
	} else {
		a := action{
			done: int32(first.Done), at: first.Instructions + max(1, first.Span), branches: first.Branches, kind: post,
			of: int32(c), accesses: first.Accesses,
		}
		if first.Accesses > 0 {
			a.at, a.pc = first.Instructions, first.PC
		}
		if first.Ends {
			a.kind, a.at, a.pc = halt, first.Instructions, first.PC
		}
		p.actions[first.Thread] = append(p.actions[first.Thread], a)
	}
	if second.PC == 0 && !second.Ends {
		at := p.own[second.Thread][second.Done]
		p.waits[at] = append(p.waits[at], c)
		p.waiter[c] = turnWaits
		return
	}
	p.waiter[c] = int32(second.Thread)
	p.actions[second.Thread] = append(p.actions[second.Thread], action{
		done: int32(second.Done), at: second.Instructions, branches: second.Branches, kind: wait, of: int32(c), pc: second.PC,
		accesses: second.Accesses,
	})
}

// arrange puts a thread's actions in order: what was executed is told before
// anything is waited for.
func (p *Plan) arrange(n int) {
	list := p.actions[n]
	slices.SortFunc(list, inOrder)
	looked := int32(-1)
	for i := range list {
		if a := &list[i]; a.kind == wait && a.done != looked {
			a.look, looked = true, a.done
		}
	}
}

func inOrder(a, b action) int {
	switch {
	case a.done != b.done:
		return cmp.Compare(a.done, b.done)
	case a.at != b.at:
		return cmp.Compare(a.at, b.at)
	case a.accesses != b.accesses:
		return cmp.Compare(a.accesses, b.accesses)
	case a.kind != b.kind:
		return cmp.Compare(a.kind, b.kind)
	}
	return cmp.Compare(a.of, b.of)
}

// instruction is that of an action's constraint, or 0, and occurrence which time it is
// come to.
func (p *Plan) instruction(a *action) (pc event.Addr, occurrence uint64) {
	if a.kind == deliver {
		return 0, 0
	}
	x := &p.s.Constraints[a.of].First
	if a.kind == wait {
		x = &p.s.Constraints[a.of].Second
	}
	return x.PC, x.Occurrence
}

// since is what a thread has gone through at its i-th action since its operation or
// its last action before.
func (p *Plan) since(n, i int) (instructions, branches uint64) {
	a := &p.actions[n][i]
	if i == 0 || p.actions[n][i-1].done != a.done {
		return a.at, a.branches
	}
	last := &p.actions[n][i-1]
	return a.at - last.at, a.branches - min(a.branches, last.branches)
}

// action returns the i-th action of a thread, or nil.
func (p *Plan) action(n, i int) *action {
	if i >= len(p.actions[n]) {
		return nil
	}
	return &p.actions[n][i]
}

// points are the instructions before which threads stop, sorted. Those where they
// seldom do are left out: all executions take longer there.
func (p *Plan) points() []event.Addr {
	var t tally
	for _, actions := range p.actions {
		for i := range actions {
			if pc := actions[i].pc; pc != 0 {
				t.add(pc)
			}
		}
	}
	return t.frequent()
}

// Transparent tells which operations have no position: what is in them has.
func Transparent(op event.SyncOp) bool { return op == event.OpKeyDestructor }

// once tells which operations contain others.
func once(op event.SyncOp) bool { return op == event.OpOnce || op == event.OpC11CallOnce }

// local are the system calls that concern nobody but the thread, or tell what
// does not change, sorted by number: they have no position.
var local = []uint64{
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SCHED_YIELD, unix.SYS_MADVISE,
	unix.SYS_GETPID, unix.SYS_UNAME, unix.SYS_GETUID, unix.SYS_GETGID, unix.SYS_GETEUID, unix.SYS_GETEGID,
	unix.SYS_GETPPID, unix.SYS_SIGALTSTACK, unix.SYS_PRCTL, unix.SYS_ARCH_PRCTL, unix.SYS_GETTID,
	unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SET_TID_ADDRESS, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
}

// Ordered tells which system calls, outside of operations, have a position.
func Ordered(number uint64) bool {
	_, found := slices.BinarySearch(local, number)
	return !found
}

// AddressSpace tells which system calls change a process's memory only. How often
// they are made depends on sizes of inputs, and their results on which thread's
// allocator comes first, which operations alone do not order: schedules of
// operations leave them out.
func AddressSpace(number uint64) bool {
	switch number {
	case unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_BRK:
		return true
	}
	return false
}

// Forks tells which system calls make threads, or processes. A schedule has the thread
// that they make begin before they return, as it may for vfork.
func Forks(number uint64) bool {
	switch number {
	case unix.SYS_CLONE, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_CLONE3:
		return true
	}
	return false
}

func sleeps(number uint64) bool {
	return number == unix.SYS_NANOSLEEP || number == unix.SYS_CLOCK_NANOSLEEP
}

// answered tells which system calls are not carried out: who waits for a futex
// or sleeps waits for its turn anyway, and what told the time or a random number
// tells the same.
func answered(o *event.Operation) bool {
	return o.Number == unix.SYS_FUTEX || sleeps(o.Number) || len(o.Writes) > 0
}

// addressed tells which system calls have results that say nothing about order.
func addressed(number uint64) bool { return number == unix.SYS_TIMES }

// Results of operations that timed out: as functions of POSIX and C11 threads
// return them, and as those of semaphores do.
const (
	posixTimeout = 110
	c11Timeout   = 4
	semTimeout   = -1
)

// timedOut tells whether an operation ended because time was up.
func timedOut(o *event.Operation) bool {
	switch o.Op {
	case event.OpMutexTimedLock, event.OpMutexClockLock, event.OpCondTimedWait, event.OpCondClockWait,
		event.OpRWTimedReadLock, event.OpRWClockReadLock, event.OpRWTimedWriteLock, event.OpRWClockWriteLock,
		event.OpTimedJoin, event.OpClockJoin:
		return o.Result == posixTimeout
	case event.OpC11MtxTimedLock, event.OpC11CndTimedWait:
		return o.Result == c11Timeout
	case event.OpSemTimedWait, event.OpSemClockWait:
		return o.Result == semTimeout
	}
	return false
}
