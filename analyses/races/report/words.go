package report

import (
	"bytes"
	"os"
	"path"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Words says, under HappensBefore, how accesses to words of atomic instructions are ordered.
type Words string

// How they are.
const (
	// RaceWords: an atomic instruction orders nothing, and does not race with others.
	RaceWords Words = "race"
	// CodeWords: what the atomic instructions of C++ code access is synchronization, and what a library of OpenMP or
	// oneTBB accesses; other words as for RaceWords.
	CodeWords Words = "code"
	// OrderWords: the words are synchronization.
	OrderWords Words = "order"
	// AutoWords is OrderWords from the moment on at which a process of the run maps a file of
	// a program in Go or Rust, CodeWords from that at which it maps one in C++ or a library of OpenMP or oneTBB,
	// and RaceWords before that.
	AutoWords Words = "auto"
)

// atomics are the accesses that make synchronization words from the beginning of a run.
func (w Words) atomics() races.Atomics {
	switch w {
	case OrderWords:
		return races.AllAtomics
	case CodeWords:
		return races.AtomicsOfCode
	}
	return races.NoAtomics
}

// atomicFiles knows what files of a run tell about atomic accesses, while the run takes place.
type atomicFiles struct {
	*names
	code map[string][]debuginfo.CodeRange
}

// synchronizeByAtomics reports whether a file of the guest is a program or library in Go or Rust. Go's linker
// writes a section .go.buildinfo (package debug/buildinfo), and rustc its version to .comment, which strip keeps.
func (n *atomicFiles) synchronizeByAtomics(guest string) bool {
	return n.section(guest, ".go.buildinfo", maxNote) != nil ||
		bytes.Contains(n.section(guest, ".comment", maxNote), []byte("rustc version"))
}

// section is the content of a section of a file of the guest, nil without one.
func (n *atomicFiles) section(guest, name string, limit uint64) []byte {
	f, err := os.Open(n.host(guest))
	if err != nil {
		return nil
	}
	defer f.Close()
	e, err := debuginfo.ParseELF(f)
	if err != nil {
		return nil
	}
	content, _ := e.Section(name, limit)
	return content
}

// maxNote is the greatest size of the sections that tell the language.
const maxNote = 1 << 20

// atomicsOf are the accesses that make synchronization words once a process has mapped a file.
func (n *atomicFiles) atomicsOf(guest string) races.Atomics {
	switch {
	case n.synchronizeByAtomics(guest):
		return races.AllAtomics
	case parallelLibrary(guest), n.usesCPlusPlus(guest):
		return races.AtomicsOfCode
	}
	return races.NoAtomics
}

// parallelLibrary reports whether a file is a run-time library of OpenMP (of gcc, LLVM or Intel) or oneTBB, whose threads
// wait for each other by words in its own memory.
func parallelLibrary(guest string) bool {
	base := path.Base(guest)
	for _, p := range []string{"libgomp.so", "libgomp-", "libomp.so", "libomp-", "libomp5.so", "libiomp5.so", "libtbb.so"} {
		if strings.HasPrefix(base, p) {
			return true
		}
	}
	return false
}

// usesCPlusPlus reports whether a file of the guest is a program or library in C++: one that needs libstdc++ or libc++,
// or is it.
func (n *atomicFiles) usesCPlusPlus(guest string) bool {
	names := n.section(guest, ".dynstr", maxNames)
	return bytes.Contains(names, []byte("libstdc++.so")) || bytes.Contains(names, []byte("libc++.so"))
}

// maxNames is the greatest size of a file's names for the dynamic linker.
const maxNames = 1 << 26

// codeIn lists the code of atomic accesses in a part of a file that is mapped: what was compiled from the sources
// of Rust's and C++'s atomic types, the atomic instructions of C++ code, and all of a library of OpenMP or oneTBB.
func (n *atomicFiles) codeIn(m *event.Mapping) (list []races.Code) {
	if library(m.Name) {
		return nil
	}
	if parallelLibrary(m.Name) {
		return []races.Code{{Start: uint64(m.Addr), End: uint64(m.Addr) + m.Size}}
	}
	if n.usesCPlusPlus(m.Name) {
		list = append(list, races.Code{Start: uint64(m.Addr), End: uint64(m.Addr) + m.Size, Locking: true})
	}
	f := n.file(m.Name)
	if f == nil {
		return list
	}
	code, known := n.code[m.Name]
	if !known {
		code = f.CodeOf(atomicSource)
		n.code[m.Name] = code
	}
	for _, c := range code {
		offset, ok := f.Offset(c.Start)
		if ok && offset >= m.Offset && offset-m.Offset < m.Size {
			start := uint64(m.Addr) + offset - m.Offset
			list = append(list, races.Code{Start: start, End: start + c.End - c.Start})
		}
	}
	return list
}

// atomicSource reports whether a source file has the atomic types of Rust, of libstdc++ or of libc++.
func atomicSource(file string) bool {
	return strings.HasSuffix(file, "/core/src/sync/atomic.rs") || strings.HasSuffix(file, "/bits/atomic_base.h") ||
		path.Base(file) == "atomic" && strings.Contains(file, "/c++/") || strings.Contains(file, "/__atomic/")
}
