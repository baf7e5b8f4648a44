// Package override has the decisions of a schedule or a controller that take the place of the
// kernel's (kernel.Override): which time clocks show, which waits have no deadline, and which signals
// wait. It decides nothing itself: package machine sets it.
package override

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/nearmap"
)

// Override is a kernel.Override. It is plain data. Its zero value decides as the kernel does.
type Override struct {
	// NoFutexTimeouts and NoCallTimeouts are IgnoresFutexTimeouts and IgnoresCallTimeouts.
	NoFutexTimeouts, NoCallTimeouts bool
	// HoldsAll has the signals of all threads wait.
	HoldsAll  bool
	holds     nearmap.Map[arch.ThreadID, Hold]
	showsTime bool
	shown     int64 // ns, if showsTime
}

// Hold is when the signals of a thread wait: always, or while it is not in a system call.
type Hold struct{ Always, OutsideCall bool }

// ShowTime has clocks show a time in ns since the start of the run. If shows is false they show the actual time.
func (o *Override) ShowTime(ns int64, shows bool) { o.shown, o.showsTime = ns, shows }

// Clock implements kernel.Override.
func (o *Override) Clock(now int64) int64 {
	if o.showsTime {
		return o.shown
	}
	return now
}

// IgnoresFutexTimeouts implements kernel.Override.
func (o *Override) IgnoresFutexTimeouts() bool { return o.NoFutexTimeouts }

// IgnoresCallTimeouts implements kernel.Override.
func (o *Override) IgnoresCallTimeouts() bool { return o.NoCallTimeouts }

// HoldsSignals implements kernel.Override.
func (o *Override) HoldsSignals(t *kernel.Task) bool {
	h := o.holds.At(t.ID())
	_, inCall := t.Call()
	return o.HoldsAll || h.Always || h.OutsideCall && !inCall
}

// SetHold says when the signals of a thread wait.
func (o *Override) SetHold(t arch.ThreadID, h Hold) {
	if h == (Hold{}) {
		o.holds.Delete(t)
	} else {
		o.holds.Put(t, h)
	}
}

// IgnoreFutexTimeouts says whether waits for a futex have no deadline but sched.Expire.
func (o *Override) IgnoreFutexTimeouts(k *kernel.Kernel, on bool) {
	o.NoFutexTimeouts = on
	k.RecheckTimeouts()
}

// IgnoreTimeouts says the same of all waits but sleeps.
func (o *Override) IgnoreTimeouts(k *kernel.Kernel, on bool) {
	o.NoCallTimeouts = on
	o.IgnoreFutexTimeouts(k, on)
}

// HoldAllSignals says whether signals of all threads wait.
func (o *Override) HoldAllSignals(k *kernel.Kernel, on bool) {
	o.HoldsAll = on
	if !on {
		k.RecheckSignals()
	}
}

// HoldPresent says whether the signals of the threads that there are now wait, always.
func (o *Override) HoldPresent(k *kernel.Kernel, on bool) {
	for _, t := range k.Tasks() {
		h := o.holds.At(t.ID())
		h.Always = on
		o.SetHold(t.ID(), h)
	}
	if !on {
		k.RecheckSignals()
	}
}
