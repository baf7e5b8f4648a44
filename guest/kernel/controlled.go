package kernel

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/wait"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// These methods are for a driver that controls when threads continue. They end calls and waits that
// would otherwise end differently or later.

// CompleteCall completes the system call that the loaded thread has just issued with a given result
// and given writes to memory, and without any other effect of the call.
func (k *Kernel) CompleteCall(t *Task, result uint64, writes []event.Write) {
	k.actFor(t)
	t.beginCall()
	k.countCall(lookupSyscall(t.call.number), t.call.number)
	t.proc.Overwrite(writes)
	t.leaveCall(result)
}

// Overwrite writes to a process's memory, as a system call does.
func (p *Process) Overwrite(writes []event.Write) {
	for _, w := range writes {
		// Memory that is missing now was mapped when this was recorded.
		_ = p.space.CopyOut(w.Addr, w.Data)
	}
}

// ReturnFromFunction makes a thread that is at the first instruction of a function return from it
// with a result.
func (k *Kernel) ReturnFromFunction(t *Task, result uint64) {
	t.Load()
	t.readRegs()
	sp := t.regs.GPR[arch.RSP]
	to, errno := t.proc.space.ReadU64(arch.Addr(sp))
	if errno != 0 {
		return // it faults at the return address, as the function's own return would
	}
	t.regs.RIP, t.regs.GPR[arch.RSP], t.regs.GPR[arch.RAX] = to, sp+8, result
	t.dirty = true
}

// ExpireWait makes the wait of a blocked thread time out, whether or not it has a deadline.
func (k *Kernel) ExpireWait(t *Task) {
	if t.state == blocked {
		t.call.expired = true
		t.Wake(wait.AnyEvent)
	}
}

// InterruptWait ends the wait of a blocked thread as if a signal had arrived, for calls that fail with
// EINTR then, whatever the signal does.
func (k *Kernel) InterruptWait(t *Task) {
	if t.state == blocked {
		t.call.stopped = true
		t.Wake(wait.AnyEvent)
	}
}

// DetachWait takes a blocked thread off the queue of the futex that it waits for: no other thread wakes it.
func (k *Kernel) DetachWait(t *Task) {
	if w := t.call.futex; t.state == blocked && w != nil && !w.woken {
		k.removeFutexWaiter(w)
	}
}

// EndWait ends the wait of a blocked thread. A futex call returns as if it had been woken; other
// system calls check again for the event that they wait for.
func (k *Kernel) EndWait(t *Task) {
	if t.state != blocked {
		return
	}
	if w := t.call.futex; w != nil && !w.woken {
		k.removeFutexWaiter(w)
		w.woken = true
	}
	t.Wake(wait.AnyEvent)
}

// hasTimedOut reports whether the wait of the current call ends now as if its deadline had passed.
func (t *Task) hasTimedOut(deadline int64) bool {
	return t.call.expired || deadline <= t.k.clock.now && !(t.call.attempt > 0 && t.ignoresTimeout())
}

// ignoresTimeout reports whether the wait of the current call, which is not for a futex, ends by
// ExpireWait alone.
func (t *Task) ignoresTimeout() bool {
	return t.call.futex == nil && t.k.override.IgnoresCallTimeouts() && !linux.Has(t.call.number, linux.Sleeps)
}

// Runnable reports whether a thread is neither blocked nor stopped by a signal.
func (t *Task) Runnable() bool { return t.state == running }

// BlockedIn reports whether a thread is blocked, and in which system call.
func (t *Task) BlockedIn() (number uint64, ok bool) {
	return t.call.number, t.state == blocked
}
