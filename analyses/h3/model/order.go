package model

import (
	"cmp"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Edge says that an event comes before another one in every schedule.
type Edge struct{ From, To ID }

// ProgramOrder is the part of the threads' program order that a memory model keeps: edges that
// imply the rest (H3 section 3.3, "Memory Order Constraints").
func (t *Trace) ProgramOrder(m MemoryModel) []Edge {
	var edges []Edge
	for i := range t.Threads {
		edges = append(edges, t.threadOrder(m, t.Threads[i].Events)...)
	}
	return edges
}

// threadOrdering goes along a thread and knows the events that the next one has to follow.
type threadOrdering struct {
	model MemoryModel
	edges []Edge
	// ordered is the last event that all later events follow, or a read.
	ordered ID
	// writes are the latest writes since the last full event of which none comes
	// before another, and fenced those before the last store fence.
	writes, fenced []ID
}

func (t *Trace) threadOrder(m MemoryModel, events []ID) []Edge {
	o := &threadOrdering{model: m, ordered: None}
	for _, id := range events {
		switch e := &t.Events[id]; {
		case m == SC || e.Kind.DrainsWrites():
			o.addFullEvent(id)
		case e.Kind == Read:
			o.orderAfter(id, o.ordered)
			o.ordered = id
		case e.Kind == StoreFence:
			o.orderAfter(id, o.ordered)
			o.orderAfter(id, o.writes...)
			o.writes, o.fenced = []ID{id}, []ID{id}
		default:
			o.addWrite(t, id)
		}
	}
	return o.edges
}

func (o *threadOrdering) orderAfter(id ID, before ...ID) {
	for _, b := range before {
		if b != None {
			o.edges = append(o.edges, Edge{b, id})
		}
	}
}

func (o *threadOrdering) addFullEvent(id ID) {
	o.orderAfter(id, o.ordered)
	o.orderAfter(id, o.writes...)
	o.ordered, o.writes, o.fenced = id, nil, nil
}

// addWrite comes after all reads, and after the earlier writes that the model does
// not let it overtake: under PSO those before a fence and those to the same bytes.
func (o *threadOrdering) addWrite(t *Trace, id ID) {
	o.orderAfter(id, o.ordered)
	if o.model == TSO {
		o.orderAfter(id, o.writes...)
		o.writes = []ID{id}
		return
	}
	o.orderAfter(id, o.fenced...)
	e := &t.Events[id]
	for _, w := range o.writes {
		if x := &t.Events[w]; x.Kind == Write && x.mayOverlap(e) {
			o.orderAfter(id, w)
		}
	}
	o.writes = append(o.writes, id)
}

// mayOverlap reports whether two accesses can have a byte in common.
func (e *Event) mayOverlap(o *Event) bool {
	return e.Addr < o.Addr+uint64(o.Size) && o.Addr < e.Addr+uint64(e.Size)
}

// ForkJoin is the order that starts, ends and barriers make.
func (t *Trace) ForkJoin() []Edge {
	edges := t.CreationEdges()
	rounds := newBarrierRounds(t)
	for id := range t.Events {
		e := &t.Events[id]
		switch e.Kind {
		case Fork:
			if first := t.endEvent(e.Peer, 0, Begin); first != None {
				edges = append(edges, Edge{ID(id), first})
			}
		case Join:
			if last := t.endEvent(e.Peer, -1, End); last != None {
				edges = append(edges, Edge{last, ID(id)})
			}
		case Leave:
			for _, a := range rounds.arrivals(e) {
				edges = append(edges, Edge{a, ID(id)})
			}
		}
	}
	return edges
}

// CreationEdges has threads be made in the order in which the recorded run made them: it gives
// them their numbers, which programs see and schedules name them by.
func (t *Trace) CreationEdges() []Edge {
	var forks []ID
	for id := range t.Events {
		if e := &t.Events[id]; e.Kind == Fork && t.Threads[e.Peer].CreationOrder > 0 {
			forks = append(forks, ID(id))
		}
	}
	slices.SortFunc(forks, func(a, b ID) int {
		return cmp.Compare(t.Threads[t.Events[a].Peer].CreationOrder, t.Threads[t.Events[b].Peer].CreationOrder)
	})
	var edges []Edge
	for i := 1; i < len(forks); i++ {
		edges = append(edges, Edge{forks[i-1], forks[i]})
	}
	return edges
}

// endEvent is the first (0) or last (-1) event of a thread if it is of a kind.
func (t *Trace) endEvent(thread, at int, kind Kind) ID {
	events := t.Threads[thread].Events
	if len(events) == 0 {
		return None
	}
	id := events[0]
	if at < 0 {
		id = events[len(events)-1]
	}
	if t.Events[id].Kind != kind {
		return None
	}
	return id
}

// ImpossibleEvents lists events that cannot have been executed whatever the order: joins
// of threads that have not ended, and leaving a barrier to which too few came.
func (t *Trace) ImpossibleEvents() []ID {
	var all []ID
	rounds := newBarrierRounds(t)
	for id := range t.Events {
		e := &t.Events[id]
		if e.Kind == Join && t.endEvent(e.Peer, -1, End) == None || e.Kind == Leave && !rounds.isComplete(t, e) {
			all = append(all, ID(id))
		}
	}
	return all
}

// barrierRounds has the arrivals at barriers by barrier and by how often their threads
// have arrived before.
type barrierRounds struct {
	arrived map[event.ObjectID][][]ID
	leave   map[*Event]int
}

func newBarrierRounds(t *Trace) *barrierRounds {
	r := &barrierRounds{arrived: map[event.ObjectID][][]ID{}, leave: map[*Event]int{}}
	for i := range t.Threads {
		count := map[event.ObjectID]int{}
		for _, id := range t.Threads[i].Events {
			switch e := &t.Events[id]; e.Kind {
			case Arrive:
				n := count[e.Object]
				count[e.Object]++
				all := r.arrived[e.Object]
				for len(all) <= n {
					all = append(all, nil)
				}
				all[n] = append(all[n], id)
				r.arrived[e.Object] = all
			case Leave:
				r.leave[e] = count[e.Object] - 1
			}
		}
	}
	return r
}

// arrivals are the arrivals that a Leave waits for.
func (r *barrierRounds) arrivals(leave *Event) []ID { return r.arrived[leave.Object][r.leave[leave]] }

// isComplete reports whether as many threads have arrived as the barrier is for.
func (r *barrierRounds) isComplete(t *Trace, leave *Event) bool {
	all := r.arrivals(leave)
	return len(all) > 0 && len(all) == t.Events[all[0]].Count
}

// Turn is a part of a thread's events that a core executed without another thread
// in between.
type Turn struct {
	Core   arch.CoreID
	Events []ID
}

// isNextEvent reports whether b is the next event of a's thread.
func (t *Trace) isNextEvent(a, b ID) bool {
	x, y := &t.Events[a], &t.Events[b]
	return x.Thread == y.Thread && x.Number+1 == y.Number
}

// Turns cuts the events of the cores at the context switches: for each core its
// slices in order.
func (t *Trace) Turns() [][]Turn {
	byCore := map[arch.CoreID][]ID{}
	var cores []arch.CoreID
	for id := range t.Events {
		c := t.Events[id].Core
		if byCore[c] == nil {
			cores = append(cores, c)
		}
		byCore[c] = append(byCore[c], ID(id))
	}
	slices.Sort(cores)
	var all [][]Turn
	for _, c := range cores {
		ids := byCore[c]
		slices.SortStableFunc(ids, func(a, b ID) int { return cmp.Compare(t.Events[a].CoreInstructions, t.Events[b].CoreInstructions) })
		var of []Turn
		for i, id := range ids {
			if i == 0 || !t.isNextEvent(ids[i-1], id) {
				of = append(of, Turn{Core: c})
			}
			last := &of[len(of)-1]
			last.Events = append(last.Events, id)
		}
		all = append(all, of)
	}
	return all
}

// CoreOrder is the order that the events of each core add to program order. A context switch makes
// the core's writes reach memory, so that a whole turn precedes the core's next turn, and its
// thread's next turn.
func (t *Trace) CoreOrder(m MemoryModel) []Edge {
	var edges []Edge
	next := t.findTurnEnds(m)
	of := make([]*turnEnds, len(t.Events))
	for _, core := range next {
		for i := range core {
			for _, id := range core[i].events {
				of[id] = &core[i]
			}
			if i > 0 {
				edges = append(edges, core[i-1].edgesTo(&core[i])...)
			}
		}
	}
	for i := range t.Threads {
		events := t.Threads[i].Events
		for k := 1; k < len(events); k++ {
			if a, b := of[events[k-1]], of[events[k]]; a != b {
				edges = append(edges, a.edgesTo(b)...)
			}
		}
	}
	return edges
}

// turnEnds is a slice with the events that none of it comes before or after.
type turnEnds struct {
	events, first, last []ID
}

func (s *turnEnds) edgesTo(o *turnEnds) []Edge {
	var edges []Edge
	for _, a := range s.last {
		for _, b := range o.first {
			edges = append(edges, Edge{a, b})
		}
	}
	return edges
}

// findTurnEnds finds the first and last events of all slices, by core.
func (t *Trace) findTurnEnds(m MemoryModel) [][]turnEnds {
	var all [][]turnEnds
	for _, core := range t.Turns() {
		var of []turnEnds
		for _, s := range core {
			before, after := map[ID]bool{}, map[ID]bool{}
			for _, e := range t.threadOrder(m, s.Events) {
				before[e.To], after[e.From] = true, true
			}
			ends := turnEnds{events: s.Events}
			for _, id := range s.Events {
				if !before[id] {
					ends.first = append(ends.first, id)
				}
				if !after[id] {
					ends.last = append(ends.last, id)
				}
			}
			of = append(of, ends)
		}
		all = append(all, of)
	}
	return all
}
