package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/wait"
)

// Those who control when threads go on say when they get their signals, too: those
// that have a handler or kill, and that no instruction of the thread itself has
// caused. SIGKILL, stops and what is ignored are never kept.

// KeepSignals says whether signals wait until Deliver says that they are due.
func (k *Kernel) KeepSignals(on bool) {
	k.keeping = on
	if on {
		return
	}
	for _, t := range k.Tasks() {
		if t.signalReady() {
			t.Wake(wait.AnyEvent)
		}
	}
}

// KeepSignals says whether signals of one thread wait until it is in a system call.
func (t *Task) KeepSignals(on bool) { t.keeping = on }

// HoldSignals says whether signals of the threads that there are wait until Deliver
// says that they are due.
func (k *Kernel) HoldSignals(on bool) {
	for _, t := range k.Tasks() {
		t.HoldSignals(on)
		if !on && t.signalReady() {
			t.Wake(wait.AnyEvent)
		}
	}
}

// HoldSignals says whether signals of one thread wait until Deliver says that they
// are due.
func (t *Task) HoldSignals(on bool) { t.holding = on }

// kept are the pending signals of a thread that wait.
func (t *Task) kept() (kept sigset) {
	if !t.k.keeping && !t.holding && (!t.keeping || t.call.active) {
		return 0
	}
	for s := t.pending() &^ t.forced; s != 0; {
		n := s.first()
		s &^= sigbit(n)
		a := &t.proc.actions.list[n]
		ends := a.Handler == sigDfl && !ignoredByDefault.has(n) && !stopSignals.has(n) && n != int(unix.SIGKILL)
		if ends || a.Handler != sigDfl && a.Handler != sigIgn {
			kept |= sigbit(n)
		}
	}
	return kept
}

// Deliver has a thread get a signal when it runs next, with the siginfo_t info,
// whether or not it is pending. One that comes later counts as this one.
func (k *Kernel) Deliver(t *Task, info []byte) {
	t.due = &sigInfo{}
	copy(t.due[:], info)
	if n := t.due.number(); n < 1 || n > lastSignal {
		t.due = nil
		return
	}
	t.Wake(wait.AnyEvent)
}

// takeDue takes the signal that is due, and one of its kind that is pending.
func (t *Task) takeDue() (i sigInfo, ok bool) {
	if t.due == nil {
		return i, false
	}
	i, t.due = *t.due, nil
	n := i.number()
	for _, q := range []*signalQueue{&t.signals, &t.proc.signals} {
		if q.set.has(n) {
			t.take(q, n)
			t.proc.retell(&i)
			return i, true
		}
	}
	t.proc.early[n]++
	return i, true
}

// wasEarly tells whether a signal that comes was delivered before: see Deliver.
func (p *Process) wasEarly(n int) bool {
	if p.early[n] == 0 {
		return false
	}
	p.early[n]--
	return true
}
