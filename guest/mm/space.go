package mm

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// Addresses of the default layout: those of Linux without randomisation.
const (
	// TaskSize is the end of the addresses that can be mapped.
	TaskSize arch.Addr = arch.UserEnd - arch.PageSize
	// DefaultMmapBase is the address below which mappings are placed: 128 MiB, the
	// smallest space for the stack, below the top.
	DefaultMmapBase = TaskSize - 128<<20
	// MinAddr is the lowest address that can be mapped (vm.mmap_min_addr).
	MinAddr arch.Addr = 65536

	legacyBase arch.Addr = 0x2aaaaaaaa000 // where bottom-up placement begins: a third of TaskSize
)

// MaxMappings is the number of mappings that an address space may have
// (vm.max_map_count).
const MaxMappings = 65530

// Unlimited is the value of a resource limit that does not limit (RLIM_INFINITY).
const Unlimited = ^uint64(0)

// Limits are the resource limits that concern memory, in bytes.
type Limits struct {
	AddressSpace uint64 // RLIMIT_AS
	Data         uint64 // RLIMIT_DATA
	Stack        uint64 // RLIMIT_STACK
	MemLock      uint64 // RLIMIT_MEMLOCK
	MayLock      bool   // CAP_IPC_LOCK: MemLock does not apply
}

// DefaultLimits returns the limits that a process has on Debian, with 8 MiB of stack.
func DefaultLimits() Limits {
	return Limits{AddressSpace: Unlimited, Data: Unlimited, Stack: 8 << 20, MemLock: 8 << 20}
}

// Layout is the addresses of the parts of a program; the loader sets it.
type Layout struct {
	MmapBase             arch.Addr // mappings are placed below
	BottomUp             bool      // mappings are placed upwards from a third of the address space instead
	StartCode, EndCode   arch.Addr
	StartData, EndData   arch.Addr
	StartBrk             arch.Addr // start of the heap
	StartStack           arch.Addr // stack pointer at the program's start
	ArgStart, ArgEnd     arch.Addr // argument strings
	EnvStart, EnvEnd     arch.Addr // environment strings
	Auxv                 []byte    // as /proc/PID/auxv shows it
	ExecutableStackFlags int       // rights of the main stack
}

// AddressSpace is the memory of one or more processes.
type AddressSpace struct {
	// Limits may be changed at any time.
	Limits Limits
	// Layout is set by the loader and read by /proc.
	Layout Layout
	// Reclaimer is asked for memory when none is left. Nil: there is no reclaimer.
	Reclaimer Reclaimer

	ram        *mem.RAM
	space      *mem.Space
	vmas       mappingList
	brk        arch.Addr
	users      int
	lockFuture Flags // Locked and LockOnFault for future mappings (mlockall)

	// In pages.
	total, data, stack, exec, locked uint64
	peak                             uint64 // of total

	// writableShared reports that entries of shared mappings may allow writing.
	writableShared bool
	starved        bool
	refused        bool // see TakeRefused
}

// New makes an empty address space with one user.
func New(ram *mem.RAM, limits Limits) *AddressSpace {
	return &AddressSpace{
		Limits: limits,
		Layout: Layout{MmapBase: DefaultMmapBase},
		ram:    ram,
		space:  mem.NewSpace(ram),
		users:  1,
	}
}

// Space returns the page tables, for the engine to run on.
func (as *AddressSpace) Space() *mem.Space { return as.space }

// RAM returns the physical memory of the address space.
func (as *AddressSpace) RAM() *mem.RAM { return as.ram }

// Ref adds a user: a process that shares the address space.
func (as *AddressSpace) Ref() { as.users++ }

// Users is the number of users.
func (as *AddressSpace) Users() int { return as.users }

// Unref removes a user, and with the last one all mappings.
func (as *AddressSpace) Unref() {
	if as.users--; as.users > 0 {
		return
	}
	gone := as.VMAs()
	as.vmas = mappingList{}
	as.space.Release()
	for i := range gone {
		as.release(&gone[i])
	}
}

// Release frees everything that Go's garbage collector does not, without notifying
// files: the address space is part of a snapshot that is discarded. It may be called
// again, to no effect; no other method may.
func (as *AddressSpace) Release() {
	for p := (position{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		if o := as.vmas.at(p).Object; o != nil {
			o.removeMapping(as)
		}
	}
	as.vmas = mappingList{}
	as.space.Release()
}

// Find returns the mapping that holds va.
func (as *AddressSpace) Find(va arch.Addr) (v VMA, ok bool) {
	if v := as.findPointer(va); v != nil {
		return *v, true
	}
	return VMA{}, false
}

// findPointer is Find without the copy; the result is valid until the list changes.
func (as *AddressSpace) findPointer(va arch.Addr) *VMA {
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

// add adds a mapping to a free range, with a reference to its object.
func (as *AddressSpace) add(v VMA) {
	if v.Object != nil {
		v.Object.addMapping(as)
	}
	as.account(&v, 1)
	as.vmas.insert(v)
	if v.File != nil {
		v.File.NoteMapping()
	}
}

// release drops the references of a mapping that was removed from the list.
func (as *AddressSpace) release(v *VMA) {
	if v.Object != nil {
		v.Object.removeMapping(as)
	}
	if v.File != nil {
		v.File.NoteUnmapping()
	}
}

// removeAt removes the mapping at p and returns it; the caller must drop the reference
// to its object (release).
func (as *AddressSpace) removeAt(p position) VMA {
	v := *as.vmas.at(p)
	as.account(&v, -1)
	as.vmas.remove(p)
	return v
}

// account adds the pages of v to the counts, or subtracts them.
func (as *AddressSpace) account(v *VMA, sign int64) {
	n := uint64(sign) * v.pageCount()
	as.total += n
	if v.isData() {
		as.data += n
	}
	if v.hasFlags(Stack) {
		as.stack += n
	}
	if v.isExecutable() {
		as.exec += n
	}
	if v.hasFlags(Locked) {
		as.locked += n
	}
	as.peak = max(as.peak, as.total)
}

// updateAt changes the mapping at p by f, which must keep the order of mappings.
func (as *AddressSpace) updateAt(p position, f func(*VMA)) {
	v := as.vmas.at(p)
	as.account(v, -1)
	f(v)
	as.account(v, 1)
	as.vmas.updateChunk(p.c)
}

// splitAt makes va a border between mappings if it lies within one.
func (as *AddressSpace) splitAt(va arch.Addr) {
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
	as.updateAt(p, func(v *VMA) { v.End = va })
	as.add(upper)
}

// mergeAt merges the mappings on both sides of va if they can be merged.
func (as *AddressSpace) mergeAt(va arch.Addr) {
	p := as.vmas.find(va)
	v := as.vmas.at(p)
	q, ok := as.vmas.prev(p)
	if v == nil || !ok || v.Start != va || !as.vmas.at(q).canMerge(v) {
		return
	}
	upper := as.removeAt(p)
	as.updateAt(q, func(v *VMA) { v.End = upper.End })
	as.release(&upper)
}

// countSplits is the number of mappings that borders at start and end add.
func (as *AddressSpace) countSplits(start, end arch.Addr) int {
	n := 0
	for _, va := range [...]arch.Addr{start, end} {
		if v := as.findPointer(va); v != nil && v.Start < va {
			n++
		}
	}
	return n
}

// changeRange applies f to the mappings of [start, end), which are split at the borders and
// merged afterwards. ENOMEM: there would be too many mappings.
func (as *AddressSpace) changeRange(start, end arch.Addr, f func(*VMA)) unix.Errno {
	if as.vmas.count+as.countSplits(start, end) > MaxMappings {
		return unix.ENOMEM
	}
	as.splitAt(start)
	as.splitAt(end)
	for p := as.vmas.find(start); ; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		if v == nil || v.Start >= end {
			break
		}
		as.updateAt(p, f)
	}
	as.mergeBetween(start, end)
	return 0
}

// mergeBetween merges at all borders in [start, end].
func (as *AddressSpace) mergeBetween(start, end arch.Addr) {
	as.mergeAt(start)
	for at := start; at < end; {
		v := as.vmas.at(as.vmas.find(at))
		if v == nil || v.End > end {
			return
		}
		at = v.End
		as.mergeAt(at)
	}
}

// mayExpand reports whether v may be added within the limits.
func (as *AddressSpace) mayExpand(v *VMA, pages uint64) bool {
	if as.total+pages > as.Limits.AddressSpace/arch.PageSize {
		return false
	}
	return !v.isData() || as.data+pages <= as.Limits.Data/arch.PageSize
}

// CommitLimit is the largest request in bytes that is granted if guest memory is not
// larger.
const CommitLimit = 64 << 30

// mayCommit is Linux's heuristic overcommit on a machine with that much memory and swap
// space: a request that could never be satisfied is refused; whether there is enough
// shows when the memory is used.
func (as *AddressSpace) mayCommit(pages uint64) bool {
	may := pages <= max(as.ram.Limit(), CommitLimit/arch.PageSize)
	as.refused = as.refused || !may
	return may
}

// TakeRefused reports whether a request was refused by mayCommit since the last call.
func (as *AddressSpace) TakeRefused() bool {
	was := as.refused
	as.refused = false
	return was
}

// Fork makes the address space of a child process, with one user: private memory is
// copied when one of the two writes it, shared memory stays shared. ENOMEM: guest
// memory is exhausted.
func (as *AddressSpace) Fork() (*AddressSpace, unix.Errno) {
	if as.ram.Full() && !as.reclaimMemory() {
		return nil, unix.ENOMEM
	}
	n := &AddressSpace{
		Limits: as.Limits, Layout: as.Layout, Reclaimer: as.Reclaimer, ram: as.ram, space: as.space.Clone(),
		brk: as.brk, users: 1, writableShared: as.writableShared,
	}
	for _, v := range as.VMAs() {
		if v.hasFlags(DontFork | WipeOnFork) {
			n.space.Unmap(v.Start, v.End)
		}
		if !v.hasFlags(DontFork) {
			v.Flags &^= Locked | LockOnFault
			n.add(v)
			n.protectClean(&v, v.Start, v.End) // the child's own writes are noted
		}
	}
	n.peak = as.peak
	return n, 0
}

// CopyForSnapshot copies the address space; page tables and pages are shared until one
// side changes them. The caller begins a new generation of the RAM
// (mem.RAM.NextGeneration) before either side runs.
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
		n.space = as.space.CloneForSnapshot()
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

// protectShared removes the right to write from all entries of shared mappings: the
// next write of each page faults, and gets a page that is not part of the snapshot.
func (as *AddressSpace) protectShared() {
	if !as.writableShared {
		return
	}
	as.writableShared = false
	for p := (position{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		if v := as.vmas.at(p); v.hasFlags(Shared) {
			as.space.Protect(v.Start, v.End, processorRights(v.Prot)&^arch.Write)
		}
	}
}

// forEachEntry calls f for each entry of a mapping of o whose page is that page of o,
// not a copy that a private mapping has written.
func (as *AddressSpace) forEachEntry(o *Object, index uint64, page mem.Page, f func(va arch.Addr, e mem.PTE)) {
	for p := (position{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		if v.Object != o {
			continue
		}
		if va, ok := v.addressOf(index); ok {
			if e := as.space.Get(va); e.Present() && e.Page() == page {
				f(va, e)
			}
		}
	}
}

// replaceObjectPage replaces old by fresh in all entries for one page of o. The entries
// are not just removed, so that the set of resident pages does not depend on whether
// snapshots are taken.
func (as *AddressSpace) replaceObjectPage(o *Object, index uint64, old, fresh mem.Page) {
	as.forEachEntry(o, index, old, func(va arch.Addr, e mem.PTE) {
		rights := e.Perm()
		if e.Shared() {
			rights &^= arch.Write
		}
		as.ram.Ref(fresh)
		as.space.Set(va, e.With(fresh, rights))
	})
}

// dropObjectPage removes all entries for one page of o.
func (as *AddressSpace) dropObjectPage(o *Object, index uint64, page mem.Page) {
	as.forEachEntry(o, index, page, func(va arch.Addr, _ mem.PTE) { as.space.Unmap(va, va+arch.PageSize) })
}

// dropObjectFrom removes the entries for the pages of o from first on, copies
// in private mappings included: the object was cut there.
func (as *AddressSpace) dropObjectFrom(o *Object, first uint64) {
	for p := (position{}); as.vmas.at(p) != nil; p = as.vmas.next(p) {
		v := as.vmas.at(p)
		if v.Object != o {
			continue
		}
		skip := uint64(0)
		if begin := v.Offset / arch.PageSize; first > begin {
			skip = first - begin
		}
		if skip < v.pageCount() {
			as.space.Unmap(v.Start+arch.Addr(skip*arch.PageSize), v.End)
		}
	}
}
