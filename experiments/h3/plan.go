package h3

import (
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched/guided"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

// planner makes the steps of a plan of an abstract schedule.
type planner struct {
	*symtrace.Result
	values  schedule.Values
	weak    bool
	waiting []pending // writes that were executed and have not reached memory
	// committed are those that have reached memory since the last step began.
	committed []minimize.Hold
	// named are the writes to memory without an address of its own (symtrace.IsOwn) that First or Hold of a step has.
	named map[minimize.Store]bool
	plan  *guided.Plan
}

type pending struct {
	id    model.ID
	store minimize.Store
}

// newPlan makes a plan in the order of a schedule. Prior is how many decisions of the recorded run
// precede it, if it begins at a checkpoint.
func newPlan(r *symtrace.Result, s schedule.Schedule, v schedule.Values, m model.MemoryModel, prior uint64) *guided.Plan {
	p := &planner{Result: r, values: v, weak: m != model.SC, named: map[minimize.Store]bool{}, plan: &guided.Plan{PriorDecisions: prior}}
	for i := range r.Threads {
		t := guided.Thread{ID: r.Threads[i].ID}
		for _, c := range r.Threads[i].Calls {
			t.Calls = append(t.Calls, guidedCall(&c))
		}
		if i == 0 && prior == 0 {
			t.Calls[0].After-- // the last instruction shows where the part ends
		}
		if r.Threads[i].Last != nil {
			t.Calls = append(t.Calls, guidedCall(&r.Threads[i].LastCall))
		}
		p.plan.Threads = append(p.plan.Threads, t)
	}
	// Stores with names that have to wait, or are committed in an order, end a step. Which ones they are is found by making the
	// steps.
	for known := -1; known < len(p.named); {
		known = len(p.named)
		p.plan.Steps, p.waiting, p.committed = nil, nil, nil
		for _, step := range s {
			p.addStep(step)
		}
	}
	p.plan.Last = p.lastThreads()
	return p.plan
}

func guidedCall(c *symtrace.Call) guided.Call {
	return guided.Call{After: c.After, Entry: arch.Addr(c.Entry), Return: arch.Addr(c.Return), Name: c.Name}
}

// addStep adds a step, or lengthens the one before it.
func (p *planner) addStep(s schedule.Step) {
	e := &p.Trace.Events[s.Event]
	if s.Commit {
		for i := range p.waiting {
			if p.waiting[i].id == s.Event {
				store := p.waiting[i].store
				p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
				p.committed = append(p.committed, minimize.Hold{Store: store, Newest: p.countWaiting(store)})
				break
			}
		}
		return
	}
	next, ok := p.placeOf(s.Event, e)
	if ok {
		next.Thread, next.Core, next.Hold = p.Threads[e.Thread].ID, e.Core, p.heldStores(e.Thread)
		if p.mattersOrder() {
			next.First = p.committed
		}
		p.noteNames(&next)
		steps := p.plan.Steps
		if n := len(steps); n > 0 && canJoin(&steps[n-1], &next) {
			next.First = steps[n-1].First
			steps[n-1] = next
		} else {
			p.plan.Steps, p.committed = append(steps, next), nil
		}
	}
	if p.weak && e.Kind == model.Write && !p.Coordinates[s.Event].Named {
		x := minimize.Store{Thread: p.Threads[e.Thread].ID, Addr: p.targetAddress(e)}
		p.waiting = append(p.waiting, pending{s.Event, x})
		if ok && p.named[x] {
			p.plan.Steps[len(p.plan.Steps)-1].Stored = &x
		}
	}
}

// canJoin reports whether a step can be part of the next one.
func canJoin(a, b *guided.Step) bool {
	if a.Thread != b.Thread || a.Core != b.Core || len(a.Hold) != len(b.Hold) || len(b.First) > 0 || a.Stored != nil {
		return false
	}
	for i := range a.Hold {
		if a.Hold[i] != b.Hold[i] {
			return false
		}
	}
	return a.Until == guided.Place || b.Calls == a.Calls
}

// targetAddress is where an access goes.
func (p *planner) targetAddress(e *model.Event) arch.Addr {
	if e.Index == nil {
		return arch.Addr(e.Addr)
	}
	v, err := symbolic.NewEvaluator(func(name string) (symbolic.Value, bool) {
		x, ok := p.values[name]
		return x, ok
	}).Value(e.Index)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return arch.Addr(e.Addr + v.Lo*uint64(e.Size))
}

// noteNames notes the stores of a step that have names.
func (p *planner) noteNames(s *guided.Step) {
	for _, list := range [][]minimize.Hold{s.First, s.Hold} {
		for _, h := range list {
			if symtrace.IsOwn(uint64(h.Addr)) {
				p.named[h.Store] = true
			}
		}
	}
}

// mattersOrder reports whether the memory that stores of several threads have reached since the last step began depends on
// their order.
func (p *planner) mattersOrder() bool {
	for i, a := range p.committed {
		for _, b := range p.committed[:i] {
			if a.Thread != b.Thread && a.Addr < b.Addr+maxStore && b.Addr < a.Addr+maxStore {
				return true
			}
		}
	}
	return false
}

// maxStore is how many bytes a store has at most.
const maxStore = 64

// countWaiting counts the stores of a name that wait.
func (p *planner) countWaiting(store minimize.Store) int {
	n := 0
	for _, w := range p.waiting {
		if w.store == store {
			n++
		}
	}
	return n
}

// heldStores are the stores of other threads that wait.
func (p *planner) heldStores(thread int) []minimize.Hold {
	var all []minimize.Hold
	for _, w := range p.waiting {
		if w.store.Thread == p.Threads[thread].ID {
			continue
		}
		known := false
		for i := range all {
			if all[i].Store == w.store {
				all[i].Newest++
				known = true
			}
		}
		if !known {
			all = append(all, minimize.Hold{Store: w.store, Newest: 1})
		}
	}
	return all
}

// placeOf is how far the thread has to go to execute an event; false: no further.
func (p *planner) placeOf(id model.ID, e *model.Event) (guided.Step, bool) {
	at := p.Coordinates[id]
	afterCall := guided.Step{Calls: at.Calls + 1, Until: guided.Place}
	if at.Named {
		return guided.Step{}, false
	}
	over := at.Calls < len(p.Threads[e.Thread].Calls)
	switch e.Kind {
	case model.Begin:
		return guided.Step{Calls: at.Calls, Until: guided.Place}, true
	case model.End:
		return guided.Step{Calls: at.Calls, Until: guided.Exits}, true
	case model.Wake:
		return guided.Step{}, false // the following lock is one step with it
	case model.Sleep, model.Arrive:
		return guided.Step{Calls: at.Calls, Until: guided.Waits}, true
	case model.Unlock:
		if p.Coordinates[id].InNextCall && p.isInWait(id) {
			return guided.Step{}, false
		}
	}
	switch {
	case !at.InNextCall && e.Kind == model.Join:
		return guided.Step{Calls: at.Calls, Since: at.SinceCall, Until: guided.Place}, true
	case !at.InNextCall && at.Accesses > 0:
		return guided.Step{Calls: at.Calls, Since: at.SinceCall, Accesses: at.Accesses, Until: guided.Place}, true
	case !at.InNextCall:
		return guided.Step{Calls: at.Calls, Since: at.SinceCall + 1, Until: guided.Place}, true
	case !over:
		return guided.Step{Calls: at.Calls, Until: guided.Waits}, true
	}
	return afterCall, true
}

// isInWait reports whether an event belongs to a wait on a condition.
func (p *planner) isInWait(id model.ID) bool {
	return id > 0 && p.Trace.Events[id-1].Kind == model.Sleep && p.Trace.Events[id-1].Thread == p.Trace.Events[id].Thread
}

// lastThreads are the threads that continue after the schedule: failed ones first.
func (p *planner) lastThreads() []arch.ThreadID {
	var failed, others []arch.ThreadID
	for i := range p.Threads {
		switch p.Threads[i].Ending {
		case symtrace.Failed, symtrace.Faulted:
			failed = append(failed, p.Threads[i].ID)
		default:
			others = append(others, p.Threads[i].ID)
		}
	}
	return append(failed, others...)
}
