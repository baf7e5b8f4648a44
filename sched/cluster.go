package sched

import (
	"fmt"
	"math"
	"strconv"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/nearmap"
	"github.com/heddle-dmt/heddle/internal/rand"
)

// MaxCores is the greatest number of cores of a cluster: affinity masks have
// 64 bits.
const MaxCores = 64

// A Cluster is the machine's cores, as far as scheduling goes, and the threads
// that are known to it. It is for one goroutine.
type Cluster struct {
	policy  Policy
	cores   []coreState
	all     uint64 // the mask of all cores
	idle    uint64 // the mask of cores without a thread
	threads []threadRecord
	slots   nearmap.Map[arch.ThreadID, slot]
	free    []slot

	// runnable has the runnable threads in no meaningful, but repeatable,
	// order; order has them by how long they have not run, the longest first.
	runnable []slot
	order    slotList
	peak     int // the most threads that were ever runnable at once

	// insides chooses places inside instructions for quanta to end; nil: none does.
	insides *rand.Stream

	instructions uint64 // run by all threads so far
	switches     uint64
	switchCost   arch.Cycles
	costs        Costs
	ranked       int         // threads with a rank
	share        arch.Cycles // SetRealtimeShare; 0: all
	period       arch.Cycles
	furthest     arch.Cycles // the greatest clock
	worked       arch.Cycles // charged to all cores
}

// coreState is a virtual core. The thread that it ran last stays its last when the
// core becomes idle.
type coreState struct {
	clock  arch.Cycles
	thread slot
	last   arch.ThreadID
}

// threadRecord is a thread that has been made known and has not exited.
type threadRecord struct {
	id       arch.ThreadID
	affinity uint64
	core     arch.CoreID // NoCore unless placed
	last     arch.CoreID // the core it was placed on last
	index    int32       // in Cluster.runnable, or -1
	// readyAt is the virtual time before which the thread cannot continue: when
	// it was woken, or when it left its last core.
	readyAt arch.Cycles
	// since is Cluster.instructions when the thread last ran or became
	// runnable.
	since uint64

	precedence Precedence
	changed    bool        // its precedence has, since timed looked at it
	due        arch.Cycles // its deadline
	left       arch.Cycles // of its runtime until then
}

// New makes a cluster of 1 to MaxCores cores without threads. The options may
// be incomplete; they are validated.
func New(cores int, seed uint64, o Options) (*Cluster, error) {
	if err := checkCores(cores); err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Policy == CoreDet {
		return nil, &FieldError{"policy", strconv.Quote(o.Policy), "the policies of this package (package dmt has the others)"}
	}
	o = o.WithDefaults()
	c, err := NewWithPolicy(cores, NewPolicy(cores, seed, o))
	if err == nil && cores > 1 {
		s := rand.NewStream(o.insideSeed(seed), 'I')
		c.insides = &s
	}
	return c, err
}

func checkCores(cores int) error {
	if cores < 1 || cores > MaxCores {
		return &FieldError{"cores", fmt.Sprint(cores), fmt.Sprintf("1 to %d", MaxCores)}
	}
	return nil
}

// NewWithPolicy is New for a policy from outside the package.
func NewWithPolicy(cores int, p Policy) (*Cluster, error) {
	if err := checkCores(cores); err != nil {
		return nil, err
	}
	all := uint64(math.MaxUint64) >> (MaxCores - cores)
	c := &Cluster{
		policy: p, all: all, idle: all, order: newSlotList(),
		cores: make([]coreState, cores),
	}
	for i := range c.cores {
		c.cores[i] = coreState{thread: noSlot, last: arch.NoThread}
	}
	return c, nil
}

// Costs are the charges of a policy that orders synchronization operations, in
// cycles; arch.Costs describes them. All are 0 at first.
type Costs struct {
	Sync, SemaphoreWait, SemaphoreWake, SpinCheck arch.Cycles
}

// Costs returns the costs that SetCosts has set.
func (c *Cluster) Costs() Costs { return c.costs }

// SetCosts sets the costs of ordering synchronization operations.
func (c *Cluster) SetCosts(costs Costs) { c.costs = costs }

// SetSwitchCost sets the cost, in cycles, of a switch of a core from one thread to
// another. It is 0 at first.
func (c *Cluster) SetSwitchCost(cost arch.Cycles) { c.switchCost = cost }

// SwitchCost returns what SetSwitchCost set.
func (c *Cluster) SwitchCost() arch.Cycles { return c.switchCost }

// Next chooses the next act of the driver. The timer is the earliest one that is set, if
// any is.
func (c *Cluster) Next(timer arch.Cycles, hasTimer bool) (Quantum, Verdict) {
	switch {
	case len(c.runnable) > 0 || c.decidesWhenIdle():
		s, v := c.policy.Next(c, timer, hasTimer)
		// A budget of cycles that is not exact ends between blocks.
		if c.insides != nil && len(c.runnable) > 1 && (s.Exact || s.Instructions > 0) {
			s.InsideChoice = uint32(c.insides.Uint64()) | anywhere
		}
		return s, v
	case hasTimer:
		return Quantum{}, FireTimer
	default:
		return Quantum{}, Idle
	}
}

// decidesWhenIdle reports whether the policy also decides while no thread is runnable.
func (c *Cluster) decidesWhenIdle() bool {
	p, ok := c.policy.(IdlePolicy)
	return ok && p.DecidesWhenIdle()
}

// anywhere makes each number a choice of places inside instructions.
const anywhere = 1 << 30

// Ran accounts for a quantum that Next returned: how many instructions were
// retired and how many cycles they took. It is called once for each quantum that was
// run, before the calls that report the effects of its end, so that those
// happen at the core's new time. Instructions that took no cycles at all count
// as one cycle: virtual time cannot stand still.
func (c *Cluster) Ran(s Quantum, instructions uint64, cycles arch.Cycles) {
	if instructions > 0 {
		cycles = max(cycles, 1)
	}
	c.instructions += instructions
	c.Charge(s.Core, cycles)
	if t := c.cores[s.Core].thread; t != noSlot && c.threads[t].id == s.Thread {
		c.noteLastRun(t)
	}
	c.policy.Ran(c, s, instructions, cycles)
}

// Charge lets cycles pass on a core, such as the kernel's for a system call.
func (c *Cluster) Charge(core arch.CoreID, cycles arch.Cycles) {
	c.worked += cycles
	c.Lift(core, c.cores[core].clock+cycles)
}

// Lift raises a core's clock to a time unless it is past it.
func (c *Cluster) Lift(core arch.CoreID, to arch.Cycles) {
	k := &c.cores[core]
	k.clock = max(k.clock, to)
	c.furthest = max(c.furthest, k.clock)
}

// PassTo lets idle time pass: no idle core is before t any more.
func (c *Cluster) PassTo(t arch.Cycles) {
	for i := range c.cores {
		if c.cores[i].thread == noSlot {
			c.Lift(arch.CoreID(i), t)
		}
	}
}

// Ready reports that a new or woken thread may run from the virtual time at on.
// It does nothing to a thread that is runnable already.
func (c *Cluster) Ready(t arch.ThreadID, at arch.Cycles) {
	s := c.slotOrNew(t)
	th := &c.threads[s]
	if th.index >= 0 {
		return
	}
	th.readyAt = max(th.readyAt, at)
	th.index = int32(len(c.runnable))
	th.since = c.instructions
	th.startDeadline(th.readyAt)
	c.runnable = append(c.runnable, s)
	c.peak = max(c.peak, len(c.runnable))
	c.order.appendSlot(s)
	c.policy.Ready(c, t, at)
}

// Block reports that a thread has stopped being runnable; its core becomes free.
// It does nothing to a thread that is not runnable.
func (c *Cluster) Block(t arch.ThreadID) {
	s := c.slotOf(t)
	th := &c.threads[s]
	if th.index < 0 {
		return
	}
	c.vacateCore(s)
	moved := c.runnable[len(c.runnable)-1]
	c.runnable[th.index] = moved
	c.threads[moved].index = th.index
	c.runnable = c.runnable[:len(c.runnable)-1]
	th.index = -1
	c.order.removeSlot(s)
	c.policy.Block(c, t)
}

// Exit reports that a thread has ended.
func (c *Cluster) Exit(t arch.ThreadID) {
	s := c.slotOf(t)
	c.Block(t)
	c.policy.Exit(c, t)
	c.ranked -= hasRank(c.threads[s].precedence)
	c.threads[s] = threadRecord{}
	c.slots.Delete(t)
	c.free = append(c.free, s)
}

// Yield reports that a runnable thread lets others go first: sched_yield, or the
// PAUSE of a spin loop. It does nothing to a thread that is not runnable.
func (c *Cluster) Yield(t arch.ThreadID) {
	if c.threads[c.slotOf(t)].index >= 0 {
		c.policy.Yield(c, t)
	}
}

// SetAffinity restricts a thread, which may be new, to the cores whose bits are
// set in the mask. It returns false, and does nothing, if none of the bits
// stands for a core that exists. A thread that must leave its core becomes
// runnable anew.
func (c *Cluster) SetAffinity(t arch.ThreadID, mask uint64) bool {
	if mask&c.all == 0 {
		return false
	}
	s := c.slotOrNew(t)
	th := &c.threads[s]
	again := th.index >= 0 && (th.core == arch.NoCore || mask&coreMask(th.core) == 0)
	if again {
		c.Block(t)
	}
	th.affinity = mask & c.all
	if again {
		c.Ready(t, th.readyAt)
	}
	return true
}

// Affinity returns the mask of the cores that a thread may run on: all of them
// unless SetAffinity has said otherwise.
func (c *Cluster) Affinity(t arch.ThreadID) uint64 {
	if s, ok := c.slots.Get(t); ok {
		return c.threads[s].affinity
	}
	return c.all
}

// slotOrNew returns a thread's slot, a new one for a new thread.
func (c *Cluster) slotOrNew(t arch.ThreadID) slot {
	if s, ok := c.slots.Get(t); ok {
		return s
	}
	var s slot
	if n := len(c.free); n > 0 {
		s = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		s = slot(len(c.threads))
		c.threads = append(c.threads, threadRecord{})
	}
	c.threads[s] = threadRecord{id: t, affinity: c.all, core: arch.NoCore, last: arch.NoCore, index: -1}
	c.slots.Put(t, s)
	return s
}

// slotOf returns the slot of a thread that has been made known.
func (c *Cluster) slotOf(t arch.ThreadID) slot {
	s, ok := c.slots.Get(t)
	if !ok {
		panic(fmt.Sprintf("bug: thread %d is unknown to the scheduler", t))
	}
	return s
}

// noteLastRun makes s the thread that ran last.
func (c *Cluster) noteLastRun(s slot) {
	c.threads[s].since = c.instructions
	c.order.removeSlot(s)
	c.order.appendSlot(s)
}

// instructionsWaited returns how many instructions have run since s last did or became
// runnable.
func (c *Cluster) instructionsWaited(s slot) uint64 { return c.instructions - c.threads[s].since }

func coreMask(core arch.CoreID) uint64 { return 1 << core }
