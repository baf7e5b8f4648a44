package races

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror -I${SRCDIR}/../../emu/mem -I${SRCDIR}/../../emu/memlog
#include "races.h"

#cgo noescape races_access
#cgo nocallback races_access
#cgo noescape races_forget
#cgo nocallback races_forget
#cgo noescape races_copy_page
#cgo nocallback races_copy_page
#cgo noescape races_thread_at
#cgo nocallback races_thread_at
#cgo noescape races_acquire
#cgo nocallback races_acquire
#cgo noescape races_release
#cgo nocallback races_release
#cgo noescape races_order
#cgo nocallback races_order
#cgo noescape races_next_position
#cgo nocallback races_next_position
*/
import "C"

import (
	"math"
	"runtime"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// MaxThreads is how many threads a Detector can distinguish.
const MaxThreads = 1 << C.THREAD_BITS

// Access is a load or a store.
type Access struct {
	// Thread is the thread's number: threads are numbered from 0, as they come,
	// below MaxThreads.
	Thread int
	// Addr is the address, and Size the number of bytes. Addresses of different processes must
	// differ unless the memory is the same. The bytes after the first First are at Rest, if First
	// is not 0.
	Addr  uint64
	Size  int
	First int
	Rest  uint64
	// Write marks a store; an access that loads and stores is a store.
	Write bool
	// Atomic marks LOCK-prefixed instructions and XCHG: two of them do not race.
	Atomic bool
	// Other: it is not the access of an instruction (Side.Other).
	Other bool
	// PC is the instruction, below 2^48.
	PC arch.Addr
	// Branches is how many branches the thread has gone through.
	Branches uint64
	// At is the place in the trace: later accesses have larger numbers, below
	// 2^44.
	At uint64
	// Part is the number of the access among the Parts of its instruction, if others have
	// acted between these; Parts is 0 otherwise, and at most MaxParts.
	Part, Parts uint8
	// Stack is a number of the caller's for the thread's calls at this point.
	Stack uint32
	// Value is the value that was read, or is written, and Old the value that a write replaces, of
	// up to eight bytes; Valued says that they are known.
	Value, Old uint64
	Valued     bool
}

// Instance is an instruction of a run, as <sid, tid, nbr> names it (PEREGRINE
// section 3.1): static instruction, thread, branches since the thread's last
// synchronization operation, here with the number of that operation.
type Instance struct {
	PC     arch.Addr `json:"pc"`
	Thread int       `json:"thread"`
	// Syncs is how many synchronization operations the thread had done.
	Syncs uint64 `json:"syncs"`
	// Branches is how many branches it had gone through since the last, at most
	// MaxBranches.
	Branches uint64 `json:"branches"`
	// Part and Parts are those of the access.
	Part  uint8 `json:"part,omitempty"`
	Parts uint8 `json:"parts,omitempty"`
	// At is the place of the access in the trace.
	At uint64 `json:"at"`
}

// MaxParts is the greatest number of accesses of an instruction between which others act.
const MaxParts = 8

// MaxBranches stands for as many branches or more.
const MaxBranches = math.MaxUint32

// Kind is the kinds of the two accesses of a race.
type Kind uint8

// Kinds of races, by their first access.
const (
	WriteWrite Kind = iota
	WriteRead
	ReadWrite
)

func (k Kind) String() string { return [...]string{"write-write", "write-read", "read-write"}[k] }

// Side has further facts about one of the two accesses.
type Side struct {
	// Size is the number of bytes, 0 for more than 31.
	Size   int
	Atomic bool
	// Other: it is not the access of an instruction; the kernel wrote for the thread, or a block of
	// the heap was freed.
	Other bool
	// Stack is Access.Stack.
	Stack uint32
}

// Race is two unordered accesses, in the order in which they happened.
type Race struct {
	Addr          uint64   `json:"addr"`
	Kind          Kind     `json:"kind"`
	First, Second Instance `json:"-"`
	// Sides are further facts about First and Second.
	Sides [2]Side `json:"-"`
	// Benign: a write of the two did not change the value: both write the same, or the write does
	// not change the value that is read. TERN section 7.1 prunes such races.
	Benign bool `json:"benign"`
}

// Detector finds races in one stream. Close frees its memory, which is not Go's.
type Detector struct {
	c              *C.struct_races_detector
	order          Order
	objects        map[uint64]*C.struct_races_clock
	endedProcesses map[int]bool // processes that are
	report         func(*Race)
	race           Race // for report, so that it need not be allocated
	cleanup        runtime.Cleanup
}

// New makes a detector that calls report for each race. The Race is valid only
// during the call.
func New(order Order, report func(*Race)) *Detector {
	d := &Detector{c: C.races_open(), order: order, objects: map[uint64]*C.struct_races_clock{}, endedProcesses: map[int]bool{}, report: report}
	if d.c == nil {
		panic("bug: no memory for a race detector")
	}
	d.cleanup = runtime.AddCleanup(d, freeDetector, inC{d.c, d.objects})
	return d
}

// inC is the memory of a detector that is not Go's.
type inC struct {
	detector *C.struct_races_detector
	objects  map[uint64]*C.struct_races_clock
}

func freeDetector(m inC) {
	for _, c := range m.objects {
		C.races_free_clock(c)
	}
	C.races_close(m.detector)
}

// OmitRepeats omits repeated accesses, before the first one: those of an instruction that only repeat what
// earlier ones of its thread did (invariant 1).
func (d *Detector) OmitRepeats() { d.c.omits = true }

// CompareRepeats says, before the first access, that repeated accesses are compared like others.
func (d *Detector) CompareRepeats() { d.c.omits = false }

// Close frees the detector's memory, which otherwise happens some time after its last use.
func (d *Detector) Close() {
	d.cleanup.Stop()
	freeDetector(inC{d.c, d.objects})
	d.c = nil
}

// Access takes the next access of the run.
func (d *Detector) Access(a *Access) {
	c := a.inC()
	C.races_access(d.c, &c)
	d.reportFound()
}

// inC is the access as the part in C takes it.
func (a *Access) inC() C.struct_races_access {
	return C.struct_races_access{
		addr: C.uint64_t(a.Addr), size: C.uint64_t(a.Size), first: C.uint64_t(a.First), rest: C.uint64_t(a.Rest),
		pc: C.uint64_t(a.PC), branches: C.uint64_t(a.Branches), at: C.uint64_t(a.At), value: C.uint64_t(a.Value), old: C.uint64_t(a.Old),
		thread: C.uint32_t(a.Thread), stack: C.uint32_t(a.Stack), write: C.bool(a.Write), atomic: C.bool(a.Atomic),
		other: C.bool(a.Other), valued: C.bool(a.Valued), part: C.uint8_t(a.Part), parts: C.uint8_t(a.Parts),
	}
}

// Forget removes the accesses to [from, to): it was unmapped, or freed and is given out again by an
// allocator that orders nothing.
func (d *Detector) Forget(from, to uint64) { C.races_forget(d.c, C.uint64_t(from), C.uint64_t(to)) }

// reportFound reports the races of the last access.
func (d *Detector) reportFound() {
	if d.c.nfound == 0 {
		return
	}
	for _, f := range unsafe.Slice(d.c.found, d.c.nfound) {
		if d.inEndedProcess(&f.before, &f.now) {
			continue
		}
		r := &d.race
		r.Addr, r.Kind, r.First, r.Second = uint64(f.addr), Kind(f.kind), toInstance(&f.before), toInstance(&f.now)
		r.Sides = [2]Side{toSide(&f.before), toSide(&f.now)}
		r.Benign = isSilent(&f.now) || r.Kind == WriteRead && isSilent(&f.before)
		d.report(r)
	}
	d.c.nfound = 0
}

func isSilent(m *C.struct_races_description) bool { return m.what&C.FLAG_SILENT != 0 }

func threadOf(m *C.struct_races_description) int { return int(m.when & C.THREAD_MASK) }

func toInstance(m *C.struct_races_description) Instance {
	return Instance{
		PC: arch.Addr(m.what & C.PC_MASK), Thread: threadOf(m), Syncs: uint64(m.order >> 32), Branches: uint64(m.calls >> 32),
		Part: uint8(m.what >> C.PART_SHIFT & (MaxParts - 1)), Parts: uint8(m.what >> C.PARTS_SHIFT), At: uint64(m.when >> C.THREAD_BITS),
	}
}

func toSide(m *C.struct_races_description) Side {
	return Side{
		Size: int(m.what >> C.SIZE_SHIFT & C.SIZE_MASK), Atomic: m.what&C.FLAG_ATOMIC != 0, Other: m.what&C.FLAG_OTHER != 0,
		Stack: uint32(m.calls),
	}
}
