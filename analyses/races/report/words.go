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
	// OrderWords: the words are synchronization.
	OrderWords Words = "order"
	// AutoWords is OrderWords from the moment on at which a process of the run maps a file of
	// a program in Go or Rust, and RaceWords before that.
	AutoWords Words = "auto"
)

// atomicFiles knows what files of a run tell about atomic accesses, while the run takes place.
type atomicFiles struct {
	*names
	code map[string][]debuginfo.CodeRange
}

// synchronizeByAtomics reports whether a file of the guest is a program or library in Go or Rust. Go's linker
// writes a section .go.buildinfo (package debug/buildinfo), and rustc its version to .comment, which strip keeps.
func (n *atomicFiles) synchronizeByAtomics(guest string) bool {
	f, err := os.Open(n.host(guest))
	if err != nil {
		return false
	}
	defer f.Close()
	e, err := debuginfo.ParseELF(f)
	if err != nil {
		return false
	}
	build, _ := e.Section(".go.buildinfo", maxNote)
	comment, _ := e.Section(".comment", maxNote)
	return build != nil || bytes.Contains(comment, []byte("rustc version"))
}

// maxNote is the greatest size of the sections that tell the language.
const maxNote = 1 << 20

// codeIn lists the code of atomic accesses in a part of a file that is mapped: what was compiled from the sources
// of Rust's and C++'s atomic types.
func (n *atomicFiles) codeIn(m *event.Mapping) (list []races.Code) {
	if library(m.Name) {
		return nil
	}
	f := n.file(m.Name)
	if f == nil {
		return nil
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
