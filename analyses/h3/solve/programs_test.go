package solve_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/constraints"
	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/schedule"
	"github.com/heddle-dmt/heddle/analyses/h3/solve"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// A world runs threads that are Go functions, one event at a time under SC, and
// gathers their trace. Values are expressions with the number that they have.
type world struct {
	*model.Trace
	memory map[uint64]uint64
	locks  map[event.ObjectID]int // 1 + holder
	asleep map[event.ObjectID][]int
	place  uint64
	ended  []bool
	failed bool
}

type value struct {
	e *symbolic.Expr
	v uint64
}

// actor is a thread of a world: its methods are its next actions.
type actor struct {
	*world
	id   int
	turn func(ready func() bool) bool // gives others a turn until ready
}

func (w *world) constant(x uint64) value { return value{w.Pool.Word(x, 32), x} }

func (a *actor) do(ready func() bool, e model.Event) {
	a.turn(ready)
	e.Thread, e.Core, e.CoreInstructions = a.id, arch.CoreID(a.id%4), a.place
	a.place++
	a.Add(e)
}

func (a *actor) read(addr uint64) value {
	a.turn(nil)
	s := a.SymbolOf(a.id, 4)
	a.place++
	a.Add(model.Event{Kind: model.Read, Thread: a.id, Core: arch.CoreID(a.id % 4), CoreInstructions: a.place, Addr: addr, Size: 4, Symbol: s})
	return value{s, a.memory[addr]}
}

func (a *actor) write(addr uint64, x value) {
	a.do(nil, model.Event{Kind: model.Write, Addr: addr, Size: 4, Value: x.e})
	a.memory[addr] = x.v
}

func (a *actor) lock(o event.ObjectID) {
	a.do(func() bool { return a.locks[o] == 0 }, model.Event{Kind: model.Lock, Object: o})
	a.locks[o] = 1 + a.id
}

func (a *actor) unlock(o event.ObjectID) {
	a.do(nil, model.Event{Kind: model.Unlock, Object: o})
	a.locks[o] = 0
}

func (a *actor) wait(c, o event.ObjectID) {
	a.do(nil, model.Event{Kind: model.Sleep, Object: c})
	a.asleep[c] = append(a.asleep[c], a.id)
	a.unlock(o)
	woken := func() bool {
		for _, t := range a.asleep[c] {
			if t == a.id {
				return false
			}
		}
		return true
	}
	a.do(woken, model.Event{Kind: model.Wake, Object: c})
	a.lock(o)
}

func (a *actor) signal(c event.ObjectID) {
	a.do(nil, model.Event{Kind: model.Signal, Object: c})
	if len(a.asleep[c]) > 0 {
		a.asleep[c] = a.asleep[c][1:]
	}
}

// branch goes the way of a condition and notes it.
func (a *actor) branch(e *symbolic.Expr, taken bool) bool {
	if !taken {
		e = a.Pool.Not(e)
	}
	a.Path = append(a.Path, model.Condition{Expr: e, Thread: a.id})
	return taken
}

func (a *actor) equal(x, y value) bool { return a.branch(a.Pool.Eq(x.e, y.e), x.v == y.v) }

func (a *actor) less(x, y value) bool { return a.branch(a.Pool.SLT(x.e, y.e), int32(x.v) < int32(y.v)) }

func (a *actor) plus(x value, n int32) value {
	return value{a.Pool.Add(x.e, a.Pool.Word(uint64(uint32(n)), 32)), uint64(uint32(x.v) + uint32(n))}
}

// fail is the failure of an assertion: the condition that has just been a branch.
func (a *actor) fail() {
	last := len(a.Path) - 1
	a.Bug = append(a.Bug, a.Path[last])
	a.Path = a.Path[:last]
	a.failed = true
	a.turn(func() bool { return false })
}

// over ends a thread when the world has ended.
var over = new(int)

// run lets threads take turns until one fails or all are stuck or over.
func run(seed uint64, threads ...func(*actor)) *world {
	w := &world{
		Trace: model.New(symbolic.NewPool()), memory: map[uint64]uint64{}, locks: map[event.ObjectID]int{}, asleep: map[event.ObjectID][]int{},
		ended: make([]bool, len(threads)),
	}
	random := rand.New(rand.NewPCG(seed, 1))
	var next []func() (func() bool, bool)
	ready := make([]func() bool, len(threads))
	for i, body := range threads {
		w.AddThread(fmt.Sprint(i))
		pull, stop := iter.Pull(func(yield func(func() bool) bool) {
			defer func() {
				if r := recover(); r != nil && r != over {
					panic(r)
				}
			}()
			body(&actor{w, i, func(ready func() bool) bool {
				if !yield(ready) {
					panic(over)
				}
				return true
			}})
		})
		defer stop()
		next = append(next, pull)
	}
	for idle := 0; !w.failed && idle < 200; {
		i := random.IntN(len(threads))
		if w.ended[i] || ready[i] != nil && !ready[i]() {
			idle++
			continue
		}
		idle = 0
		r, ok := next[i]()
		ready[i] = r
		w.ended[i] = !ok
	}
	return w
}

const (
	count, first, left, slot = 0x1000, 0x1004, 0x1008, 0x2000
	mutex, notEmpty, notFull = event.ObjectID(1), event.ObjectID(2), event.ObjectID(3)
)

// boundedBuffer is guest/programs/suite/bounded-buffer in its buggy form.
func boundedBuffer(seed uint64, threads, items, slots int) *world {
	put := func(a *actor, item int) {
		a.lock(mutex)
		for a.equal(a.read(count), a.constant(uint64(slots))) {
			a.wait(notFull, mutex)
		}
		a.write(slot, a.constant(uint64(item)))
		a.write(count, a.plus(a.read(count), 1))
		a.signal(notEmpty)
		a.unlock(mutex)
	}
	take := func(a *actor) bool {
		zero := a.constant(0)
		a.lock(mutex)
		if a.equal(a.read(count), zero) && a.less(a.plus(zero, int32(-items)), a.read(left)) {
			a.wait(notEmpty, mutex)
		}
		more := a.less(a.plus(zero, int32(-items)), a.read(left))
		if more {
			if !a.less(zero, a.read(count)) {
				a.fail()
			}
			a.read(slot)
			a.write(first, a.plus(a.read(first), 1))
			a.write(count, a.plus(a.read(count), -1))
			a.write(left, a.plus(a.read(left), -1))
			a.signal(notFull)
		}
		a.unlock(mutex)
		return more
	}
	var bodies []func(*actor)
	for id := range threads {
		if id%2 == 0 {
			bodies = append(bodies, func(a *actor) {
				for i := range items / ((threads + 1) / 2) {
					put(a, i)
				}
			})
		} else {
			bodies = append(bodies, func(a *actor) {
				for take(a) {
				}
			})
		}
	}
	return run(seed, bodies...)
}

// failing are bounded buffers whose assertion fails.
func failing(count, items int) []*world {
	var found []*world
	for seed := uint64(0); len(found) < count; seed++ {
		if w := boundedBuffer(seed, 5, items, 3); w.failed {
			found = append(found, w)
		}
	}
	return found
}

// Twenty failures of the bounded buffer at the size of H3's are reproduced; schedules
// have no more switches than the failing run.
func TestBoundedBuffer(t *testing.T) {
	for i, w := range failing(20, 20) {
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
		var real schedule.Schedule
		for id := range w.Events {
			real = append(real, schedule.Step{Event: model.ID(id)})
		}
		if _, err := schedule.Run(w.Trace, model.SC, real); err != nil {
			t.Fatalf("%d: what was recorded does not run: %v", i, err)
		}
		for _, free := range []bool{false, true} {
			out, err := solve.Portfolio{FreeCores: free, States: 100_000}.Find(w.Trace, model.SC)
			if err != nil {
				t.Fatal(err)
			}
			if out.Answer != smt.Satisfiable || out.System != nil {
				t.Errorf("%d: %v after %d states", i, out.Answer, out.States)
				continue
			}
			found, recorded := out.Schedule.Switches(w.Trace), schedule.Shorten(w.Trace, model.SC, real).Switches(w.Trace)
			if _, err := schedule.Run(w.Trace, model.SC, schedule.Shorten(w.Trace, model.SC, real)); err != nil {
				t.Errorf("%d: the recorded schedule, shortened, does not run: %v", i, err)
			}
			t.Logf("%d: %d events, %d states, %d switches; recorded %d, shortened %d", i, len(w.Events), out.States, found, real.Switches(w.Trace), recorded)
			if found > real.Switches(w.Trace) {
				t.Errorf("%d: %d switches, the failing run had %d", i, found, real.Switches(w.Trace))
			}
		}
	}
}

// A small one is solved by every encoding, and by the search.
func TestBoundedBufferByConstraints(t *testing.T) {
	w := failing(1, 3)[0]
	for _, e := range constraints.Encodings() {
		sys, err := constraints.New(w.Trace, model.SC, e, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := solve.Solve(sys, solve.Options{Limits: smt.Limits{Steps: 400_000_000}})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d events, %d matches: %v", e.Name(), len(w.Events), sys.Matches, r.Answer)
		if r.Answer != smt.Satisfiable {
			t.Errorf("%s: %v", e.Name(), r.Answer)
		}
	}
}

// H3's table 4: of the bounded buffer's read-write constraints core order removes
// 28.2 % at least.
func TestTable4(t *testing.T) {
	for _, w := range failing(3, 20) {
		counts := map[string]int{}
		for _, e := range constraints.Encodings() {
			sys, err := constraints.New(w.Trace, model.SC, e, 0)
			if err != nil {
				t.Fatal(err)
			}
			counts[e.Name()] = sys.Clauses(constraints.ReadWrite)
		}
		removed := 1 - float64(counts["h3"])/float64(counts["clap"])
		t.Logf("%d events: CLAP %d, H3 %d (%.1f %% fewer), heddle %d", len(w.Events), counts["clap"], counts["h3"], 100*removed, counts["heddle"])
		if removed < 0.282 || counts["heddle"] >= counts["h3"] {
			t.Errorf("CLAP has %d constraints, H3 %d, heddle %d", counts["clap"], counts["h3"], counts["heddle"])
		}
	}
}
