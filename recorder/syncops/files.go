package syncops

import (
	"fmt"
	"io"
	"strings"

	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// file is the knowledge about an ELF file. It never changes, so snapshots share
// it.
type file struct {
	layout debuginfo.Layout
	found  []place
	// library reports that the file defines the functions by which a C library is
	// recognised.
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

// readFile finds the recognised functions of a mapped file; nil if it is not an ELF
// file.
func (r *Recognizer) readFile(object *mm.Object, name string) *file {
	e, err := debuginfo.ParseELF(mapped{object})
	if err != nil {
		return nil
	}
	symbols := debuginfo.NewFile(e)
	f := &file{layout: symbols.Layout}
	count := r.addSymbols(f, symbols.Symbols(), name)
	if !symbols.HasSymbolTable && (count == 0 || len(r.fixed.customNames) > 0) && r.host.open != nil {
		r.addSymbols(f, symbols.AddSeparateSymbols(name, debuginfo.OpenFunc(r.host.open)), name)
	}
	for _, c := range r.fixed.custom {
		if c.Address != 0 && matchesFile(c.File, name) {
			f.addFunction(uint64(c.Address), false, c.asFunction())
		}
	}
	return f
}

// addSymbols notes the recognised functions among symbols, and returns how many have
// a name that is known.
func (r *Recognizer) addSymbols(f *file, symbols []debuginfo.Symbol, name string) (count int) {
	for i := range symbols {
		s := &symbols[i]
		if s.Kind != debuginfo.Function && s.Kind != debuginfo.Resolver || !r.isKnownName(s.RawName()) {
			continue
		}
		count++
		f.addFunction(s.Addr, s.Kind == debuginfo.Resolver, r.fixed.functionOf(string(s.RawName()), name))
	}
	return count
}

// isKnownName reports whether a function of this name may be a recognised one.
func (r *Recognizer) isKnownName(symbol []byte) bool {
	if _, ok := r.fixed.customNames[string(symbol)]; ok {
		return true
	}
	if _, ok := r.fixed.heap[string(symbol)]; ok {
		return true
	}
	_, ok := lookUpSymbol(string(symbol))
	return ok
}

// addFunction notes a recognised function. Of several names for one address the first
// kind of operation is taken: aliases mean the same.
func (f *file) addFunction(addr uint64, indirect bool, fn *function) {
	if fn == nil {
		return
	}
	if fn.kind == operation && strings.HasPrefix(fn.name, "pthread_mutex_") {
		f.library = true
	}
	for i := range f.found {
		if p := &f.found[i]; p.addr == addr {
			p.function = preferred(p.function, fn)
			return
		}
	}
	f.found = append(f.found, place{addr, indirect, fn})
}

// preferred chooses between two functions at one address: the one whose
// operation has the lower number. In glibc pthread_spin_init and
// pthread_spin_unlock are one function; only its calls distinguish them.
func preferred(a, b *function) *function {
	if a.isSpinClear() && b.isSpinClear() && a.op != b.op {
		both := releasesObject(event.OpSpinUnlock)
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
