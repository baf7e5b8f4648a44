package heddle

import (
	"context"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// mostTimers bounds the timers that fire in an epoch-parallel replica in which
// nothing else happens.
const mostTimers = 1000

// mostIdle bounds what an epoch-parallel replica in which no thread can run does
// about it, until it counts as hanging.
const mostIdle = 10_000

// Follower is a machine for epoch-parallel replicas. It is for one goroutine, and
// must be closed before the Replicas that it is of.
type Follower struct {
	stage
	shared *sched.Shared
	files  *vfs.FS // that it was built with
}

// NewFollower builds a machine for epoch-parallel replicas.
func (r *Replicas) NewFollower() (*Follower, error) {
	f := &Follower{shared: r.shared}
	c := r.config
	c.Stdin, c.Stdout, c.Stderr = nil, nil, nil
	if err := f.build(c, r.takeMemory(), r.reads); err != nil {
		return nil, err
	}
	f.files = f.m.state.fs
	return f, nil
}

func (r *Replicas) takeMemory() *emu.RAM {
	r.mu.Lock()
	defer r.mu.Unlock()
	ram := r.memory[0]
	r.memory = r.memory[1:]
	return ram
}

// Close gives everything back, the replicas' ends too.
func (f *Follower) Close() {
	f.leave()
	f.sweep()
	f.m.state = &state{fs: f.files}
	f.m.Close()
	f.tap.reads.close()
}

// leave gives up the state that the machine is in.
func (f *Follower) leave() {
	if f.m.state != nil {
		deepcopy.Release(f.m.state)
		f.m.state = nil
	}
}

// goTo puts the machine to a checkpoint of the leading one, which must be kept until
// the ends of replicas that were executed from it are released. The level is
// how full the leading machine's memory was when it went on from there.
func (f *Follower) goTo(at *Checkpoint, level emu.Level) {
	f.leave()
	f.sweep()
	m := f.m
	m.ram.Import(at.snapshot.generation, level)
	m.state = deepcopy.Copy(deepcopy.For(f.bound...), at.snapshot.state)
	m.moved()
}

// Follow executes an epoch on one core, under the partial order of a
// thread-parallel replica, by priorities of threads. It fails when it runs more
// than most instructions.
func (f *Follower) Follow(ctx context.Context, from *Checkpoint, first *Replica, priority []event.ThreadID, most uint64) (*Replica, error) {
	o := sched.NewOrderFollower(f.shared, first.Order)
	f.goTo(from, first.level)
	e := f.begin(from, o)
	m := e.m
	s := m.state
	s.kernel.SetPatient(true)
	s.kernel.HoldSignals(true)
	for core := range s.cluster.Cores() {
		s.cluster.Lift(event.CoreID(core), e.began)
	}
	s.cluster.Follow(sched.NewPriority(priority))
	o.Begin(&s.gating.gate)
	e.settle()
	if err := e.follow(ctx, o, most); err != nil {
		return nil, err
	}
	cycles := s.cluster.Makespan() - e.began
	again := o.Diverged() != "" && f.tap.failed == "" && !m.done && !e.hangs
	save := (*Machine).handOver
	if again {
		save = (*Machine).Snapshot
	}
	x, err := e.finish(o, save)
	if err != nil {
		return nil, err
	}
	x.Diverged, x.Softly = o.Diverged(), o.Softly()
	if x.Diverged == "" && x.Failed == "" && o.Short() {
		x.Diverged = "a thread has done less"
	}
	x.End.byOrder = true
	x.Cycles = cycles
	if again {
		// It may be about to fail: abort takes some steps.
		o.Probe(&s.gating.gate, probeSteps)
		e.settle()
		if err := e.follow(ctx, o, e.effort()+probeEffort); err != nil {
			x.End.Release()
			return nil, err
		}
		if x.Failed = f.tap.failed; x.Failed != "" {
			x.Failed += ", soon"
		}
	}
	x.Pages = m.ram.Grown()
	return x, nil
}

// What a thread that has diverged may do behind the epoch's end, in steps, and all
// threads together in instructions.
const (
	probeSteps  = 40
	probeEffort = 1_000_000
)

// follow runs an epoch-parallel replica until its epoch is over.
func (e *epochRun) follow(ctx context.Context, f *sched.OrderFollower, most uint64) error {
	m, s := e.m, e.m.state
	timers, idle := 0, 0
	for n := 0; !m.done && e.tap.failed == "" && !e.hangs; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.cluster.Runnable() > 0 {
			m.Step()
			e.yield()
			timers, idle = 0, 0
			e.slices++
			e.hangs = e.effort() > most
			continue
		}
		_, has := s.kernel.NextTimer()
		has = has && timers < mostTimers
		if f.Idle(&s.gating.gate, has) {
			break
		}
		if has {
			timers++
			m.Step()
			continue
		}
		e.settle()
		idle++
		e.hangs = idle > mostIdle
	}
	return nil
}

// Adopt makes the end of a follower's replica a checkpoint of the leading machine:
// it copies the pages that the replica has changed. The checkpoint that the
// replica began at must be there still.
func (r *Replicas) Adopt(x *Replica) error {
	old := x.End
	if old.leads {
		return nil
	}
	ram := r.m.ram
	ram.Adopt(old.snapshot.generation)
	s := deepcopy.Copy(deepcopy.For(r.bound...), old.snapshot.state)
	n := *old
	n.snapshot, n.stage, n.leads = &Snapshot{s, ram.Generation()}, &r.stage, true
	x.End = &n
	old.Release()
	if !ram.Adopted() {
		return errAdopt.New(r.m.config.MaxMemory)
	}
	ram.NextGeneration()
	n.peak = ram.Peak()
	return nil
}

var errAdopt = errs.Define("replica-cannot-be-committed",
	"there is not enough memory to go on from another replica: {bytes} bytes are in use",
	"The run has a data race, and goes on from an epoch-parallel replica, whose pages are copied.",
	"Give the guest more memory with --max-memory, or make epochs shorter with --epoch.")
