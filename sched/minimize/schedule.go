package minimize

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Store names the waiting stores of a thread to an address.
type Store struct {
	Thread event.ThreadID `json:"thread"`
	Addr   event.Addr     `json:"addr"`
}

// Hold keeps stores in their buffer: of those to an address the newest so many.
type Hold struct {
	Store
	Newest int `json:"newest"`
}

// Step lets a thread run on a core.
type Step struct {
	Thread event.ThreadID `json:"thread"`
	Core   event.CoreID   `json:"core"`
	// To is the thread's progress at the end of the step: the instructions that
	// it has retired, without those in which it waited (see Tracker).
	To uint64 `json:"to"`
	// Acts tells that the thread ended the step itself, by a system call, a
	// PAUSE or a fault after To instructions.
	Acts bool `json:"acts"`
	// Inside is how many accesses of its next instruction the thread has done then, besides:
	// the next step acts between them and the others.
	Inside uint8 `json:"inside,omitempty"`
	// PC is where the thread is then, 0 if that is not known. A Follower stops by
	// To alone, and tells when it comes elsewhere.
	PC event.Addr `json:"pc"`
	// Hold are the stores of other threads that could be committed and stay in
	// their buffers during the step. All others are committed before it.
	Hold []Hold `json:"hold,omitempty"`
	// Behind are those that wait because older ones do. A Follower needs none.
	Behind []Hold `json:"behind,omitempty"`
}

// endAt gives the step the end of another.
func (s *Step) endAt(o *Step) { s.To, s.Acts, s.Inside = o.To, o.Acts, o.Inside }

// held is how many stores to an address the step holds.
func (s *Step) held(x Store) int {
	for _, h := range s.Hold {
		if h.Store == x {
			return h.Newest
		}
	}
	return 0
}

// Schedule is who runs in which order, and what other threads see of it when.
type Schedule []Step

// clone copies a schedule, and the list of each step.
func (s Schedule) clone() Schedule {
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
			if k, ok := open[h.Store]; ok && s.waits(h.Store, all[k].Last+1, i) {
				all[k].Last, all[k].Stores = i, max(all[k].Stores, h.Newest)
				continue
			}
			open[h.Store] = len(all)
			all = append(all, Delay{h.Store, i, i, h.Newest})
		}
	}
	return all
}

// waits tells whether a store that is held before and after the steps from i up to
// k is held in between.
func (s Schedule) waits(x Store, i, k int) bool {
	for ; i < k; i++ {
		if s[i].Thread != x.Thread {
			return false
		}
	}
	return true
}

// Switches counts how often another thread goes on.
func (s Schedule) Switches() int {
	n := 0
	for i := 1; i < len(s); i++ {
		if s[i].Thread != s[i-1].Thread {
			n++
		}
	}
	return n
}

// Cost is what Minimize makes small, the first field first.
type Cost struct {
	Switches int `json:"switches"`
	// Delays counts stores that were held back, without those that wait behind
	// them.
	Delays int `json:"delays"`
	// Steps and Held count the steps, and the steps that stores are held in;
	// Behind the stores that wait behind them.
	Steps  int `json:"steps"`
	Held   int `json:"held"`
	Behind int `json:"behind"`
}

// Cost measures a schedule.
func (s Schedule) Cost() Cost {
	c := Cost{Switches: s.Switches(), Delays: len(s.Delays()), Steps: len(s)}
	for i := range s {
		c.Held += len(s[i].Hold)
		c.Behind += len(s[i].Behind)
	}
	return c
}

// Less compares costs.
func (c Cost) Less(o Cost) bool {
	a, b := [5]int{c.Switches, c.Delays, c.Steps, c.Held, c.Behind}, [5]int{o.Switches, o.Delays, o.Steps, o.Held, o.Behind}
	return slices.Compare(a[:], b[:]) < 0
}
