package alias

import (
	"container/heap"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/specialize"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/internal/effort"
)

// Registers that are tracked: the 16 general ones, and the 16 vectors, each as one.
const (
	vectors   = 16
	registers = 32
)

const (
	rax = 0
	rsp = 4
)

// argumentRegisters are the registers of arguments, in the order of the System V ABI.
var argumentRegisters = [...]int{7, 6, 2, 1, 8, 9}

// preservedRegisters are the registers that a function preserves.
var preservedRegisters = [...]int{3, 5, 12, 13, 14, 15}

// registerState is the values of the registers.
type registerState [registers]Value

// blockNode is a block of a context.
type blockNode struct{ context, block int }

// analysis is the state of a value-set analysis.
type analysis struct {
	run        *specialize.CallTrace
	image      *cfg.Image
	models     cfg.Models
	regions    []*Region
	numbers    map[regionKey]int
	everywhere Value
	before     [][]*registerState // by context and block
	visits     [][]int
	returned   []Value                    // by context
	callers    []map[blockNode]bool       // the calls that a context returns to
	accesses   map[blockNode][]rawAccess  // from the last visit of a block
	imports    map[blockNode]*libraryCall // from the last visit: a block's call of a library
	queue      workQueue
	queued     map[blockNode]bool
	steps      int
	temps      []Value
	roots      map[*cfg.Function][]int // contexts in which threads begin
	starts     map[*cfg.Function]Value // the argument of a thread's function
	meter      *effort.Meter
}

// rawAccess is an access, with its address as a value.
type rawAccess struct {
	pc     uint64
	at     Value
	size   int
	store  bool
	atomic bool
}

// libraryCall is a call of a library's function.
type libraryCall struct {
	model     *cfg.Model
	arguments [6]Value
}

// workQueue returns the first block first.
type workQueue []blockNode

func (q workQueue) Len() int { return len(q) }
func (q workQueue) Less(i, j int) bool {
	return q[i].context < q[j].context || q[i].context == q[j].context && q[i].block < q[j].block
}
func (q workQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *workQueue) Push(x any)   { *q = append(*q, x.(blockNode)) }
func (q *workQueue) Pop() any {
	old := *q
	n := old[len(old)-1]
	*q = old[:len(old)-1]
	return n
}

func (a *analysis) enqueue(n blockNode) {
	if !a.queued[n] {
		a.queued[n] = true
		heap.Push(&a.queue, n)
	}
}

// Analyze computes the sets of addresses that the accesses of a run may have. The meter, which may be nil, bounds it
// and the questions to its result.
func Analyze(r *specialize.CallTrace, meter *effort.Meter) *Result {
	a := &analysis{
		meter: meter,
		run:   r, image: r.Graph.Image, models: r.Graph.Models, numbers: map[regionKey]int{},
		accesses: map[blockNode][]rawAccess{}, imports: map[blockNode]*libraryCall{}, queued: map[blockNode]bool{},
		roots: map[*cfg.Function][]int{}, starts: map[*cfg.Function]Value{},
	}
	a.regionFor(regionKey{kind: Library})
	a.regionFor(regionKey{kind: Arguments})
	for i := 0; i < len(r.Contexts); i++ {
		a.addRoot(r.Contexts[i])
	}
	for len(a.queue) > 0 {
		n := heap.Pop(&a.queue).(blockNode)
		delete(a.queued, n)
		a.steps++
		a.visitBlock(n)
	}
	return a.buildResult()
}

// growTo makes room for a context.
func (a *analysis) growTo(c *specialize.Context) {
	for len(a.before) <= c.Number {
		f := a.run.Contexts[len(a.before)].Function
		a.before = append(a.before, make([]*registerState, len(f.Blocks)))
		a.visits = append(a.visits, make([]int, len(f.Blocks)))
		a.returned = append(a.returned, Value{})
		a.callers = append(a.callers, map[blockNode]bool{})
	}
}

// addRoot enters a context that a library calls: a thread's function or a callback.
func (a *analysis) addRoot(c *specialize.Context) {
	a.growTo(c)
	if c.Site != nil || c.Function.First == nil {
		return
	}
	a.roots[c.Function] = append(a.roots[c.Function], c.Number)
	var s registerState
	for i := range s {
		s[i] = anyNumber
	}
	for _, r := range argumentRegisters {
		s[r] = topValue
	}
	if a.run.Late() { // earlier instructions of the thread are not known
		a.enterContext(c, &s)
		return
	}
	if _, ok := a.starts[c.Function]; ok || a.isThreadRoot(c) {
		s[argumentRegisters[0]] = a.starts[c.Function]
	}
	if c.Thread == 0 && c.Parent != nil && c.Parent.Parent == nil {
		// in the first thread: main or an initializer, which has the same arguments
		s[argumentRegisters[0]] = anyNumber
		s[argumentRegisters[1]], s[argumentRegisters[2]] = pointerValue(1, All), pointerValue(1, All)
	}
	a.enterContext(c, &s)
}

// isThreadRoot reports whether a context is the first of a thread other than the main
// thread.
func (a *analysis) isThreadRoot(c *specialize.Context) bool { return c.Parent == nil && c.Thread > 0 }

// enterContext begins a context with registers.
func (a *analysis) enterContext(c *specialize.Context, s *registerState) {
	a.growTo(c)
	s[rsp] = pointerValue(a.regionFor(regionKey{kind: Stack, context: c}).number, Exactly(0))
	if c.Function.First != nil {
		a.joinBefore(blockNode{c.Number, c.Function.First.Index}, s)
	}
}

// visitsBeforeWiden is the number of visits of a block before its values are widened.
const visitsBeforeWiden = 4

// joinBefore joins registers into the ones at the beginning of a block.
func (a *analysis) joinBefore(n blockNode, s *registerState) {
	old := a.before[n.context][n.block]
	if old == nil {
		c := *s
		a.before[n.context][n.block] = &c
		a.enqueue(n)
		return
	}
	changed := false
	for i := range old {
		var w Value
		if a.visits[n.context][n.block] > visitsBeforeWiden {
			w = widenValues(old[i], s[i])
		} else {
			w = joinValues(old[i], s[i])
		}
		if !w.equalTo(old[i]) {
			old[i], changed = w, true
		}
	}
	if changed {
		a.enqueue(n)
	}
}

// visitBlock evaluates a block and passes its registers on.
func (a *analysis) visitBlock(n blockNode) {
	c := a.run.Contexts[n.context]
	b := c.Function.Blocks[n.block]
	a.visits[n.context][n.block]++
	a.meter.Add(1 + len(b.Stmts))
	s := *a.before[n.context][n.block]
	e := blockEvaluation{analysis: a, node: n, block: b.Block, state: &s}
	e.runBlock()
	a.accesses[n] = e.accesses
	switch {
	case b.Tail || b.Call:
		a.callFunctions(c, b, n, &s)
		return
	case b.Syscall:
		s[rax], s[1], s[11] = anyNumber, anyNumber, anyNumber
	case b.Leaves && b.Jump == vex.JumpRet:
		a.recordReturn(c, s[rax])
	}
	a.passToSuccessors(c, b, &s)
}

// passToSuccessors joins registers into the successors.
func (a *analysis) passToSuccessors(c *specialize.Context, b *cfg.Block, s *registerState) {
	for i, next := range b.Next {
		if i < 64 && c.Dropped[b.Index]>>i&1 != 0 {
			continue
		}
		out := *s
		a.joinBefore(blockNode{c.Number, next.Index}, &out)
	}
}

// recordReturn joins the return value of a context.
func (a *analysis) recordReturn(c *specialize.Context, v Value) {
	if v.isUnset() {
		v = anyNumber
	}
	if w := widenValues(a.returned[c.Number], v); !w.equalTo(a.returned[c.Number]) {
		a.returned[c.Number] = w
		for n := range a.callers[c.Number] {
			a.enqueue(n)
		}
	}
}

// callFunctions evaluates the calls at the end of a block.
func (a *analysis) callFunctions(c *specialize.Context, b *cfg.Block, n blockNode, s *registerState) {
	result, returns := Value{}, b.Unknown && len(b.Calls) == 0
	if returns {
		result = topValue
	}
	for _, f := range b.Calls {
		if f.Model != nil {
			result, returns = joinValues(result, a.callLibrary(c, b, n, f.Model, s)), true
			continue
		}
		for _, callee := range a.run.CalleeContexts(c, b, f) {
			in := *s
			a.enterContext(callee, &in)
			a.callers[callee.Number][n] = true
			if v := a.returned[callee.Number]; !v.isUnset() {
				result, returns = joinValues(result, v), true
			}
		}
	}
	if b.Import != "" {
		result, returns = joinValues(result, a.callLibrary(c, b, n, a.models.Of(b.Import), s)), true
	}
	if !returns || b.NoReturn {
		return
	}
	out := registerState{}
	for i := range out {
		out[i] = anyNumber
	}
	for _, r := range preservedRegisters {
		out[r] = s[r]
	}
	out[rax], out[vectors] = result, anyNumber
	out[rsp] = addValues(s[rsp], numberValue(Exactly(wordBytes)))
	if b.Tail {
		a.recordReturn(c, result)
		return
	}
	a.passToSuccessors(c, b, &out)
}

// callLibrary applies the model of a library's function.
func (a *analysis) callLibrary(c *specialize.Context, b *cfg.Block, n blockNode, m *cfg.Model, s *registerState) Value {
	i := &libraryCall{model: m}
	for k, r := range argumentRegisters {
		i.arguments[k] = s[r]
		if !m.Opaque && m.Result != "number" && m.Result != "given" || len(m.Writes) > 0 {
			a.markEscaped(s[r])
		}
	}
	a.imports[n] = i
	a.startThread(m, s)
	for _, k := range m.Writes {
		what := anyNumber
		if m.Copies {
			what = a.loadValue(anyOffset(s[argumentRegisters[1]]), wordBytes, n)
		} else if m.Result == "unknown" {
			what = topValue
		}
		a.storeValue(anyOffset(s[argumentRegisters[k-1]]), wordBytes, what)
	}
	switch m.Result {
	case "fresh":
		r := a.regionFor(regionKey{kind: Heap, context: c, site: b})
		if m.Copies {
			a.storeValue(pointerValue(r.number, All), wordBytes, a.loadValue(anyOffset(s[argumentRegisters[0]]), wordBytes, n))
		}
		return pointerValue(r.number, Exactly(0))
	case "argument":
		return joinValues(anyOffset(s[argumentRegisters[0]]), numberValue(Exactly(0)))
	case "library":
		return joinValues(pointerValue(0, All), numberValue(Exactly(0)))
	case "number", "given":
		return anyNumber
	}
	return topValue
}

// startThread begins a thread's function with its argument.
func (a *analysis) startThread(m *cfg.Model, s *registerState) {
	if m.Function != "pthread_create" && m.Function != "thrd_create" {
		return
	}
	function, argument := s[2], s[1]
	if m.Function == "thrd_create" {
		function, argument = s[6], s[2]
	}
	a.markEscaped(argument)
	a.meter.Add(len(a.run.Graph.Functions))
	for _, f := range a.run.Graph.Functions {
		if at, one := function.asConstant(); one && uint64(at) != f.Entry || function.isUnset() {
			continue
		}
		old := a.starts[f]
		if w := widenValues(old, argument); !w.equalTo(old) {
			a.starts[f] = w
			for _, n := range a.roots[f] {
				if c := a.run.Contexts[n]; a.isThreadRoot(c) {
					s := *a.before[n][f.First.Index]
					s[argumentRegisters[0]] = w
					a.enterContext(c, &s)
				}
			}
		}
	}
}

// anyOffset is a value with all offsets in its regions.
func anyOffset(v Value) Value {
	return v.mapParts(func(p valuePart) valuePart {
		if p.region == numberRegion {
			return p
		}
		return valuePart{p.region, All}
	})
}

func cellsAt(r *Region, at Interval, size int, meter *effort.Meter) []int64 {
	if at.IsSingle() {
		var list []int64
		for offset := at.Low - wordBytes + 1; offset < at.Low+int64(size); offset++ {
			if _, ok := r.memory.cells[offset]; ok {
				list = append(list, offset)
			}
		}
		return list
	}
	var list []int64
	meter.Add(len(r.memory.cells))
	for offset := range r.memory.cells {
		if at.MayOverlap(size, Exactly(offset), wordBytes) {
			list = append(list, offset)
		}
	}
	slices.Sort(list)
	return list
}
