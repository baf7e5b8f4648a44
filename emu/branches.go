package emu

import "github.com/heddle-dmt/heddle/emu/arch"

// BranchWord is an entry of the branch log, with the information of a processor trace about the
// flow of control. Between two entries the flow follows from the code: straight on, by direct jumps
// and direct calls.
type BranchWord uint64

// BranchTag is the kind of a BranchWord: its four highest bits.
type BranchTag uint8

const (
	// TagTNT has outcomes of conditional branches: Outcomes.
	TagTNT BranchTag = iota + 1
	// TagTIP has the target of an indirect jump or call: Value.
	TagTIP
	// TagCall has the return address of a near call, direct or indirect: Value. That of an indirect
	// call precedes its TagTIP. A direct call of the next instruction has none, as in processor
	// traces.
	TagCall
	// TagRet has the target of a near return: Value. It does not stand for a compressed return.
	TagRet
	// TagTime has the cycles of the run at the time of the next entry: Value.
	TagTime
)

// TagShift is the place of the tag in a BranchWord.
const TagShift = 60

// Tag returns the kind of w.
func (w BranchWord) Tag() BranchTag { return BranchTag(w >> TagShift) }

// Value returns the address or the number of cycles in w.
func (w BranchWord) Value() uint64 { return uint64(w) & (1<<TagShift - 1) }

// Outcomes returns the outcomes of n conditional branches, 1 to 47. The first is bit n-1; 1 means
// taken.
func (w BranchWord) Outcomes() (bits uint64, n int) {
	return uint64(w) & (1<<48 - 1), int(w >> 48 & 0x3f)
}

// CodeBlock is code that is about to run in the loaded address space, not necessarily for the first
// time.
type CodeBlock struct {
	PC    arch.Addr
	Bytes []byte
	// At is the number of instructions of the run before it. A repeated string instruction counts
	// once, however often it iterates.
	At uint64
}
