// Package linkage finds calls of functions that the dynamic linker looks up at their first call, and
// where the search for such a function ends on a thread's path.
//
// A call of a function of another file goes to a stub of the procedure linkage table, which jumps
// through a word of the global offset table (System V ABI for x86-64, section 5.2). Until the
// function is looked up the word has the address of code that pushes the function's number and jumps
// to the table's first entry, and that entry jumps to the dynamic linker (_dl_runtime_resolve of
// glibc), which calls a function for the search and jumps to the result.
//
// The package knows code and paths alone, and no symbols of the dynamic linker.
package linkage

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/internal/zydis"
)

// Peek reads memory at an address and returns how many bytes of it there are.
type Peek func(addr uint64, b []byte) int

// Stub is a stub whose function is not looked up yet.
type Stub struct {
	// Instructions is how many it has, up to its jump.
	Instructions int
	// Binder is where it jumps while the function is not looked up.
	Binder uint64
}

// Parts of stubs.
var (
	branchTarget = []byte{0xf3, 0x0f, 0x1e, 0xfa} // endbr64
	boundPrefix  = []byte{0xf2}                   // bnd
	indirectJump = []byte{0xff, 0x25}
)

// stubBytes is the length of the longest stub.
const stubBytes = 16

func codeAt(peek Peek, pc uint64) []byte {
	code := make([]byte, stubBytes)
	return code[:peek(pc, code)]
}

// StubAt is the stub at an address; false: there is none, or its function is looked up.
func StubAt(peek Peek, pc uint64) (Stub, bool) {
	whole := codeAt(peek, pc)
	code, marked := bytes.CutPrefix(whole, branchTarget)
	code, _ = bytes.CutPrefix(code, boundPrefix)
	code, jumps := bytes.CutPrefix(code, indirectJump)
	if !jumps || len(code) < 4 {
		return Stub{}, false
	}
	end := pc + uint64(len(whole)-len(code)) + 4
	var word [8]byte
	peek(end+uint64(int32(binary.LittleEndian.Uint32(code))), word[:])
	s := Stub{Instructions: 1, Binder: binary.LittleEndian.Uint64(word[:])}
	if marked {
		s.Instructions++
	}
	return s, callsLinker(peek, s.Binder)
}

// callsLinker reports whether the code at an address pushes a number and jumps to a constant place.
func callsLinker(peek Peek, pc uint64) bool {
	const push, jump, number = 0x68, 0xe9, 4
	code, _ := bytes.CutPrefix(codeAt(peek, pc), branchTarget)
	if len(code) < 1+number || code[0] != push {
		return false
	}
	code, _ = bytes.CutPrefix(code[1+number:], boundPrefix)
	return len(code) > 0 && code[0] == jump
}

// Function is the position on a path where the function of a stub begins, and whether the path has
// the search for it. The path is at the stub. If it ends before the function begins, so does the
// position.
func (s *Stub) Function(peek Peek, track *paths.Track, at paths.Position) (function paths.Position, searched bool, err error) {
	at = track.Advance(at, s.Instructions)
	if next, ok := track.PCAt(at); !ok || next != s.Binder {
		return at, false, nil
	}
	w := &walker{peek: peek, track: track, at: at}
	w.pass(zydis.Jump)
	w.pass(zydis.IndirectJump)
	resolver, _ := track.PCAt(w.at)
	if back := w.pass(zydis.Call); w.err == nil {
		w.skipCall(resolver, back)
	}
	w.pass(zydis.IndirectJump)
	return w.at, true, w.err
}

// walker follows a path.
type walker struct {
	peek  Peek
	track *paths.Track
	at    paths.Position
	err   error
}

// pass continues after the straight code at the position, which must end with a certain branch, and
// returns the address after the branch.
func (w *walker) pass(kind zydis.Kind) uint64 {
	pc, ok := w.track.PCAt(w.at)
	if !ok || w.err != nil {
		return 0
	}
	const longest, instructionBytes = 64, 8
	code, lengths := make([]byte, longest*instructionBytes), make([]byte, longest)
	run := zydis.Walk(code[:w.peek(pc, code)], lengths)
	if run.Kind != kind {
		w.err = fmt.Errorf("a function is looked up at its first call, and the dynamic linker's code at %#x is not the known one", pc)
		return 0
	}
	w.at = w.track.Advance(w.at, run.Count)
	return pc + uint64(run.Bytes)
}

// skipCall continues where a call returns. Resolvers of indirect functions can call functions that
// are looked up, too.
func (w *walker) skipCall(resolver, back uint64) {
	for depth := 1; ; w.at = (paths.Position{Block: w.at.Block + 1}) {
		switch pc, ok := w.track.PCAt(w.at); {
		case !ok:
			return
		case pc == resolver:
			depth++
		case pc == back:
			if depth--; depth == 0 {
				return
			}
		}
	}
}
