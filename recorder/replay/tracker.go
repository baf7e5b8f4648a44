package replay

import (
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Cores is the state that a Tracker reads: the scheduler's cores and their clocks.
type Cores interface {
	Cores() int
	On(arch.CoreID) arch.ThreadID
	Now(arch.CoreID) arch.Cycles
	Makespan() arch.Cycles
	Switches() uint64
}

// Tracker makes decisions from the machine's events. It is plain data.
type Tracker struct {
	cores []event.CoreState // at the last decision
	now   event.Decision
	count uint64 // decisions so far
	check uint64
	last  [3]uint64 // the kernel's last event: its kind, as in add, and its subject
}

// NewTracker makes a tracker of a machine on which nothing has run.
func NewTracker(cores int) *Tracker {
	t := &Tracker{cores: make([]event.CoreState, cores)}
	for i := range t.cores {
		t.cores[i] = event.CoreState{Core: arch.CoreID(i), Thread: arch.NoThread}
	}
	return t
}

// Quantum begins a decision: a thread is to run on a core.
func (t *Tracker) Quantum(thread arch.ThreadID, core arch.CoreID, c Cores) {
	t.beginDecision(event.Decision{Kind: event.DecideQuantum, Thread: thread, Core: core, Time: c.Now(core), After: c.Now(core)}, c)
}

// Timer begins a decision: the timer that is set for a time is to fire.
func (t *Tracker) Timer(at arch.Cycles, c Cores) {
	t.beginDecision(event.Decision{Kind: event.DecideTimer, Thread: arch.NoThread, Core: arch.NoCore, Time: at}, c)
}

// End is the last decision.
func (t *Tracker) End(c Cores) event.Decision {
	t.beginDecision(event.Decision{
		Kind: event.DecideEnd, Thread: arch.NoThread, Core: arch.NoCore, Time: c.Makespan(), Instructions: c.Switches(),
	}, c)
	return t.now
}

func (t *Tracker) beginDecision(d event.Decision, c Cores) {
	for i := range t.cores {
		k := arch.CoreID(i)
		s := event.CoreState{Core: k, Thread: c.On(k), Clock: c.Now(k)}
		if s != t.cores[i] {
			t.cores[i] = s
			d.Cores = append(d.Cores, s)
		}
	}
	t.now = d
	t.check = 0
	t.last = [3]uint64{}
}

// Commits notes which stores were committed before the slice. The list is
// copied.
func (t *Tracker) Commits(list []event.Commit) {
	t.now.Commits = slices.Clone(list)
}

// Ran notes how a slice ended, and the core's clock then.
func (t *Tracker) Ran(s arch.Stop, after arch.Cycles) {
	d := &t.now
	d.Instructions, d.Inside, d.After = s.Instructions, s.Inside, after
	d.Budget = s.Reason == arch.StopBudget || s.Reason == arch.StopSync
	if !d.Budget {
		d.Stop = uint8(s.Reason)
	}
}

// Syscall, Signal and Exit note the kernel's events.
func (t *Tracker) Syscall(thread arch.ThreadID, number uint64, args [6]uint64, result uint64) {
	t.mixWords(2, uint64(thread), number, result)
	t.mixWords(args[:]...)
	t.last = [3]uint64{2, number, result}
}

// Signal notes the delivery of a signal.
func (t *Tracker) Signal(thread arch.ThreadID, number int) {
	t.mixWords(3, uint64(thread), uint64(number))
	t.last = [3]uint64{3, uint64(number)}
}

// Exit notes the end of a thread.
func (t *Tracker) Exit(thread arch.ThreadID, status int) {
	t.mixWords(4, uint64(thread), uint64(status))
	t.last = [3]uint64{4, uint64(thread)}
}

// mixWords mixes words in, by FNV-1a over words.
func (t *Tracker) mixWords(words ...uint64) {
	if t.check == 0 {
		t.check = 0xcbf29ce484222325
	}
	for _, w := range words {
		t.check = (t.check ^ w) * 0x100000001b3
		t.check ^= t.check >> 29
	}
}

// Done completes the decision.
func (t *Tracker) Done() event.Decision {
	t.now.Check = uint16(t.check ^ t.check>>16 ^ t.check>>32 ^ t.check>>48)
	t.count++
	return t.now
}

// Difference says how the decision that was completed last, the nth, is not the
// recorded one, or is empty.
func (t *Tracker) Difference(n uint64, recorded *event.Decision) string {
	d := &t.now
	var how string
	switch {
	case d.Instructions != recorded.Instructions:
		how = fmt.Sprintf("it ran %d instructions, not %d", d.Instructions, recorded.Instructions)
	case d.Inside != recorded.Inside:
		how = fmt.Sprintf("it did %d accesses of the next instruction, not %d", d.Inside, recorded.Inside)
	case d.Budget != recorded.Budget || d.Stop != recorded.Stop:
		how = fmt.Sprintf("it was ended by %s, not by %s", describeStop(d), describeStop(recorded))
	case d.Check != recorded.Check:
		how = "system calls, signals or their results differ; the last was " + t.describeLastEvent()
	default:
		return ""
	}
	return Place(n, recorded) + ": " + how
}

func (t *Tracker) describeLastEvent() string {
	switch t.last[0] {
	case 2:
		return linux.Name(t.last[1]) + " = " + linux.ResultText(t.last[2])
	case 3:
		return fmt.Sprintf("signal %d", t.last[1])
	case 4:
		return fmt.Sprintf("the end of thread %d", t.last[1])
	}
	return "none"
}

// Place names a decision for a sentence.
func Place(n uint64, d *event.Decision) string {
	switch d.Kind {
	case event.DecideQuantum:
		return fmt.Sprintf("decision %d, thread %d on core %d at cycle %d", n, d.Thread, d.Core, d.Time)
	case event.DecideTimer:
		return fmt.Sprintf("decision %d, a timer at cycle %d", n, d.Time)
	default:
		return fmt.Sprintf("decision %d, the end", n)
	}
}

func describeStop(d *event.Decision) string {
	if d.Budget {
		return "its budget"
	}
	switch arch.StopReason(d.Stop) {
	case arch.StopSyscall:
		return "a system call"
	case arch.StopFault, arch.StopNoMemory:
		return "a page fault"
	case arch.StopException, arch.StopInterrupt:
		return "an exception"
	case arch.StopPause:
		return "a pause"
	case 0:
		return "the kernel before it began"
	}
	return fmt.Sprintf("stop %d", d.Stop)
}
