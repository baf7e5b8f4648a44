package event

import "github.com/heddle-dmt/heddle/emu/arch"

// MemoryKind is the kind of a Memory.
type MemoryKind uint8

// Kinds of Memory.
const (
	// Load and Store are accesses of the guest.
	Load MemoryKind = iota
	Store
	// KernelStore is a write of the kernel on behalf of the thread.
	KernelStore
	// Content gives the contents of a page that is new, or that anything but
	// a traced thread has changed: Data, or zeros if that is nil.
	Content
	// View is the effect of the store buffers of TSO and PSO: the core that runs sees
	// Data at Addr from now on. The Store was before, by this core, or by another
	// that has committed it since.
	View
	// Copy gives a page the contents of page From.
	Copy
	// KernelLoad is a read of the kernel on behalf of the thread, but for futex words.
	KernelLoad
)

var memoryNames = [...]string{"load", "store", "kernel", "content", "view", "copy", "kernel_load"}

// MemoryKinds lists the kinds' names, in the order of their numbers.
func MemoryKinds() []string { return memoryNames[:] }

func (k MemoryKind) String() string {
	if int(k) < len(memoryNames) {
		return memoryNames[k]
	}
	return "unknown"
}

// Memory is an access to memory, or another change of the values that loads see. In
// order they are a history of the machine's memory: a model that carries them out
// has the value of every load. Memory is identified by physical page, so pages that
// processes share is one page; a page that is freed is used again after a new
// Content or Copy.
type Memory struct {
	// Stamp is that of the piece of the thread's run that the access is in,
	// which begins with an event, a quantum or a full log; Branches alone is that
	// of the access.
	Stamp
	Kind MemoryKind
	// Atomic marks the load and the store of an instruction that does both as
	// one: with a LOCK prefix, or XCHG.
	Atomic bool
	// Parts, unless 0, is the number of accesses of an instruction between which other cores
	// acted, each of which has a Load or Store of its own; Part is which of them this is, from
	// 0. An access that lies in two cache lines is two.
	Part, Parts uint8
	// Size is the number of bytes of a Load or Store, 1 to 10 or 16.
	Size uint8
	// PC is the instruction of a Load or Store. Addr is where it, the
	// KernelStore, the KernelLoad or the View begins.
	PC, Addr arch.Addr
	// Page is the page of Addr, or the one that a Content or Copy is about;
	// Next is that of the end of a Load or Store that lies in two.
	Page, Next uint64
	From       uint64
	// Value is that of a Load or Store, little-endian, the rest zero.
	Value [2]uint64
	// Length is the number of bytes of a KernelStore, KernelLoad or View; the second is
	// all in Page. Data are the bytes of the others. If
	// that is nil, each page's content comes before the next access to it; it
	// may then reach into pages after Page.
	Length uint64
	Data   []byte
}
