package kernel

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
)

// sigset is a set of signals: bit n-1 is signal n.
type sigset uint64

func sigbit(n int) sigset { return 1 << (n - 1) }

func (s sigset) has(n int) bool { return s&sigbit(n) != 0 }

// lowest is the lowest signal of the set, or 0 if it is empty.
func (s sigset) lowest() int {
	if s == 0 {
		return 0
	}
	return bits.TrailingZeros64(uint64(s)) + 1
}

func sigsetOf(signals ...unix.Signal) (s sigset) {
	for _, n := range signals {
		s |= sigbit(int(n))
	}
	return s
}

const lastSignal = 64

// firstQueued is the first real-time signal. From it on, every instance of a signal is queued.
const firstQueued = 32

var (
	unblockable      = sigsetOf(unix.SIGKILL, unix.SIGSTOP)
	stopSignals      = sigsetOf(unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	ignoredByDefault = sigsetOf(unix.SIGCONT, unix.SIGCHLD, unix.SIGWINCH, unix.SIGURG)
	synchronous      = sigsetOf(unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGTRAP, unix.SIGFPE, unix.SIGSYS)
)

// Values of si_code (include/uapi/asm-generic/siginfo.h).
const (
	siUser   int32 = 0
	siKernel int32 = 0x80
	siQueue  int32 = -1
	siTimer  int32 = -2
	siTkill  int32 = -6

	illIllOpn      int32 = 2
	fpeIntDiv      int32 = 1
	fpeFltDiv      int32 = 3
	fpeFltOvf      int32 = 4
	fpeFltUnd      int32 = 5
	fpeFltRes      int32 = 6
	fpeFltInv      int32 = 7
	busAdrAln      int32 = 1
	trapBreakpoint int32 = 1
	trapTrace      int32 = 2
	trapHardware   int32 = 4

	cldExited    int32 = 1
	cldKilled    int32 = 2
	cldStopped   int32 = 5
	cldContinued int32 = 6
)

// sigInfo is a siginfo_t.
type sigInfo [128]byte

func signalInfo(n unix.Signal, code int32) sigInfo {
	var i sigInfo
	binary.LittleEndian.PutUint32(i[0:], uint32(n))
	binary.LittleEndian.PutUint32(i[8:], uint32(code))
	return i
}

func faultInfo(n unix.Signal, code int32, addr arch.Addr) sigInfo {
	i := signalInfo(n, code)
	binary.LittleEndian.PutUint64(i[16:], uint64(addr))
	return i
}

func userInfo(n unix.Signal, code, pid int32, uid uint32) sigInfo {
	i := signalInfo(n, code)
	binary.LittleEndian.PutUint32(i[16:], uint32(pid))
	binary.LittleEndian.PutUint32(i[20:], uid)
	return i
}

func (i *sigInfo) number() int { return int(binary.LittleEndian.Uint32(i[0:])) }

func (i *sigInfo) code() int32 { return int32(binary.LittleEndian.Uint32(i[8:])) }

// sigAction is struct kernel_sigaction.
type sigAction struct {
	Handler  uint64
	Flags    uint64
	Restorer uint64
	Mask     sigset
}

const (
	sigDfl = 0
	sigIgn = 1
)

// Flags of sigAction.
const (
	saNoCldStop uint64 = 1
	saNoCldWait uint64 = 2
	saSiginfo   uint64 = 4
	saOnStack   uint64 = 0x08000000
	saRestart   uint64 = 0x10000000
	saNoDefer   uint64 = 0x40000000
	saResetHand uint64 = 0x80000000
	saRestorer  uint64 = 0x04000000
)

// signalQueue holds pending signals in the order of arrival.
type signalQueue struct {
	set  sigset
	list []sigInfo
}

// mostPending bounds the pending signals, even if RLIMIT_SIGPENDING does not.
const mostPending = 1 << 16

// hasSignalRoom reports whether an instance of a signal may be queued for p under
// RLIMIT_SIGPENDING. Without room a real-time signal from sigqueue is refused.
func (p *Process) hasSignalRoom() bool {
	queued := 0
	for _, o := range p.k.processes {
		queued += len(o.signals.list)
	}
	for _, t := range p.k.tasks.All() {
		queued += len(t.signals.list)
	}
	return uint64(queued) < min(p.limits[rlimitSigpending].Cur, mostPending)
}

// add queues a signal; a standard signal that is pending already is merged.
func (q *signalQueue) add(i sigInfo) {
	n := i.number()
	if q.set.has(n) && n < firstQueued {
		return
	}
	q.set |= sigbit(n)
	q.list = append(q.list, i)
}

// takeFirst removes and returns the first instance of signal n.
func (q *signalQueue) takeFirst(n int) sigInfo {
	var out sigInfo
	found, more := -1, false
	for i := range q.list {
		if q.list[i].number() != n {
			continue
		}
		if found >= 0 {
			more = true
			break
		}
		found = i
	}
	out = q.list[found]
	q.list = append(q.list[:found:found], q.list[found+1:]...)
	if !more {
		q.set &^= sigbit(n)
	}
	return out
}

// removeSet removes the pending signals of the set, and returns them.
func (q *signalQueue) removeSet(s sigset) (dropped []sigInfo) {
	if q.set&s == 0 {
		return nil
	}
	kept := q.list[:0:0]
	for _, i := range q.list {
		if s.has(i.number()) {
			dropped = append(dropped, i)
		} else {
			kept = append(kept, i)
		}
	}
	q.list = kept
	q.set &^= s
	return dropped
}

// pendingSignals are the signals pending for the task, directed at it or at its process.
func (t *Task) pendingSignals() sigset { return t.signals.set | t.proc.signals.set }

// HasSignal reports whether the task gets a signal when it continues.
func (t *Task) HasSignal() bool { return t.isSignalReady() }

// isSignalReady reports whether a signal would be delivered now.
func (t *Task) isSignalReady() bool {
	return t.due != nil || t.pendingSignals()&^(t.mask|t.heldSignals()) != 0
}

// dequeue takes the next pending signal of the set: hardware faults first, then the lowest number,
// the thread's own signals before the process's.
func (t *Task) dequeue(allowed sigset) (sigInfo, bool) {
	for _, set := range []sigset{allowed & synchronous, allowed} {
		for _, q := range []*signalQueue{&t.signals, &t.proc.signals} {
			if n := (q.set & set).lowest(); n != 0 {
				return t.takeSignal(q, n), true
			}
		}
	}
	return sigInfo{}, false
}

// takeSignal takes the first instance of signal n from a queue, and rearms the timer that sent it.
func (t *Task) takeSignal(q *signalQueue, n int) sigInfo {
	i := q.takeFirst(n)
	if i.isFromTimer() {
		t.proc.completeTimerSignal(&i)
	} else if n == int(unix.SIGALRM) && q == &t.proc.signals && t.proc.itimer != nil {
		t.proc.itimer.rearm()
	}
	return i
}

// ignoresSignal reports whether the process discards signal n.
func (p *Process) ignoresSignal(n int) bool {
	a := p.actions.list[n]
	return a.Handler == sigIgn || a.Handler == sigDfl && ignoredByDefault.has(n)
}

// sendTask sends a signal to one thread.
func (k *Kernel) sendTask(t *Task, i sigInfo) {
	if t.proc.ending || t.proc.outside {
		return
	}
	if i.number() == int(unix.SIGKILL) && t.proc.isTraced() {
		k.sendProcess(t.proc, i)
		return
	}
	if !k.applyOnArrival(t.proc, t.mask|t.waitSet, i.number()) && t.trace == nil || t.proc.consumeEarly(i.number()) {
		return
	}
	t.signals.add(i)
	t.wakeForSignal(i.number())
}

// sendProcess sends a signal to a process: to the first thread that does not block it, in the order
// of creation.
func (k *Kernel) sendProcess(p *Process, i sigInfo) {
	n := i.number()
	if p.outside || p.ending || p.status.zombie || !k.applyOnArrival(p, p.blockedByAll(), n) && p.leader.trace == nil || p.consumeEarly(n) {
		return
	}
	p.signals.add(i)
	for _, t := range p.threads {
		if t.state != dead && (!t.mask.has(n) || t.waitSet.has(n)) {
			t.wakeForSignal(n)
			if n != int(unix.SIGKILL) {
				break
			}
		}
	}
	k.signalQueue.Wake(unix.EPOLLIN)
}

// blockedByAll are the signals that every thread blocks or waits for.
func (p *Process) blockedByAll() sigset {
	set := ^sigset(0)
	for _, t := range p.threads {
		set &= t.mask | t.waitSet
	}
	return set
}

// discardsSignal reports whether signal n is discarded on arrival. A blocked signal stays pending
// even if it is ignored now.
func (p *Process) discardsSignal(n int, blockedBy sigset) bool {
	return p.ignoresSignal(n) && !blockedBy.has(n)
}

// applyOnArrival performs the effects that a signal has at once, whichever thread takes it, and
// returns whether it is to be queued.
func (k *Kernel) applyOnArrival(p *Process, blockedBy sigset, n int) bool {
	if stopSignals.has(n) {
		p.dropPending(sigbit(int(unix.SIGCONT)))
	}
	if n == int(unix.SIGCONT) {
		p.dropPending(stopSignals)
		k.continueProcess(p)
	}
	if n == int(unix.SIGKILL) {
		k.wakeStopped(p)
		k.wakeTraced(p)
	}
	return !p.discardsSignal(n, blockedBy)
}

func (p *Process) dropPending(s sigset) {
	dropped := p.signals.removeSet(s)
	for _, t := range p.threads {
		dropped = append(dropped, t.signals.removeSet(s)...)
	}
	for _, i := range dropped {
		if x := p.findTimer(uint64(decodeStruct[uint32](i[16:20]))); x != nil && i.isFromTimer() && x.running == timerPending {
			x.noteDiscarded()
		}
	}
}

// wakeForSignal wakes a blocked task to which signal n can be delivered.
func (t *Task) wakeForSignal(n int) {
	if !(t.mask | t.heldSignals()).has(n) || t.waitSet.has(n) {
		t.Wake(unix.EPOLLIN)
	}
	t.k.signalQueue.Wake(unix.EPOLLIN)
}

// forceSignal raises a signal that the thread's own instruction caused and that cannot be ignored
// or blocked.
func (t *Task) forceSignal(i sigInfo) {
	n := i.number()
	a := &t.proc.actions.list[n]
	if t.mask.has(n) || a.Handler == sigIgn {
		a.Handler = sigDfl
		t.mask &^= sigbit(n)
	}
	t.forced |= sigbit(n)
	t.signals.add(i)
}

// deliverPending delivers one pending signal. It returns whether there was one.
func (t *Task) deliverPending() bool {
	if t.due == nil && t.pendingSignals() == 0 {
		return false
	}
	i, ok := t.takeDueSignal()
	if !ok {
		if i, ok = t.dequeue(^(t.mask | t.heldSignals())); !ok {
			return false
		}
	}
	if n := i.number(); t.trace != nil && n != int(unix.SIGKILL) {
		t.job.dequeued = true
		t.enterTraceStop(&traceStop{kind: stopAtSignal, code: int32(n), info: &i}, cldTrapped)
		return true
	}
	t.deliverSignal(i)
	return true
}

func (t *Task) deliverSignal(i sigInfo) {
	n := i.number()
	a := t.proc.actions.list[n]
	forced := t.forced.has(n)
	t.forced &^= sigbit(n)
	switch {
	case n == int(unix.SIGKILL):
		t.k.killProcess(t.proc, n)
	case a.Handler == sigIgn:
	case a.Handler != sigDfl:
		t.reportDelivery(&i, forced)
		t.startHandler(i, a)
	case ignoredByDefault.has(n):
	case stopSignals.has(n):
		ignored := n != int(unix.SIGSTOP) && t.k.isOrphanedGroup(t.proc.group, nil)
		if !ignored && (t.trace == nil || t.job.dequeued) {
			t.k.stopProcess(t.proc, n)
		}
	default:
		t.reportDelivery(&i, forced)
		t.noteInvalidInstruction(n, forced)
		t.k.killProcess(t.proc, n)
	}
}

// coreSignals dump core by default: Linux kills for them only when they are delivered.
var coreSignals = sigsetOf(unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGFPE, unix.SIGSEGV, unix.SIGBUS,
	unix.SIGSYS, unix.SIGXCPU, unix.SIGXFSZ)

// killsAtOnce reports whether signal n kills the thread's process when it arrives, even in a wait
// that other signals do not end.
func (t *Task) killsAtOnce(n int) bool {
	byDefault := t.trace == nil && t.proc.actions.list[n].Handler == sigDfl && !(ignoredByDefault | stopSignals | coreSignals).has(n)
	return n == int(unix.SIGKILL) || byDefault
}

// deliverFatal delivers a signal that kills the process, and returns whether there was one. It is
// for waits that no other signal ends.
func (t *Task) deliverFatal() bool {
	if t.due != nil && t.killsAtOnce(t.due.number()) {
		i, _ := t.takeDueSignal()
		t.deliverSignal(i)
		return true
	}
	for s := t.pendingSignals() &^ (t.mask | t.heldSignals()); s != 0; {
		n := s.lowest()
		s &^= sigbit(n)
		if t.killsAtOnce(n) {
			i, _ := t.dequeue(sigbit(n))
			t.deliverSignal(i)
			return true
		}
	}
	return false
}

// Delivery is the delivery of a signal to a handler of a thread, or of one that kills.
type Delivery struct {
	Thread arch.ThreadID
	Signal int
	// PC is the instruction that the thread would have executed next.
	PC arch.Addr
	// Info is the siginfo_t without trailing zeros; nil if the thread's own instruction has caused
	// the signal.
	Info []byte
}

// reportDelivery reports a delivery to the observer.
func (t *Task) reportDelivery(i *sigInfo, forced bool) {
	t.Load()
	t.readRegs()
	d := Delivery{Thread: t.id, Signal: i.number(), PC: arch.Addr(t.regs.RIP)}
	if !forced {
		d.Info = bytes.TrimRight(i[:], "\x00")
	}
	t.k.observer.Signal(&d)
}

// startHandler makes the thread run a handler. A system call that waited ends with EINTR or is
// restarted after the handler.
func (t *Task) startHandler(i sigInfo, a sigAction) {
	n := i.number()
	t.Load()
	t.readRegs()
	saved := t.mask
	if t.hasMask {
		saved, t.hasMask = t.oldMask, false
	}
	if t.call.active {
		if t.call.restart == errNoInterrupt || t.call.restart == errRestart && a.Flags&saRestart != 0 {
			t.regs.RIP -= 2 // back to the SYSCALL instruction
			t.regs.GPR[arch.RAX] = t.call.number
			t.dirty = true
			t.call = callState{}
		} else {
			t.leaveCall(linux.Failure(unix.EINTR))
		}
	}
	t.resolveInterrupted(true, a.Flags&saRestart != 0)
	if a.Flags&saResetHand != 0 {
		t.proc.actions.list[n].Handler = sigDfl
	}
	if !t.pushFrame(i, a, saved) {
		t.proc.actions.list[int(unix.SIGSEGV)].Handler = sigDfl
		segv := signalInfo(unix.SIGSEGV, siKernel)
		t.reportDelivery(&segv, true)
		t.k.killProcess(t.proc, int(unix.SIGSEGV))
		return
	}
	t.mask |= a.Mask
	if a.Flags&saNoDefer == 0 {
		t.mask |= sigbit(n)
	}
	t.mask &^= unblockable
	if t.isStepping() {
		t.enterTraceStop(&traceStop{kind: stopElsewhere, code: int32(unix.SIGTRAP), info: t.eventInfo(int32(unix.SIGTRAP))}, cldTrapped)
	}
}
