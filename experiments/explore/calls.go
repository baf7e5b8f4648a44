package explore

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/sched/dpor"
)

// The objects of the kernel that events access, as addresses beyond those of memory: the waiters of each
// futex, by the address of its word, and others.
const (
	futexes = 1 << 60
	others  = 1 << 61

	objectTimers  = others + iota // the list of timers
	objectSpace                   // the mappings of the process
	objectThreads                 // the ids of threads
	objectKernel                  // everything else
)

// objectAccess is an access to an object; no two are independent.
func objectAccess(object uint64) dpor.Access {
	return dpor.Access{Start: object, End: object + 1, Write: true}
}

// futexAccess is an access to the waiters of a futex.
func futexAccess(at uint64) dpor.Access { return objectAccess(futexes + at) }

// timerEvent is the event of a timer that ends: it may end the wait for any futex.
func timerEvent() dpor.Event {
	return dpor.Event{
		Process: timerProcess, Owner: timerProcess,
		Accesses: []dpor.Access{{Start: futexes, End: futexes + 1<<48, Write: true}, objectAccess(objectTimers), objectAccess(objectKernel)},
	}
}

// systemCall is a call that a thread is about to make.
type systemCall struct {
	number uint64
	args   [6]uint64
}

func newSystemCall(r *arch.Regs) systemCall {
	return systemCall{kernel.CallNumber(r.GPR[arch.RAX]), [6]uint64{r.GPR[arch.RDI], r.GPR[arch.RSI], r.GPR[arch.RDX], r.GPR[arch.R10], r.GPR[arch.R8], r.GPR[arch.R9]}}
}

// isLocal reports whether no other thread can notice the call, and it does not depend on others.
func (c *systemCall) isLocal() bool {
	return linux.Has(c.number, linux.ThreadLocal)
}

// mayWaitInvisibly reports whether the end of a wait in the call is no event: it has no effect but on the
// thread itself.
func mayWaitInvisibly(number uint64) bool {
	return number == unix.SYS_FUTEX || linux.Has(number, linux.Sleeps|linux.ThreadLocal)
}

// describe fills in the event of a call that is not local. It returns the sentence's end about a call of
// which the effect on other threads is not known.
func (c *systemCall) describe(t *kernel.Task, r *arch.Regs, e *dpor.Event) (refused string) {
	switch c.number {
	case unix.SYS_FUTEX:
		e.Accesses = c.futexAccesses()
	case unix.SYS_EXIT_GROUP:
		e.Ends = true
	case unix.SYS_EXIT: // its accesses are those of the kernel
	case unix.SYS_CLONE, unix.SYS_CLONE3:
		if !t.MakesThread(r) {
			return "makes a process"
		}
		e.Accesses = []dpor.Access{objectAccess(objectThreads)}
	case unix.SYS_FORK, unix.SYS_VFORK:
		return "makes a process"
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		return "executes another program"
	case unix.SYS_TGKILL, unix.SYS_TKILL:
		target := c.args[0]
		if c.number == unix.SYS_TGKILL {
			target = c.args[1]
		}
		if arch.ThreadID(target) != t.ID() {
			return "sends a signal to another thread"
		}
		e.Ends = true
	case unix.SYS_KILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_SETITIMER, unix.SYS_ALARM,
		unix.SYS_TIMER_CREATE:
		return "sends signals"
	default:
		c.describeOther(e)
	}
	return ""
}

func (c *systemCall) describeOther(e *dpor.Event) {
	object := uint64(objectKernel)
	if linux.Has(c.number, linux.Sleeps) {
		object = objectTimers
	} else if linux.Has(c.number, linux.AddressSpace) && !linux.Has(c.number, linux.KernelState) || c.number == unix.SYS_MMAP && c.args[3]&unix.MAP_ANONYMOUS != 0 {
		object = objectSpace
	}
	e.Accesses = []dpor.Access{objectAccess(object)}
	if linux.Has(c.number, linux.Blocks) && object != objectTimers {
		e.Accesses = append(e.Accesses, objectAccess(objectTimers))
	}
}

// futexWord is the size of the word of a futex.
const futexWord = 4

func (c *systemCall) futexAccesses() []dpor.Access {
	word := func(at uint64, write bool) dpor.Access {
		return dpor.Access{Start: at, End: at + futexWord, Write: write}
	}
	list := []dpor.Access{futexAccess(c.args[0])}
	timeout := c.args[3] != 0
	switch c.args[1] & linux.FutexOperation {
	case linux.FutexWake, linux.FutexWakeBitset:
		timeout = false
	case linux.FutexWait, linux.FutexWaitBitset:
		list = append(list, word(c.args[0], false))
	case linux.FutexRequeue, linux.FutexCmpRequeue:
		list = append(list, word(c.args[0], false), futexAccess(c.args[4]))
		timeout = false
	case linux.FutexWakeOp:
		list = append(list, word(c.args[4], true), futexAccess(c.args[4]))
		timeout = false
	default: // those with priority inheritance
		list = append(list, word(c.args[0], true), word(c.args[4], true), futexAccess(c.args[4]), objectAccess(objectThreads))
	}
	if timeout {
		list = append(list, objectAccess(objectTimers))
	}
	return list
}
