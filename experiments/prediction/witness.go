package prediction

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/predict"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// witness is a schedule in which two accesses are next to each other: the operations of a reordering in the
// order of the run, with constraints that keep all its conflicting accesses in their order. Threads that reach
// other operations are held; when none can continue, the schedule is at its end.
type witness struct {
	race     predict.Race
	schedule *event.Schedule
}

// newWitness makes the witness of a race, without counts of instructions.
func (r *run) newWitness(race predict.Race) *witness {
	race.Prefix = r.startThreads(race.Prefix)
	whole := r.o.Schedule.Schedule
	s := &event.Schedule{Threads: whole.Threads, Objects: whole.Objects, Allocators: true}
	positions := make([]int, len(whole.Operations))
	done := make([]int, len(whole.Threads))
	for p := range whole.Operations {
		positions[p] = -1
		if e := r.operations[p]; e != predict.NoEvent && r.inPrefix(race.Prefix, e) {
			positions[p] = len(s.Operations)
			s.Operations = append(s.Operations, whole.Operations[p])
			done[whole.Operations[p].Thread]++
		}
	}
	finder := hybrid.NewConstraintFinder(s, r.marksOf(positions), r.o.Process, hybrid.PruneReduce, false)
	for i := range r.kept {
		k := &r.kept[i]
		if k.event == predict.NoEvent && k.kind != event.Content || k.event != predict.NoEvent && !r.inPrefix(race.Prefix, k.event) {
			continue
		}
		m := k.memory()
		finder.AddMemory(int(k.thread), &m)
	}
	finder.AdvanceTo(^uint64(0))
	for _, e := range []predict.EventID{race.First, race.Second} {
		for _, k := range r.accessesOf(e) {
			m := k.memory()
			finder.AddMemory(int(k.thread), &m)
		}
	}
	s.Constraints, _ = finder.Finish()
	s.Constraints = append(s.Constraints, r.holds(race, done)...)
	return &witness{race, s}
}

func (r *run) inPrefix(prefix predict.Clock, e predict.EventID) bool {
	return r.b.Local(e) < prefix[r.b.Thread(e)]
}

// startThreads adds the starts of threads that a reordering has made, which depend on nothing else.
func (r *run) startThreads(prefix predict.Clock) predict.Clock {
	prefix = slices.Clone(prefix)
	for p, e := range r.operations {
		o := &r.o.Schedule.Schedule.Operations[p]
		if e != predict.NoEvent && o.Part == event.StartPart && prefix[o.Thread] == 0 && r.b.Local(e) == 0 && r.b.IsEnabled(e, prefix) {
			prefix[o.Thread] = 1
		}
	}
	return prefix
}

// marksOf are the marks of the operations that have a new position.
func (r *run) marksOf(positions []int) []hybrid.Mark {
	var marks []hybrid.Mark
	ended := make([]bool, len(r.o.Schedule.Schedule.Threads))
	left := make([]int, len(ended))
	for p, position := range positions {
		if position >= 0 {
			left[r.o.Schedule.Schedule.Operations[p].Thread]++
		}
	}
	for _, k := range r.o.Marks {
		switch {
		case ended[k.Thread]:
			continue
		case k.Position >= 0 && positions[k.Position] < 0, left[k.Thread] == 0 && (k.Open || k.Position >= 0 || k.Over):
			ended[k.Thread] = true
			continue
		case k.Position >= 0:
			k.Position = positions[k.Position]
			left[k.Thread]--
		}
		marks = append(marks, k)
	}
	return marks
}

// accessesOf are the accesses of an event, which is one instruction.
func (r *run) accessesOf(e predict.EventID) []keptAccess {
	first := r.first[e]
	var list []keptAccess
	for i := first; i < len(r.kept) && (r.kept[i].event == e || r.kept[i].thread != r.kept[first].thread); i++ {
		if r.kept[i].event == e {
			list = append(list, r.kept[i])
		}
	}
	return list
}

// holds are constraints that have each thread wait for the second access before its next access
// to shared memory: nothing comes between the two. done are the threads' operations.
func (r *run) holds(race predict.Race, done []int) []event.Constraint {
	var list []event.Constraint
	first, second := r.b.Thread(race.First), r.b.Thread(race.Second)
	for n := range done {
		bound := race.Prefix[n]
		if n == first {
			bound = r.b.Local(race.First) + 1
		}
		e := r.b.At(n, bound)
		if _, accesses := r.first[e]; n == second || !accesses {
			continue
		}
		list = append(list, event.Constraint{First: r.pointOf(race.Second, done), Second: r.pointOf(e, done)})
	}
	return list
}

// pointOf is where a thread executes the instruction of an event, after a number of its operations.
func (r *run) pointOf(e predict.EventID, done []int) event.Point {
	k, n := &r.kept[r.first[e]], r.b.Thread(e)
	return r.o.Point(n, done[n], k.pc, k.branches)
}
