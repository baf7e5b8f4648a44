package machine

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/nearmap"
)

// override is the kernel.Override of a machine: the decisions of a schedule or a controller in
// place of the kernel's. Its zero value decides as the kernel does.
type override struct {
	noFutexTimeouts bool
	holdsAll        bool // signals of all threads wait
	holds           nearmap.Map[arch.ThreadID, signalHold]
	showsTime       bool
	shown           int64 // ns, if showsTime
}

// signalHold is when the signals of a thread wait.
type signalHold struct {
	always      bool
	outsideCall bool // while it is not in a system call
}

// Clock implements kernel.Override.
func (o *override) Clock(now int64) int64 {
	if o.showsTime {
		return o.shown
	}
	return now
}

// IgnoresFutexTimeouts implements kernel.Override.
func (o *override) IgnoresFutexTimeouts() bool { return o.noFutexTimeouts }

// HoldsSignals implements kernel.Override.
func (o *override) HoldsSignals(t *kernel.Task) bool {
	h := o.holds.At(t.ID())
	_, inCall := t.Call()
	return o.holdsAll || h.always || h.outsideCall && !inCall
}

// setHold says when the signals of a thread wait.
func (o *override) setHold(t arch.ThreadID, h signalHold) {
	if h == (signalHold{}) {
		o.holds.Delete(t)
	} else {
		o.holds.Put(t, h)
	}
}

// ignoreFutexTimeouts says whether waits for a futex have no deadline but kernel.Expire.
func (s *state) ignoreFutexTimeouts(on bool) {
	s.override.noFutexTimeouts = on
	s.kernel.RecheckFutexes()
}

// holdAllSignals says whether signals of all threads wait.
func (s *state) holdAllSignals(on bool) {
	s.override.holdsAll = on
	if !on {
		s.kernel.RecheckSignals()
	}
}

// holdPresentSignals says whether the signals of the threads that there are now wait.
func (s *state) holdPresentSignals(on bool) {
	for _, t := range s.kernel.Tasks() {
		h := s.override.holds.At(t.ID())
		h.always = on
		s.override.setHold(t.ID(), h)
	}
	if !on {
		s.kernel.RecheckSignals()
	}
}
