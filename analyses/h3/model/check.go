package model

import (
	"fmt"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Check returns an error for a trace with an event that its thread cannot have executed there, or
// that this package cannot express.
func (t *Trace) Check() error {
	for i := range t.Threads {
		if err := t.checkThread(&t.Threads[i]); err != nil {
			return err
		}
	}
	return t.checkBarriers()
}

func (t *Trace) checkThread(thread *Thread) error {
	for i, id := range thread.Events {
		e := &t.Events[id]
		var previous *Event
		if i > 0 {
			previous = &t.Events[thread.Events[i-1]]
		}
		if why := t.eventProblem(e, previous, i == len(thread.Events)-1); why != "" {
			return fmt.Errorf("%s: %s", t.EventName(id), why)
		}
	}
	return nil
}

func (t *Trace) eventProblem(e, previous *Event, last bool) string {
	switch {
	case (e.Kind == Begin) != (previous == nil) && (e.Kind == Begin || t.isForked(e.Thread)):
		return "begin is the first event of a thread that is forked, and of no other"
	case e.Kind == End && !last:
		return "there are events behind the end"
	case e.Kind == Wake && !t.sleepsBefore(e):
		return "there is no sleep before it"
	case e.Kind == Leave && (previous == nil || previous.Kind != Arrive || previous.Object != e.Object):
		return "there is no arrival before it"
	case e.Kind.Reads() && (e.Symbol == nil || e.Symbol.Bits != 8*e.Size):
		return fmt.Sprintf("it has no symbol of %d bits", 8*e.Size)
	case e.Kind.Writes() && (e.Value == nil || e.Value.Bits != 8*e.Size):
		return fmt.Sprintf("it has no value of %d bits", 8*e.Size)
	case e.Kind.Reads() || e.Kind.Writes():
		return t.accessProblem(e)
	}
	return ""
}

// sleepsBefore reports whether the thread of a Wake has begun to wait, and has only unlocked since,
// or has only passed the barrier after a checkpoint's events.
func (t *Trace) sleepsBefore(wake *Event) bool {
	events := t.Threads[wake.Thread].Events
	for at := wake.Number - 1; at >= 0; at-- {
		switch e := &t.Events[events[at]]; {
		case e.Kind == Sleep:
			return e.Object == wake.Object
		case e.Kind != Unlock && e.Kind != Arrive && e.Kind != Leave:
			return false
		}
	}
	return false
}

// accessProblem returns the problem with the place of an access, or "".
func (t *Trace) accessProblem(e *Event) string {
	if e.Index == nil {
		for i := range t.Arrays {
			if a := &t.Arrays[i]; e.Addr < a.End() && a.Addr < e.Addr+uint64(e.Size) {
				return fmt.Sprintf("it touches the array at %#x and has no index", a.Addr)
			}
		}
		return ""
	}
	switch a := t.arrayOf(e); {
	case a == nil:
		return fmt.Sprintf("there is no array at %#x", e.Addr)
	case a.Elem != e.Size:
		return fmt.Sprintf("the elements of the array at %#x have %d bytes, not %d", a.Addr, a.Elem, e.Size)
	case e.Index.Bits != 64:
		return fmt.Sprintf("its index has %d bits, not 64", e.Index.Bits)
	}
	return ""
}

// isForked reports whether another thread starts this one.
func (t *Trace) isForked(thread int) bool {
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == Fork && e.Peer == thread {
			return true
		}
	}
	return false
}

// checkBarriers demands that the threads which use a barrier are as many as it is
// for: who leaves with whom is known then.
func (t *Trace) checkBarriers() error {
	users := map[event.ObjectID]map[int]bool{}
	for id := range t.Events {
		e := &t.Events[id]
		if e.Kind != Arrive {
			continue
		}
		if users[e.Object] == nil {
			users[e.Object] = map[int]bool{}
		}
		users[e.Object][e.Thread] = true
		if n := len(users[e.Object]); n > e.Count {
			return fmt.Errorf("%s: the barrier is for %d threads, and %d or more use it", t.EventName(ID(id)), e.Count, n)
		}
	}
	return nil
}
