package dpor

import "slices"

// Process identifies a thread or a store buffer of the program, or what fires its timers. The lower ThreadShift bits of
// a thread are 0, and no others' are.
type Process uint64

// ThreadShift is the place of a thread's number in its Process.
const ThreadShift = 48

// isThread reports whether the process is a thread.
func (p Process) isThread() bool { return p&(1<<ThreadShift-1) == 0 }

// Access is an access to the addresses from Start to End, End excluded, of memory or of whatever else
// processes have in common.
type Access struct {
	Start uint64 `json:"from"`
	End   uint64 `json:"to"`
	Write bool   `json:"write,omitempty"`
}

// Event is a step of a process. Two events of different owners are dependent if they access an address in
// common that one of them writes, or if one of them Ends.
type Event struct {
	Process Process `json:"process"`
	// Owner is the thread of a process: itself, or the thread whose stores a store buffer has. What a
	// thread observes does not depend on when its own stores are committed.
	Owner    Process  `json:"owner"`
	Accesses []Access `json:"accesses,omitempty"`
	// Ends marks an event on which those of all other owners depend, such as the end of the program.
	Ends bool `json:"ends,omitempty"`
	// Prevents are the next events of other processes that are impossible after this one.
	Prevents []Event `json:"-"`
	// After are earlier events, by their numbers in the execution, without which this one would be
	// impossible, besides those of the process itself. Their order cannot be reversed.
	After []int `json:"-"`
}

// depends reports whether two events of different processes are dependent.
func (e *Event) depends(o *Event) bool {
	if e.Owner == o.Owner {
		return false
	}
	if e.Ends || o.Ends {
		return true
	}
	for i := range e.Accesses {
		a := &e.Accesses[i]
		for j := range o.Accesses {
			b := &o.Accesses[j]
			if a.Start < b.End && b.Start < a.End && (a.Write || b.Write) {
				return true
			}
		}
	}
	return false
}

// equals reports whether two events are the same step of the same process.
func (e *Event) equals(o *Event) bool {
	return e.Process == o.Process && e.Owner == o.Owner && e.Ends == o.Ends && slices.Equal(e.Accesses, o.Accesses)
}

// clock has for each process, by its index, the number of its latest event that happens before some event
// or is that event, plus 1; 0: none.
type clock []int32

func (c clock) at(index int) int32 {
	if index < len(c) {
		return c[index]
	}
	return 0
}

func (c clock) set(index int, value int32) clock {
	for len(c) <= index {
		c = append(c, 0)
	}
	c[index] = value
	return c
}

// join returns the clock that includes another one.
func (c clock) join(o clock) clock {
	for i, v := range o {
		if v > c.at(i) {
			c = c.set(i, v)
		}
	}
	return c
}
