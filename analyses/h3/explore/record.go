package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Recording is one execution of a program, up to its failure or its end.
type Recording struct {
	Program *Program
	Model   model.MemoryModel
	Trace   *model.Trace
	// Branches are the outcomes of each thread's branches.
	Branches [][]bool
	// Reads are the events that read, by thread, and Got their values.
	Reads [][]model.ID
	Got   [][]uint64
}

// recorder makes a Recording. Registers have expressions beside their values.
type recorder struct {
	*Recording
	*state
	random *rand.Rand
	regs   [][registers]*symbolic.Expr
	cores  []int // their threads, -1: none
	place  []uint64
}

// Record executes a program at random on a number of cores, up to about limit
// events.
func Record(p *Program, m model.MemoryModel, cores, limit int, random *rand.Rand) *Recording {
	n := len(p.Threads)
	r := &recorder{
		Recording: &Recording{
			Program: p, Model: m, Trace: model.New(symbolic.NewPool()), Branches: make([][]bool, n), Reads: make([][]model.ID, n),
			Got: make([][]uint64, n),
		},
		state: newState(p, m), random: random, regs: make([][registers]*symbolic.Expr, n), cores: make([]int, cores), place: make([]uint64, cores),
	}
	for o, u := range p.Units {
		r.Trace.Semaphores[event.ObjectID(o)] = u
	}
	for t := range n {
		r.Trace.AddThread(fmt.Sprint(t))
		for k := range registers {
			r.regs[t][k] = r.Trace.Pool.Word(0, 16)
		}
	}
	for c := range cores {
		r.cores[c] = -1
	}
	for idle := 0; idle < 60 && len(r.Trace.Events) < limit; {
		if r.randomMove() {
			idle = 0
		} else {
			idle++
		}
	}
	return r.Recording
}

// randomMove lets a core execute something, and returns whether it did.
func (r *recorder) randomMove() bool {
	c := r.random.IntN(len(r.cores))
	t := r.cores[c]
	if t < 0 || r.nextOp(t) == nil || r.random.IntN(6) == 0 {
		r.switchThread(c)
		return false
	}
	if free := r.committable(t); len(free) > 0 && r.random.IntN(3) == 0 {
		r.commitStore(t, free[r.random.IntN(len(free))])
		return true
	}
	o := r.nextOp(t)
	if o.Branch {
		r.recordBranch(t, o)
		return true
	}
	if !r.isReady(t) {
		return false
	}
	r.recordEvent(c, t, o)
	return true
}

// switchThread gives a core another thread, once its buffer is empty.
func (r *recorder) switchThread(c int) {
	if t := r.cores[c]; t >= 0 {
		for free := r.committable(t); len(free) > 0; free = r.committable(t) {
			r.commitStore(t, free[r.random.IntN(len(free))])
		}
		r.cores[c] = -1
	}
	if t := r.random.IntN(len(r.threads)); !slices.Contains(r.cores, t) {
		r.cores[c] = t
	}
}

func (r *recorder) recordBranch(t int, o *Op) {
	pool := r.Trace.Pool
	e := pool.Eq(r.regs[t][o.Reg], pool.Word(o.Value, 16))
	taken := r.takeBranch(t, o)
	if !taken {
		e = pool.Not(e)
	}
	r.Branches[t] = append(r.Branches[t], taken)
	r.Trace.Path = append(r.Trace.Path, model.Condition{Expr: e, Thread: t})
}

func (r *recorder) recordEvent(c, t int, o *Op) {
	pool := r.Trace.Pool
	e := model.Event{
		Kind: o.Kind, Thread: t, Core: arch.CoreID(c), CoreInstructions: r.place[c], Addr: uint64(o.Addr), Size: o.Size,
		Object: event.ObjectID(o.Object), Count: o.Count,
	}
	r.place[c]++
	value := pool.Word(o.Value, 8*max(o.Size, 1))
	switch o.Kind {
	case model.Read, model.Update:
		e.Symbol = r.Trace.SymbolOf(t, o.Size)
		r.regs[t][o.Reg] = pool.ZeroExt(e.Symbol, 16)
		if o.Kind == model.Update {
			e.Value = pool.Add(e.Symbol, value)
		}
	case model.Write:
		e.Value = value
		if o.Plus {
			e.Value = pool.Add(value, pool.Extract(r.regs[t][o.Reg], 0, 8*o.Size))
		}
	case model.Lock, model.Unlock:
		e.Shared = o.Plus
	}
	id := r.Trace.Add(e)
	got := r.executeStep(t, r.anySleeper())
	if e.Kind.Reads() {
		r.Reads[t] = append(r.Reads[t], id)
		r.Got[t] = append(r.Got[t], got)
	}
}

// anySleeper is a thread that sleeps, or -1.
func (r *recorder) anySleeper() int {
	for _, t := range r.random.Perm(len(r.threads)) {
		if r.threads[t].asleep {
			return t
		}
	}
	return -1
}
