package simplify

import (
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/cfg"
)

// Context is a clone of a function: of a thread, for a way that it was called.
type Context struct {
	// Number is its place in Run.Contexts.
	Number   int
	Function *cfg.Function
	// Parent called it from Site; both are nil where a thread begins in the
	// program's code. Round is the iteration of a loop with events.
	Parent *Context
	Site   *cfg.Block
	Round  int
	// Thread is the place of its thread in the trace.
	Thread int
	// Executed has how often each block was gone through, and Taken, for each block,
	// the successors that were, as bits.
	Executed []uint32
	Taken    []uint64
	// Dropped has the successors that contradict the schedule.
	Dropped []uint64

	children map[child]*Context
}

type child struct {
	site     *cfg.Block
	function *cfg.Function
	round    int
}

// Options say how much is cloned.
type Options struct {
	// Merge makes no clones: a function is one for all threads and calls.
	Merge bool
	// Rounds is how many iterations of a loop with events are told apart.
	Rounds int
	// Most is how many clones there are at most; then calls of a function share one.
	Most int
}

// DefaultOptions clone.
func DefaultOptions() Options { return Options{Rounds: 16, Most: 4096} }

// Name says what a context is: its functions, from the thread's on.
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

// Call is the context of a function that a block of a context calls.
func (r *Run) Call(parent *Context, site *cfg.Block, f *cfg.Function, round, thread int) *Context {
	for c := parent; c != nil; c = c.Parent {
		if c.Function == f {
			return c // recursion has one context
		}
	}
	key := child{site, f, round}
	children := r.roots[thread]
	switch {
	case r.options.Merge:
		children, key, thread = r.merged, child{function: f}, 0
	case parent != nil:
		children = parent.children
	case children == nil:
		children = map[child]*Context{}
		r.roots[thread] = children
	}
	if c := children[key]; c != nil {
		return c
	}
	if len(r.Contexts) >= r.options.Most {
		children, key = r.merged, child{function: f}
		if c := children[key]; c != nil {
			return c
		}
	}
	c := &Context{
		Number: len(r.Contexts), Function: f, Parent: parent, Site: site, Round: round, Thread: thread,
		children: map[child]*Context{}, Executed: make([]uint32, len(f.Blocks)),
		Taken: make([]uint64, len(f.Blocks)), Dropped: make([]uint64, len(f.Blocks)),
	}
	children[key] = c
	r.Contexts = append(r.Contexts, c)
	return c
}

// Successor is the place of a block among those that another goes to, or -1.
func Successor(b, next *cfg.Block) int {
	for i, c := range b.Next {
		if c == next && i < 64 {
			return i
		}
	}
	return -1
}

// Callees are the contexts of a function that a block of a context calls: those that
// were executed, or else a new one.
func (r *Run) Callees(c *Context, site *cfg.Block, f *cfg.Function) []*Context {
	var list []*Context
	if !r.options.Merge {
		for round := range max(r.options.Rounds, 1) {
			k := c.children[child{site, f, round}]
			if k == nil {
				break
			}
			list = append(list, k)
		}
	}
	if list == nil {
		list = []*Context{r.Call(c, site, f, 0, c.Thread)}
	}
	return list
}
