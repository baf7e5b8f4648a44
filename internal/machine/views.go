package machine

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched"
)

var (
	errViewSpins = errs.Define("thread-spins-in-its-view",
		"thread {thread} has run {instructions} instructions without a synchronization operation while others wait for it, under the policy {policy}",
		"Under dthreads a thread does not see what others store until its next operation. A loop that waits for a plain variable, without an operation, an atomic instruction or a system call, never ends, as in DThreads itself. Or the thread computes for that long.",
		"Run under consequence or coredet, where such loops end; name the function of the loop as an operation (--sync-list); or, if the thread computes for that long, raise --fairness.")

	errViewsFull = errs.Define("views-too-large",
		"the threads have stored to more pages between their synchronization operations than can be kept: 1 GiB together",
		"Under dthreads and consequence each page that a thread stores to is kept twice until the thread's next operation, and pages that others commit meanwhile are kept for it.",
		"Run a smaller input, or fewer threads, or another policy.")

	errViewsModel = errs.Define("views-and-memory-model",
		"the policy {policy} has a memory model of its own, and so cannot be combined with the model {model}",
		"Under dthreads and consequence a thread's stores reach others when it has its turn.",
		"Leave --model out.")

	errViewsLog = errs.Define("views-memory-log",
		"loads and stores cannot be recorded, nor races found, under the policy {policy}",
		"Threads have private copies of pages under dthreads and consequence, and addresses of stores are not recorded there.",
		"Use another policy. Under these two a race has the same outcome in every run.")
)

// hasViews reports whether threads have views of memory.
func (m *Machine) hasViews() bool {
	return m.state.control != nil && m.state.control.needs.Views
}

// useViews sets up the memory of threads that have views.
func (m *Machine) useViews() error {
	c := &m.config
	if model := c.Memory.MemoryModel(); model != memmodel.SC {
		return errViewsModel.New(c.Sched.Policy, model)
	}
	if c.Record != nil && c.Record.Memory != nil {
		return errViewsLog.New(c.Sched.Policy)
	}
	views, err := storebuffer.NewViews(m.cpu)
	if err != nil {
		return errBuffers.Wrap(err)
	}
	m.state.stores, m.state.control.views = views, views
	return nil
}

// takeTurn prepares what the kernel does for a thread in its turn: its stores are visible, and
// signals end its waits.
func (m *Machine) takeTurn(t *kernel.Task) {
	m.changeViews()
	if m.hasViews() {
		m.state.control.withholdSignals(m.state.override, t)
	}
}

// changeViews begins and commits views as the controller says. The time of a commit is that of the
// thread whose stores they are.
func (m *Machine) changeViews() {
	c := m.state.control
	if c.views == nil {
		return
	}
	for {
		e, ok := c.gate.TakeEffect(arch.NoThread, sched.BeginView, sched.CommitView)
		if !ok {
			return
		}
		if e.Kind == sched.CommitView {
			if pages := c.views.CommitView(e.Thread); pages > 0 {
				c.gate.Postpone(e.Thread, arch.Cycles(m.config.Costs.Syscall)+arch.Cycles(pages)*m.pageCost(4, 2))
			}
		} else if t := m.state.kernel.Task(e.Thread); t != nil {
			c.views.BeginView(e.Thread, t.Space())
		}
	}
}

// pageCost returns the cost of a loop over the bytes of a page, 16 at a time, with the given number
// of instructions and of accesses to memory.
func (m *Machine) pageCost(instructions, accesses uint32) arch.Cycles {
	c := &m.config.Costs
	return arch.PageSize / 16 * arch.Cycles(instructions*c.Instruction+accesses*c.Memory)
}

// chargeFaults adds the cost of the first stores to pages that a view has made in a quantum: a page
// fault, and a copy of the page.
func (m *Machine) chargeFaults(before uint64, stop *arch.Stop) {
	v := m.state.control.views
	counts := v.Counts()
	stop.Cycles += arch.Cycles(counts.Faults-before) * (arch.Cycles(m.config.Costs.PageFault) + m.pageCost(4, 2))
	if counts.Overflowed && !m.done {
		m.end(OutcomeStopped)
		m.result.ExitCode, m.result.Message = ExitFailure, errViewsFull.New().Error()
	}
}

// leaveView commits the view of a thread for which the kernel acts outside of a turn, because of an
// instruction of its own: the kernel sees its stores, and it sees those of the kernel.
func (m *Machine) leaveView(t *kernel.Task) {
	if v := m.state.control.views; v.Has(t.ID()) {
		v.CommitView(t.ID())
	}
}

// enterView begins the view of a thread that has none although it is not its turn.
func (m *Machine) enterView(t *kernel.Task) {
	c := m.state.control
	if c.views != nil && c.controller.HoldsSignals(t.ID()) {
		c.views.BeginView(t.ID(), t.Space())
	}
}

// endSpinning ends the run because a thread spins in its view.
func (m *Machine) endSpinning(t arch.ThreadID) {
	c := m.state.control
	m.end(OutcomeDeadlock)
	m.result.Message = errViewSpins.New(c.recognizer.Name(t), m.config.Sched.WithDefaults().Fairness, m.config.Sched.Policy).Error()
}
