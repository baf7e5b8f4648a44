package machine

import (
	"fmt"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

var errWeakSchedule = errs.Define("schedule-under-weak-memory",
	"there are no schedules under the memory model {model}",
	"A constraint orders instructions. Under a weaker model than sc a store is seen by other cores some time after its instruction, so that the order of instructions would not say what a load gets.",
	"Leave --model out, or say --model sc, for recording and for the run under the schedule.")

// Schedulable returns an error if no schedule can be made of the run, or enforced on it.
func (c *Config) Schedulable() error {
	if model := c.Memory.MemoryModel(); model != memmodel.SC {
		return errWeakSchedule.New(model)
	}
	return nil
}

// Enforce has a run follow a schedule.
type Enforce struct {
	Schedule *event.Schedule
	// Options say how. Their costs are those of Config.Costs.
	Options enforce.Options
	// Seed is the seed of the random numbers that the guest gets, and Cores the number of cores
	// that it sees, as in the recorded run: they are inputs. Config.Seed and Config.Cores
	// choose the interleaving alone.
	Seed  uint64
	Cores int
}

// isInstrumented reports whether the program has the instrumentation that constraints need:
// whether or not there are any, each call and each return checks whether it is on (PEREGRINE,
// section 3.2).
func (e *Enforce) isInstrumented() bool { return e != nil && !e.Options.SyncOnly }

// ScheduleResult is how a run followed the schedule that was enforced.
type ScheduleResult struct {
	// Followed reports that the run followed the schedule to its end. If not, Reason
	// is the first operation that did not match, and Position its position in the
	// order.
	Followed bool   `json:"followed"`
	Reason   string `json:"reason,omitempty"`
	Position int    `json:"position,omitempty"`
	enforce.Counts
	// Gate counts how often threads were held and released for it, and the cycles.
	Gate sched.GateCounts `json:"gate"`
}

// newEnforcer makes the controller of a schedule, or nil.
func (m *Machine) newEnforcer() (sched.Controller, error) {
	c := &m.config
	if c.Enforce == nil {
		return nil, nil
	}
	o := c.Enforce.Options
	o.Costs = enforce.RelayCosts{
		Sync: arch.Cycles(c.Costs.Sync), SemaphoreWait: arch.Cycles(c.Costs.SemaphoreWait),
		SemaphoreWake: arch.Cycles(c.Costs.SemaphoreWake), SpinCheck: arch.Cycles(c.Costs.SpinCheck),
		BranchCount: arch.Cycles(c.Costs.BranchCount), SlotCheck: arch.Cycles(c.Costs.SlotCheck),
		SlotCall: arch.Cycles(c.Costs.SlotCall),
	}
	if m.with.plan == nil {
		return enforce.New(c.Enforce.Schedule, o), nil
	}
	plan, err := m.with.plan()
	if err != nil {
		return nil, err
	}
	return plan.Enforcer(o), nil
}

// scheduleResult returns how the run has followed its schedule, nil without one.
func (m *Machine) scheduleResult() *ScheduleResult {
	c := m.state.control
	if c == nil {
		return nil
	}
	e := c.enforcer
	if e == nil {
		return nil
	}
	r := &ScheduleResult{Followed: e.Complete(), Counts: e.Counts(), Gate: c.gate.Counts()}
	r.Reason, r.Position = e.Why()
	if !r.Followed && r.Reason == "" {
		r.Reason, r.Position = e.Short()
	}
	return r
}

// reportSchedule fills in how a run that is over followed its schedule.
func (m *Machine) reportSchedule() {
	r := &m.result
	if r.Schedule = m.scheduleResult(); r.Schedule == nil || r.Schedule.Followed || m.config.Enforce.Options.Free {
		return
	}
	if r.Outcome == OutcomeExit {
		r.Outcome, r.ExitCode = OutcomeDiverged, ExitFailure
	}
	if r.Message == "" {
		r.Message = fmt.Sprintf("the run does not follow the schedule: %s", r.Schedule.Reason)
	}
}

// guestInputs returns the seed of the random numbers that the guest gets, and the number of cores
// that it sees.
func (m *Machine) guestInputs() (seed uint64, cores int) {
	if e := m.config.Enforce; e != nil {
		return e.Seed, e.Cores
	}
	if v := m.with.service; v != nil {
		return v.Seed, v.Cores
	}
	return m.config.Seed, m.config.Cores
}

// showScheduleTime has the guest's clocks show a thread the time of the schedule, or that of sched.ShowTime.
func (m *Machine) showScheduleTime(t arch.ThreadID) {
	c := m.state.control
	if c == nil {
		return
	}
	if e := c.enforcer; e != nil {
		at, shows := e.Clock(t)
		m.state.override.ShowTime(m.toNS(at), shows)
		return
	}
	x := c.thread(t)
	for e, ok := c.gate.TakeEffect(t, sched.ShowTime); ok; e, ok = c.gate.TakeEffect(t, sched.ShowTime) {
		x.shown = int64(e.Result)
	}
	m.state.override.ShowTime(x.shown, x.shown != 0)
}

// setCore sets the core that the loaded thread sees. In a run that follows a schedule, and in the one that
// the schedule is made of, the guest always sees core 0 and, by RDTSC, the instructions of its own thread: these are the same in both, and what they cost is not.
func (m *Machine) setCore(core arch.CoreID, t arch.ThreadID) {
	now := m.state.cluster.Now(core)
	if m.state.clock.oneCore {
		core, now = 0, arch.Cycles(m.state.control.thread(t).retired)
	}
	m.cpu.SetCore(core, now)
}
