package syncops

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// blocking are the system calls that may wait for another thread, process or
// the outside, sorted by number. TERN (section 4) hooks eight of them: sleep,
// accept, recv, select, read and the like.
var blocking = []uint64{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_POLL, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_READV,
	unix.SYS_WRITEV, unix.SYS_SELECT, unix.SYS_SCHED_YIELD, unix.SYS_PAUSE, unix.SYS_NANOSLEEP, unix.SYS_SENDFILE,
	unix.SYS_CONNECT, unix.SYS_ACCEPT, unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_RECVMSG,
	unix.SYS_WAIT4, unix.SYS_SEMOP, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_FCNTL, unix.SYS_FLOCK,
	unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGSUSPEND, unix.SYS_FUTEX, unix.SYS_RESTART_SYSCALL, unix.SYS_SEMTIMEDOP,
	unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_EPOLL_WAIT, unix.SYS_MQ_TIMEDSEND, unix.SYS_MQ_TIMEDRECEIVE, unix.SYS_WAITID, unix.SYS_PSELECT6, unix.SYS_PPOLL, unix.SYS_SPLICE, unix.SYS_EPOLL_PWAIT,
	unix.SYS_ACCEPT4, unix.SYS_PREADV, unix.SYS_PWRITEV, unix.SYS_RECVMMSG, unix.SYS_SENDMMSG, unix.SYS_EPOLL_PWAIT2,
}

// Blocking tells whether a system call may wait.
func Blocking(number uint64) bool {
	_, found := slices.BinarySearch(blocking, number)
	return found
}

// Operations of futex(2), without their flags.
const (
	futexWait          = 0
	futexWake          = 1
	futexRequeue       = 3
	futexCmpRequeue    = 4
	futexWakeOp        = 5
	futexLockPI        = 6
	futexUnlockPI      = 7
	futexTrylockPI     = 8
	futexWaitBitset    = 9
	futexWakeBitset    = 10
	futexWaitRequeuePI = 11
	futexCmpRequeuePI  = 12
	futexLockPI2       = 13
	futexCommand       = 0x7f
)

// futexOp is how a futex operation is recorded: one that may get a lock as a wait, one
// that gives it back as a wake-up.
func futexOp(command uint64) (event.SyncOp, bool) {
	switch command {
	case futexWait, futexWaitBitset, futexLockPI, futexTrylockPI, futexLockPI2, futexWaitRequeuePI:
		return event.OpFutexWait, true
	case futexWake, futexWakeBitset, futexRequeue, futexCmpRequeue, futexWakeOp, futexUnlockPI, futexCmpRequeuePI:
		return event.OpFutexWake, true
	}
	return 0, false
}

// issueFutex records a futex call that is no part of an operation.
func (r *Recognizer) issueFutex(t *thread, args [6]uint64, at *event.Stamp) {
	op, known := futexOp(args[1] & futexCommand)
	if !known {
		return
	}
	pc := r.caller(t)
	inner := event.Effects(0)
	if t.space.ofLibrary(t.space.imageAt(pc)) {
		inner = event.Inner
	}
	r.enterFutex(t, &pendingFutex{op: op, addr: event.Addr(args[0]), pc: pc, inner: inner}, args[2], at)
	if args[1]&futexCommand == futexWaitRequeuePI {
		t.futex.lock = event.Addr(args[4])
	}
}

// enterFutex records that a thread is in a futex call about a word.
func (r *Recognizer) enterFutex(t *thread, p *pendingFutex, value uint64, at *event.Stamp) {
	e := event.Sync{Stamp: *at, Op: p.op, Phase: event.Enter, Addr: p.addr, PC: p.pc, Effects: p.inner, Peer: event.NoThread}
	if p.op == event.OpFutexWake {
		e.Effects |= event.Release
	}
	e.Thread = t.id
	e.Value = uint64(uint32(value))
	p.object = r.object(t, at, e.Addr, false).id
	e.Object = p.object
	r.emit(&e)
	t.futex = p
}

// completeFutex records what became of it. A wait that ended with a lock is followed by
// one for that.
func (r *Recognizer) completeFutex(t *thread, result uint64, at *event.Stamp) {
	p := t.futex
	if p == nil {
		return
	}
	t.futex = nil
	e := event.Sync{
		Stamp: *at, Op: p.op, Phase: event.Return, Object: p.object, Addr: p.addr, PC: p.pc, Effects: p.inner, Peer: event.NoThread, Result: int64(result),
	}
	e.Thread = t.id
	if p.op == event.OpFutexWait && result == 0 {
		e.Effects |= event.Acquire
	}
	r.emit(&e)
	if p.lock != 0 && result == 0 {
		r.enterFutex(t, &pendingFutex{op: p.op, addr: p.lock, pc: p.pc, inner: p.inner}, 0, at)
		r.completeFutex(t, result, at)
	}
}

// wrapperSize is more than the function syscall takes in any C library.
const wrapperSize = 64

// caller is where the loaded thread, which has made a system call, made it, or
// called syscall for it.
func (r *Recognizer) caller(t *thread) event.Addr {
	var regs emu.Regs
	r.host.engine.Regs(&regs)
	pc := event.Addr(regs.RIP)
	for _, w := range t.space.wrappers {
		if pc-w < wrapperSize {
			ret, _ := r.readWord(t.space.as, event.Addr(regs.GPR[emu.RSP]), 8)
			return event.Addr(ret)
		}
	}
	return pc
}
