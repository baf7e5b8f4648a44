package races

import (
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
)

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

// Detector finds races in one stream.
type Detector struct {
	order          Order
	threads        []*thread
	objects        map[uint64]vectorClock
	position       vectorClock // of each thread, the segments that its operations have ended
	shadow         *shadowMemory
	endedProcesses map[int]bool // processes that are
	report         func(*Race)
	race           Race       // for report, so that it need not be allocated
	reported       []Instance // the instructions that the present access races with
}

// New makes a detector that calls report for each race. The Race is valid only
// during the call.
func New(order Order, report func(*Race)) *Detector {
	return &Detector{order: order, objects: map[uint64]vectorClock{}, shadow: newShadow(), endedProcesses: map[int]bool{}, report: report}
}

// Access takes the next access of the run.
func (d *Detector) Access(a *Access) {
	t := d.threadAt(a.Thread)
	now := mark{
		what: uint64(a.PC)&pcMask | uint64(a.Part)<<partShift | uint64(a.Parts)<<partsShift | flagUsed, when: a.At<<threadBits | uint64(a.Thread)&threadMask,
		segment: t.segment, syncs: uint32(t.syncs), branches: uint32(min(a.Branches-t.base, MaxBranches)), stack: a.Stack,
	}
	if a.Size <= sizeMask {
		now.what |= uint64(a.Size) << sizeShift
	}
	if a.Atomic {
		now.what |= flagAtomic
	}
	if a.Other {
		now.what |= flagOther
	}
	if a.Valued && a.Write && a.Value == a.Old {
		now.what |= flagSilent
	}
	d.reported = d.reported[:0]
	if lo, hi := a.Addr%wordSize, a.Addr%wordSize+uint64(a.Size); hi <= wordSize && a.First == 0 && a.Size > 0 {
		word := a.Addr / wordSize
		d.accessWord(d.shadow.pageAt(word/pageWords), word, lo, hi, a.Write, t, &now)
		return
	}
	if a.First == 0 {
		d.accessBytes(a.Addr, a.Addr+uint64(a.Size), a.Write, t, &now)
		return
	}
	d.accessBytes(a.Addr, a.Addr+uint64(a.First), a.Write, t, &now)
	d.accessBytes(a.Rest, a.Rest+uint64(a.Size-a.First), a.Write, t, &now)
}

// accessBytes looks at the bytes [from, to).
func (d *Detector) accessBytes(from, to uint64, write bool, t *thread, now *mark) {
	for from < to {
		word := from / wordSize
		lo, hi := from%wordSize, min(to-word*wordSize, wordSize)
		d.accessWord(d.shadow.pageAt(word/pageWords), word, lo, hi, write, t, now)
		from = word*wordSize + hi
	}
}

// Forget removes the accesses to [from, to): it was unmapped, or freed and is given out again by an
// allocator that orders nothing.
func (d *Detector) Forget(from, to uint64) { d.shadow.forgetRange(from, to) }

// accessWord looks at the bytes [lo, hi) of a word.
func (d *Detector) accessWord(p *page, number, lo, hi uint64, write bool, t *thread, now *mark) {
	word := number % pageWords
	mask := uint8(1<<hi - 1<<lo)
	starts, known := p.starts[word], p.known[word]
	switch {
	case starts&mask == 1<<lo && known&mask == mask && (hi == wordSize || (starts|^known)>>hi&1 != 0):
		d.checkPart(p, number, partNumber(starts, lo), lo, write, t, now)
	case known == 0:
		p.starts[word], p.known[word] = 1<<lo, mask
		if write {
			p.states[word].write = *now
		} else {
			p.states[word].read = *now
		}
	default:
		d.accessParts(p, number, lo, hi, write, t, now)
	}
}

// accessParts is touch where the bytes are not those of one part, or not yet.
func (d *Detector) accessParts(p *page, number, lo, hi uint64, write bool, t *thread, now *mark) {
	word := number % pageWords
	p.divideParts(word, lo, hi)
	for at := lo; at < hi; at++ {
		if starts := p.starts[word]; starts>>at&1 != 0 {
			d.checkPart(p, number, partNumber(starts, at), at, write, t, now)
		}
	}
	if !write {
		return
	}
	// They are the same now.
	for at := hi - 1; at > lo; at-- {
		if p.starts[word]>>at&1 != 0 {
			p.removePart(word, at)
		}
	}
}

// checkPart compares an access with those before it of the same bytes, which are a
// part that begins at byte lo, and keeps it.
func (d *Detector) checkPart(p *page, number uint64, part int, lo uint64, write bool, t *thread, now *mark) {
	word := number % pageWords
	s := p.partState(word, part)
	if !write {
		d.compareMarks(&s.write, number, lo, WriteRead, t, now)
		if !s.read.isUsed() || s.read.threadNumber() == now.threadNumber() {
			s.read = *now
		} else {
			p.addReader(word, part, now)
		}
		return
	}
	if s.read.isUsed() {
		d.compareMarks(&s.read, number, lo, ReadWrite, t, now)
		if list := p.furtherReads(word, part); list != nil {
			for i := range *list {
				d.compareMarks(&(*list)[i], number, lo, ReadWrite, t, now)
			}
			*list = (*list)[:0]
		}
		s.read = mark{}
	} else {
		d.compareMarks(&s.write, number, lo, WriteWrite, t, now)
	}
	s.write = *now
}

// compareMarks reports a race if before does not come before.
func (d *Detector) compareMarks(before *mark, word, lo uint64, kind Kind, t *thread, now *mark) {
	thread := before.threadNumber()
	if !before.isUsed() || thread == now.threadNumber() || before.segment <= t.ended.segmentOf(int(thread)) {
		return
	}
	d.reportUnordered(before, word, lo, kind, now)
}

// reportUnordered reports a race, unless both are atomic.
func (d *Detector) reportUnordered(before *mark, word, lo uint64, kind Kind, now *mark) {
	if before.isAtomic() && now.isAtomic() || d.inEndedProcess(before, now) {
		return
	}
	first := before.toInstance()
	if slices.Contains(d.reported, first) {
		return // the same two instructions, at another byte
	}
	d.reported = append(d.reported, first)
	r := &d.race
	r.Addr, r.Kind, r.First, r.Second = word*wordSize+lo, kind, first, now.toInstance()
	r.Sides = [2]Side{before.toSide(), now.toSide()}
	r.Benign = now.isSilent() || kind == WriteRead && before.isSilent()
	d.report(r)
}
