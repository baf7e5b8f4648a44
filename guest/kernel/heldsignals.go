package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/wait"
)

// A driver that controls when threads continue also decides when they get signals that have a
// handler or kill and that are not caused by an instruction of the thread itself: see
// Override.HoldsSignals.

// heldSignals are the pending signals of a thread that are not delivered before Deliver is called.
func (t *Task) heldSignals() (kept sigset) {
	candidates := t.pendingSignals() &^ t.forced
	if candidates == 0 || !t.k.override.HoldsSignals(t) {
		return 0
	}
	for s := candidates; s != 0; {
		n := s.lowest()
		s &^= sigbit(n)
		a := &t.proc.actions.list[n]
		ends := a.Handler == sigDfl && !ignoredByDefault.has(n) && !stopSignals.has(n) && n != int(unix.SIGKILL)
		if ends || a.Handler != sigDfl && a.Handler != sigIgn {
			kept |= sigbit(n)
		}
	}
	return kept
}

// Deliver makes a thread get a signal with the siginfo_t info when it runs next, whether or not the
// signal is pending. If it is not, its next arrival is dropped.
func (k *Kernel) Deliver(t *Task, info []byte) {
	t.due = &sigInfo{}
	copy(t.due[:], info)
	if n := t.due.number(); n < 1 || n > lastSignal {
		t.due = nil
		return
	}
	t.Wake(wait.AnyEvent)
}

// takeDueSignal takes the signal that is due, and a pending one with its number.
func (t *Task) takeDueSignal() (i sigInfo, ok bool) {
	if t.due == nil {
		return i, false
	}
	i, t.due = *t.due, nil
	n := i.number()
	for _, q := range []*signalQueue{&t.signals, &t.proc.signals} {
		if q.set.has(n) {
			t.takeSignal(q, n)
			t.proc.copyOverrun(&i)
			return i, true
		}
	}
	t.proc.early[n]++
	return i, true
}

// consumeEarly returns whether an arriving signal has been delivered already, and counts it: see
// Deliver.
func (p *Process) consumeEarly(n int) bool {
	if p.early[n] == 0 {
		return false
	}
	p.early[n]--
	return true
}
