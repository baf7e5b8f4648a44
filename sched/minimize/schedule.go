package minimize

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Store names the waiting stores of a thread to an address.
type Store struct {
	Thread arch.ThreadID `json:"thread"`
	Addr   arch.Addr     `json:"addr"`
}

// Hold keeps stores in their buffer: the newest ones to an address.
type Hold struct {
	Store
	Newest int `json:"newest"`
}

// Step lets a thread run on a core.
type Step struct {
	Thread arch.ThreadID `json:"thread"`
	Core   arch.CoreID   `json:"core"`
	// To is the thread's progress at the end of the step: the instructions that
	// it has retired, without those in which it waited (see Tracker).
	To uint64 `json:"to"`
	// Acts reports that the thread ended the step itself, by a system call, a PAUSE or a fault
	// after To instructions.
	Acts bool `json:"acts"`
	// Inside is how many accesses of its next instruction the thread has done then, besides:
	// the next step acts between them and the others.
	Inside uint8 `json:"inside,omitempty"`
	// PC is the thread's program counter then, 0 if that is not known. A Follower stops by To
	// alone, and reports another PC.
	PC arch.Addr `json:"pc"`
	// Hold are the stores of other threads that could be committed and stay in
	// their buffers during the step. All others are committed before it.
	Hold []Hold `json:"hold,omitempty"`
	// Waiting are stores that wait because older ones do. A Follower does not need them.
	Waiting []Hold `json:"behind,omitempty"`
}

// setEnd gives the step the end of another.
func (s *Step) setEnd(o *Step) { s.To, s.Acts, s.Inside = o.To, o.Acts, o.Inside }

// heldStores is how many stores to an address the step holds.
func (s *Step) heldStores(x Store) int {
	for _, h := range s.Hold {
		if h.Store == x {
			return h.Newest
		}
	}
	return 0
}

// Schedule is the order in which threads run, and in which their stores become visible to others.
type Schedule []Step

// deepClone copies a schedule, and the list of each step.
func (s Schedule) deepClone() Schedule {
	c := slices.Clone(s)
	for i := range c {
		c[i].Hold = slices.Clone(c[i].Hold)
	}
	return c
}

// Delay is a store, or several to one address, that was held back: from step From
// up to and with step Last. Stores is how many at a time.
type Delay struct {
	Store
	From, Last, Stores int
}

// Delays lists the delayed stores, by when they begin. Steps of the thread that
// made a store do not end its delay: its own core sees it anyway.
func (s Schedule) Delays() []Delay {
	var all []Delay
	open := map[Store]int{} // index in all; looked up only
	for i := range s {
		for _, h := range s[i].Hold {
			if k, ok := open[h.Store]; ok && s.isHeldBetween(h.Store, all[k].Last+1, i) {
				all[k].Last, all[k].Stores = i, max(all[k].Stores, h.Newest)
				continue
			}
			open[h.Store] = len(all)
			all = append(all, Delay{h.Store, i, i, h.Newest})
		}
	}
	return all
}

// isHeldBetween reports whether a store that is held before and after the half-open range [i, k) of
// steps is held in between.
func (s Schedule) isHeldBetween(x Store, i, k int) bool {
	for ; i < k; i++ {
		if s[i].Thread != x.Thread {
			return false
		}
	}
	return true
}

// Switches counts the changes from one thread to another.
func (s Schedule) Switches() int {
	n := 0
	for i := 1; i < len(s); i++ {
		if s[i].Thread != s[i-1].Thread {
			n++
		}
	}
	return n
}

// Cost is the quantity that Minimize reduces, the first field first.
type Cost struct {
	Switches int `json:"switches"`
	// Delays counts stores that were held back, without the stores that wait because of them.
	Delays int `json:"delays"`
	// Steps and Held count the steps, and the steps that stores are held in; Waiting the stores that
	// wait because of them.
	Steps   int `json:"steps"`
	Held    int `json:"held"`
	Waiting int `json:"behind"`
}

// Cost measures a schedule.
func (s Schedule) Cost() Cost {
	c := Cost{Switches: s.Switches(), Delays: len(s.Delays()), Steps: len(s)}
	for i := range s {
		c.Held += len(s[i].Hold)
		c.Waiting += len(s[i].Waiting)
	}
	return c
}

// Less compares costs.
func (c Cost) Less(o Cost) bool {
	a, b := [5]int{c.Switches, c.Delays, c.Steps, c.Held, c.Waiting}, [5]int{o.Switches, o.Delays, o.Steps, o.Held, o.Waiting}
	return slices.Compare(a[:], b[:]) < 0
}
