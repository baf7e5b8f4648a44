package report

import (
	"bytes"
	"os"

	"github.com/heddle-dmt/heddle/internal/debuginfo"
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

// synchronizesByAtomics reports whether a file of the guest is a program or library in Go or Rust. Go's linker
// writes a section .go.buildinfo (package debug/buildinfo), and rustc its version to .comment, which strip keeps.
func (n *names) synchronizesByAtomics(guest string) bool {
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
