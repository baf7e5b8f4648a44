package epoch

import (
	"context"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/partialorder"
)

// mostTimers bounds the timers that fire in an epoch-parallel replica in which
// nothing else happens.
const mostTimers = 1000

// mostIdle bounds the attempts of an epoch-parallel replica in which no thread can run,
// until it counts as hanging.
const mostIdle = 10_000

// Follower is a machine for epoch-parallel replicas. It is for one goroutine, and
// must be closed before the Runner that it is of.
type Follower struct {
	stage
	shared *partialorder.Functions
}

// NewFollower builds a machine for epoch-parallel replicas.
func (r *Runner) NewFollower() (*Follower, error) {
	f := &Follower{shared: r.shared}
	c := r.config
	c.Stdin, c.Stdout, c.Stderr = nil, nil, nil
	if err := f.buildMachine(c, r.takeMemory(), r.reads); err != nil {
		return nil, err
	}
	return f, nil
}

func (r *Runner) takeMemory() *mem.RAM {
	r.mu.Lock()
	defer r.mu.Unlock()
	ram := r.memory[0]
	r.memory = r.memory[1:]
	return ram
}

// Close gives everything back, the replicas' ends too.
func (f *Follower) Close() {
	f.m.DropState()
	f.releaseAbandoned()
	f.m.Close()
	f.tap.reads.closeBuffer()
}

// goToCheckpoint puts the machine to a checkpoint of the leading one, which must be kept until
// the ends of replicas that were executed from it are released. The level is
// how full the leading machine's memory was when it continued from there.
func (f *Follower) goToCheckpoint(at *Checkpoint, level mem.Level) {
	f.m.DropState()
	f.releaseAbandoned()
	f.m.TakeOver(at.snapshot, level)
}

// RunEpochParallel executes an epoch on one core, under the partial order of a
// thread-parallel replica, by priorities of threads. It fails when it runs more
// than most instructions.
func (f *Follower) RunEpochParallel(ctx context.Context, from *Checkpoint, first *Replica, priority []arch.ThreadID, most uint64) (*Replica, error) {
	o := partialorder.NewReplayer(f.shared, first.Order)
	f.goToCheckpoint(from, first.level)
	e := f.beginRun(from, o)
	m := e.m
	m.IgnoreTimeouts(true)
	m.HoldPresentSignals(true)
	for core := range m.Cluster().Cores() {
		m.Cluster().Lift(arch.CoreID(core), e.began)
	}
	m.Cluster().SwitchPolicy(sched.NewPriority(priority, first.Effort+leastPatience))
	o.Begin(m.Gate())
	e.applyVerdict()
	first.Inputs.carryOut(m)
	if err := e.followOrder(ctx, o, most); err != nil {
		return nil, err
	}
	cycles := m.Cluster().Makespan() - e.began
	// No thread waits with a timeout: the first replica, which has done the same, waits for ever.
	if first.Failed == failedDeadlock && o.Diverged() == "" && e.waitsForEver() {
		m.End(machine.OutcomeDeadlock)
	}
	again := o.Diverged() != "" && f.tap.failed == "" && !m.Done() && !e.hangs
	save := (*machine.Machine).HandOver
	if again {
		save = (*machine.Machine).Snapshot
	}
	x, err := e.makeReplica(o, save)
	if err != nil {
		return nil, err
	}
	x.Diverged, x.BenignDivergence = o.Diverged(), o.BenignDivergence()
	if x.Diverged == "" && x.Failed == "" {
		x.Diverged = o.Missing()
	}
	x.End.byOrder = true
	x.Cycles = cycles
	if again {
		// It may be about to fail: abort takes some steps.
		m.SetController(o)
		o.ContinueDiverged(m.Gate(), probeSteps)
		e.applyVerdict()
		if err := e.followOrder(ctx, o, e.effortSpent()+probeEffort); err != nil {
			x.End.Release()
			return nil, err
		}
		if x.Failed = f.tap.failed; x.Failed == "" && e.deadlocks() {
			x.Failed = failedDeadlock
		}
		if x.Failed != "" {
			x.Failed += ", soon"
		}
	}
	x.Pages = m.Memory().Grown()
	return x, nil
}

// waitsForEver reports whether no thread is held by the order, none can run, and no timer is set.
func (e *epochRun) waitsForEver() bool {
	if e.m.Done() || e.hangs || e.tap.failed != "" || e.m.Gate().Waiting() > 0 || e.m.Cluster().Runnable() > 0 {
		return false
	}
	_, timer := e.m.Kernel().NextTimer()
	return !timer && !e.m.MayClientsAct()
}

// deadlocks reports whether a replica that waits for ever under the order does so by itself, too: timeouts
// and signals that the order has held back may end waits. The replica's state is of no use afterwards.
func (e *epochRun) deadlocks() bool {
	if !e.waitsForEver() {
		return false
	}
	e.m.IgnoreTimeouts(false) // every thread that waits looks at its timeout
	e.m.HoldPresentSignals(false)
	for range mostIdle {
		if e.m.Cluster().Runnable() == 0 {
			break
		}
		e.m.Step()
	}
	return e.waitsForEver()
}

// Bounds of a diverged thread after the epoch's end, in steps, and of all
// threads together in instructions.
const (
	probeSteps  = 40
	probeEffort = 1_000_000
)

// leastPatience is added to what all threads of the first replica did in the epoch: one that executes more
// instructions than that, while others can run, waits for one of them in a loop.
const leastPatience = 1_000_000

// followOrder runs an epoch-parallel replica until its epoch is over.
func (e *epochRun) followOrder(ctx context.Context, f *partialorder.Replayer, most uint64) error {
	m := e.m
	timers, idle := 0, 0
	for n := 0; !m.Done() && e.tap.failed == "" && !e.hangs; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if m.Cluster().Runnable() > 0 {
			m.Step()
			e.yieldProcessor()
			timers, idle = 0, 0
			e.quanta++
			e.hangs = e.effortSpent() > most
			continue
		}
		_, has := m.Kernel().NextTimer()
		has = has && timers < mostTimers
		if f.Idle(m.Gate(), has) {
			break
		}
		if has {
			timers++
			m.Step()
			continue
		}
		e.applyVerdict()
		idle++
		e.hangs = idle > mostIdle
	}
	return nil
}

// Commit makes the end of a follower's replica a checkpoint of the leading machine:
// it copies the pages that the replica has changed. The checkpoint that the
// replica began at must be there still.
func (r *Runner) Commit(x *Replica) error {
	old := x.End
	if old.leads {
		return nil
	}
	ram := r.m.Memory()
	n := *old
	n.snapshot, n.stage, n.leads = r.m.Adopt(old.snapshot), &r.stage, true
	x.End = &n
	old.Release()
	if !ram.Adopted() {
		return errAdopt.New(r.config.MaxMemory)
	}
	ram.NextGeneration()
	n.peak = ram.Peak()
	return nil
}

var errAdopt = errs.Define("replica-cannot-be-committed",
	"the guest's memory of {bytes} bytes is too small to continue from another replica; raise --max-memory",
	"The run has a data race and continues from an epoch-parallel replica, whose pages have to be copied into the guest's memory.",
	"Give the guest more memory with --max-memory, or make epochs shorter with --epoch.")
