package constraints

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// sync adds what the synchronization operations demand of each other beyond a fixed
// order: H3 section 3.3, "Synchronization Constraints".
func (b *builder) sync() {
	objects, events := b.bySyncObject()
	for _, o := range objects {
		b.locking(events[o])
		b.conditionVariable(events[o])
		b.semaphore(o, events[o])
	}
}

// bySyncObject has the events of each object, and the objects as they come.
func (b *builder) bySyncObject() ([]event.ObjectID, map[event.ObjectID][]model.ID) {
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

// region is what lies between a Lock and its Unlock, which is None if the thread
// has the lock to its end.
type region struct {
	lock, unlock model.ID
	thread       int
	shared       bool
}

// regions pairs the events of one lock. A lock that its holder takes again is one
// region, to the last Unlock.
func (b *builder) regions(events []model.ID) []region {
	var found []region
	open := map[int]int{}  // region of a thread, counted from 1
	depth := map[int]int{} // of a thread
	for _, id := range events {
		e := &b.trace.Events[id]
		switch e.Kind {
		case model.Lock:
			if depth[e.Thread]++; depth[e.Thread] == 1 {
				found = append(found, region{lock: id, unlock: model.None, thread: e.Thread, shared: e.Shared})
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

// locking keeps the regions of a lock apart.
func (b *builder) locking(events []model.ID) {
	regions := b.regions(events)
	for i := range regions {
		for k := range i {
			x, y := &regions[k], &regions[i]
			if x.thread != y.thread && !(x.shared && y.shared) {
				b.add(Sync, either(b.behind(x, y), b.behind(y, x)))
			}
		}
	}
	for _, id := range events {
		if b.trace.Events[id].Kind == model.TryFailed {
			b.add(Sync, b.taken(id, regions))
		}
	}
}

// behind tells that region y begins when x is over.
func (b *builder) behind(x, y *region) *Formula {
	switch {
	case x.unlock == model.None || b.graph.Before(y.lock, x.unlock):
		return no
	case b.graph.Before(x.unlock, y.lock):
		return yes
	}
	return less(x.unlock, y.lock)
}

// taken tells that an attempt falls into a region that keeps it out.
func (b *builder) taken(id model.ID, regions []region) *Formula {
	e := &b.trace.Events[id]
	var ways []*Formula
	for i := range regions {
		r := &regions[i]
		if e.Shared && r.shared {
			continue
		}
		during := before(r.lock, id, b)
		if r.unlock != model.None {
			during = all(during, before(id, r.unlock, b))
		}
		ways = append(ways, during)
	}
	return either(ways...)
}

// before is less, or what the graph knows of it.
func before(x, y model.ID, b *builder) *Formula {
	switch {
	case b.graph.Before(x, y):
		return yes
	case b.graph.Before(y, x):
		return no
	}
	return less(x, y)
}

// wait is a Sleep with its Wake, which is None if the thread was never seen to go
// on.
type wait struct {
	sleep, wake model.ID
	timedOut    bool
	// signals are the unknowns that tell by which signal it was woken.
	signals []woken
}

type woken struct {
	by  model.ID
	was *symbolic.Expr
}

// conditionVariable says which signal wakes which wait: a signal wakes one waiting
// thread if there is any, a broadcast all (POSIX, pthread_cond_signal). A thread
// that was woken may not have gone on before the end.
func (b *builder) conditionVariable(events []model.ID) {
	var waits []*wait
	var signals []model.ID
	for _, id := range events {
		switch b.trace.Events[id].Kind {
		case model.Sleep:
			w := &wait{sleep: id, wake: b.trace.WakeOf(id)}
			w.timedOut = w.wake != model.None && b.trace.Events[w.wake].TimedOut
			waits = append(waits, w)
		case model.Signal, model.Broadcast:
			signals = append(signals, id)
		}
	}
	for _, w := range waits {
		b.wakes(w, signals)
	}
	for _, s := range signals {
		b.wakesSomebody(s, waits)
		if b.trace.Queued && b.trace.Events[s].Kind == model.Signal {
			b.wakesFirst(s, waits)
		}
	}
}

// wakesFirst has a signal wake none that another has waited longer than.
func (b *builder) wakesFirst(s model.ID, waits []*wait) {
	for _, w := range waits {
		i := slices.IndexFunc(w.signals, func(x woken) bool { return x.by == s })
		if i < 0 {
			continue
		}
		for _, o := range waits {
			if o == w {
				continue
			}
			ways := []*Formula{b.not(w.signals[i].was), before(w.sleep, o.sleep, b)}
			for _, x := range o.signals {
				if x.by != s {
					ways = append(ways, all(holds(x.was), before(x.by, s, b)))
				}
			}
			if o.timedOut {
				ways = append(ways, before(o.wake, s, b))
			}
			b.add(Sync, either(ways...))
		}
	}
}

// wakes says by which signals a wait can be ended.
func (b *builder) wakes(w *wait, signals []model.ID) {
	if w.timedOut || w.wake == model.None && b.trace.Stuck {
		return
	}
	for _, s := range signals {
		after, inTime := before(w.sleep, s, b), yes
		if w.wake != model.None {
			inTime = before(s, w.wake, b)
		}
		if after == no || inTime == no {
			continue
		}
		was := b.selector("woken")
		w.signals = append(w.signals, woken{s, was})
		b.add(Sync, either(b.not(was), all(after, inTime)))
	}
	b.atMostOne(w.signals)
	if w.wake != model.None {
		b.add(Sync, either(truths(w.signals)...))
	}
}

func truths(of []woken) []*Formula {
	var out []*Formula
	for _, s := range of {
		out = append(out, holds(s.was))
	}
	return out
}

func (b *builder) not(e *symbolic.Expr) *Formula { return holds(b.pool.Not(e)) }

func (b *builder) atMostOne(of []woken) {
	for i := range of {
		for k := range i {
			b.add(Sync, either(b.not(of[i].was), b.not(of[k].was)))
		}
	}
}

// wakesSomebody keeps a signal from being lost while a thread waits, and from
// waking two.
func (b *builder) wakesSomebody(s model.ID, waits []*wait) {
	var mine []woken
	for _, w := range waits {
		if i := slices.IndexFunc(w.signals, func(x woken) bool { return x.by == s }); i >= 0 {
			mine = append(mine, w.signals[i])
		}
	}
	used := truths(mine)
	if b.trace.Events[s].Kind == model.Broadcast {
		used = nil
	} else {
		b.atMostOne(mine)
	}
	for _, w := range waits {
		ways := append([]*Formula{before(s, w.sleep, b)}, used...)
		for _, x := range w.signals {
			if x.by == s {
				ways = append(ways, holds(x.was))
			} else {
				ways = append(ways, all(holds(x.was), before(x.by, s, b)))
			}
		}
		if w.timedOut {
			ways = append(ways, before(w.wake, s, b))
		}
		b.add(Sync, either(ways...))
	}
}

// semaphore gives each Take a Post of its own before it, or one of the units that
// were there at the begin.
func (b *builder) semaphore(o event.ObjectID, events []model.ID) {
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
	of := make([][]woken, len(posts)+units) // by post and unit, the takes
	for _, t := range takes {
		var mine []woken
		for i := range of {
			when := yes
			if i < len(posts) {
				when = before(posts[i], t, b)
			}
			if when == no {
				continue
			}
			x := woken{t, b.selector("unit")}
			of[i], mine = append(of[i], x), append(mine, x)
			b.add(Sync, either(b.not(x.was), when))
		}
		b.add(Sync, either(truths(mine)...))
	}
	for i := range of {
		b.atMostOne(of[i])
	}
}
