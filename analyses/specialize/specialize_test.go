package specialize_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	"github.com/heddle-dmt/heddle/analyses/blocktrace/blocktracetest"
	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/specialize"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

const source = `
long leaf(long x) { return x + 1; }
long twice(long x) { return leaf(x) + leaf(2 * x); }
long factorial(long n) { return n < 2 ? 1 : n * factorial(n - 1); }
long loop(long n) { long s = 0; for (long i = 0; i < n; i++) s += leaf(i); return s; }
long choose(long x) { if (x) return leaf(x); return 7; }
int main(void) { return twice(1) + factorial(2) + loop(3) + choose(4); }
`

// traceCalls divides what a program has executed into calls.
func traceCalls(p *blocktracetest.Program, e *specialize.Events, o specialize.Options) *specialize.CallTrace {
	trace := p.Log.Trace()
	if e == nil {
		e = specialize.NewEvents(&event.Schedule{}, nil, nil)
	}
	g := cfg.Build(p.Image, cfg.DefaultModels(), specialize.Observe(trace, p.Image))
	return specialize.TraceCalls(trace, g, e, o)
}

// contextNames lists the contexts of a call trace.
func contextNames(r *specialize.CallTrace) (names []string) {
	for _, c := range r.Contexts {
		names = append(names, c.Name())
	}
	return names
}

// frameNames lists the frames of a thread: the context, and the index of the calling frame.
func frameNames(th *specialize.Thread) (names []string) {
	for i := range th.Frames {
		f := &th.Frames[i]
		names = append(names, fmt.Sprintf("%s from %d", f.Context.Function.Name, f.Parent))
	}
	return names
}

func compare[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Two calls of one function from two places are two contexts, and two frames.
func TestEachCallSiteHasItsContext(t *testing.T) {
	p := blocktracetest.Compile(t, source, "-O0")
	if got := p.Call(1, "twice", 3); got != 11 {
		t.Fatalf("the result is %d", got)
	}
	r := traceCalls(p, nil, specialize.DefaultOptions())
	compare(t, "contexts", contextNames(r), []string{"0:twice", "0:twice/leaf", "0:twice/leaf"})
	compare(t, "frames", frameNames(r.Threads[0]), []string{"twice from -1", "leaf from 0", "leaf from 0"})
	if a, b := r.Contexts[1].Site, r.Contexts[2].Site; a == b {
		t.Error("both calls of leaf have one site")
	}
	// twice, leaf, twice, leaf, twice: the last change is the second return.
	var order []int
	for _, c := range r.Threads[0].FrameChanges {
		order = append(order, c.Frame)
	}
	compare(t, "changes of frames", order, []int{0, 1, 0, 2, 0})
}

// A function that calls itself is one context with a frame for each call.
func TestRecursionIsOneContext(t *testing.T) {
	p := blocktracetest.Compile(t, source, "-O0")
	if got := p.Call(1, "factorial", 4); got != 24 {
		t.Fatalf("the result is %d", got)
	}
	r := traceCalls(p, nil, specialize.DefaultOptions())
	compare(t, "contexts", contextNames(r), []string{"0:factorial"})
	compare(t, "frames", frameNames(r.Threads[0]), []string{"factorial from -1", "factorial from 0", "factorial from 1", "factorial from 2"})
	if n := r.Contexts[0].Executed[r.Contexts[0].Function.First.Index]; n != 4 {
		t.Errorf("its first block was executed %d times, want 4", n)
	}
}

// eventsBeforeCalls makes a schedule with one operation at the beginning of each frame but
// the first.
func eventsBeforeCalls(r *specialize.CallTrace, id arch.ThreadID) *specialize.Events {
	s := &event.Schedule{Threads: []string{"1"}}
	var marks []hybrid.Mark
	th := r.Threads[0]
	for i := range th.Frames[1:] {
		c := th.Cursor(th.Frames[i+1].First)
		c.Next()
		s.Operations = append(s.Operations, event.Operation{Op: event.OpMutexLock})
		marks = append(marks, hybrid.Mark{Position: len(marks), Instructions: c.At - 1})
	}
	return specialize.NewEvents(s, marks, []arch.ThreadID{id})
}

// The rounds of a loop are contexts of their own if there are events between them, up to
// the limit.
func TestLoopsWithEventsAreUnrolled(t *testing.T) {
	p := blocktracetest.Compile(t, source, "-O0")
	p.Call(1, "loop", 4)
	without := traceCalls(p, nil, specialize.DefaultOptions())
	compare(t, "contexts without events", contextNames(without), []string{"0:loop", "0:loop/leaf"})
	if leaf := without.Contexts[1]; leaf.Executed[leaf.Function.First.Index] != 4 {
		t.Errorf("leaf was executed %d times", leaf.Executed[leaf.Function.First.Index])
	}
	e := eventsBeforeCalls(without, 1)
	with := traceCalls(p, e, specialize.DefaultOptions())
	compare(t, "contexts with events", contextNames(with), []string{"0:loop", "0:loop/leaf", "0:loop/leaf#1", "0:loop/leaf#2", "0:loop/leaf#3"})
	limited := traceCalls(p, e, specialize.Options{MaxRounds: 2, MaxContexts: 100})
	compare(t, "contexts of two rounds", contextNames(limited), []string{"0:loop", "0:loop/leaf", "0:loop/leaf#1"})
	if got := len(with.CalleeContexts(with.Contexts[0], with.Contexts[1].Site, with.Contexts[1].Function)); got != 4 {
		t.Errorf("the call of leaf has %d contexts, want 4", got)
	}
}

// Threads have contexts of their own, unless cloning is off; after the limit, calls share.
func TestContextsOfThreads(t *testing.T) {
	p := blocktracetest.Compile(t, source, "-O0")
	p.Call(1, "twice", 1)
	p.Call(2, "twice", 1)
	apart := traceCalls(p, nil, specialize.DefaultOptions())
	compare(t, "contexts", contextNames(apart), []string{
		"0:twice", "0:twice/leaf", "0:twice/leaf", "1:twice", "1:twice/leaf", "1:twice/leaf",
	})
	merged := traceCalls(p, nil, specialize.Options{Merge: true, MaxRounds: 1, MaxContexts: 100})
	compare(t, "merged contexts", contextNames(merged), []string{"0:twice", "0:twice/leaf"})
	limited := traceCalls(p, nil, specialize.Options{MaxRounds: 1, MaxContexts: 2})
	if n := len(limited.Contexts); n != 4 { // two, and one more for each function after them
		t.Errorf("%d contexts %v, want 4", n, contextNames(limited))
	}
}

// An edge is taken if the thread went along it: of a branch that went one way, one.
func TestTakenEdges(t *testing.T) {
	for _, x := range []uint64{0, 5} {
		p := blocktracetest.Compile(t, source, "-O0")
		p.Call(1, "choose", x)
		c := traceCalls(p, nil, specialize.DefaultOptions()).Contexts[0]
		for _, b := range c.Function.Blocks {
			if len(b.Next) != 2 {
				continue
			}
			if taken := c.Taken[b.Index]; taken != 1 && taken != 2 {
				t.Errorf("with %d, edges %02b of %d are taken", x, taken, len(b.Next))
			}
			for i, next := range b.Next {
				if taken := c.Taken[b.Index]&(1<<i) != 0; taken != (c.Executed[next.Index] > 0) {
					t.Errorf("with %d, edge %d is taken: %v; its block was executed %d times", x, i, taken, c.Executed[next.Index])
				}
				if specialize.Successor(b, next) != i {
					t.Errorf("successor %d has another index", i)
				}
			}
		}
	}
}

// Operations extend from their call to their return, points of constraints lie between
// them, and a thread that has joined all others is alone.
func TestEvents(t *testing.T) {
	s := &event.Schedule{
		Threads: []string{"1", "1.1"}, Objects: map[event.ObjectID]string{7: "thread:1.1"}, Portable: true,
		Operations: []event.Operation{
			{Thread: 0, Op: event.OpMutexLock},
			{Thread: 1, Op: event.OpMutexLock},
			{Thread: 0, Op: event.OpJoin, Object: 7, Part: event.WholePart},
			{Thread: 0, Op: event.OpMutexLock},
		},
		Constraints: []event.Constraint{{
			First:  event.Point{Thread: 1, Done: 1, PC: 0x1000, Instructions: 5, Span: 1},
			Second: event.Point{Thread: 0, Done: 1},
		}},
	}
	marks := []hybrid.Mark{
		{Thread: 0, Position: -1, Open: true, Instructions: 10},
		{Thread: 0, Position: 0, Instructions: 12},
		{Thread: 0, Position: -1, Close: true, Instructions: 15},
		{Thread: 1, Position: 1, Instructions: 100},
		{Thread: 0, Position: 2, Instructions: 40},
		{Thread: 0, Position: 3, Instructions: 50},
	}
	e := specialize.NewEvents(s, marks, []arch.ThreadID{1000, 1001})
	first, second := &blocktrace.Thread{ID: 1000}, &blocktrace.Thread{ID: 1001}
	list := e.OfThread(first)
	if len(list) != 2 || list[0].From != 10 || list[0].To != 15 || list[0].Position != 0 || list[1].Position != 2 {
		t.Errorf("events of the first thread: %+v", list)
	}
	list = e.OfThread(second)
	if len(list) != 2 || !list[1].Point || list[1].From != 105 || list[1].To != 106 || list[1].Position != 1 {
		t.Errorf("events of the second thread: %+v", list)
	}
	if got := e.JoinPosition(second); got != 2 {
		t.Errorf("the second thread is joined at %d, want 2", got)
	}
	if got := e.JoinPosition(first); got != 4 {
		t.Errorf("the first thread is joined at %d, want the end", got)
	}
	if e.IsAlone(first, 39) || !e.IsAlone(first, 40) || e.IsAlone(second, 1000) {
		t.Error("the first thread is alone from its join on, and no other is")
	}
	constraints := 0
	e.EachConstraint(func(a arch.ThreadID, from uint64, b arch.ThreadID, to uint64) {
		constraints++
		if a != 1001 || from != 105 || b != 1000 || to != 40 {
			t.Errorf("%d at %d before %d at %d", a, from, b, to)
		}
	})
	if constraints != 1 {
		t.Errorf("%d constraints", constraints)
	}
}
