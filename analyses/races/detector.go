package races

import (
	"slices"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Access is a load or a store.
type Access struct {
	// Thread is the thread's number: threads are numbered from 0, as they come.
	Thread int
	// Addr is where, and Size how many bytes. Addresses of different processes
	// must differ unless the memory is the same.
	Addr uint64
	Size int
	// Write tells a store; an access that loads and stores is a store.
	Write bool
	// Atomic tells LOCK-prefixed instructions and XCHG: two of them do not race.
	Atomic bool
	PC     event.Addr
	// Branches is how many branches the thread has gone through.
	Branches uint64
	// At is the place in the trace: later accesses have larger numbers.
	At uint64
	// Value is what was read, or is written, and Old what a write replaces, of
	// up to eight bytes; Valued tells that they are known.
	Value, Old uint64
	Valued     bool
}

// Instance is an instruction of a run, as <sid, tid, nbr> names it (PEREGRINE
// section 3.1): static instruction, thread, branches since the thread's last
// synchronization operation, here with the number of that operation.
type Instance struct {
	PC     event.Addr `json:"pc"`
	Thread int        `json:"thread"`
	// Syncs is how many synchronization operations the thread had done.
	Syncs uint64 `json:"syncs"`
	// Branches is how many branches it had gone through since the last.
	Branches uint64 `json:"branches"`
	// At is the place of the access in the trace.
	At uint64 `json:"at"`
}

// Kind tells the two accesses of a race apart.
type Kind uint8

// Kinds of races, by what came first.
const (
	WriteWrite Kind = iota
	WriteRead
	ReadWrite
)

func (k Kind) String() string { return [...]string{"write-write", "write-read", "read-write"}[k] }

// Race is two unordered accesses, in the order in which they happened.
type Race struct {
	Addr          uint64   `json:"addr"`
	Kind          Kind     `json:"kind"`
	First, Second Instance `json:"-"`
	// Benign tells that a write of the two wrote what was there already: both
	// write the same, or what is written does not change what is read. TERN
	// section 7.1 prunes such races.
	Benign bool `json:"benign"`
}

// Detector finds races in one stream.
type Detector struct {
	order    Order
	threads  []*thread
	objects  map[uint64]vector
	position vector // of each thread, the segments that its operations have ended
	shadow   shadow
	report   func(*Race)
	race     Race       // for report, so that it need not be allocated
	reported []Instance // what the access that is being looked at races with
}

// New makes a detector that calls report for each race. The Race is valid only
// during the call.
func New(order Order, report func(*Race)) *Detector {
	return &Detector{order: order, objects: map[uint64]vector{}, shadow: newShadow(), report: report}
}

// Access tells the detector of the next access of the run.
func (d *Detector) Access(a *Access) {
	t := d.threadAt(a.Thread)
	now := mark{
		pc: a.PC, at: a.At, segment: t.segment, thread: uint32(a.Thread), syncs: uint32(t.syncs),
		branches: uint32(a.Branches - t.base), used: true, atomic: a.Atomic,
		silent: a.Valued && a.Write && a.Value == a.Old,
	}
	d.reported = d.reported[:0]
	first, last := a.Addr/wordSize, (a.Addr+uint64(a.Size)-1)/wordSize
	for word := first; word <= last; word++ {
		mask := uint8(0xff)
		if word == first {
			mask &= 0xff << (a.Addr % wordSize)
		}
		if word == last {
			mask &= 0xff >> (wordSize - 1 - (a.Addr+uint64(a.Size)-1)%wordSize)
		}
		d.touch(d.shadow.cell(word), word*wordSize, mask, a.Write, t, &now)
	}
}

// Forget makes [from, to) memory that nobody has accessed: it was unmapped, or
// freed and is given out again by an allocator that orders nothing.
func (d *Detector) Forget(from, to uint64) { d.shadow.forget(from, to) }

// touch looks at the bytes of a word that the mask names.
func (d *Detector) touch(c *cell, addr uint64, mask uint8, write bool, t *thread, now *mark) {
	if c.bytes == nil {
		if c.mask == 0 {
			c.mask = mask
		}
		if c.mask == mask {
			d.check(&c.byteCell, addr, write, t, now)
			return
		}
		c.split()
	}
	for i := range c.bytes {
		if mask>>i&1 != 0 {
			d.check(&c.bytes[i], addr+uint64(i), write, t, now)
		}
	}
}

// check compares an access with those before it of the same bytes, and keeps
// it.
func (d *Detector) check(b *byteCell, addr uint64, write bool, t *thread, now *mark) {
	if !write {
		d.compare(&b.write, addr, WriteRead, t, now)
		b.addRead(now)
		return
	}
	if b.read.used {
		d.compare(&b.read, addr, ReadWrite, t, now)
		for i := range b.reads {
			d.compare(&b.reads[i], addr, ReadWrite, t, now)
		}
	} else {
		d.compare(&b.write, addr, WriteWrite, t, now)
	}
	b.write = *now
	b.read.used = false
	b.reads = b.reads[:0]
}

// compare reports a race if before does not come before.
func (d *Detector) compare(before *mark, addr uint64, kind Kind, t *thread, now *mark) {
	if !before.used || before.thread == now.thread || before.segment <= t.ended.get(int(before.thread)) {
		return
	}
	if before.atomic && now.atomic {
		return
	}
	first := before.instance()
	if slices.Contains(d.reported, first) {
		return // the same two instructions, at another byte
	}
	d.reported = append(d.reported, first)
	r := &d.race
	r.Addr, r.Kind, r.First, r.Second = addr, kind, first, now.instance()
	r.Benign = now.silent || kind == WriteRead && before.silent
	d.report(r)
}
