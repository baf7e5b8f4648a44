package stream

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// callStack are the calls that a thread is in, as its accesses show them: a call stores its return
// address, and the return loads it.
type callStack struct {
	frames []frame
	node   uint32 // of all of them
	slot   uint64 // of the innermost
}

// frame is a call: where its return address is.
type frame struct {
	slot, ret uint64
	node      uint32
}

// stackTree are all stacks of calls that were seen, as a tree. Number 0 is that
// without calls.
type stackTree struct {
	nodes    []node
	children map[node]uint32
}

// node is a call within the calls of its parent; latest is a child of it.
type node struct {
	pc     arch.Addr
	parent uint32
	latest uint32
}

// maxStacks bounds the number of stacks: calls within further ones count as their callers.
const maxStacks = 1 << 20

func newStackTree() *stackTree {
	return &stackTree{nodes: make([]node, 1), children: map[node]uint32{}}
}

// childStack is the stack of a call within a stack.
func (s *stackTree) childStack(parent uint32, pc arch.Addr) uint32 {
	p := &s.nodes[parent]
	if c := p.latest; c != 0 && s.nodes[c].pc == pc {
		return c
	}
	key := node{pc: pc, parent: parent}
	c, ok := s.children[key]
	if !ok {
		if len(s.nodes) == maxStacks {
			return parent
		}
		c = uint32(len(s.nodes))
		s.children[key] = c
		s.nodes = append(s.nodes, key)
		p = &s.nodes[parent]
	}
	p.latest = c
	return c
}

// CallsOf are the instructions that called, the innermost first, of a stack.
func (x *Reader) CallsOf(stack uint32) []arch.Addr {
	var list []arch.Addr
	for ; stack != 0; stack = x.stacks.nodes[stack].parent {
		list = append(list, x.stacks.nodes[stack].pc)
	}
	return list
}

// longestCall is the number of bytes of the longest call instruction that is in
// use, shortestCall of the shortest.
const shortestCall, longestCall = 2, 9

// trackCall follows calls and returns: an access of eight bytes.
func (x *Reader) trackCall(t *Thread, m *event.Memory, addr uint64) {
	c := &t.calls
	if m.Kind == event.Load {
		if addr == c.slot && len(c.frames) > 0 && m.Value[0] == c.frames[len(c.frames)-1].ret {
			c.popFrame()
		}
		return
	}
	if m.Value[0]-uint64(m.PC)-shortestCall > longestCall-shortestCall {
		return
	}
	for len(c.frames) > 0 && c.slot <= addr {
		c.popFrame() // it was left in another way
	}
	c.node = x.stacks.childStack(c.node, m.PC)
	c.slot = addr
	c.frames = append(c.frames, frame{addr, m.Value[0], c.node})
	t.low, t.high = min(t.low, addr), max(t.high, addr)
}

func (c *callStack) popFrame() {
	c.frames = c.frames[:len(c.frames)-1]
	if n := len(c.frames); n > 0 {
		c.node, c.slot = c.frames[n-1].node, c.frames[n-1].slot
	} else {
		c.node, c.slot = 0, 0
	}
}

// StackOf is the live thread of a process whose stack contains an address; nil without one.
func (x *Reader) StackOf(process int32, addr uint64) *Thread {
	for _, t := range x.threads {
		if t.Process == process && !t.over && addr >= t.low-min(t.low, pageSize) && addr < t.high+pageSize && t.high > t.low {
			return t
		}
	}
	return nil
}
