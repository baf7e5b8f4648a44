package syncops

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// futexOp is how a futex operation is recorded: one that may get a lock as a wait, one
// that gives it back as a wake-up.
func futexOp(command uint64) (event.SyncOp, bool) {
	switch {
	case linux.FutexWaits(command):
		return event.OpFutexWait, true
	case linux.FutexWakes(command):
		return event.OpFutexWake, true
	}
	return 0, false
}

// issueFutex records a futex call that is no part of an operation.
func (r *Recognizer) issueFutex(t *thread, args [6]uint64, at *event.Stamp) {
	op, known := futexOp(args[1] & linux.FutexOperation)
	if !known {
		return
	}
	pc := r.callAddress(t)
	inner := event.Effects(0)
	if t.space.ofLibrary(t.space.imageAt(pc)) {
		inner = event.Inner
	}
	r.enterFutex(t, &pendingFutex{op: op, addr: arch.Addr(args[0]), pc: pc, inner: inner}, args[2], at)
	if args[1]&linux.FutexOperation == linux.FutexWaitRequeuePI {
		t.futex.lock = arch.Addr(args[4])
	}
}

// enterFutex records that a thread is in a futex call about a word.
func (r *Recognizer) enterFutex(t *thread, p *pendingFutex, value uint64, at *event.Stamp) {
	e := event.Sync{Stamp: *at, Op: p.op, Phase: event.Enter, Addr: p.addr, PC: p.pc, Effects: p.inner, Peer: arch.NoThread}
	if p.op == event.OpFutexWake {
		e.Effects |= event.Release
	}
	e.Thread = t.id
	e.Value = uint64(uint32(value))
	p.object = r.objectAt(t, at, e.Addr, false).id
	e.Object = p.object
	r.emit(&e)
	t.futex = p
}

// completeFutex records the result of a futex call. A wait that ended with a lock is followed by
// one for that.
func (r *Recognizer) completeFutex(t *thread, result uint64, at *event.Stamp) {
	p := t.futex
	if p == nil {
		return
	}
	t.futex = nil
	e := event.Sync{
		Stamp: *at, Op: p.op, Phase: event.Return, Object: p.object, Addr: p.addr, PC: p.pc, Effects: p.inner, Peer: arch.NoThread, Result: int64(result),
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

// CallsInner reports whether a thread is in a futex call that the C library makes for itself.
func (r *Recognizer) CallsInner(id arch.ThreadID) bool {
	t := r.threads.At(id)
	return t != nil && t.futex != nil && t.futex.inner != 0
}

// wrapperSize is more than the function syscall takes in any C library.
const wrapperSize = 64

// callAddress is where the loaded thread, which has made a system call, made it, or
// called syscall for it.
func (r *Recognizer) callAddress(t *thread) arch.Addr {
	var regs arch.Regs
	r.host.engine.Regs(&regs)
	pc := arch.Addr(regs.RIP)
	for _, w := range t.space.wrappers {
		if pc-w < wrapperSize {
			ret, _ := r.readWord(t.space.as, arch.Addr(regs.GPR[arch.RSP]), 8)
			return arch.Addr(ret)
		}
	}
	return pc
}
