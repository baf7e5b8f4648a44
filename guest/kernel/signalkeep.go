package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/wait"
)

// Those who control when threads go on say when they get their signals, too: those
// that have a handler or kill, and that no instruction of the thread itself has
// caused. SIGKILL, stops and what is ignored are never kept.

// kept are the pending signals of a thread that wait.
func (t *Task) kept() (kept sigset) {
	candidates := t.pending() &^ t.forced
	if candidates == 0 || !t.k.override.HoldsSignals(t) {
		return 0
	}
	for s := candidates; s != 0; {
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
