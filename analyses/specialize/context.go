package specialize

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/cfg"
)

// Context is a clone of a function for one thread and one chain of calls.
type Context struct {
	// Number is its index in CallTrace.Contexts.
	Number   int
	Function *cfg.Function
	// Parent called it from Site; both are nil where a thread enters the program's code.
	// Round is the iteration of a loop with events.
	Parent *Context
	Site   *cfg.Block
	Round  int
	// Thread is the index of its thread in the trace.
	Thread int
	// Executed counts the executions of each block. Taken has, for each block, a bit for
	// each successor that was taken.
	Executed []uint32
	Taken    []uint64
	// Dropped has a bit for each successor that contradicts the schedule.
	Dropped []uint64

	children map[childKey]*Context
}

type childKey struct {
	site     *cfg.Block
	function *cfg.Function
	round    int
}

// Options limit the cloning of functions.
type Options struct {
	// Late says that the trace begins when threads are inside functions: what they do in those is no call of a
	// function.
	Late bool
	// Merge turns cloning off: a function is one context for all threads and calls.
	Merge bool
	// MaxRounds is the number of iterations of a loop with events that get contexts of
	// their own.
	MaxRounds int
	// MaxContexts is the number of clones; beyond it all further calls of a function share
	// one.
	MaxContexts int
}

// DefaultOptions are the usual limits.
func DefaultOptions() Options { return Options{MaxRounds: 16, MaxContexts: 4096} }

// Name is the chain of functions of a context, from the thread's first.
func (c *Context) Name() string {
	name := c.Function.Name
	if name == "" {
		name = fmt.Sprintf("%#x", c.Function.Entry)
	}
	if c.Round > 0 {
		name = fmt.Sprintf("%s#%d", name, c.Round)
	}
	if c.Parent == nil {
		return fmt.Sprintf("%d:%s", c.Thread, name)
	}
	return c.Parent.Name() + "/" + name
}

// CallContext returns the context for a call: a block of a parent context calls f. It makes
// the context on the first such call.
func (r *CallTrace) CallContext(parent *Context, site *cfg.Block, f *cfg.Function, round, thread int) *Context {
	for c := parent; c != nil; c = c.Parent {
		if c.Function == f {
			return c // recursion shares one context
		}
	}
	key := childKey{site, f, round}
	children := r.roots[thread]
	switch {
	case r.options.Merge:
		children, key, thread = r.merged, childKey{function: f}, 0
	case parent != nil:
		children = parent.children
	case children == nil:
		children = map[childKey]*Context{}
		r.roots[thread] = children
	}
	if c := children[key]; c != nil {
		return c
	}
	if len(r.Contexts) >= r.options.MaxContexts {
		children, key = r.merged, childKey{function: f}
		if c := children[key]; c != nil {
			return c
		}
	}
	c := &Context{
		Number: len(r.Contexts), Function: f, Parent: parent, Site: site, Round: round, Thread: thread,
		children: map[childKey]*Context{}, Executed: make([]uint32, len(f.Blocks)),
		Taken: make([]uint64, len(f.Blocks)), Dropped: make([]uint64, len(f.Blocks)),
	}
	children[key] = c
	r.Contexts = append(r.Contexts, c)
	return c
}

// Successor returns the index of a block among the successors of another, or -1.
func Successor(b, next *cfg.Block) int {
	for i, c := range b.Next {
		if c == next && i < 64 {
			return i
		}
	}
	return -1
}

// CalleeContexts returns the contexts of a function that a block of a context calls: the
// executed ones, or else a new one.
func (r *CallTrace) CalleeContexts(c *Context, site *cfg.Block, f *cfg.Function) []*Context {
	var list []*Context
	if !r.options.Merge {
		for round := range max(r.options.MaxRounds, 1) {
			k := c.children[childKey{site, f, round}]
			if k == nil {
				break
			}
			list = append(list, k)
		}
	}
	if list == nil {
		list = []*Context{r.CallContext(c, site, f, 0, c.Thread)}
	}
	return list
}
