package kernel

import "github.com/heddle-dmt/heddle/guest/wait"

// Override decides in the kernel's place what depends on when threads run: a run that follows a
// schedule has one. Its methods only report; what they report changes together with a call of
// RecheckFutexes or RecheckSignals.
type Override interface {
	// Clock is the time that clocks show, and what is stamped by them, in nanoseconds since the
	// start of the run, when it is now. Timers go by the time that it is.
	Clock(now int64) int64
	// IgnoresFutexTimeouts reports whether waits for a futex have no deadline but Expire.
	IgnoresFutexTimeouts() bool
	// HoldsSignals reports whether signals of a thread wait until Deliver says that they are due: those
	// that have a handler or kill, and that no instruction of the thread itself has caused.
	// SIGKILL, stops and what is ignored never wait.
	HoldsSignals(*Task) bool
}

// noOverride decides as Linux does.
type noOverride struct{}

func (noOverride) Clock(now int64) int64      { return now }
func (noOverride) IgnoresFutexTimeouts() bool { return false }
func (noOverride) HoldsSignals(*Task) bool    { return false }

// SetOverride has another decide from now on; nil: none does.
func (k *Kernel) SetOverride(o Override) {
	if o == nil {
		o = noOverride{}
	}
	k.override = o
}

// RecheckFutexes has threads that wait for a futex look again whether their calls have deadlines.
func (k *Kernel) RecheckFutexes() {
	for _, t := range k.Tasks() {
		if t.state == blocked && t.call.futex != nil {
			t.Wake(wait.AnyEvent)
		}
	}
}

// RecheckSignals wakes the threads for which a signal is ready.
func (k *Kernel) RecheckSignals() {
	for _, t := range k.Tasks() {
		if t.signalReady() {
			t.Wake(wait.AnyEvent)
		}
	}
}
