package kernel

import (
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// Override replaces decisions of the kernel that depend on when threads run, for runs that follow a
// schedule. Its methods are queries; after their answers change, RecheckTimeouts or RecheckSignals
// must be called.
type Override interface {
	// Clock is the time that clocks show and that is stored as a timestamp, in nanoseconds since
	// the start of the run, when the actual time is now. Timers use the actual time.
	Clock(now int64) int64
	// IgnoresFutexTimeouts reports whether waits for a futex time out only by ExpireWait.
	IgnoresFutexTimeouts() bool
	// IgnoresCallTimeouts reports the same of waits in other system calls, but for those that only
	// sleep (linux.Sleeps). A call whose time is up when it begins does not wait.
	IgnoresCallTimeouts() bool
	// HoldsSignals reports whether signals of a thread stay pending until Deliver is called:
	// signals that have a handler or kill, and that are not caused by an instruction of the thread
	// itself. SIGKILL, stop signals and ignored signals are never held.
	HoldsSignals(*Task) bool
}

// noOverride decides as Linux does.
type noOverride struct{}

func (noOverride) Clock(now int64) int64      { return now }
func (noOverride) IgnoresFutexTimeouts() bool { return false }
func (noOverride) IgnoresCallTimeouts() bool  { return false }
func (noOverride) HoldsSignals(*Task) bool    { return false }

// SetOverride replaces the override; nil removes it.
func (k *Kernel) SetOverride(o Override) {
	if o == nil {
		o = noOverride{}
	}
	k.override = o
}

// RecheckTimeouts makes threads that wait check again whether their calls have deadlines.
func (k *Kernel) RecheckTimeouts() {
	for _, t := range k.Tasks() {
		timed := t.call.deadline != 0 && t.call.deadline != forever && !linux.Has(t.call.number, linux.Sleeps)
		if t.state == blocked && (t.call.futex != nil || timed) {
			t.Wake(wait.AnyEvent)
		}
	}
}

// RecheckSignals wakes the threads that have a signal to be delivered.
func (k *Kernel) RecheckSignals() {
	for _, t := range k.Tasks() {
		if t.isSignalReady() {
			t.Wake(wait.AnyEvent)
		}
	}
}
