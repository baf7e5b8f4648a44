package search

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// isReady reports whether a thread's next event can be executed.
func (x *searcher) isReady(s *state, id model.ID) bool {
	e := &x.Events[id]
	if e.Kind.DrainsWrites() && slices.ContainsFunc(s.buffers[e.Thread], func(w write) bool { return w.size > 0 }) {
		return false
	}
	return x.waitsOnlyForBuffer(s, id)
}

// waitsOnlyForBuffer reports whether a thread's next event waits for nothing but the thread's own
// buffer.
func (x *searcher) waitsOnlyForBuffer(s *state, id model.ID) bool {
	e := &x.Events[id]
	for _, b := range x.before[id] {
		if !x.hasReachedMemory(s, b) {
			return false
		}
	}
	o := x.objects[e.Object]
	switch e.Kind {
	case model.Begin:
		fork, known := x.forks[e.Thread]
		return known && x.isExecuted(s, fork)
	case model.Join:
		events := x.Threads[e.Peer].Events
		return len(events) > 0 && x.Events[events[len(events)-1]].Kind == model.End && int(s.nextEvents[e.Peer]) == len(events)
	case model.Lock:
		l := &s.locks[o]
		free := l.depth == 0 || l.owner == int32(e.Thread)
		return free && (e.Shared || l.readers&^(1<<e.Thread) == 0)
	case model.TryFailed:
		l := &s.locks[o]
		return l.depth > 0 || !e.Shared && l.readers != 0
	case model.Wake:
		return e.TimedOut || !slices.ContainsFunc(s.waiting[o], func(w waiter) bool { return int(w.thread) == e.Thread && !w.woken })
	case model.Leave:
		return x.isRoundComplete(s, e)
	case model.Take:
		return s.counts[o] > 0
	}
	return true
}

func (x *searcher) isExecuted(s *state, id model.ID) bool {
	e := &x.Events[id]
	return int(s.nextEvents[e.Thread]) > e.Number
}

// hasReachedMemory reports whether an event was executed and has reached memory.
func (x *searcher) hasReachedMemory(s *state, id model.ID) bool {
	return x.isExecuted(s, id) && !slices.ContainsFunc(s.buffers[x.Events[id].Thread], func(w write) bool { return w.id == id })
}

// isRoundComplete reports whether a thread's round at a barrier is complete.
func (x *searcher) isRoundComplete(s *state, e *model.Event) bool {
	rounds, count := 0, 0
	for _, id := range x.Threads[e.Thread].Events[:e.Number] {
		if a := &x.Events[id]; a.Kind == model.Arrive && a.Object == e.Object {
			rounds++
			count = a.Count
		}
	}
	return int(s.counts[x.objects[e.Object]]) >= rounds*count
}

// wakeableThreads lists the waiters that an event may wake: -1 stands for none.
func (x *searcher) wakeableThreads(s *state, id model.ID) []int {
	e := &x.Events[id]
	if e.Kind != model.Signal {
		return []int{-1}
	}
	var some []int
	asleep := false
	for i, w := range s.waiting[x.objects[e.Object]] {
		if !w.woken {
			if asleep && x.FIFOSignals {
				break // the one before has waited longer
			}
			asleep = true
			if x.mayBeWoken(w) {
				some = append(some, i)
			}
		}
	}
	if !asleep {
		return []int{-1}
	}
	return some
}

// mayBeWoken reports whether a thread is woken in the trace.
func (x *searcher) mayBeWoken(w waiter) bool {
	wake := x.WakeOf(w.sleep)
	if wake == model.None {
		return !x.Deadlocked
	}
	return !x.Events[wake].TimedOut
}

// executeEvent executes a thread's next event, which is ready. It returns false if a
// condition does not hold then, or it wakes who must not be.
func (x *searcher) executeEvent(s *state, id model.ID, woken int) bool {
	e := &x.Events[id]
	s.nextEvents[e.Thread]++
	s.appendStep(schedule.Step{Event: id})
	o := x.objects[e.Object]
	switch e.Kind {
	case model.Read, model.Write, model.Update:
		return x.executeAccess(s, id, e)
	case model.StoreFence:
		if len(s.buffers[e.Thread]) > 0 {
			s.buffers[e.Thread] = append(s.buffers[e.Thread], write{id: id})
		}
	case model.Lock:
		if l := &s.locks[o]; e.Shared && l.depth == 0 {
			l.readers |= 1 << e.Thread
		} else {
			l.owner = int32(e.Thread)
			l.depth++
		}
	case model.Unlock:
		if l := &s.locks[o]; l.depth > 0 {
			l.depth--
		} else {
			l.readers &^= 1 << e.Thread
		}
	case model.Sleep:
		s.waiting[o] = append(s.waiting[o], waiter{thread: int32(e.Thread), sleep: id})
	case model.Wake:
		s.waiting[o] = slices.DeleteFunc(s.waiting[o], func(w waiter) bool { return int(w.thread) == e.Thread })
	case model.Signal:
		if woken >= 0 {
			s.waiting[o][woken].woken = true
		}
	case model.Broadcast:
		for i := range s.waiting[o] {
			if w := &s.waiting[o][i]; !w.woken {
				w.woken = true
				if !x.mayBeWoken(*w) {
					return false
				}
			}
		}
	case model.Post, model.Arrive:
		s.counts[o]++
	case model.Take:
		s.counts[o]--
	}
	return true
}

func (x *searcher) executeAccess(s *state, id model.ID, e *model.Event) bool {
	at, ok := x.targetAddress(s, e)
	if !ok {
		return false
	}
	if e.Kind.Reads() {
		s.values[id] = loadValue(s, e.Thread, at, e.Size)
		for _, test := range x.tests[id] {
			if x.isDecided(s, test) && x.evaluateExpr(s, test).Lo == 0 {
				return false
			}
		}
		if !x.meetsAssumptions(s, id) {
			return false
		}
	}
	if !e.Kind.Writes() {
		return true
	}
	w := write{id, at, int32(e.Size), x.evaluateExpr(s, e.Value)}
	if e.Kind == model.Update || x.model == model.SC {
		storeValue(s, w)
	} else {
		s.buffers[e.Thread] = append(s.buffers[e.Thread], w)
	}
	return true
}

// targetAddress is where an access goes; not ok if it is outside of its array.
func (x *searcher) targetAddress(s *state, e *model.Event) (int32, bool) {
	if e.Index == nil {
		return x.place[e.Addr], true
	}
	n := x.evaluateExpr(s, e.Index).Lo
	for i := range x.Arrays {
		if a := &x.Arrays[i]; a.Addr == e.Addr {
			return x.place[a.Addr] + int32(n)*int32(a.Elem), n < uint64(a.Count)
		}
	}
	return 0, false
}

// isDecided reports whether all symbols of a condition have been read.
func (x *searcher) isDecided(s *state, e *symbolic.Expr) bool {
	all := true
	symbolic.Symbols(e, func(v *symbolic.Expr) {
		id, ok := x.reader[v.Name]
		all = all && ok && x.isExecuted(s, id)
	})
	return all
}

func (x *searcher) evaluateExpr(s *state, e *symbolic.Expr) symbolic.Value {
	if e.IsConst() {
		return e.Value
	}
	v, err := symbolic.NewEvaluator(func(name string) (symbolic.Value, bool) {
		id, ok := x.reader[name]
		if !ok {
			return symbolic.Value{}, false
		}
		return s.values[id], true
	}).Value(e)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return v
}

func byteOf(v symbolic.Value, i int32) byte {
	if i < 8 {
		return byte(v.Lo >> (8 * i))
	}
	return byte(v.Hi >> (8 * (i - 8)))
}

// loadValue sees the newest write of the thread's buffer, byte by byte, or memory.
func loadValue(s *state, thread int, at int32, size int) symbolic.Value {
	var v symbolic.Value
	for i := range int32(size) {
		b := s.memory[at+i]
		for _, w := range s.buffers[thread] {
			if k := at + i - w.at; k >= 0 && k < w.size {
				b = byteOf(w.value, k)
			}
		}
		if i < 8 {
			v.Lo |= uint64(b) << (8 * i)
		} else {
			v.Hi |= uint64(b) << (8 * (i - 8))
		}
	}
	return v
}

func storeValue(s *state, w write) {
	for i := range w.size {
		s.memory[w.at+i] = byteOf(w.value, i)
	}
}

// committableWrites lists the writes of a buffer that can reach memory next.
func (x *searcher) committableWrites(s *state, t int) []int {
	var free []int
	buffer := s.buffers[t]
	for i, w := range buffer {
		if w.size == 0 {
			if i > 0 {
				break
			}
			continue
		}
		shares := slices.ContainsFunc(buffer[:i], func(o write) bool { return o.at < w.at+w.size && w.at < o.at+o.size })
		if x.model == model.TSO && i > 0 || shares || !x.mayReachMemory(s, w.id) {
			continue
		}
		free = append(free, i)
	}
	return free
}

// mayReachMemory reports whether all events are over that the order of the cores puts before a
// write.
func (x *searcher) mayReachMemory(s *state, id model.ID) bool {
	return !slices.ContainsFunc(x.before[id], func(b model.ID) bool { return !x.hasReachedMemory(s, b) })
}

// commitWrite has a write reach memory, and fences that have nothing before them go.
func (x *searcher) commitWrite(s *state, t, i int) {
	w := s.buffers[t][i]
	storeValue(s, w)
	s.buffers[t] = slices.Delete(s.buffers[t], i, i+1)
	for len(s.buffers[t]) > 0 && s.buffers[t][0].size == 0 {
		s.buffers[t] = s.buffers[t][1:]
	}
	s.appendStep(schedule.Step{Event: w.id, Commit: true})
}
