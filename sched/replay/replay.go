// Package replay repeats the scheduling decisions of a recorded run: which thread runs next, on
// which core and for how many instructions, and when timers fire.
//
// New makes a cluster that takes the decisions of a log, whatever the policy was that made them.
// Before each decision it restores the thread and the clock that each core had, so that a replay
// does not depend on how package sched works. NewPrefix repeats only the first decisions and then
// lets another policy decide.
//
// It reads no files (recorder/replay does) and knows nothing of the reasons for a decision.
//
// Invariants:
//
//  1. The decisions of a cluster that follows a log are those of the log, in order, up to the
//     first that is impossible.
//  2. After an impossible decision the verdict is sched.Diverged, and Why explains it.
package replay

import (
	"fmt"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// Decisions is a log of decisions, numbered from 0. Copies of a cluster that follows a log share
// it: it must not change.
type Decisions interface {
	// Decision returns decision n, or false if the log has fewer.
	Decision(n uint64) (event.Decision, bool)
	SharedInSnapshot()
}

// New makes a cluster that takes all decisions of a log. The verdict of Next is sched.Diverged
// when a decision is impossible, and sched.End when the log ends; Why explains both.
func New(cores int, log Decisions) (*sched.Cluster, error) {
	return sched.NewWithPolicy(cores, newPolicy(cores, log))
}

// NewPrefix makes a cluster that takes the first decisions of a log, as many as length says, and
// continues with another policy. That policy hears of all threads from the start of the run.
func NewPrefix(cores int, log Decisions, length uint64, then sched.Policy) (*sched.Cluster, error) {
	p := newPolicy(cores, log)
	p.length, p.then = length, then
	return sched.NewWithPolicy(cores, p)
}

// policy is the sched.Policy that follows a log.
type policy struct {
	log     Decisions
	next    uint64            // the number of the next decision
	current event.Decision    // the decision taken last
	cores   []event.CoreState // as the log has them
	why     string
	// then decides after the first decisions, as many as length says; nil: the log is followed
	// to its end.
	then   sched.Policy
	length uint64
}

func newPolicy(cores int, log Decisions) *policy {
	p := &policy{log: log, cores: make([]event.CoreState, cores)}
	for i := range p.cores {
		p.cores[i] = event.CoreState{Core: arch.CoreID(i), Thread: arch.NoThread}
	}
	return p
}

// policyOf returns the policy of a cluster if it follows a log.
func policyOf(c *sched.Cluster) (p *policy, follows bool) {
	p, follows = c.Policy().(*policy)
	return p, follows
}

// Current returns the number and the content of the decision that Next took last; nil in a cluster
// that does not follow a log, or not any more.
func Current(c *sched.Cluster) (n uint64, d *event.Decision) {
	p, follows := policyOf(c)
	if !follows {
		return 0, nil
	}
	return p.next - 1, &p.current
}

// Why explains the verdicts sched.Diverged and sched.End. It is empty after other verdicts.
func Why(c *sched.Cluster) string {
	if p, follows := policyOf(c); follows {
		return p.why
	}
	return ""
}

// Conclude takes over the totals of the recorded run when a run is over. It returns false if the
// log has further decisions; a cluster that follows no log has none.
func Conclude(c *sched.Cluster) bool {
	p, follows := policyOf(c)
	if !follows || p.current.Kind == event.DecideEnd {
		return true
	}
	d, ok := p.log.Decision(p.next)
	if !ok || d.Kind != event.DecideEnd {
		return false
	}
	c.RestoreTotals(d.Time, d.Instructions)
	return true
}

// Ready implements sched.Policy, and so do the other methods.
func (p *policy) Ready(c *sched.Cluster, t arch.ThreadID, at arch.Cycles) {
	if p.then != nil {
		p.then.Ready(c, t, at)
	}
}

func (p *policy) Block(c *sched.Cluster, t arch.ThreadID) {
	if p.then != nil {
		p.then.Block(c, t)
	}
}

func (p *policy) Exit(c *sched.Cluster, t arch.ThreadID) {
	if p.then != nil {
		p.then.Exit(c, t)
	}
}

func (p *policy) Yield(c *sched.Cluster, t arch.ThreadID) {
	if p.then != nil {
		p.then.Yield(c, t)
	}
}

// DecidesWhenIdle implements sched.IdlePolicy: the log says when timers fire and where it ends.
func (p *policy) DecidesWhenIdle() bool { return true }

// Next takes the next decision of the log.
func (p *policy) Next(c *sched.Cluster, timer arch.Cycles, hasTimer bool) (sched.Quantum, sched.Verdict) {
	if p.then != nil && p.next == p.length {
		c.ContinueWith(p.then)
		return c.Next(timer, hasTimer)
	}
	d, ok := p.log.Decision(p.next)
	if !ok {
		p.why = fmt.Sprintf("the recording has %d decisions and no end", p.next)
		return sched.Quantum{}, sched.End
	}
	p.next++
	p.current = d
	if why := p.restoreCores(c); why != "" {
		return p.diverge("%s", why)
	}
	switch d.Kind {
	case event.DecideTimer:
		return p.fireTimer(timer, hasTimer)
	case event.DecideEnd:
		return p.endRun(c, hasTimer)
	default:
		return p.runQuantum(c)
	}
}

// restoreCores gives every core the thread and the clock that it had before the current decision.
// It returns why that is impossible, or nothing.
func (p *policy) restoreCores(c *sched.Cluster) string {
	for _, s := range p.current.Cores {
		if s.Core < 0 || int(s.Core) >= len(p.cores) {
			return fmt.Sprintf("core %d is not there", s.Core)
		}
		p.cores[s.Core] = s
	}
	if p.current.Kind == event.DecideEnd {
		return ""
	}
	if s, ok := c.RestoreCores(p.cores); !ok {
		return fmt.Sprintf("thread %d is on core %d in the recording, and cannot now", s.Thread, s.Core)
	}
	return ""
}

func (p *policy) diverge(format string, args ...any) (sched.Quantum, sched.Verdict) {
	p.why = fmt.Sprintf(format, args...)
	return sched.Quantum{}, sched.Diverged
}

func (p *policy) fireTimer(timer arch.Cycles, hasTimer bool) (sched.Quantum, sched.Verdict) {
	switch {
	case !hasTimer:
		return p.diverge("a timer fires at %d in the recording, and none is set", p.current.Time)
	case timer != p.current.Time:
		return p.diverge("a timer fires at %d in the recording, and the earliest is set for %d", p.current.Time, timer)
	}
	return sched.Quantum{}, sched.FireTimer
}

// endRun is for the end of the recorded run. If the run could continue, it was ended from outside.
func (p *policy) endRun(c *sched.Cluster, hasTimer bool) (sched.Quantum, sched.Verdict) {
	c.RestoreTotals(p.current.Time, p.current.Instructions)
	if c.Runnable() == 0 && !hasTimer {
		return sched.Quantum{}, sched.Idle
	}
	p.why = "the recording ends here"
	return sched.Quantum{}, sched.End
}

func (p *policy) runQuantum(c *sched.Cluster) (sched.Quantum, sched.Verdict) {
	d := &p.current
	if d.Core < 0 || int(d.Core) >= len(p.cores) || c.On(d.Core) != d.Thread {
		return p.diverge("thread %d runs on core %d in the recording, and cannot now", d.Thread, d.Core)
	}
	q := sched.Quantum{Core: d.Core, Thread: d.Thread, Instructions: d.Instructions, Exact: true, Accesses: d.Inside}
	q.AccessesOnly = d.Budget && d.Instructions == 0
	if !d.Budget {
		// It ended by itself; one more instruction would be a divergence.
		q.Instructions++
	}
	return q, sched.Run
}

// Ran gives the core the clock that the log has after the decision.
func (p *policy) Ran(c *sched.Cluster, q sched.Quantum, _ uint64, _ arch.Cycles) {
	c.RestoreClock(q.Core, p.current.After)
}
