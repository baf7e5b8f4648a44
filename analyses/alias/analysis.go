package alias

import (
	"container/heap"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/simplify"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// Registers that are followed: the 16 general ones, and the 16 vectors, each as one.
const (
	vectors   = 16
	registers = 32
)

const (
	rax = 0
	rsp = 4
)

// arguments are the registers of arguments, in the order of the System V ABI.
var arguments = [...]int{7, 6, 2, 1, 8, 9}

// kept are the registers that a function gives back as they were.
var kept = [...]int{3, 5, 12, 13, 14, 15}

// state is what registers may be.
type state [registers]Value

// node is a block of a context.
type node struct{ context, block int }

// analysis is one on its way.
type analysis struct {
	run        *simplify.Run
	image      *cfg.Image
	models     cfg.Models
	regions    []*Region
	numbers    map[regionKey]int
	everywhere Value
	before     [][]*state // by context and block
	visits     [][]int
	returned   []Value               // by context
	callers    []map[node]bool       // to whom a context returns
	accesses   map[node][]rawAccess  // the last time that a block was looked at
	imports    map[node]*importation // likewise, what a block calls of libraries
	queue      queue
	queued     map[node]bool
	steps      int
	temps      []Value
	roots      map[*cfg.Function][]int // contexts that threads begin in
	starts     map[*cfg.Function]Value // what their argument may be
}

// rawAccess is an access as it was found.
type rawAccess struct {
	pc     uint64
	at     Value
	size   int
	store  bool
	atomic bool
}

// importation is a call of a library's function.
type importation struct {
	model     *cfg.Model
	arguments [6]Value
}

// queue gives the first block first.
type queue []node

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].context < q[j].context || q[i].context == q[j].context && q[i].block < q[j].block
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(node)) }
func (q *queue) Pop() any {
	old := *q
	n := old[len(old)-1]
	*q = old[:len(old)-1]
	return n
}

func (a *analysis) add(n node) {
	if !a.queued[n] {
		a.queued[n] = true
		heap.Push(&a.queue, n)
	}
}

// mostSteps bounds how many blocks are looked at, for each that there is.
const mostSteps = 200

// Analyze finds out what the accesses of a run may be to.
func Analyze(r *simplify.Run) *Result {
	a := &analysis{
		run: r, image: r.Graph.Image, models: r.Graph.Models, numbers: map[regionKey]int{},
		accesses: map[node][]rawAccess{}, imports: map[node]*importation{}, queued: map[node]bool{},
		roots: map[*cfg.Function][]int{}, starts: map[*cfg.Function]Value{},
	}
	a.region(regionKey{kind: Library})
	a.region(regionKey{kind: Arguments})
	for i := 0; i < len(r.Contexts); i++ {
		a.begin(r.Contexts[i])
	}
	for len(a.queue) > 0 {
		n := heap.Pop(&a.queue).(node)
		delete(a.queued, n)
		a.steps++
		a.visit(n)
	}
	return a.result()
}

// grow has room for a context.
func (a *analysis) grow(c *simplify.Context) {
	for len(a.before) <= c.Number {
		f := a.run.Contexts[len(a.before)].Function
		a.before = append(a.before, make([]*state, len(f.Blocks)))
		a.visits = append(a.visits, make([]int, len(f.Blocks)))
		a.returned = append(a.returned, Value{})
		a.callers = append(a.callers, map[node]bool{})
	}
}

// begin begins with the contexts that libraries call: threads' functions and others.
func (a *analysis) begin(c *simplify.Context) {
	a.grow(c)
	if c.Site != nil || c.Function.First == nil {
		return
	}
	a.roots[c.Function] = append(a.roots[c.Function], c.Number)
	var s state
	for i := range s {
		s[i] = numbers
	}
	for _, r := range arguments {
		s[r] = top
	}
	if _, ok := a.starts[c.Function]; ok || a.thread(c) {
		s[arguments[0]] = a.starts[c.Function]
	}
	if c.Thread == 0 && c.Parent != nil && c.Parent.Parent == nil {
		// Of the first thread: main, or what initializes, which gets the same.
		s[arguments[0]] = numbers
		s[arguments[1]], s[arguments[2]] = pointer(1, All), pointer(1, All)
	}
	a.enter(c, &s)
}

// thread tells whether a context is the first of a thread but the first one.
func (a *analysis) thread(c *simplify.Context) bool { return c.Parent == nil && c.Thread > 0 }

// enter has a context begin with registers.
func (a *analysis) enter(c *simplify.Context, s *state) {
	a.grow(c)
	s[rsp] = pointer(a.region(regionKey{kind: Stack, context: c}).number, Exactly(0))
	if c.Function.First != nil {
		a.reach(node{c.Number, c.Function.First.Index}, s)
	}
}

// patience is how often a block is looked at before its values are widened.
const patience = 4

// reach joins registers with those that a block begins with.
func (a *analysis) reach(n node, s *state) {
	old := a.before[n.context][n.block]
	if old == nil {
		c := *s
		a.before[n.context][n.block] = &c
		a.add(n)
		return
	}
	changed := false
	for i := range old {
		var w Value
		if a.visits[n.context][n.block] > patience {
			w = widen(old[i], s[i])
		} else {
			w = join(old[i], s[i])
		}
		if !w.equal(old[i]) {
			old[i], changed = w, true
		}
	}
	if changed {
		a.add(n)
	}
}

// visit looks at a block and passes on what it leaves.
func (a *analysis) visit(n node) {
	c := a.run.Contexts[n.context]
	b := c.Function.Blocks[n.block]
	a.visits[n.context][n.block]++
	s := *a.before[n.context][n.block]
	e := evaluation{analysis: a, node: n, block: b.Block, state: &s}
	e.run()
	a.accesses[n] = e.accesses
	switch {
	case b.Tail || b.Call:
		a.call(c, b, n, &s)
		return
	case b.System:
		s[rax], s[1], s[11] = numbers, numbers, numbers
	case b.Leaves && b.Jump == vex.JumpRet:
		a.leave(c, s[rax])
	}
	a.pass(c, b, &s)
}

// pass passes registers on to the successors.
func (a *analysis) pass(c *simplify.Context, b *cfg.Block, s *state) {
	for i, next := range b.Next {
		if i < 64 && c.Dropped[b.Index]>>i&1 != 0 {
			continue
		}
		out := *s
		a.reach(node{c.Number, next.Index}, &out)
	}
}

// leave notes what a context returns.
func (a *analysis) leave(c *simplify.Context, v Value) {
	if v.none() {
		v = numbers
	}
	if w := widen(a.returned[c.Number], v); !w.equal(a.returned[c.Number]) {
		a.returned[c.Number] = w
		for n := range a.callers[c.Number] {
			a.add(n)
		}
	}
}

// call has a block call what it calls.
func (a *analysis) call(c *simplify.Context, b *cfg.Block, n node, s *state) {
	result, returns := Value{}, b.Unknown && len(b.Calls) == 0
	if returns {
		result = top
	}
	for _, f := range b.Calls {
		if f.Model != nil {
			result, returns = join(result, a.library(c, b, n, f.Model, s)), true
			continue
		}
		for _, callee := range a.run.Callees(c, b, f) {
			in := *s
			a.enter(callee, &in)
			a.callers[callee.Number][n] = true
			if v := a.returned[callee.Number]; !v.none() {
				result, returns = join(result, v), true
			}
		}
	}
	if b.Import != "" {
		result, returns = join(result, a.library(c, b, n, a.models.Of(b.Import), s)), true
	}
	if !returns || b.Never {
		return
	}
	out := state{}
	for i := range out {
		out[i] = numbers
	}
	for _, r := range kept {
		out[r] = s[r]
	}
	out[rax], out[vectors] = result, numbers
	out[rsp] = add(s[rsp], numeric(Exactly(wordBytes)))
	if b.Tail {
		a.leave(c, result)
		return
	}
	a.pass(c, b, &out)
}

// library does what a library's function does to values.
func (a *analysis) library(c *simplify.Context, b *cfg.Block, n node, m *cfg.Model, s *state) Value {
	i := &importation{model: m}
	for k, r := range arguments {
		i.arguments[k] = s[r]
		if !m.Opaque && m.Result != "number" || len(m.Writes) > 0 {
			a.escape(s[r])
		}
	}
	a.imports[n] = i
	a.started(m, s)
	for _, k := range m.Writes {
		what := numbers
		if m.Copies {
			what = a.load(whole(s[arguments[1]]), wordBytes, n)
		} else if m.Result == "unknown" {
			what = top
		}
		a.store(whole(s[arguments[k-1]]), wordBytes, what)
	}
	switch m.Result {
	case "fresh":
		r := a.region(regionKey{kind: Heap, context: c, site: b})
		if m.Copies {
			a.store(pointer(r.number, All), wordBytes, a.load(whole(s[arguments[0]]), wordBytes, n))
		}
		return pointer(r.number, Exactly(0))
	case "argument":
		return join(whole(s[arguments[0]]), numeric(Exactly(0)))
	case "library":
		return join(pointer(0, All), numeric(Exactly(0)))
	case "number":
		return numbers
	}
	return top
}

// started has a thread's function begin with its argument.
func (a *analysis) started(m *cfg.Model, s *state) {
	if m.Function != "pthread_create" && m.Function != "thrd_create" {
		return
	}
	function, argument := s[2], s[1]
	if m.Function == "thrd_create" {
		function, argument = s[6], s[2]
	}
	a.escape(argument)
	for _, f := range a.run.Graph.Functions {
		if at, one := function.constant(); one && uint64(at) != f.Entry || function.none() {
			continue
		}
		old := a.starts[f]
		if w := widen(old, argument); !w.equal(old) {
			a.starts[f] = w
			for _, n := range a.roots[f] {
				if c := a.run.Contexts[n]; a.thread(c) {
					s := *a.before[n][f.First.Index]
					s[arguments[0]] = w
					a.enter(c, &s)
				}
			}
		}
	}
}

// whole is an address anywhere in its regions.
func whole(v Value) Value {
	return v.each(func(p part) part {
		if p.region == number {
			return p
		}
		return part{p.region, All}
	})
}

func sortedCells(r *Region, at Interval, size int) []int64 {
	if at.One() {
		var list []int64
		for offset := at.Low - wordBytes + 1; offset < at.Low+int64(size); offset++ {
			if _, ok := r.memory.cells[offset]; ok {
				list = append(list, offset)
			}
		}
		return list
	}
	var list []int64
	for offset := range r.memory.cells {
		if at.Meets(size, Exactly(offset), wordBytes) {
			list = append(list, offset)
		}
	}
	slices.Sort(list)
	return list
}
