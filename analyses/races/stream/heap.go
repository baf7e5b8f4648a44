package stream

import (
	"maps"
	"sort"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Block is a block of the heap.
type Block struct {
	Addr, Size uint64
	// Allocated is where it was allocated, and Freed where it was given back, if it
	// was.
	Allocated Site
	Freed     *Site
}

// Site is where a thread called a function.
type Site struct {
	Thread int
	PC     arch.Addr // in the call
	Stack  uint32    // without the call
}

// heapBlocks are the blocks of a process: small ones by the page that they begin in,
// large ones in order.
type heapBlocks struct {
	at    map[uint64]*Block
	pages map[uint64][]*Block
	large []*Block
}

func newHeapBlocks() heapBlocks {
	return heapBlocks{at: map[uint64]*Block{}, pages: map[uint64][]*Block{}}
}

func (b *heapBlocks) cloneBlocks() heapBlocks {
	c := heapBlocks{at: maps.Clone(b.at), pages: map[uint64][]*Block{}, large: append([]*Block(nil), b.large...)}
	for n, list := range b.pages {
		c.pages[n] = append([]*Block(nil), list...)
	}
	return c
}

// addBlock adds a block, and removes blocks that began at its address.
func (b *heapBlocks) addBlock(k *Block) {
	if old := b.at[k.Addr]; old != nil {
		b.removeBlock(old)
	}
	b.at[k.Addr] = k
	if k.Size <= pageSize {
		n := k.Addr >> pageShift
		b.pages[n] = append(b.pages[n], k)
		return
	}
	i := sort.Search(len(b.large), func(i int) bool { return b.large[i].Addr >= k.Addr })
	b.large = append(b.large, nil)
	copy(b.large[i+1:], b.large[i:])
	b.large[i] = k
}

func (b *heapBlocks) removeBlock(k *Block) {
	delete(b.at, k.Addr)
	n := k.Addr >> pageShift
	list := &b.large
	if k.Size <= pageSize {
		part := b.pages[n]
		list = &part
	}
	for i, other := range *list {
		if other == k {
			*list = append((*list)[:i], (*list)[i+1:]...)
			break
		}
	}
	if k.Size > pageSize {
		return
	}
	if len(*list) == 0 {
		delete(b.pages, n)
	} else {
		b.pages[n] = *list
	}
}

// findBlock finds the block that has an address, rather one that is in use.
func (b *heapBlocks) findBlock(addr uint64) (found *Block) {
	n := addr >> pageShift
	better := func(k *Block) {
		if addr-k.Addr < k.Size && (found == nil || found.Freed != nil && k.Freed == nil) {
			found = k
		}
	}
	for _, k := range b.pages[n] {
		better(k)
	}
	for _, k := range b.pages[n-1] {
		better(k)
	}
	i := sort.Search(len(b.large), func(i int) bool { return b.large[i].Addr > addr })
	for i--; i >= 0 && i >= len(b.large)-1-maxOverlap; i-- {
		better(b.large[i])
	}
	return found
}

// maxOverlap is how many large blocks before an address are examined: freed blocks may overlap
// others.
const maxOverlap = 64

// BlockAt is the block of the heap that a process has at an address, or had last.
func (x *Run) BlockAt(process int32, addr uint64) *Block {
	p := x.processes[process]
	if p == nil {
		return nil
	}
	return p.blocks.findBlock(addr)
}

// handleAllocator acts on the call of an allocator's function, or its return.
func (x *Run) handleAllocator(e *event.Heap) error {
	t := x.byID[e.Thread]
	if t == nil {
		return errStamps.New(e.Thread, e.Seq)
	}
	if e.Phase == event.Enter {
		if e.Op == event.HeapFree {
			x.freeBlock(t, e)
		}
		t.allocatorDepth++
		x.noteDepth(t)
		return nil
	}
	t.allocatorDepth = max(0, t.allocatorDepth-1)
	x.noteDepth(t)
	moved := e.Op == event.HeapResize && e.Old != 0 && (e.Addr != 0 && e.Addr != e.Old || e.Addr == 0 && e.Size == 0)
	if moved {
		if b := t.process.blocks.at[uint64(e.Old)]; b != nil && b.Freed == nil {
			b.Freed = x.callSite(t, e)
		}
	}
	if e.Addr == 0 {
		return nil
	}
	x.allocateBlock(t, e)
	return nil
}

func (x *Run) callSite(t *Thread, e *event.Heap) *Site {
	return &Site{Thread: t.Number, PC: e.PC - 1, Stack: t.runner.OuterStack(uint64(e.PC))}
}

// allocateBlock adds a block and forgets the accesses to its memory: to all of it, or, of a block
// that has grown in place, to the new part.
func (x *Run) allocateBlock(t *Thread, e *event.Heap) {
	from := uint64(e.Addr)
	to := from + e.Size
	old := t.process.blocks.at[from]
	same := e.Op == event.HeapResize && e.Addr == e.Old && old != nil && old.Freed == nil
	b := &Block{Addr: from, Size: e.Size, Allocated: *x.callSite(t, e)}
	if same {
		from = min(to, from+old.Size)
	}
	t.process.blocks.addBlock(b)
	x.forgetRange(t.process, from, to)
}

// freeBlock frees a block: for other threads its memory is written. Under ScheduleRelative only the
// real writes of the allocator count.
func (x *Run) freeBlock(t *Thread, e *event.Heap) {
	b := t.process.blocks.at[uint64(e.Old)]
	if b == nil || b.Freed != nil {
		return
	}
	b.Freed = x.callSite(t, e)
	if x.options.Order != races.HappensBefore || x.ignoresAccesses(t) {
		return
	}
	t.process.eachPage(b.Addr, b.Addr+b.Size, func(at, addr, size uint64) {
		x.follower.Send(&races.Access{
			Thread: t.Number, Addr: at, Size: int(size), Write: true, Other: true, PC: b.Freed.PC, Branches: e.Branches,
			Stack: b.Freed.Stack,
		}, addr)
	})
}
