package windows

import (
	"fmt"
	"slices"
	"time"

	"github.com/heddle-dmt/heddle/analyses/bytesets"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched/windows"
)

// Parameters are the windows of a run, as the user asks for them.
type Parameters struct {
	Rules Rules
	// Size is the number of requests of a full window, and Timeout the virtual time after which one
	// that is not full begins; 0: DefaultTimeout.
	Size    int
	Timeout time.Duration
	// Bubble, if it is not 0, admits input each time that the server's logical clock has advanced by
	// this number (CRANE's time bubbles), and not only at the begins of windows.
	Bubble uint64
	// Atomics orders atomic instructions, too.
	Atomics bool
	// Hybrid has the run examined for races, and those of each window ordered by constraints of its schedule.
	// Constraints of stored schedules are followed without.
	Hybrid bool
	// Preconditions has schedules followed by windows with other bytes, too, as far as these cannot change the order of turns.
	// Stored ones are used without.
	Preconditions bool
	// Reuse is how stored schedules are used; empty: windows.Online.
	Reuse windows.Reuse
	// NoStates leaves out the digests of the server's state.
	NoStates bool
}

// DefaultTimeout is the timeout of windows, in virtual time.
const DefaultTimeout = 10 * time.Millisecond

func (p Parameters) timeout() time.Duration {
	if p.Timeout == 0 {
		return DefaultTimeout
	}
	return p.Timeout
}

func (p Parameters) reuse() windows.Reuse {
	if p.Reuse == "" {
		return windows.Online
	}
	return p.Reuse
}

// preconditions counts the preconditions that were computed in a run.
type preconditions struct {
	// Computed counts the windows whose requests were followed, and Unknown those of them without a precondition, as
	// something was read that is not known. Terms is the number of conditions of the others, and FreeBytes,
	// LimitedBytes and FixedBytes are the numbers of bytes that may have any value, some, and the recorded one.
	Computed     int `json:"computed"`
	Unknown      int `json:"unknown"`
	Terms        int `json:"terms"`
	FreeBytes    int `json:"free_bytes"`
	LimitedBytes int `json:"limited_bytes"`
	FixedBytes   int `json:"fixed_bytes"`
	// HiddenBytes are the bytes of memory that the preconditions are about.
	HiddenBytes int `json:"hidden_bytes"`
}

// noteFollowed counts the preconditions of a window.
func (p *preconditions) noteFollowed(q *requestFollower, o *windows.Precondition) {
	p.Computed++
	if o.Patterns == nil {
		p.Unknown++
		return
	}
	p.Terms += q.terms
	for i := range o.Hidden {
		p.HiddenBytes += len(o.Hidden[i].Pattern)
	}
	for _, list := range o.Patterns {
		for _, v := range list {
			switch set := bytesets.Set(v); set.Len() {
			case 1:
				p.FixedBytes++
			case 256:
				p.FreeBytes++
			default:
				p.LimitedBytes++
			}
		}
	}
}

// Report is the windows of a run that is over.
type Report struct {
	Size    int           `json:"size"`
	Timeout time.Duration `json:"timeout_ns"`
	Bubble  uint64        `json:"bubble,omitempty"`
	// Windows counts all windows; the next five count them by cause.
	Windows int `json:"windows"`
	Start   int `json:"start"`
	Full    int `json:"full"`
	Partial int `json:"partial"`
	Timer   int `json:"timer"`
	Other   int `json:"other"`
	// Requests counts the admitted requests, Carried the tasks that were open at the end of a
	// window, summed over all windows, and Rounds the admissions of further parts of requests.
	Requests int `json:"requests"`
	Carried  int `json:"carried"`
	Rounds   int `json:"rounds"`
	// Unheld counts the connections to UNIX sockets of the server and the datagrams to it by UNIX sockets and UDP: they are not
	// held back.
	Unheld uint64 `json:"unheld"`
	// Forced counts how often a window was forced to continue (windows.Window.Forced).
	Forced int `json:"forced"`
	// Waited is the mean time in cycles that a request has waited for its window, Busy the
	// time in all windows.
	Waited arch.Cycles `json:"waited"`
	Busy   arch.Cycles `json:"busy"`
	// Response are percentiles of the time in cycles from the arrival of a request to its reply.
	Response Percentiles `json:"response"`
	// Throughput is the number of requests that were answered in a second of virtual time, from the
	// begin of the first window with requests to the end of the last.
	Throughput float64 `json:"throughput"`
	// Recorded counts the windows whose order was not stored, Reused the windows with a stored one.
	// Left counts stored orders that were tried and did not fit, Spun operations that waited in a loop.
	// Stored is the number of orders that are stored now, and Keys that of their keys.
	Recorded int `json:"recorded"`
	Reused   int `json:"reused"`
	Left     int `json:"left"`
	Spun     int `json:"spun"`
	Stored   int `json:"stored"`
	Keys     int `json:"keys"`
	// Races counts races that the turns left unordered, if they were looked for. Constraints are those of the stored
	// schedules, and Added is the number of constraints that the run has added. Enforced, Stalled and Missed are sums over
	// the windows (windows.Order).
	Races       int `json:"races"`
	Constraints int `json:"constraints"`
	// Unexamined counts the windows with more than 2^25 accesses to memory, in which races were not looked for.
	Unexamined int `json:"unexamined"`
	Added      int `json:"added"`
	Enforced   int `json:"enforced"`
	Stalled    int `json:"stalled"`
	Missed     int `json:"missed"`
	// Exact counts the windows with requests that had a stored schedule for the same input, Admitted the windows that
	// the precondition of a schedule for another one admitted, Followed those of them that had the schedule's turns, and
	// Refused the windows with requests that no schedule admitted.
	Exact    int `json:"exact"`
	Admitted int `json:"admitted"`
	Followed int `json:"followed"`
	Refused  int `json:"refused"`
	// Preconditions are the computed ones.
	Preconditions preconditions `json:"preconditions"`
	// Hidden is the memory that has kept windows from following schedules whose preconditions on the requests they
	// satisfied, and Registers the number of windows that registers have. Undeclared is the number of windows that only memory
	// has refused which the program has not declared as state.
	Hidden     []Hidden `json:"hidden,omitempty"`
	Registers  int      `json:"registers,omitempty"`
	Undeclared int      `json:"undeclared,omitempty"`
	// List has all windows.
	List []windows.Window `json:"list"`
}

// Percentiles of a quantity in cycles.
type Percentiles struct {
	P50 arch.Cycles `json:"p50"`
	P90 arch.Cycles `json:"p90"`
	P99 arch.Cycles `json:"p99"`
	Max arch.Cycles `json:"max"`
}

// percentilesOf returns the nearest-rank percentiles of a list.
func percentilesOf(list []arch.Cycles) Percentiles {
	if len(list) == 0 {
		return Percentiles{}
	}
	sorted := slices.Sorted(slices.Values(list))
	at := func(percent int) arch.Cycles { return sorted[max(0, (len(sorted)*percent+99)/100-1)] }
	return Percentiles{at(50), at(90), at(99), sorted[len(sorted)-1]}
}

// Report ends the windows of a run that is over, and returns them. It can be called once.
func (d *Driver) Report() *Report {
	if d.gate != nil && d.service() != nil {
		d.undigested = true // the memory of a run that was interrupted is gone
		d.engine.Finish()
	}
	r := &Report{Size: d.options.Size, Timeout: time.Duration(d.options.TimeoutNS), Bubble: d.options.Bubble, List: d.finished}
	var first, last, waited arch.Cycles
	for i := range d.finished {
		w := &d.finished[i]
		r.Windows++
		switch w.Cause {
		case windows.Start:
			r.Start++
		case windows.Full:
			r.Full++
		case windows.Partial:
			r.Partial++
		case windows.Timer:
			r.Timer++
		default:
			r.Other++
		}
		r.Requests += w.Requests
		r.Carried += w.Carried
		r.Rounds += w.Rounds
		r.Forced += w.Forced
		waited += w.Waited
		r.Busy += w.End - w.Begin
		if w.Requests > 0 {
			if last = w.End; first == 0 {
				first = w.Begin
			}
		}
		if w.Reused {
			r.Reused++
		} else {
			r.Recorded++
		}
		r.Left += w.Left
		r.Spun += w.Spun
		r.Added += w.Added
		r.Enforced += w.Enforced
		r.Stalled += w.Stalled
		r.Missed += w.Missed
		switch {
		case w.Requests == 0:
		case w.Exact > 0:
			r.Exact++
		case w.Admitted > 0:
			r.Admitted++
			if w.Reused {
				r.Followed++
			}
		default:
			r.Refused++
		}
	}
	r.Preconditions, r.Hidden, r.Registers, r.Undeclared = d.preconditions, d.hidden.list(), d.hidden.registers, d.hidden.undeclared
	if d.gate != nil {
		r.Unheld = d.gate.Passed()
	}
	r.Races, r.Unexamined = d.found, d.unexamined
	for _, o := range d.store.All() {
		r.Constraints += len(o.Constraints)
	}
	if d.races != nil {
		d.races.close()
	}
	if r.Requests > 0 {
		r.Waited = waited / arch.Cycles(r.Requests)
		r.Throughput = float64(len(d.engine.Responses())) / (float64(max(1, last-first)) / (float64(d.mhz) * 1e6))
	}
	r.Response = percentilesOf(d.engine.Responses())
	r.Stored, r.Keys = d.store.Len(), d.store.Keys()
	return r
}

// String is the report as a sentence.
func (r *Report) String() string {
	text := fmt.Sprintf("windows: %d (%d full, %d partial), requests: %d, of which each waited %d cycles on average; orders: %d recorded, %d reused, %d left",
		r.Windows, r.Full, r.Partial, r.Requests, r.Waited, r.Recorded, r.Reused, r.Left)
	if r.Constraints > 0 || r.Races > 0 {
		text += fmt.Sprintf("; races: %d, constraints: %d stored, %d enforced, %d missed", r.Races, r.Constraints, r.Enforced, r.Missed)
	}
	if r.Unexamined > 0 {
		text += fmt.Sprintf("; races were not looked for in %d windows, which have too many accesses to memory: their schedules have no constraints", r.Unexamined)
	}
	if r.Admitted > 0 || r.Preconditions.Computed > 0 {
		text += fmt.Sprintf("; preconditions: %d windows admitted, %d of which have followed, %d refused", r.Admitted, r.Followed, r.Refused)
	}
	if r.Unheld > 0 {
		text += fmt.Sprintf("; %d connections and datagrams by UNIX sockets and UDP were not held back: they begin windows of the cause other (%d), "+
			"whose time depends on the clients: TCP avoids that", r.Unheld, r.Other)
	}
	if r.Forced > 0 {
		text += fmt.Sprintf("; the server was forced to continue %d times, so that its windows are not reproducible: "+
			"a longer TIMEOUT, or a configuration in which its threads do not wait in loops, avoids that", r.Forced)
	}
	return text
}
