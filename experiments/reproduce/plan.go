package reproduce

import (
	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/reproduce/schedule"
	"github.com/heddle-dmt/heddle/analyses/reproduce/symtrace"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched/guide"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

// planner makes the steps of a plan of an abstract schedule.
type planner struct {
	*symtrace.Result
	values  schedule.Values
	weak    bool
	waiting []pending // writes that were executed and have not reached memory
	plan    *guide.Plan
}

type pending struct {
	id    model.ID
	store minimize.Store
}

// newPlan makes a plan that has the order of a schedule. Behind is how many decisions of
// the recorded run are before it, if it begins at a checkpoint.
func newPlan(r *symtrace.Result, s schedule.Schedule, v schedule.Values, m model.Memory, behind uint64) *guide.Plan {
	p := &planner{Result: r, values: v, weak: m != model.SC, plan: &guide.Plan{Behind: behind}}
	for i := range r.Threads {
		t := guide.Thread{ID: r.Threads[i].ID}
		for _, c := range r.Threads[i].Calls {
			t.Calls = append(t.Calls, guide.Call{After: c.After, Entry: event.Addr(c.Entry), Return: event.Addr(c.Return), Name: c.Name})
		}
		if i == 0 && behind == 0 {
			t.Calls[0].After-- // the last instruction shows where the part ends
		}
		if l := r.Threads[i].Last; l != nil {
			t.Calls = append(t.Calls, guide.Call{After: r.Threads[i].LastAfter, Entry: event.Addr(r.Threads[i].LastEntry), Name: l.Name})
		}
		p.plan.Threads = append(p.plan.Threads, t)
	}
	for _, step := range s {
		p.step(step)
	}
	p.plan.Last = p.last()
	return p.plan
}

// step adds a step, or lengthens the one before it.
func (p *planner) step(s schedule.Step) {
	e := &p.Trace.Events[s.Event]
	if s.Commit {
		for i := range p.waiting {
			if p.waiting[i].id == s.Event {
				p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
				break
			}
		}
		return
	}
	next, ok := p.place(s.Event, e)
	if ok {
		next.Thread, next.Core, next.Hold = p.Threads[e.Thread].ID, e.Core, p.held(e.Thread)
		steps := p.plan.Steps
		if n := len(steps); n > 0 && joins(&steps[n-1], &next) {
			steps[n-1] = next
		} else {
			p.plan.Steps = append(steps, next)
		}
	}
	if p.weak && e.Kind == model.Write && !p.Where[s.Event].Name {
		p.waiting = append(p.waiting, pending{s.Event, minimize.Store{Thread: p.Threads[e.Thread].ID, Addr: p.address(e)}})
	}
}

// joins tells whether a step can be part of the next one.
func joins(a, b *guide.Step) bool {
	if a.Thread != b.Thread || a.Core != b.Core || len(a.Hold) != len(b.Hold) {
		return false
	}
	for i := range a.Hold {
		if a.Hold[i] != b.Hold[i] {
			return false
		}
	}
	return a.Until == guide.Place || b.Calls == a.Calls
}

// address is where an access goes.
func (p *planner) address(e *model.Event) event.Addr {
	if e.Index == nil {
		return event.Addr(e.Addr)
	}
	v, err := symbolic.NewEvaluator(func(name string) (symbolic.Value, bool) {
		x, ok := p.values[name]
		return x, ok
	}).Value(e.Index)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return event.Addr(e.Addr + v.Lo*uint64(e.Size))
}

// held are the stores of other threads that wait.
func (p *planner) held(thread int) []minimize.Hold {
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

// place is how far the thread has to go to execute an event; false: no further.
func (p *planner) place(id model.ID, e *model.Event) (guide.Step, bool) {
	at := p.Where[id]
	behind := guide.Step{Calls: at.Calls + 1, Until: guide.Place}
	if at.Name {
		return guide.Step{}, false
	}
	over := at.Calls < len(p.Threads[e.Thread].Calls)
	switch e.Kind {
	case model.Begin:
		return guide.Step{Calls: at.Calls, Until: guide.Place}, true
	case model.End:
		return guide.Step{Calls: at.Calls, Until: guide.Exits}, true
	case model.Wake:
		return guide.Step{}, false // the lock behind it is one step with it
	case model.Sleep, model.Arrive:
		return guide.Step{Calls: at.Calls, Until: guide.Waits}, true
	case model.Unlock:
		if p.Where[id].Within && p.sleeps(id) {
			return guide.Step{}, false
		}
	}
	switch {
	case !at.Within && e.Kind == model.Join:
		return guide.Step{Calls: at.Calls, Since: at.Since, Until: guide.Place}, true
	case !at.Within && at.Accesses > 0:
		return guide.Step{Calls: at.Calls, Since: at.Since, Accesses: at.Accesses, Until: guide.Place}, true
	case !at.Within:
		return guide.Step{Calls: at.Calls, Since: at.Since + 1, Until: guide.Place}, true
	case !over:
		return guide.Step{Calls: at.Calls, Until: guide.Waits}, true
	}
	return behind, true
}

// sleeps tells that an event belongs to a wait on a condition.
func (p *planner) sleeps(id model.ID) bool {
	return id > 0 && p.Trace.Events[id-1].Kind == model.Sleep && p.Trace.Events[id-1].Thread == p.Trace.Events[id].Thread
}

// last are the threads that go on behind the schedule: those that failed first.
func (p *planner) last() []event.ThreadID {
	var failed, others []event.ThreadID
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
