package syncops

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// space is the knowledge about an address space: the files in it, where their
// recognised functions are.
type space struct {
	as    *mm.AddressSpace
	label string // for the names of objects: the thread that began it
	users int    // threads

	images   []*image // by address
	entries  *entryTable
	wrappers []arch.Addr // functions syscall
	dynamic  []bound     // found through calls: IFUNCs, once routines
	keys     map[uint32]*tsdKey
	handles  map[uint64]handle
	dying    int       // threads that run destructors
	tops     []*thread // threads by stack top
	symbols  bool      // some function was recognised, now or before
}

// image is a mapped ELF file.
type image struct {
	object     *mm.Object
	file       *file
	path       string
	label      string // short name, unique in the space
	bias       uint64
	start, end arch.Addr
}

// entryTable has the function or event that is recognised at each address. It never changes, so
// that snapshots share it: it is the largest part of a space.
type entryTable struct{ functions map[arch.Addr]*function }

// SharedInSnapshot marks that copies of the machine's state share the table.
func (*entryTable) SharedInSnapshot() {}

// with returns the table with one more entry.
func (e *entryTable) with(addr arch.Addr, f *function) *entryTable {
	n := &entryTable{maps.Clone(e.functions)}
	n.functions[addr] = f
	return n
}

// bound is an entry that the program's own calls have shown.
type bound struct {
	addr     arch.Addr
	function *function
	image    *image
}

func newSpace(as *mm.AddressSpace, label string) *space {
	return &space{
		as: as, label: label, entries: &entryTable{map[arch.Addr]*function{}}, keys: map[uint32]*tsdKey{}, handles: map[uint64]handle{},
	}
}

// forkSpace is the space of a child that has a copy of the memory: the same files at
// the same places, and objects with identities of their own.
func (s *space) forkSpace(as *mm.AddressSpace, label string) *space {
	n := newSpace(as, label)
	n.symbols = s.symbols
	n.images = slices.Clone(s.images)
	n.entries = s.entries
	n.dynamic = slices.Clone(s.dynamic)
	n.handles = maps.Clone(s.handles)
	n.wrappers = slices.Clone(s.wrappers)
	for number, k := range s.keys {
		copied := *k
		n.keys[number] = &copied
	}
	return n
}

// imageAt finds the file that an address belongs to, its data included.
func (s *space) imageAt(addr arch.Addr) *image {
	i := sort.Search(len(s.images), func(i int) bool { return s.images[i].start > addr })
	if i == 0 || addr >= s.images[i-1].end {
		return nil
	}
	return s.images[i-1]
}

// overlapsFile reports whether a range touches a file that is known.
func (s *space) overlapsFile(start, length uint64) bool {
	return slices.ContainsFunc(s.images, func(i *image) bool {
		return uint64(i.start) < start+length && start < uint64(i.end)
	})
}

// executable lists the mappings that hold code of files, one for each file and
// bias.
func (r *Recognizer) executable(s *space) (list []*image) {
	for _, v := range s.as.VMAs() {
		if v.Prot&unix.PROT_EXEC == 0 || v.File == nil || v.Object == nil {
			continue
		}
		name, _, _ := v.File.MapName()
		f := r.fileOf(v.Object, name)
		if f == nil {
			continue
		}
		addr, ok := f.layout.Address(v.Offset)
		if !ok {
			continue
		}
		bias := uint64(v.Start) - addr
		if slices.ContainsFunc(list, func(i *image) bool { return i.object == v.Object && i.bias == bias }) {
			continue
		}
		start, end := f.layout.Extent()
		list = append(list, &image{
			object: v.Object, file: f, path: name, bias: bias,
			start: arch.Addr(start + bias), end: arch.Addr(end + bias),
		})
	}
	slices.SortFunc(list, func(a, b *image) int { return cmp.Compare(a.start, b.start) })
	return list
}

// fileOf reads a file once.
func (r *Recognizer) fileOf(o *mm.Object, name string) *file {
	f, ok := r.files[o]
	if !ok {
		f = r.readFile(o, name)
		r.files[o] = f
	}
	return f
}

// rescanSpace brings the files and entries of a space up to date with its mappings.
func (r *Recognizer) rescanSpace(s *space) {
	now := r.executable(s)
	same := slices.EqualFunc(now, s.images, func(a, b *image) bool { return a.object == b.object && a.bias == b.bias })
	if same {
		return
	}
	for i, n := range now {
		at := slices.IndexFunc(s.images, func(o *image) bool { return o.object == n.object && o.bias == n.bias })
		if at >= 0 {
			now[i] = s.images[at]
		}
	}
	gone := slices.DeleteFunc(s.images, func(i *image) bool { return slices.Contains(now, i) })
	s.images = now
	for _, i := range gone {
		r.forgetRange(s, i.start, i.end)
		r.forgetReturns(i.start, i.end)
	}
	s.nameImages()
	s.fillEntries()
	r.forgetUnmapped()
	r.stale = true
}

// forgetUnmapped forgets the files that are mapped nowhere any more.
func (r *Recognizer) forgetUnmapped() {
	maps.DeleteFunc(r.files, func(o *mm.Object, _ *file) bool {
		for _, s := range r.spaces {
			if slices.ContainsFunc(s.images, func(i *image) bool { return i.object == o }) {
				return false
			}
		}
		return true
	})
}

// nameImages gives each file the last component of its path as a label, or all
// of it if another file has the same.
func (s *space) nameImages() {
	for _, i := range s.images {
		if i.label != "" {
			continue
		}
		i.label = path.Base(i.path)
		if slices.ContainsFunc(s.images, func(o *image) bool { return o != i && o.label == i.label }) {
			i.label = fmt.Sprintf("%s@%s", i.path, i.label)
		}
	}
}

// fillEntries makes the table of recognised addresses.
func (s *space) fillEntries() {
	functions := map[arch.Addr]*function{}
	s.wrappers = nil
	for _, i := range s.images {
		for _, p := range i.file.found {
			f := p.function
			if p.indirect {
				f = &function{name: p.function.name, kind: resolver, target: p.function}
			}
			s.symbols = s.symbols || p.function.kind == operation
			if addr := arch.Addr(p.addr + i.bias); p.function.kind == wrapper {
				s.wrappers = append(s.wrappers, addr)
			} else {
				functions[addr] = f
			}
		}
	}
	s.dynamic = slices.DeleteFunc(s.dynamic, func(b bound) bool { return s.imageAt(b.addr) != b.image })
	for _, b := range s.dynamic {
		functions[b.addr] = b.function
	}
	s.entries = &entryTable{functions}
}

// bindEntry adds an entry that a call has shown. An entry that is there already
// stays.
func (r *Recognizer) bindEntry(s *space, addr arch.Addr, f *function) {
	if s.entries.functions[addr] != nil || addr == 0 {
		return
	}
	s.dynamic = append(s.dynamic, bound{addr, f, s.imageAt(addr)})
	s.entries = s.entries.with(addr, f)
	r.stale = true
}

// forgetRange drops the objects in a range that was unmapped.
func (r *Recognizer) forgetRange(s *space, start, end arch.Addr) {
	maps.DeleteFunc(r.objects, func(l location, _ *object) bool {
		return l.space == s && uint64(start) <= l.offset && l.offset < uint64(end)
	})
}

// isLibraryCall reports whether a call comes from within the C library that the function
// is in, or from the dynamic linker: not from the program or other libraries.
func (s *space) isLibraryCall(ret arch.Addr, library *image) bool {
	i := s.imageAt(ret)
	return library != nil && library.file.library && s.ofLibrary(i) && (i == library || i.isLinker())
}

// ofLibrary reports whether i is the C library or the dynamic linker, as a file
// of its own.
func (s *space) ofLibrary(i *image) bool {
	return i != nil && i != s.imageAt(s.as.Layout.StartCode) && (i.file.library || i.isLinker())
}

func (i *image) isLinker() bool { return strings.HasPrefix(i.label, "ld-") }
