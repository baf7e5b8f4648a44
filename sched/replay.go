package sched

import (
	"fmt"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Decisions is a log of decisions, by number from 0. A copy of a Cluster that
// replays one shares it: it must not change.
type Decisions interface {
	// Decision returns decision n; false if there are not so many.
	Decision(n uint64) (event.Decision, bool)
	SharedInSnapshot()
}

// NewReplay makes a cluster that takes the decisions of a log, whatever the
// policy was that made them. Before each it brings every core to the thread and
// the clock that the log says it had, so that what becomes of a run does not
// depend on how this package works.
//
// Next's verdict is Diverged when a decision cannot be taken, and End when the
// log ends; Why explains both.
func NewReplay(cores int, log Decisions) (*Cluster, error) {
	return NewWithPolicy(cores, newReplay(cores, log))
}

// NewContinued makes a cluster that takes the first decisions of a log, so many, and
// goes on from there with another policy. That one is told what becomes of threads from
// the begin on.
func NewContinued(cores int, log Decisions, first uint64, then Policy) (*Cluster, error) {
	p := newReplay(cores, log)
	p.first, p.then = first, then
	return NewWithPolicy(cores, p)
}

func newReplay(cores int, log Decisions) *replay {
	p := &replay{log: log, cores: make([]event.CoreState, cores)}
	for i := range p.cores {
		p.cores[i] = event.CoreState{Core: event.CoreID(i), Thread: event.NoThread}
	}
	return p
}

// replay is the policy that follows a log.
type replay struct {
	log   Decisions
	next  uint64            // the number of the next decision
	now   event.Decision    // the one that was taken last
	cores []event.CoreState // as the log has them
	why   string
	// then is the policy behind the first decisions; nil: there is none.
	then  Policy
	first uint64
}

// Replaying returns the number and the content of the decision that Next took
// last, in a cluster that NewReplay made; nil in any other.
func (c *Cluster) Replaying() (n uint64, d *event.Decision) {
	p, ok := c.policy.(*replay)
	if !ok {
		return 0, nil
	}
	return p.next - 1, &p.now
}

// Why explains the verdicts Diverged and End.
func (c *Cluster) Why() string {
	if p, ok := c.policy.(*replay); ok {
		return p.why
	}
	return ""
}

func (p *replay) Ready(c *Cluster, t event.ThreadID, at event.Cycles) {
	if p.then != nil {
		p.then.Ready(c, t, at)
	}
}

func (p *replay) Block(c *Cluster, t event.ThreadID) {
	if p.then != nil {
		p.then.Block(c, t)
	}
}

func (p *replay) Exit(c *Cluster, t event.ThreadID) {
	if p.then != nil {
		p.then.Exit(c, t)
	}
}

func (p *replay) Yield(c *Cluster, t event.ThreadID) {
	if p.then != nil {
		p.then.Yield(c, t)
	}
}

// Next takes the next decision; unlike other policies' it is called when no
// thread is runnable, too.
func (p *replay) Next(c *Cluster, timer event.Cycles, hasTimer bool) (Slice, Verdict) {
	if p.then != nil && p.next == p.first {
		c.policy = p.then
		return c.Next(timer, hasTimer)
	}
	d, ok := p.log.Decision(p.next)
	if !ok {
		p.why = fmt.Sprintf("the recording has %d decisions and no end", p.next)
		return Slice{}, End
	}
	p.next++
	p.now = d
	for _, s := range d.Cores {
		if s.Core < 0 || int(s.Core) >= len(p.cores) {
			return p.diverged("core %d is not there", s.Core)
		}
		p.cores[s.Core] = s
	}
	if d.Kind != event.DecideEnd {
		if why := c.bring(p.cores); why != "" {
			return p.diverged("%s", why)
		}
	}
	switch d.Kind {
	case event.DecideTimer:
		return p.timer(timer, hasTimer)
	case event.DecideEnd:
		return p.end(c, hasTimer)
	default:
		return p.slice(c)
	}
}

func (p *replay) diverged(format string, args ...any) (Slice, Verdict) {
	p.why = fmt.Sprintf(format, args...)
	return Slice{}, Diverged
}

func (p *replay) timer(timer event.Cycles, hasTimer bool) (Slice, Verdict) {
	switch {
	case !hasTimer:
		return p.diverged("a timer fires at %d in the recording, and none is set", p.now.Time)
	case timer != p.now.Time:
		return p.diverged("a timer fires at %d in the recording, and the earliest is set for %d", p.now.Time, timer)
	}
	return Slice{}, FireTimer
}

// end is the end of the recorded run. If the run could go on, it was ended from
// outside.
func (p *replay) end(c *Cluster, hasTimer bool) (Slice, Verdict) {
	c.conclude(&p.now)
	if len(c.runnable) == 0 && !hasTimer {
		return Slice{}, Idle
	}
	p.why = "the recording ends here"
	return Slice{}, End
}

// conclude takes over what the recorded run came to.
func (c *Cluster) conclude(d *event.Decision) {
	c.furthest = d.Time
	c.switches = d.Instructions
}

// Conclude tells that the run is over. It returns whether the log is at its end
// too, which it always is in a cluster that NewReplay did not make.
func (c *Cluster) Conclude() bool {
	p, ok := c.policy.(*replay)
	if !ok || p.now.Kind == event.DecideEnd {
		return true
	}
	d, ok := p.log.Decision(p.next)
	if !ok || d.Kind != event.DecideEnd {
		return false
	}
	c.conclude(&d)
	return true
}

func (p *replay) slice(c *Cluster) (Slice, Verdict) {
	d := &p.now
	if d.Core < 0 || int(d.Core) >= len(p.cores) || c.On(d.Core) != d.Thread {
		return p.diverged("thread %d runs on core %d in the recording, and cannot now", d.Thread, d.Core)
	}
	out := Slice{Core: d.Core, Thread: d.Thread, Instructions: d.Instructions, Exact: true, After: d.Inside}
	out.Immediately = d.Inside > 0 && d.Instructions == 0
	if !d.Budget {
		// It ended by itself; one instruction more would be a divergence.
		out.Instructions++
	}
	return out, Run
}

// Ran gives the core the clock that the log has.
func (p *replay) Ran(c *Cluster, s Slice, _ uint64, _ event.Cycles) {
	c.cores[s.Core].clock = p.now.After
	c.furthest = max(c.furthest, p.now.After)
}

// bring gives every core a thread and a clock. It returns why it cannot.
func (c *Cluster) bring(to []event.CoreState) string {
	for _, s := range to {
		if k := &c.cores[s.Core]; k.thread != none && c.threads[k.thread].id != s.Thread {
			c.vacate(k.thread)
		}
	}
	for _, s := range to {
		c.cores[s.Core].clock = s.Clock
		c.furthest = max(c.furthest, s.Clock)
		if s.Thread == event.NoThread || c.On(s.Core) == s.Thread {
			continue
		}
		t, known := c.slots.Get(s.Thread)
		if !known || c.threads[t].index < 0 || c.threads[t].affinity&bit(s.Core) == 0 {
			return fmt.Sprintf("thread %d is on core %d in the recording, and cannot now", s.Thread, s.Core)
		}
		c.vacate(t)
		c.settle(t, s.Core)
	}
	return ""
}
