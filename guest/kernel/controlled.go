package kernel

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/wait"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// What those can do who control when threads go on: make things end that would
// end otherwise, or later.

// Answer completes the system call that the loaded thread has just issued with a
// result and what it writes, and does nothing else of it.
func (k *Kernel) Answer(t *Task, result uint64, writes []event.Write) {
	k.current = t
	t.begin()
	k.count(lookup(t.call.number), t.call.number)
	t.proc.Overwrite(writes)
	t.leave(result)
}

// Overwrite writes to a process's memory, as a system call does.
func (p *Process) Overwrite(writes []event.Write) {
	for _, w := range writes {
		// Memory that is not there was there when this was recorded.
		_ = p.space.CopyOut(w.Addr, w.Data)
	}
}

// Leave makes a thread that is at the first instruction of a function return from
// it with a result.
func (k *Kernel) Leave(t *Task, result uint64) {
	t.Load()
	t.readRegs()
	sp := t.regs.GPR[arch.RSP]
	to, errno := t.proc.space.ReadU64(arch.Addr(sp))
	if errno != 0 {
		return // it faults there, as the function's return would
	}
	t.regs.RIP, t.regs.GPR[arch.RSP], t.regs.GPR[arch.RAX] = to, sp+8, result
	t.dirty = true
}

// Expire makes the wait of a blocked thread time out, whether or not it has a
// deadline: in a futex call or a sleep.
func (k *Kernel) Expire(t *Task) {
	if t.state == blocked {
		t.call.expired = true
		t.Wake(wait.AnyEvent)
	}
}

// Rouse ends the wait of a blocked thread: in a futex call as if it had been
// woken. Other system calls look again at what they wait for.
func (k *Kernel) Rouse(t *Task) {
	if t.state != blocked {
		return
	}
	if w := t.call.futex; w != nil && !w.woken {
		k.forgetFutex(w)
		w.woken = true
	}
	t.Wake(wait.AnyEvent)
}

// timedOut tells whether the current call's wait is to end as if its deadline
// had passed.
func (t *Task) timedOut(deadline int64) bool { return t.call.expired || deadline <= t.k.now }

// Runnable tells whether a thread is neither blocked nor stopped by a signal.
func (t *Task) Runnable() bool { return t.state == running }

// Waits tells whether a thread is blocked, and in which system call.
func (t *Task) Waits() (number uint64, ok bool) {
	return t.call.number, t.state == blocked
}
