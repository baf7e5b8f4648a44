package explore

import (
	"context"
	"slices"
	"sync"

	"github.com/heddle-dmt/heddle/sched/dpor"
)

// helpers carry out executions before the explorer asks for them, each on a machine of its own. Which one comes next
// follows from those before; the helpers guess. What a guess has done is offered to the explorer, choice by
// choice: it is the execution that is asked for if the explorer makes the same choices. So no result depends on
// the helpers. A guess whose execution would have changed what is known of memory is thrown away.
type helpers struct {
	number  int // of executions at the same time; 0 and 1: there are no helpers
	tasks   chan *task
	done    sync.WaitGroup
	cancel  context.CancelFunc
	tasked  map[dpor.Key]*task
	shared  *sharing // a copy of the state
	settled int      // executions in which nothing new was found
}

// task is a guess, and what its execution was. Ended is closed when that is known.
type task struct {
	guess   *dpor.Guess
	shared  *sharing
	ended   chan struct{}
	mu      sync.Mutex // of the next two
	begun   bool
	left    bool // nobody waits for it
	depth   int  // the number of events before the choices
	choices []choice
	result  *execution // nil: no task
}

// choice is a choice with the event that was executed, if one was.
type choice struct {
	enabled, reluctant []dpor.Process
	chosen             dpor.Process
	ok, added          bool
	event              dpor.Event
}

// Numbers of helpers' tasks for each worker, and of executions without news before guesses are made.
const (
	tasksPerWorker = 3
	settledAfter   = 32
)

// guess has the helpers carry out executions that are likely to be asked for.
func (h *helpers) guess(ctx context.Context, x *exploration) {
	if h.number < 2 {
		return
	}
	if h.shared == nil || h.shared.changes != x.sharing.changes {
		if h.settled++; h.settled < settledAfter {
			return
		}
		h.forget()
		h.shared = x.sharing.clone()
	}
	if h.tasks == nil {
		h.start(ctx, x)
	}
	list, keys := x.all.Guesses(tasksPerWorker * h.number)
	next := x.all.Key()
	for key, t := range h.tasked {
		if key != next && !slices.Contains(keys, key) {
			t.leave()
			delete(h.tasked, key)
		}
	}
	for i, g := range list {
		if h.tasked[keys[i]] != nil {
			continue
		}
		t := &task{guess: g, shared: h.shared, ended: make(chan struct{})}
		select {
		case h.tasks <- t:
			h.tasked[keys[i]] = t
		default:
			return
		}
	}
}

// start starts the helpers.
func (h *helpers) start(ctx context.Context, x *exploration) {
	h.tasks = make(chan *task, tasksPerWorker*h.number)
	h.tasked = map[dpor.Key]*task{}
	ctx, h.cancel = context.WithCancel(ctx)
	for range h.number - 1 {
		h.done.Add(1)
		go func() {
			defer h.done.Done()
			x.help(ctx)
		}()
	}
}

// forget forgets all guesses.
func (h *helpers) forget() {
	for _, t := range h.tasked {
		t.leave()
	}
	clear(h.tasked)
	h.shared, h.settled = nil, 0
}

// close ends the helpers.
func (h *helpers) close() {
	if h.tasks == nil {
		return
	}
	h.cancel()
	close(h.tasks)
	h.done.Wait()
}

// take returns the execution that the explorer asks for, if a guess was one, with its events added.
func (h *helpers) take(x *exploration) *execution {
	t := h.tasked[x.all.Key()]
	if t == nil {
		return nil
	}
	delete(h.tasked, x.all.Key())
	if t.leaveUnbegun() {
		return nil
	}
	<-t.ended
	if t.result == nil || t.shared.changes != x.sharing.changes {
		return nil
	}
	if !t.isOf(x.all) {
		return nil
	}
	x.sharing.grown = false
	return t.result
}

// isOf offers an execution to the explorer, and reports whether it is the one that is asked for.
func (t *task) isOf(x *dpor.Explorer) bool {
	x.Begin(t.depth)
	for i := range t.choices {
		c := &t.choices[i]
		if len(c.enabled) == 0 && !x.IsDecided() {
			return false
		}
		p, ok, err := x.Choose(c.enabled, c.reluctant)
		if err != nil || p != c.chosen || ok != c.ok {
			return false
		}
		if c.added && x.Add(c.event) != nil {
			return false
		}
	}
	// Where no process could continue, an explorer that has decided would have said so.
	return !(t.result.failed && x.IsDecided())
}

// leave says that nobody waits for the task.
func (t *task) leave() {
	t.mu.Lock()
	t.left = true
	t.mu.Unlock()
}

// begin reports whether the task is to be carried out.
func (t *task) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left {
		return false
	}
	t.begun = true
	return true
}

// leaveUnbegun leaves the task if no helper has begun it, and reports whether it did.
func (t *task) leaveUnbegun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = !t.begun
	return t.left
}

// help carries out tasks.
func (x *exploration) help(ctx context.Context) {
	var r *runner
	defer func() {
		if r != nil {
			r.close()
		}
	}()
	var of *sharing // of which the runner has a copy
	for t := range x.helpers.tasks {
		if ctx.Err() == nil && t.begin() {
			if r == nil {
				r = x.newHelper(ctx)
			}
			if r != nil {
				if of != t.shared || r.sharing.changes != of.changes {
					of, r.sharing = t.shared, t.shared.clone()
					r.stops = -1
					r.dropSaved()
				}
				x.carryOutTask(ctx, r, t)
			}
		}
		close(t.ended)
	}
}

// newHelper makes a machine for a helper; nil: it cannot.
func (x *exploration) newHelper(ctx context.Context) *runner {
	r, err := newRunner(x.newConfig(), newSharing(), false)
	if err != nil {
		return nil
	}
	if second, err := r.runToSecondThread(ctx); err != nil || !second {
		r.close()
		return nil
	}
	r.keepStart()
	r.limit = x.runner.limit
	return r
}

// carryOutTask carries out a guess.
func (x *exploration) carryOutTask(ctx context.Context, r *runner, t *task) {
	r.notes = notes{}
	e, err := x.carryOutOn(ctx, r, &keeper{chooser: t.guess, task: t})
	if err != nil || r.sharing.changes != t.shared.changes {
		return
	}
	e.path, e.stdout = slices.Clone(e.path), slices.Clone(e.stdout)
	t.result = e
}

// keeper keeps the choices of a task.
type keeper struct {
	chooser
	task *task
}

// Begin implements chooser.
func (k *keeper) Begin(depth int) {
	k.task.depth = depth
	k.chooser.Begin(depth)
}

// Choose implements chooser.
func (k *keeper) Choose(enabled, reluctant []dpor.Process) (p dpor.Process, ok bool, err error) {
	p, ok, err = k.chooser.Choose(enabled, reluctant)
	k.task.choices = append(k.task.choices, choice{enabled: slices.Clone(enabled), reluctant: slices.Clone(reluctant), chosen: p, ok: ok})
	return p, ok, err
}

// Add implements chooser.
func (k *keeper) Add(e dpor.Event) error {
	c := &k.task.choices[len(k.task.choices)-1]
	c.event, c.added = e, true
	c.event.Accesses, c.event.After, c.event.Prevents = slices.Clone(e.Accesses), slices.Clone(e.After), slices.Clone(e.Prevents)
	return k.chooser.Add(e)
}
