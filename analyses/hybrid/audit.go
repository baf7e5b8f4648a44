package hybrid

import (
	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// NewAudit makes a Maker for a run that followed a schedule: it finds the races that
// neither the order of the run's operations nor the schedule's constraints order. Each
// of them is a constraint that the schedule lacks (Finish).
func NewAudit(s *event.Schedule, marks []Mark, process func(thread int) int, followed *event.Schedule) *Maker {
	m := NewMaker(s, marks, process, PruneNone, true)
	a := &audit{detector: m.detector, firsts: map[event.Point][]uint64{}, seconds: map[event.Point][]uint64{}}
	numbers := map[string]int{}
	for n, name := range s.Threads {
		numbers[name] = n
		a.threads = append(a.threads, audited{came: map[event.Addr]uint64{}})
	}
	for i := range followed.Constraints {
		c := &followed.Constraints[i]
		if c.First.Ends || c.Second.Ends {
			continue // what a thread did when its process ended meets nothing behind it
		}
		object := uint64(i) + 1
		first, second := a.key(&c.First, numbers[followed.Threads[c.First.Thread]]), a.key(&c.Second, numbers[followed.Threads[c.Second.Thread]])
		a.firsts[first] = append(a.firsts[first], object)
		a.seconds[second] = append(a.seconds[second], object)
	}
	m.audit = a
	return m
}

// total is the object by which all operations are ordered; those of constraints have
// their numbers from 1 on.
const total = 0

// audit orders a run's accesses as the schedule that it followed does.
type audit struct {
	detector *races.Detector
	// firsts and seconds are the objects of constraints by their instructions, or
	// operations.
	firsts, seconds map[event.Point][]uint64
	threads         []audited
}

// audited is what is known of a thread: how often it came to instructions since its
// last operation, and to which it came last.
type audited struct {
	came     map[event.Addr]uint64
	pc       event.Addr
	branches uint64
}

// key is what a point of a portable schedule is known by.
func (a *audit) key(p *event.Point, thread int) event.Point {
	return event.Point{Thread: thread, Done: p.Done, PC: p.PC, Occurrence: p.Occurrence}
}

// operation takes an operation of a thread, which is over with it if that is known.
func (a *audit) operation(thread, done int) {
	if a == nil {
		return
	}
	t := &a.threads[thread]
	clear(t.came)
	t.pc = 0
	a.detector.Acquire(thread, total)
	a.detector.Release(thread, total)
	a.begin(event.Point{Thread: thread, Done: done - 1})
}

// over takes the end of a thread's operation.
func (a *audit) over(thread, done int) {
	if a != nil {
		a.end(event.Point{Thread: thread, Done: done - 1})
	}
}

// begin and end take what comes at a point: the order of constraints.
func (a *audit) begin(p event.Point) {
	for _, object := range a.seconds[p] {
		a.detector.Acquire(p.Thread, object)
	}
}

func (a *audit) end(p event.Point) {
	for _, object := range a.firsts[p] {
		a.detector.Release(p.Thread, object)
	}
}

// come takes an access of a thread's instruction, and returns its point.
func (a *audit) come(x *races.Access, done int) event.Point {
	t := &a.threads[x.Thread]
	if t.pc != x.PC || t.branches != x.Branches {
		t.pc, t.branches = x.PC, x.Branches
		t.came[x.PC]++
	}
	return event.Point{Thread: x.Thread, Done: done, PC: x.PC, Occurrence: t.came[x.PC]}
}
