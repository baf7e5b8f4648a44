package simplify

import (
	"sort"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/path"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Event is an operation, or a part of one, or a point of a constraint, where a thread
// comes to it.
type Event struct {
	// From and To are how many instructions the thread had executed before and
	// behind it.
	From, To uint64
	// Position is the event's place in the total order: that of an operation, or, of
	// a point, of the operation that comes before. Point tells that it is one.
	Position int
	Point    bool
	// PC is the instruction of a point.
	PC uint64
	// Operation is the operation; of a point nil.
	Operation *event.Operation
}

// Events are those of a schedule, thread by thread in order.
type Events struct {
	// Schedule is what they are of.
	Schedule *event.Schedule
	byThread map[event.ThreadID][]Event
	points   []ordered
	ends     map[event.ThreadID]int
	alone    map[event.ThreadID]uint64
}

// ordered is a constraint: of two threads at instructions.
type ordered struct {
	first, second event.ThreadID
	from, to      uint64
}

// NewEvents finds the events of a schedule, whose marks and bases analyses/hybrid has.
// IDs are the guest's numbers of the schedule's threads.
func NewEvents(s *event.Schedule, marks []hybrid.Mark, ids []event.ThreadID) *Events {
	e := &Events{Schedule: s, byThread: map[event.ThreadID][]Event{}, ends: map[event.ThreadID]int{}, alone: map[event.ThreadID]uint64{}}
	for n, at := range s.Awaited() {
		e.ends[ids[n]] = at
	}
	open := map[int]uint64{} // where threads called their operations
	last := map[int]int{}    // the operation that is open, among those of its thread
	for i := range marks {
		m := &marks[i]
		id := ids[m.Thread]
		if m.Open {
			open[m.Thread] = m.Instructions
			delete(last, m.Thread)
		}
		if m.Position >= 0 {
			from := m.Instructions
			if at, inside := open[m.Thread]; inside {
				from = at
			}
			last[m.Thread] = len(e.byThread[id])
			e.byThread[id] = append(e.byThread[id], Event{
				From: from, To: m.Instructions, Position: m.Position, Operation: &s.Operations[m.Position],
			})
		}
		if m.Close {
			if n, known := last[m.Thread]; known {
				e.byThread[id][n].To = m.Instructions
			}
			delete(open, m.Thread)
		}
	}
	e.addPoints(hybrid.Bases(s, marks), ids)
	if s.Portable {
		e.leaveOut(s.Alone())
	}
	return e
}

// leaveOut leaves out the events from a position on, of the thread that is alone then.
func (e *Events) leaveOut(position int) {
	if position == len(e.Schedule.Operations) {
		return
	}
	for id, list := range e.byThread {
		i := sort.Search(len(list), func(i int) bool { return list[i].Position >= position })
		if i < len(list) || i > 0 && list[i-1].Position == position-1 {
			e.byThread[id], e.alone[id] = list[:i], list[i-1].To
		}
	}
}

// Alone tells whether a thread is alone when it has executed so many instructions: all
// others have been waited for, and what it does has no events.
func (e *Events) Alone(t *path.Thread, instructions uint64) bool {
	at, ends := e.alone[t.ID]
	return ends && instructions >= at
}

// End is the position of the operation that waited for a thread's end; without one it
// is behind all.
func (e *Events) End(t *path.Thread) int {
	if at, ok := e.ends[t.ID]; ok {
		return at
	}
	return len(e.Schedule.Operations)
}

// addPoints adds the points of constraints.
func (e *Events) addPoints(bases [][]hybrid.Base, ids []event.ThreadID) {
	operations := map[event.ThreadID][]Event{}
	for id, list := range e.byThread {
		operations[id] = list
	}
	for i := range e.Schedule.Constraints {
		c := &e.Schedule.Constraints[i]
		first, second := ids[c.First.Thread], ids[c.Second.Thread]
		o := ordered{first: first, second: second}
		if p := &c.First; p.PC == 0 && !p.Ends {
			o.from = operations[first][p.Done].To
		} else {
			o.from = e.addPoint(p, first, bases)
		}
		if p := &c.Second; p.PC == 0 && !p.Ends {
			o.to = operations[second][p.Done].From
		} else {
			o.to = e.addPoint(p, second, bases)
		}
		e.points = append(e.points, o)
	}
	for _, list := range e.byThread {
		sort.SliceStable(list, func(i, j int) bool { return list[i].From < list[j].From })
		for i := range list {
			if list[i].Position < 0 && i > 0 {
				list[i].Position = list[i-1].Position
			}
		}
	}
}

// Of are the events of a thread, in order.
func (e *Events) Of(t *path.Thread) []Event { return e.byThread[t.ID] }

// Constraints calls a function with each constraint: an instruction of one thread
// before one of another, as counts of instructions before them.
func (e *Events) Constraints(f func(first event.ThreadID, from uint64, second event.ThreadID, to uint64)) {
	for _, p := range e.points {
		f(p.first, p.from, p.second, p.to)
	}
}

// addPoint adds an instruction and returns how many come before.
func (e *Events) addPoint(p *event.Point, id event.ThreadID, bases [][]hybrid.Base) uint64 {
	at := bases[p.Thread][min(p.Done, len(bases[p.Thread])-1)].Instructions + p.Instructions
	if !p.Ends {
		e.byThread[id] = append(e.byThread[id], Event{From: at, To: at + p.Span, Point: true, Position: -1, PC: uint64(p.PC)})
	}
	return at
}
