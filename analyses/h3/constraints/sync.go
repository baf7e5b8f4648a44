package constraints

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// addSynchronization adds the constraints that synchronization operations impose on each other
// beyond a fixed order: H3 section 3.3, "Synchronization Constraints".
func (b *systemBuilder) addSynchronization() {
	objects, events := b.eventsByObject()
	for _, o := range objects {
		b.separateRegions(events[o])
		b.addConditionVariable(events[o])
		b.addSemaphore(o, events[o])
	}
}

// eventsByObject has the events of each object, and the objects as they come.
func (b *systemBuilder) eventsByObject() ([]event.ObjectID, map[event.ObjectID][]model.ID) {
	var objects []event.ObjectID
	events := map[event.ObjectID][]model.ID{}
	for id := range b.trace.Events {
		e := &b.trace.Events[id]
		if e.Kind < model.Lock {
			continue
		}
		if events[e.Object] == nil {
			objects = append(objects, e.Object)
		}
		events[e.Object] = append(events[e.Object], model.ID(id))
	}
	return objects, events
}

// lockRegion is the region between a Lock and its Unlock, None if the thread holds the
// lock to its end.
type lockRegion struct {
	lock, unlock model.ID
	thread       int
	shared       bool
}

// lockRegions pairs the events of one lock. A lock that its holder takes again is one
// region, to the last Unlock.
func (b *systemBuilder) lockRegions(events []model.ID) []lockRegion {
	var found []lockRegion
	open := map[int]int{}  // region of a thread, counted from 1
	depth := map[int]int{} // of a thread
	for _, id := range events {
		e := &b.trace.Events[id]
		switch e.Kind {
		case model.Lock:
			if depth[e.Thread]++; depth[e.Thread] == 1 {
				found = append(found, lockRegion{lock: id, unlock: model.None, thread: e.Thread, shared: e.Shared})
				open[e.Thread] = len(found)
			}
		case model.Unlock:
			if depth[e.Thread]--; depth[e.Thread] == 0 {
				found[open[e.Thread]-1].unlock = id
			}
		}
	}
	return found
}

// separateRegions keeps the regions of a lock apart.
func (b *systemBuilder) separateRegions(events []model.ID) {
	regions := b.lockRegions(events)
	for i := range regions {
		for k := range i {
			x, y := &regions[k], &regions[i]
			if x.thread != y.thread && !(x.shared && y.shared) {
				b.addPart(Sync, disjunction(b.regionAfter(x, y), b.regionAfter(y, x)))
			}
		}
	}
	for _, id := range events {
		if b.trace.Events[id].Kind == model.TryFailed {
			b.addPart(Sync, b.attemptFails(id, regions))
		}
	}
}

// regionAfter says that region y begins after x has ended.
func (b *systemBuilder) regionAfter(x, y *lockRegion) *Formula {
	switch {
	case x.unlock == model.None || b.graph.Before(y.lock, x.unlock):
		return alwaysFalse
	case b.graph.Before(x.unlock, y.lock):
		return alwaysTrue
	}
	return eventBefore(x.unlock, y.lock)
}

// attemptFails says that an attempt to lock falls into a region that excludes it.
func (b *systemBuilder) attemptFails(id model.ID, regions []lockRegion) *Formula {
	e := &b.trace.Events[id]
	var ways []*Formula
	for i := range regions {
		r := &regions[i]
		if e.Shared && r.shared {
			continue
		}
		during := knownBefore(r.lock, id, b)
		if r.unlock != model.None {
			during = conjunction(during, knownBefore(id, r.unlock, b))
		}
		ways = append(ways, during)
	}
	return disjunction(ways...)
}

// knownBefore is eventBefore, or the answer of the graph.
func knownBefore(x, y model.ID, b *systemBuilder) *Formula {
	switch {
	case b.graph.Before(x, y):
		return alwaysTrue
	case b.graph.Before(y, x):
		return alwaysFalse
	}
	return eventBefore(x, y)
}

// conditionWait is a Sleep with its Wake, None if the thread never continued.
type conditionWait struct {
	sleep, wake model.ID
	timedOut    bool
	// signals are unknowns: by which signal it was woken.
	signals []wakeUp
}

type wakeUp struct {
	by      model.ID
	happens *symbolic.Expr
}

// addConditionVariable constrains which signal wakes which wait: a signal wakes one waiting thread
// if there is any, a broadcast all (POSIX, pthread_cond_signal). A thread that was woken may not
// have continued before the end.
func (b *systemBuilder) addConditionVariable(events []model.ID) {
	var waits []*conditionWait
	var signals []model.ID
	for _, id := range events {
		switch b.trace.Events[id].Kind {
		case model.Sleep:
			w := &conditionWait{sleep: id, wake: b.trace.WakeOf(id)}
			w.timedOut = w.wake != model.None && b.trace.Events[w.wake].TimedOut
			waits = append(waits, w)
		case model.Signal, model.Broadcast:
			signals = append(signals, id)
		}
	}
	for _, w := range waits {
		b.addWakeUps(w, signals)
	}
	for _, s := range signals {
		b.wakesAnyWaiter(s, waits)
		if b.trace.FIFOSignals && b.trace.Events[s].Kind == model.Signal {
			b.wakesLongestWaiter(s, waits)
		}
	}
}

// wakesLongestWaiter has a signal wake none that another has waited longer than.
func (b *systemBuilder) wakesLongestWaiter(s model.ID, waits []*conditionWait) {
	for _, w := range waits {
		i := slices.IndexFunc(w.signals, func(x wakeUp) bool { return x.by == s })
		if i < 0 {
			continue
		}
		for _, o := range waits {
			if o == w {
				continue
			}
			ways := []*Formula{b.negation(w.signals[i].happens), knownBefore(w.sleep, o.sleep, b)}
			for _, x := range o.signals {
				if x.by != s {
					ways = append(ways, conjunction(truthOf(x.happens), knownBefore(x.by, s, b)))
				}
			}
			if o.timedOut {
				ways = append(ways, knownBefore(o.wake, s, b))
			}
			b.addPart(Sync, disjunction(ways...))
		}
	}
}

// addWakeUps says by which signals a wait can be ended.
func (b *systemBuilder) addWakeUps(w *conditionWait, signals []model.ID) {
	if w.timedOut || w.wake == model.None && b.trace.Deadlocked {
		return
	}
	for _, s := range signals {
		after, inTime := knownBefore(w.sleep, s, b), alwaysTrue
		if w.wake != model.None {
			inTime = knownBefore(s, w.wake, b)
		}
		if after == alwaysFalse || inTime == alwaysFalse {
			continue
		}
		was := b.newSelector("woken")
		w.signals = append(w.signals, wakeUp{s, was})
		b.addPart(Sync, disjunction(b.negation(was), conjunction(after, inTime)))
	}
	b.atMostOne(w.signals)
	if w.wake != model.None {
		b.addPart(Sync, disjunction(happenings(w.signals)...))
	}
}

func happenings(of []wakeUp) []*Formula {
	var out []*Formula
	for _, s := range of {
		out = append(out, truthOf(s.happens))
	}
	return out
}

func (b *systemBuilder) negation(e *symbolic.Expr) *Formula { return truthOf(b.pool.Not(e)) }

func (b *systemBuilder) atMostOne(of []wakeUp) {
	for i := range of {
		for k := range i {
			b.addPart(Sync, disjunction(b.negation(of[i].happens), b.negation(of[k].happens)))
		}
	}
}

// wakesAnyWaiter keeps a signal from being lost while a thread waits, and from
// waking two.
func (b *systemBuilder) wakesAnyWaiter(s model.ID, waits []*conditionWait) {
	var mine []wakeUp
	for _, w := range waits {
		if i := slices.IndexFunc(w.signals, func(x wakeUp) bool { return x.by == s }); i >= 0 {
			mine = append(mine, w.signals[i])
		}
	}
	used := happenings(mine)
	if b.trace.Events[s].Kind == model.Broadcast {
		used = nil
	} else {
		b.atMostOne(mine)
	}
	for _, w := range waits {
		ways := append([]*Formula{knownBefore(s, w.sleep, b)}, used...)
		for _, x := range w.signals {
			if x.by == s {
				ways = append(ways, truthOf(x.happens))
			} else {
				ways = append(ways, conjunction(truthOf(x.happens), knownBefore(x.by, s, b)))
			}
		}
		if w.timedOut {
			ways = append(ways, knownBefore(w.wake, s, b))
		}
		b.addPart(Sync, disjunction(ways...))
	}
}

// addSemaphore gives each Take a Post of its own before it, or one of the units that
// were there at the begin.
func (b *systemBuilder) addSemaphore(o event.ObjectID, events []model.ID) {
	var posts, takes []model.ID
	for _, id := range events {
		switch b.trace.Events[id].Kind {
		case model.Post:
			posts = append(posts, id)
		case model.Take:
			takes = append(takes, id)
		}
	}
	units := min(b.trace.Semaphores[o], len(takes))
	of := make([][]wakeUp, len(posts)+units) // by post and unit, the takes
	for _, t := range takes {
		var mine []wakeUp
		for i := range of {
			when := alwaysTrue
			if i < len(posts) {
				when = knownBefore(posts[i], t, b)
			}
			if when == alwaysFalse {
				continue
			}
			x := wakeUp{t, b.newSelector("unit")}
			of[i], mine = append(of[i], x), append(mine, x)
			b.addPart(Sync, disjunction(b.negation(x.happens), when))
		}
		b.addPart(Sync, disjunction(happenings(mine)...))
	}
	for i := range of {
		b.atMostOne(of[i])
	}
}
