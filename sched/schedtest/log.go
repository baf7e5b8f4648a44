package schedtest

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// DecisionLog notes the decisions of a fake machine, as a recorder would.
type DecisionLog struct{ List []event.Decision }

// Decision implements replay.Decisions.
func (l *DecisionLog) Decision(n uint64) (event.Decision, bool) {
	if n >= uint64(len(l.List)) {
		return event.Decision{}, false
	}
	return l.List[n], true
}

// SharedInSnapshot implements replay.Decisions.
func (l *DecisionLog) SharedInSnapshot() {}

func (l *DecisionLog) noteDecision(c *sched.Cluster, s sched.Quantum, v sched.Verdict, timer arch.Cycles) {
	d := event.Decision{Thread: s.Thread, Core: s.Core}
	for k := range c.Cores() {
		core := arch.CoreID(k)
		d.Cores = append(d.Cores, event.CoreState{Core: core, Thread: c.On(core), Clock: c.Now(core)})
	}
	switch v {
	case sched.Run:
		d.Time = c.Now(s.Core)
	case sched.FireTimer:
		d.Kind, d.Time = event.DecideTimer, timer
	default:
		d.Kind, d.Time, d.Instructions = event.DecideEnd, c.Makespan(), c.Switches()
	}
	l.List = append(l.List, d)
}

func (l *DecisionLog) noteEnd(n uint64, now arch.Cycles) {
	d := &l.List[len(l.List)-1]
	d.Instructions, d.After, d.Budget = n, now, n > 0
}
