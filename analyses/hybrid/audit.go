package hybrid

import (
	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// NewAuditor makes a Maker for a run that followed a schedule: it finds the races that
// neither the order of the run's operations nor the schedule's constraints order. Each
// of them is a constraint that the schedule lacks (Finish).
func NewAuditor(s *event.Schedule, marks []Mark, process func(thread int) int, followed *event.Schedule) *ConstraintFinder {
	m := NewConstraintFinder(s, marks, process, PruneNone, true)
	a := &audit{detector: m.detector, firsts: map[event.Point][]uint64{}, seconds: map[event.Point][]uint64{}}
	numbers := map[string]int{}
	for n, name := range s.Threads {
		numbers[name] = n
		a.threads = append(a.threads, auditedThread{arrivals: map[arch.Addr]uint64{}})
	}
	for i := range followed.Constraints {
		c := &followed.Constraints[i]
		if c.First.Ends || c.Second.Ends {
			continue // the last accesses of a thread whose process ended precede nothing
		}
		object := uint64(i) + 1
		first, second := a.pointKey(&c.First, numbers[followed.Threads[c.First.Thread]]), a.pointKey(&c.Second, numbers[followed.Threads[c.Second.Thread]])
		a.firsts[first] = append(a.firsts[first], object)
		a.seconds[second] = append(a.seconds[second], object)
	}
	m.audit = a
	return m
}

// allOperations is the object by which all operations are ordered; those of constraints have
// their numbers from 1 on.
const allOperations = 0

// audit orders a run's accesses as the schedule that it followed does.
type audit struct {
	detector *races.Detector
	// firsts and seconds are the objects of constraints by their instructions, or
	// operations.
	firsts, seconds map[event.Point][]uint64
	threads         []auditedThread
}

// auditedThread has a thread's latest instruction, and how often it has reached each instruction
// since its last operation.
type auditedThread struct {
	arrivals map[arch.Addr]uint64
	pc       arch.Addr
	branches uint64
}

// pointKey identifies a point of a portable schedule.
func (a *audit) pointKey(p *event.Point, thread int) event.Point {
	return event.Point{Thread: thread, Done: p.Done, PC: p.PC, Occurrence: p.Occurrence}
}

// beginOperation takes an operation of a thread, which is over with it if that is known.
func (a *audit) beginOperation(thread, done int) {
	if a == nil {
		return
	}
	t := &a.threads[thread]
	clear(t.arrivals)
	t.pc = 0
	a.detector.Acquire(thread, allOperations)
	a.detector.Release(thread, allOperations)
	a.acquireAt(event.Point{Thread: thread, Done: done - 1})
}

// endOperation takes the end of a thread's operation.
func (a *audit) endOperation(thread, done int) {
	if a != nil {
		a.releaseAt(event.Point{Thread: thread, Done: done - 1})
	}
}

// acquireAt and releaseAt apply the constraints at a point.
func (a *audit) acquireAt(p event.Point) {
	for _, object := range a.seconds[p] {
		a.detector.Acquire(p.Thread, object)
	}
}

func (a *audit) releaseAt(p event.Point) {
	for _, object := range a.firsts[p] {
		a.detector.Release(p.Thread, object)
	}
}

// reachInstruction takes an access of a thread's instruction, and returns its point.
func (a *audit) reachInstruction(x *races.Access, done int) event.Point {
	t := &a.threads[x.Thread]
	if t.pc != x.PC || t.branches != x.Branches {
		t.pc, t.branches = x.PC, x.Branches
		t.arrivals[x.PC]++
	}
	return event.Point{Thread: x.Thread, Done: done, PC: x.PC, Occurrence: t.arrivals[x.PC]}
}
