package races

/*
#include "follow.h"

#cgo noescape races_follow
#cgo nocallback races_follow
#cgo noescape races_space_page
#cgo nocallback races_space_page
#cgo noescape races_space_numbers
#cgo nocallback races_space_numbers
*/
import "C"

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// Follower finds races in a run's memory log. It knows what a Detector does not: where addresses
// lead, which calls a thread is in, and the content of memory. Its owner calls Close.
//
// The log has the accesses of one thread at a time (Turn). Memory that a thread uses is in its Space.
type Follower struct {
	*Detector
	c       *C.struct_races_follower
	report  func(*Race)
	runners []*Runner
	spaces  []*Space
}

// Runner is a thread of the run.
type Runner struct{ c *C.struct_races_runner }

// Space is the addresses of a process.
type Space struct{ c *C.struct_races_space }

// NewFollower makes a Follower that calls report for each race, with the address that the second
// access has. With values it recognizes benign races.
func NewFollower(order Order, values bool, report func(*Race)) *Follower {
	f := &Follower{report: report}
	f.Detector = New(order, f.passRaceOn)
	if order == HappensBefore {
		f.OmitRepeats()
	}
	f.c = C.races_follower_open(f.Detector.c, C.bool(order == HappensBefore), C.bool(values))
	if f.c == nil {
		panic("bug: no memory to follow a run")
	}
	return f
}

// Close frees the memory of the follower, its detector, and all threads and spaces.
func (f *Follower) Close() {
	for _, r := range f.runners {
		C.races_free_runner(r.c)
	}
	for _, s := range f.spaces {
		C.races_free_space(s.c)
	}
	C.races_follower_close(f.c)
	f.Detector.Close()
}

// SeparateAtomics says, under ScheduleRelative, that atomic instructions do not race with each other.
func (f *Follower) SeparateAtomics() { f.c.atomics = true }

// Atomics are accesses that make synchronization words of what they access. Each value has those of the
// values before it.
type Atomics int

const (
	NoAtomics Atomics = iota
	// AtomicsOfCode are those that Space.SetAtomicCode names.
	AtomicsOfCode
	// AllAtomics are those and the ones of all atomic instructions.
	AllAtomics
)

// OrderByWords says, under HappensBefore, that the bytes that some accesses have touched are
// synchronization from then on: a load of them acquires, a store releases, and they do not race.
func (f *Follower) OrderByWords(a Atomics) { f.c.words = uint32(a) }

// Code is instructions from Start on, without End. All of its accesses are meant, or, if Locking is set, those of atomic
// instructions (with LOCK, and XCHG).
type Code struct {
	Start, End uint64
	Locking    bool
}

// SetAtomicCode says, for OrderByWords, which accesses of a process are atomic ones: all of code with atomic loads
// and stores that are plain ones in machine code, and those of atomic instructions in other code.
func (s *Space) SetAtomicCode(list []Code) {
	setCode(&s.c.atomic, list, false)
	setCode(&s.c.locking, list, true)
}

func setCode(to *C.struct_races_code_list, list []Code, locking bool) {
	var code []C.struct_races_code
	for _, c := range joinCode(slices.DeleteFunc(slices.Clone(list), func(c Code) bool { return c.Locking != locking })) {
		code = append(code, C.struct_races_code{C.uint64_t(c.Start), C.uint64_t(c.End)})
	}
	C.races_set_code(to, unsafe.SliceData(code), C.size_t(len(code)))
}

// joinCode lists the same code by address and without overlaps.
func joinCode(list []Code) (joined []Code) {
	for _, c := range slices.SortedFunc(slices.Values(list), func(a, b Code) int { return cmp.Compare(a.Start, b.Start) }) {
		if n := len(joined); n > 0 && c.Start <= joined[n-1].End {
			joined[n-1].End = max(joined[n-1].End, c.End)
			continue
		}
		joined = append(joined, c)
	}
	return joined
}

// Accesses counts the accesses that the detector got, and Skipped the others.
func (f *Follower) Accesses() uint64 { return uint64(f.c.number) }

// Skipped is described at Accesses.
func (f *Follower) Skipped() uint64 { return uint64(f.c.skipped) }

// NewSpace makes the addresses of a new process.
func (f *Follower) NewSpace() *Space {
	s := &Space{C.races_new_space(C.uint64_t(len(f.spaces)))}
	f.spaces = append(f.spaces, s)
	return s
}

// NewRunner makes a thread by its number.
func (f *Follower) NewRunner(number int, s *Space) *Runner {
	r := &Runner{C.races_new_runner(C.uint32_t(number), s.c)}
	f.runners = append(f.runners, r)
	return r
}

// Turn says whose accesses come next, if any thread's, and after how many branches.
func (f *Follower) Turn(r *Runner, branches uint64) {
	f.c.runner, f.c.branches = nil, C.uint64_t(branches)
	if r != nil {
		f.c.runner = r.c
	}
}

// Follow takes a part of the log, which begins after so many branches of the thread, when the
// engine's count was counted. Bytes has the bytes of entries. First is called before a thread's first
// access is passed on, with the address. The result is false if an access is no thread's.
func (f *Follower) Follow(entries []memlog.Entry, bytes []byte, branches, counted uint64, first func(addr uint64)) bool {
	f.c.start, f.c.counted = C.uint64_t(branches), C.uint32_t(counted)
	f.reportFound()
	for len(entries) > 0 {
		var stop C.uint32_t
		n := C.races_follow(f.c, (*C.struct_heddle_mem_entry)(unsafe.Pointer(unsafe.SliceData(entries))), C.size_t(len(entries)),
			(*C.uint8_t)(unsafe.SliceData(bytes)), &stop)
		entries = entries[n:]
		switch stop {
		case C.RACES_FOUND:
			f.reportFound()
		case C.RACES_FIRST:
			r, addr := f.c.runner, entries[0].Addr
			r.begun, r.low, r.high = true, C.uint64_t(addr), C.uint64_t(addr)
			first(uint64(addr))
		case C.RACES_STRAY:
			return false
		}
	}
	return true
}

// BeginRun returns what takes the log of the thread whose turn it is while the engine runs it, from so
// many branches of the thread on, when the engine's count was counted; nil: nothing can. Follow is to be
// called after the run: it reports a race, and takes what was not taken.
func (f *Follower) BeginRun(branches, counted uint64) memlog.Consumer {
	if f.c.runner == nil {
		return nil
	}
	f.c.start, f.c.counted = C.uint64_t(branches), C.uint32_t(counted)
	return memlog.Consumer(unsafe.Pointer(C.races_begin_run(f.c)))
}

// Send passes an access, which is at an address for the thread, to the detector.
func (f *Follower) Send(a *Access, addr uint64) {
	f.c.access = a.inC()
	C.races_send(f.c, C.uint64_t(addr))
	f.reportFound()
}

// Number is the number that the next access gets: Access.At.
func (f *Follower) Number() uint64 { return uint64(f.c.number) }

// passRaceOn passes a race on, with the address that the second access has.
func (f *Follower) passRaceOn(r *Race) {
	a := &f.c.access
	rest := uint64(a.rest)
	if a.first > 0 && r.Addr/pageBytes == rest/pageBytes {
		r.Addr = r.Addr - rest + uint64(f.c.addr) + uint64(a.first)
	} else {
		r.Addr = r.Addr - uint64(a.addr) + uint64(f.c.addr)
	}
	f.report(r)
}

const pageBytes = C.PAGE_BYTES

// CallsOf are the instructions that called, the innermost first, of a stack.
func (f *Follower) CallsOf(stack uint32) []arch.Addr {
	var list []arch.Addr
	nodes := unsafe.Slice(f.c.nodes, f.c.nnodes)
	for ; stack != 0; stack = uint32(nodes[stack].parent) {
		list = append(list, arch.Addr(nodes[stack].pc))
	}
	return list
}

// Ignore says whether the thread's accesses belong to an operation or an allocator.
func (r *Runner) Ignore(ignore bool) { r.c.ignores = C.bool(ignore) }

// Ignores reports what Ignore said last.
func (r *Runner) Ignores() bool { return bool(r.c.ignores) }

// EndCalls says that the thread is in no calls any more.
func (r *Runner) EndCalls() { C.races_end_calls(r.c) }

// Stack is the stack of the thread's calls.
func (r *Runner) Stack() uint32 { return uint32(r.c.node) }

// Bounds are the bounds of the thread's stack as far as it was used.
func (r *Runner) Bounds() (low, high uint64) { return uint64(r.c.low), uint64(r.c.high) }

// OuterStack is the stack without the call that returns to an address, if that is the innermost.
func (r *Runner) OuterStack(ret uint64) uint32 {
	frames := unsafe.Slice(r.c.frames, r.c.nframes)
	n := len(frames)
	if n == 0 || uint64(frames[n-1].ret) != ret {
		return r.Stack()
	}
	if n == 1 {
		return 0
	}
	return uint32(frames[n-2].node)
}

// PageAt is the page to which a page of addresses was last seen to lead.
func (s *Space) PageAt(number uint64) (page uint64, known bool) {
	var c C.uint64_t
	known = bool(C.races_space_page(s.c, C.uint64_t(number), &c))
	return uint64(c), known
}

// DropPages forgets where pages [from, to) lead.
func (f *Follower) DropPages(s *Space, from, to uint64) {
	C.races_drop_pages(f.c, s.c, C.uint64_t(from), C.uint64_t(to))
}

// Numbers lists the pages of addresses in [first, last] that lead somewhere, in order.
func (s *Space) Numbers(first, last uint64) []uint64 {
	var list []uint64
	if last-first < uint64(s.c.pages.n) {
		for number := first; ; number++ {
			if _, known := s.PageAt(number); known {
				list = append(list, number)
			}
			if number == last {
				return list
			}
		}
	}
	n := C.races_space_numbers(s.c, C.uint64_t(first), C.uint64_t(last), nil)
	if n == 0 {
		return nil
	}
	list = make([]uint64, n)
	C.races_space_numbers(s.c, C.uint64_t(first), C.uint64_t(last), (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(list))))
	slices.Sort(list)
	return list
}
