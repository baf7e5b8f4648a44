package mm

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Addresses of the default layout: those of Linux without randomisation.
const (
	// TaskSize is the end of the addresses that can be mapped.
	TaskSize event.Addr = emu.UserEnd - emu.PageSize
	// DefaultMmapBase is the address below which mappings are placed: 128 MiB,
	// the least room for the stack, below the top.
	DefaultMmapBase = TaskSize - 128<<20
	// MinAddr is the lowest address that can be mapped (vm.mmap_min_addr).
	MinAddr event.Addr = 65536

	legacyBase event.Addr = 0x2aaaaaaaa000 // where bottom-up placement begins: a third of TaskSize
)

// MaxMappings is the number of mappings that an address space may have
// (vm.max_map_count).
const MaxMappings = 65530

// Unlimited is a resource limit that is none.
const Unlimited = ^uint64(0)

// Limits are the resource limits that concern memory, in bytes.
type Limits struct {
	AddressSpace uint64 // RLIMIT_AS
	Data         uint64 // RLIMIT_DATA
	Stack        uint64 // RLIMIT_STACK
	MemLock      uint64 // RLIMIT_MEMLOCK
	MayLock      bool   // CAP_IPC_LOCK: MemLock does not bind
}

// DefaultLimits are those that a process has on Debian, with 8 MiB of stack.
func DefaultLimits() Limits {
	return Limits{AddressSpace: Unlimited, Data: Unlimited, Stack: 8 << 20, MemLock: 8 << 20}
}

// Layout says where the parts of a program lie; the loader sets it.
type Layout struct {
	MmapBase             event.Addr // mappings are placed below
	BottomUp             bool       // mappings are placed upwards from a third of the address space instead
	StartCode, EndCode   event.Addr
	StartData, EndData   event.Addr
	StartBrk             event.Addr // start of the heap
	StartStack           event.Addr // stack pointer at the program's start
	ArgStart, ArgEnd     event.Addr // argument strings
	EnvStart, EnvEnd     event.Addr // environment strings
	Auxv                 []byte     // as /proc/PID/auxv shows it
	ExecutableStackFlags int        // rights of the main stack
}

// AddressSpace is the memory of one or more processes.
type AddressSpace struct {
	// Limits may be changed at any time.
	Limits Limits
	// Layout is for the loader to set and for /proc to read.
	Layout Layout
	// Reclaimer is asked for memory when there is none left. Nil: nobody is.
	Reclaimer Reclaimer

	ram        *emu.RAM
	space      *emu.Space
	vmas       list
	brk        event.Addr
	users      int
	lockFuture Flags // Locked and LockOnFault for mappings to come (mlockall)

	// In pages.
	total, data, stack, exec, locked uint64
	peak                             uint64 // of total

	// writableShared tells that entries of shared mappings may allow writing.
	writableShared bool
	starved        bool
	refused        bool // see TakeRefused
}

// New makes an empty address space with one user.
func New(ram *emu.RAM, limits Limits) *AddressSpace {
	return &AddressSpace{
		Limits: limits,
		Layout: Layout{MmapBase: DefaultMmapBase},
		ram:    ram,
		space:  emu.NewSpace(ram),
		users:  1,
	}
}

// Space is the page tables, for the engine to run on.
func (as *AddressSpace) Space() *emu.Space { return as.space }

// RAM is the physical memory of the address space.
func (as *AddressSpace) RAM() *emu.RAM { return as.ram }

// Ref adds a user: a process that shares the address space.
func (as *AddressSpace) Ref() { as.users++ }

// Users is the number of users.
func (as *AddressSpace) Users() int { return as.users }

// Unref takes a user away, and everything with the last.
func (as *AddressSpace) Unref() {
	if as.users--; as.users > 0 {
		return
	}
	gone := as.VMAs()
	as.vmas = list{}
	as.space.Release()
	for i := range gone {
		as.drop(&gone[i])
	}
}

// Release gives back everything that is not Go's, without a word to files and the
// like: the address space is part of a snapshot that is thrown away. It may be
// called again, to no effect; nothing else may.
func (as *AddressSpace) Release() {
	for p := (pos{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		if o := as.vmas.at(p).Object; o != nil {
			o.detach(as)
		}
	}
	as.vmas = list{}
	as.space.Release()
}

// Find returns the mapping that holds va.
func (as *AddressSpace) Find(va event.Addr) (v VMA, ok bool) {
	if v := as.lookup(va); v != nil {
		return *v, true
	}
	return VMA{}, false
}

// lookup is Find without the copy; the result is good until the list changes.
func (as *AddressSpace) lookup(va event.Addr) *VMA {
	if v := as.vmas.at(as.vmas.find(va)); v != nil && v.Start <= va {
		return v
	}
	return nil
}

// VMAs lists the mappings by address.
func (as *AddressSpace) VMAs() []VMA {
	all := make([]VMA, 0, as.vmas.count)
	for _, c := range as.vmas.chunks {
		all = append(all, c.v...)
	}
	return all
}

// Count is the number of mappings.
func (as *AddressSpace) Count() int { return as.vmas.count }

// add puts a mapping in place, where nothing may be, with a reference to its
// object.
func (as *AddressSpace) add(v VMA) {
	if v.Object != nil {
		v.Object.attach(as)
	}
	as.count(&v, 1)
	as.vmas.insert(v)
	if v.File != nil {
		v.File.Mapped()
	}
}

// drop gives up what a mapping that was taken out refers to.
func (as *AddressSpace) drop(v *VMA) {
	if v.Object != nil {
		v.Object.detach(as)
	}
	if v.File != nil {
		v.File.Unmapped()
	}
}

// take removes the mapping at p and returns it; the reference to its object is
// the caller's to give back (drop).
func (as *AddressSpace) take(p pos) VMA {
	v := *as.vmas.at(p)
	as.count(&v, -1)
	as.vmas.remove(p)
	return v
}

// count adds the pages of v, or takes them off.
func (as *AddressSpace) count(v *VMA, sign int64) {
	n := uint64(sign) * v.pages()
	as.total += n
	if v.isData() {
		as.data += n
	}
	if v.has(Stack) {
		as.stack += n
	}
	if v.isExec() {
		as.exec += n
	}
	if v.has(Locked) {
		as.locked += n
	}
	as.peak = max(as.peak, as.total)
}

// update changes the mapping at p by f, which keeps its place among the others.
func (as *AddressSpace) update(p pos, f func(*VMA)) {
	v := as.vmas.at(p)
	as.count(v, -1)
	f(v)
	as.count(v, 1)
	as.vmas.changed(p.c)
}

// split makes va a border between mappings if it lies within one.
func (as *AddressSpace) split(va event.Addr) {
	p := as.vmas.find(va)
	v := as.vmas.at(p)
	if v == nil || v.Start >= va {
		return
	}
	upper := *v
	upper.Start = va
	if upper.Object != nil {
		upper.Offset += uint64(va - v.Start)
	}
	as.update(p, func(v *VMA) { v.End = va })
	as.add(upper)
}

// merge joins the mappings on both sides of va if they can be one.
func (as *AddressSpace) merge(va event.Addr) {
	p := as.vmas.find(va)
	v := as.vmas.at(p)
	q, ok := as.vmas.prev(p)
	if v == nil || !ok || v.Start != va || !as.vmas.at(q).merges(v) {
		return
	}
	upper := as.take(p)
	as.update(q, func(v *VMA) { v.End = upper.End })
	as.drop(&upper)
}

// splits is the number of mappings that making borders at start and end adds.
func (as *AddressSpace) splits(start, end event.Addr) int {
	n := 0
	for _, va := range [...]event.Addr{start, end} {
		if v := as.lookup(va); v != nil && v.Start < va {
			n++
		}
	}
	return n
}

// change applies f to the mappings of [start, end), which are split at the
// borders and merged afterwards. ENOMEM: there would be too many.
func (as *AddressSpace) change(start, end event.Addr, f func(*VMA)) unix.Errno {
	if as.vmas.count+as.splits(start, end) > MaxMappings {
		return unix.ENOMEM
	}
	as.split(start)
	as.split(end)
	for p := as.vmas.find(start); ; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		if v == nil || v.Start >= end {
			break
		}
		as.update(p, f)
	}
	as.mergeAll(start, end)
	return 0
}

// mergeAll merges at all borders in [start, end].
func (as *AddressSpace) mergeAll(start, end event.Addr) {
	as.merge(start)
	for at := start; at < end; {
		v := as.vmas.at(as.vmas.find(at))
		if v == nil || v.End > end {
			return
		}
		at = v.End
		as.merge(at)
	}
}

// mayExpand tells whether v may be added within the limits.
func (as *AddressSpace) mayExpand(v *VMA, pages uint64) bool {
	if as.total+pages > as.Limits.AddressSpace/emu.PageSize {
		return false
	}
	return !v.isData() || as.data+pages <= as.Limits.Data/emu.PageSize
}

// Promised is for how much memory a request may be, in bytes, if guest memory is not
// larger.
const Promised = 64 << 30

// mayPromise is Linux's heuristic overcommit on a machine with so much memory and swap
// space: what could never be had is refused, and whether there is enough is seen when
// the memory is used.
func (as *AddressSpace) mayPromise(pages uint64) bool {
	may := pages <= max(as.ram.Limit(), Promised/emu.PageSize)
	as.refused = as.refused || !may
	return may
}

// TakeRefused reports whether a request was too large for any promise since the last
// call.
func (as *AddressSpace) TakeRefused() bool {
	was := as.refused
	as.refused = false
	return was
}

// Fork makes the address space of a child process, with one user: private
// memory is copied when one of the two writes it, shared memory stays shared.
// ENOMEM: guest memory is used up.
func (as *AddressSpace) Fork() (*AddressSpace, unix.Errno) {
	if as.ram.Full() && !as.reclaim() {
		return nil, unix.ENOMEM
	}
	n := &AddressSpace{
		Limits: as.Limits, Layout: as.Layout, Reclaimer: as.Reclaimer, ram: as.ram, space: as.space.Clone(),
		brk: as.brk, users: 1, writableShared: as.writableShared,
	}
	for _, v := range as.VMAs() {
		if v.has(DontFork | WipeOnFork) {
			n.space.Unmap(v.Start, v.End)
		}
		if !v.has(DontFork) {
			v.Flags &^= Locked | LockOnFault
			n.add(v)
			n.clean(&v, v.Start, v.End) // the child's own writes are noted
		}
	}
	n.peak = as.peak
	return n, 0
}

// CopyForSnapshot copies the address space; page tables and pages are shared
// until one side changes them. Whoever takes the snapshot begins a new
// generation of the RAM (emu.RAM.NextGeneration) before either side runs.
func (as *AddressSpace) CopyForSnapshot(c *deepcopy.Copier) any {
	if !c.Foreign() {
		as.protectShared() // a snapshot is protected already
	}
	n := new(AddressSpace)
	c.Made(as, n)
	if as.users == 0 {
		return n // only open files of /proc refer to it still
	}
	*n = *as
	n.ram = deepcopy.Copy(c, as.ram)
	n.Reclaimer = deepcopy.Copy(c, as.Reclaimer)
	n.Layout.Auxv = slices.Clone(as.Layout.Auxv)
	if n.ram == as.ram {
		n.space = as.space.Clone()
	} else {
		n.space = as.space.CloneTo(n.ram)
	}
	n.vmas.chunks = slices.Clone(as.vmas.chunks)
	for i := range n.vmas.chunks {
		v := slices.Clone(as.vmas.chunks[i].v)
		n.vmas.chunks[i].v = v
		for j := range v {
			if v[j].Object != nil {
				v[j].Object = deepcopy.Copy(c, v[j].Object)
				v[j].File = deepcopy.Copy(c, v[j].File)
			}
		}
	}
	return n
}

// protectShared takes the right to write from all entries of shared mappings:
// the next write of each page faults, and gets a page that is not part of the
// snapshot.
func (as *AddressSpace) protectShared() {
	if !as.writableShared {
		return
	}
	as.writableShared = false
	for p := (pos{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		if v := as.vmas.at(p); v.has(Shared) {
			as.space.Protect(v.Start, v.End, perm(v.Prot)&^emu.Write)
		}
	}
}

// eachEntry calls f for each entry of a mapping of o whose page is that page of
// o. Copies that private mappings have written are others.
func (as *AddressSpace) eachEntry(o *Object, index uint64, page emu.Page, f func(va event.Addr, e emu.PTE)) {
	for p := (pos{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		if v.Object != o {
			continue
		}
		if va, ok := v.at(index); ok {
			if e := as.space.Get(va); e.Present() && e.Page() == page {
				f(va, e)
			}
		}
	}
}

// replaceObjectPage puts fresh in place of old in all entries for one page of
// o. The entries are not just removed, so that what is resident does not depend
// on whether snapshots are taken.
func (as *AddressSpace) replaceObjectPage(o *Object, index uint64, old, fresh emu.Page) {
	as.eachEntry(o, index, old, func(va event.Addr, e emu.PTE) {
		rights := e.Perm()
		if e.Shared() {
			rights &^= emu.Write
		}
		as.ram.Ref(fresh)
		as.space.Set(va, e.With(fresh, rights))
	})
}

// dropObjectPage removes all entries for one page of o.
func (as *AddressSpace) dropObjectPage(o *Object, index uint64, page emu.Page) {
	as.eachEntry(o, index, page, func(va event.Addr, _ emu.PTE) { as.space.Unmap(va, va+emu.PageSize) })
}

// dropObjectFrom removes the entries for the pages of o from first on, copies
// in private mappings included: the object was cut there.
func (as *AddressSpace) dropObjectFrom(o *Object, first uint64) {
	for p := (pos{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		if v.Object != o {
			continue
		}
		skip := uint64(0)
		if begin := v.Offset / emu.PageSize; first > begin {
			skip = first - begin
		}
		if skip < v.pages() {
			as.space.Unmap(v.Start+event.Addr(skip*emu.PageSize), v.End)
		}
	}
}
