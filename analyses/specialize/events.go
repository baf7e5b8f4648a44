package specialize

import (
	"sort"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Event is an operation, a part of an operation, or a point of a constraint, as a thread
// executes it.
type Event struct {
	// From and To are the numbers of instructions that the thread had executed before and
	// after it.
	From, To uint64
	// Position is the event's position in the total order: for an operation its own, for a
	// point that of the operation before it. Point is set for a point.
	Position int
	Point    bool
	// PC is the address of a point's instruction.
	PC uint64
	// Operation is nil for a point.
	Operation *event.Operation
}

// Events are the events of a schedule, for each thread in order.
type Events struct {
	// Schedule is the schedule that the events belong to.
	Schedule *event.Schedule
	// FreeCalls is set if the schedule orders no system calls: they are no events.
	FreeCalls bool
	byThread  map[arch.ThreadID][]Event
	points    []pointOrder
	ends      map[arch.ThreadID]int
	alone     map[arch.ThreadID]uint64
}

// pointOrder is a constraint: an instruction of one thread before one of another.
type pointOrder struct {
	first, second arch.ThreadID
	from, to      uint64
}

// NewEvents finds the events of a schedule from the marks of analyses/hybrid. IDs are the
// guest's thread IDs of the schedule's threads.
func NewEvents(s *event.Schedule, marks []hybrid.Mark, ids []arch.ThreadID) *Events {
	e := &Events{Schedule: s, byThread: map[arch.ThreadID][]Event{}, ends: map[arch.ThreadID]int{}, alone: map[arch.ThreadID]uint64{}}
	for n, at := range s.Awaited() {
		e.ends[ids[n]] = at
	}
	open := map[int]uint64{} // where threads called the operations that they are in
	last := map[int]int{}    // index of the open operation in its thread's events
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
	e.addPoints(hybrid.CountsAfterOperations(s, marks), ids)
	if s.Portable {
		e.dropEventsFrom(s.Alone())
	}
	return e
}

// dropEventsFrom removes the events from a position on, which belong to the one thread that
// still runs then.
func (e *Events) dropEventsFrom(position int) {
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

// IsAlone reports whether a thread is the only one left after that number of instructions:
// all others have been joined, and its further operations are no events.
func (e *Events) IsAlone(t *blocktrace.Thread, instructions uint64) bool {
	at, ends := e.alone[t.ID]
	return ends && instructions >= at
}

// JoinPosition returns the position of the operation that joined a thread; for a thread
// that was not joined, the end of the schedule.
func (e *Events) JoinPosition(t *blocktrace.Thread) int {
	if at, ok := e.ends[t.ID]; ok {
		return at
	}
	return len(e.Schedule.Operations)
}

// addPoints adds the points of constraints.
func (e *Events) addPoints(bases [][]hybrid.Counted, ids []arch.ThreadID) {
	operations := map[arch.ThreadID][]Event{}
	for id, list := range e.byThread {
		operations[id] = list
	}
	for i := range e.Schedule.Constraints {
		c := &e.Schedule.Constraints[i]
		first, second := ids[c.First.Thread], ids[c.Second.Thread]
		o := pointOrder{first: first, second: second}
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

// OfThread returns the events of a thread, in order.
func (e *Events) OfThread(t *blocktrace.Thread) []Event { return e.byThread[t.ID] }

// EachConstraint calls a function with each constraint: an instruction of one thread before
// one of another, given as the numbers of instructions before them.
func (e *Events) EachConstraint(f func(first arch.ThreadID, from uint64, second arch.ThreadID, to uint64)) {
	for _, p := range e.points {
		f(p.first, p.from, p.second, p.to)
	}
}

// addPoint adds a point and returns the number of instructions before it.
func (e *Events) addPoint(p *event.Point, id arch.ThreadID, bases [][]hybrid.Counted) uint64 {
	at := bases[p.Thread][min(p.Done, len(bases[p.Thread])-1)].Instructions + p.Instructions
	if !p.Ends {
		e.byThread[id] = append(e.byThread[id], Event{From: at, To: at + p.Span, Point: true, Position: -1, PC: uint64(p.PC)})
	}
	return at
}
