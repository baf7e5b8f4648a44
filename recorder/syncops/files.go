package syncops

import (
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"

	"github.com/heddle-dmt/heddle/guest/loader"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// file is what is known of an ELF file. It never changes, so snapshots share
// it.
type file struct {
	names *loader.Names
	found []place
	// library tells that the file defines the functions that it is recognised
	// by as a C library does.
	library bool
}

// place is a recognised function in a file.
type place struct {
	addr     uint64 // without bias
	indirect bool
	function *function
}

// SharedInSnapshot marks that copies of the machine's state share the file.
func (*file) SharedInSnapshot() {}

// SharedInSnapshot marks that functions never change.
func (*function) SharedInSnapshot() {}

// OpenFunc opens a file of the guest by its path, to look for symbols.
type OpenFunc func(path string) (io.ReadSeekCloser, error)

// mapped reads a mapped file as io.ReaderAt.
type mapped struct{ object *mm.Object }

func (m mapped) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("offset %d", off)
	}
	n, errno := m.object.ReadAt(p, off)
	switch {
	case errno != 0:
		return n, errno
	case n < len(p):
		return n, io.EOF
	}
	return n, nil
}

// readFile finds out what a mapped file defines; nil if it is no ELF file.
func (r *Recognizer) readFile(object *mm.Object, name string) *file {
	custom := r.fixed.customNames
	want := func(symbol []byte) bool {
		if _, ok := custom[string(symbol)]; ok {
			return true
		}
		if _, ok := r.fixed.heap[string(symbol)]; ok {
			return true
		}
		_, ok := lookup(string(symbol))
		return ok
	}
	names, err := loader.ReadNames(mapped{object}, want)
	if err != nil {
		return nil
	}
	f := &file{names: names}
	functions := names.Functions
	if !names.Complete && (len(functions) == 0 || len(custom) > 0) {
		functions = append(functions, r.debugNames(names, name, want)...)
	}
	for _, n := range functions {
		f.add(n, r.fixed.function(n.Name, name))
	}
	for _, c := range r.fixed.custom {
		if c.Address != 0 && matches(c.File, name) {
			f.add(loader.Name{Name: c.Name, Addr: uint64(c.Address)}, c.function())
		}
	}
	return f
}

// add notes a recognised function. Of several names for one address the first
// kind of operation is taken: aliases mean the same.
func (f *file) add(n loader.Name, fn *function) {
	if fn == nil {
		return
	}
	if fn.kind == operation && strings.HasPrefix(fn.name, "pthread_mutex_") {
		f.library = true
	}
	for i := range f.found {
		if p := &f.found[i]; p.addr == n.Addr {
			p.function = preferred(p.function, fn)
			return
		}
	}
	f.found = append(f.found, place{n.Addr, n.Indirect, fn})
}

// preferred chooses between two functions at one address: the one whose
// operation has the lower number. In glibc pthread_spin_init and
// pthread_spin_unlock are one function; only its calls tell which.
func preferred(a, b *function) *function {
	if a.isSpinClear() && b.isSpinClear() && a.op != b.op {
		both := releases(event.OpSpinUnlock)
		both.name, both.kind = "pthread_spin_unlock", spinClear
		return &both
	}
	if b.kind == operation && b.op < a.op && a.kind == operation {
		return b
	}
	return a
}

func (f *function) isSpinClear() bool {
	return f.op == event.OpSpinUnlock || f.op == event.OpSpinInit
}

// debugNames reads the names from the file that was split off by
// objcopy --only-keep-debug, where gdb would look for it.
func (r *Recognizer) debugNames(n *loader.Names, name string, want func([]byte) bool) []loader.Name {
	for _, at := range debugFiles(n, name) {
		if found, ok := r.readDebug(n, at, want); ok {
			return found
		}
	}
	return nil
}

// debugRoot is where distributions put symbols.
const debugRoot = "/usr/lib/debug"

func debugFiles(n *loader.Names, name string) (list []string) {
	if len(n.BuildID) > 1 {
		id := hex.EncodeToString(n.BuildID)
		list = append(list, path.Join(debugRoot, ".build-id", id[:2], id[2:]+".debug"))
	}
	if n.DebugLink != "" && !strings.Contains(n.DebugLink, "/") {
		dir := path.Dir(name)
		list = append(list, path.Join(dir, n.DebugLink), path.Join(dir, ".debug", n.DebugLink),
			path.Join(debugRoot, dir, n.DebugLink))
	}
	return list
}

// readDebug reads a file of symbols if it belongs to n: it has n's build ID or
// the checksum that n asks for.
func (r *Recognizer) readDebug(n *loader.Names, at string, want func([]byte) bool) ([]loader.Name, bool) {
	if r.host.open == nil {
		return nil, false
	}
	h, err := r.host.open(at)
	if err != nil {
		return nil, false
	}
	defer h.Close()
	d, err := loader.ReadNames(seeking{h}, want)
	if err != nil || !d.Complete {
		return nil, false
	}
	if len(n.BuildID) > 0 && string(n.BuildID) == string(d.BuildID) {
		return d.Functions, true
	}
	sum := crc32.NewIEEE()
	if _, err := h.Seek(0, io.SeekStart); err != nil {
		return nil, false
	}
	if _, err := io.Copy(sum, h); err != nil || n.DebugLink == "" || sum.Sum32() != n.DebugCRC {
		return nil, false
	}
	return d.Functions, true
}

// seeking is a ReaderAt for one user at a time.
type seeking struct{ io.ReadSeeker }

func (s seeking) ReadAt(p []byte, off int64) (int, error) {
	if _, err := s.Seek(off, io.SeekStart); err != nil {
		return 0, err
	}
	return io.ReadFull(s, p)
}
