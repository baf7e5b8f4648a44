package event

import "github.com/heddle-dmt/heddle/emu/arch"

// Mapping is a part of a file in a process's memory: the file's bytes from
// Offset on are at Addr. It holds from its stamp on, until another overlaps it;
// there is no event for the end of a mapping.
type Mapping struct {
	Stamp
	Process int32     `json:"process"`
	Addr    arch.Addr `json:"addr"`
	Size    uint64    `json:"size"`
	Offset  uint64    `json:"offset"`
	// Name is the guest's path of the file.
	Name string `json:"name"`
}

// HeapOp is the operation of an allocator.
type HeapOp uint8

// Calls of an allocator.
const (
	HeapAllocate HeapOp = iota
	HeapResize
	HeapFree
)

var heapNames = [...]string{"allocate", "resize", "free"}

// HeapOps lists the calls' names, in the order of their numbers.
func HeapOps() []string { return heapNames[:] }

func (o HeapOp) String() string {
	if int(o) < len(heapNames) {
		return heapNames[o]
	}
	return "unknown"
}

// Heap is the call of an allocator's function, malloc and its kin, or its
// return. Calls within such a call, or within a synchronization operation, are
// not reported.
type Heap struct {
	Stamp
	Op    HeapOp `json:"op"`
	Phase Phase  `json:"phase"`
	// Old is the block that a free or a resize is given; 0: none.
	Old arch.Addr `json:"old"`
	// Size is how many bytes are asked for.
	Size uint64 `json:"size"`
	// Addr is the new block, of a Return; 0 if there is no new block.
	Addr arch.Addr `json:"addr"`
	// PC is where the call returns to.
	PC arch.Addr `json:"pc"`
}

// Area is a part of a process's memory with the same rights and properties, at the beginning of a recorded stretch of
// a run.
type Area struct {
	Stamp
	Process int32     `json:"process"`
	Addr    arch.Addr `json:"addr"`
	Size    uint64    `json:"size"`
	// Rights are those of mmap(2): 1 read, 2 write, 4 execute.
	Rights uint64 `json:"rights"`
	// Shared reports that writes are seen by other processes, and Anonymous that no file is in it.
	Shared    bool `json:"shared"`
	Anonymous bool `json:"anonymous"`
}
