package litmus

import (
	"fmt"
	"iter"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
)

// Where the locations of a test lie: each at a multiple of SlotSize, so that
// no two share a cache line and none that fits in one crosses one.
const (
	DataBase = 0x100000
	SlotSize = arch.LineSize
)

// Pieces iterates over the parts of an access that lie in one cache line each, in the order
// of their addresses: where they begin, as an offset from DataBase, and how long they are.
func Pieces(at, size int) iter.Seq2[int, int] {
	return func(yield func(at, size int) bool) {
		for end := at + size; at < end; {
			n := min(end-at, SlotSize-at%SlotSize)
			if !yield(at, n) {
				return
			}
			at += n
		}
	}
}

// Type is the type of a location or register.
type Type struct {
	Name   string
	Size   int // bytes: 1, 2, 4 or 8
	Signed bool
}

// Int is the type of whatever has no other.
var Int = Type{Name: "int", Size: 4, Signed: true}

var int64Type = Type{Name: "int64_t", Size: 8, Signed: true}

// Test is a litmus test.
type Test struct {
	File string
	Arch string
	Name string
	Doc  string
	Meta []Meta
	Vars []Var
	Regs []RegInit
	// Threads are P0, P1 and so on.
	Threads []Thread
	// Locations are the ones that `locations` asks to be shown besides those of
	// the condition.
	Locations []Loc
	// Filter, unless nil, restricts the outcomes that count.
	Filter Prop
	Quant  Quantifier
	Cond   Prop
	intel  bool // operands are in Intel's order
}

// Meta is a line KEY=VALUE before the initial state.
type Meta struct{ Key, Value string }

// Value is a number or, with Sym set, Num bytes from a location.
type Value struct {
	Sym string
	Num int64
}

// Var is a location: an array of Count elements, of one for a plain one.
type Var struct {
	Name  string
	Type  Type
	Count int
	Array bool
	Typed bool // the type was written
	Init  []Value
	Addr  uint64
}

// RegInit is the initial value of a register.
type RegInit struct {
	Thread int
	Reg    Reg
	Type   Type
	Typed  bool
	Value  Value
}

// Thread is the code of one thread.
type Thread struct{ Code []Instr }

// Loc is something whose final value is asked for: a register, or an element
// of a location.
type Loc struct {
	Thread int // -1: memory
	Reg    Reg
	Name   string // of the register as written, or of the location
	Index  int
	Array  bool // written with an index
}

// IsReg reports whether l is a register, not memory.
func (l Loc) IsReg() bool { return l.Thread >= 0 }

// String is the location as herd prints it in states.
func (l Loc) String() string {
	switch {
	case l.IsReg():
		return fmt.Sprintf("%d:%s", l.Thread, l.Name)
	case l.Array:
		return fmt.Sprintf("[%s[%d]]", l.Name, l.Index)
	}
	return "[" + l.Name + "]"
}

// Var returns the location of that name, or nil.
func (t *Test) Var(name string) *Var {
	for i := range t.Vars {
		if t.Vars[i].Name == name {
			return &t.Vars[i]
		}
	}
	return nil
}

// Address is the number that a value stands for.
func (t *Test) Address(v Value) uint64 {
	if v.Sym == "" {
		return uint64(v.Num)
	}
	return t.Var(v.Sym).Addr + uint64(v.Num)
}

// layOutLocations gives every location its address.
func (t *Test) layOutLocations() {
	next := uint64(DataBase)
	for i := range t.Vars {
		v := &t.Vars[i]
		v.Addr = next
		size := uint64(v.Count * v.Type.Size)
		next += (size + SlotSize - 1) / SlotSize * SlotSize
	}
}

// End is the first address after the locations.
func (t *Test) End() uint64 {
	if len(t.Vars) == 0 {
		return DataBase
	}
	v := t.Vars[len(t.Vars)-1]
	return v.Addr + uint64((v.Count*v.Type.Size+SlotSize-1)/SlotSize*SlotSize)
}

// Memory is the initial content of DataBase to End.
func (t *Test) Memory() []byte {
	m := make([]byte, t.End()-DataBase)
	for i := range t.Vars {
		v := &t.Vars[i]
		for k, value := range v.Init {
			at := v.Addr - DataBase + uint64(k*v.Type.Size)
			putLE(m[at:at+uint64(v.Type.Size)], t.Address(value))
		}
	}
	return m
}

func putLE(b []byte, n uint64) {
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
}

func getLE(b []byte) uint64 {
	var n uint64
	for i := range b {
		n |= uint64(b[i]) << (8 * i)
	}
	return n
}

var (
	errSyntax = errs.Define("litmus-syntax",
		"{file}:{line}: found {found}, expected {expected}",
		"A litmus test is not of herd's format for X86_64 or X86 at that line.",
		"Correct the test at the line; docs/memory-models.md describes the format.")
	errInstruction = errs.Define("litmus-instruction",
		"{file}:{line}: the instruction {instruction} is not supported in litmus tests; supported are: {list}",
		"The test uses an instruction whose effect on memory is not modelled, so its outcomes could not be trusted.",
		"Write the test with the supported instructions.")
	errMeaning = errs.Define("litmus-meaning",
		"{file}:{line}: {problem}",
		"A line of the litmus test is well formed and means nothing: it names something that does not exist, or contradicts another line.",
		"Correct the test at the line.")
)

// position is where in a file something is wrong.
type position struct {
	file string
	line int
}

func (p position) errorSyntax(found, expected string) error {
	if found == "" {
		found = "the end"
	}
	return errSyntax.New(p.file, p.line, found, expected)
}

func (p position) errorMeaning(format string, args ...any) error {
	return errMeaning.New(p.file, p.line, fmt.Sprintf(format, args...))
}

func quoteTrimmed(s string) string { return "\"" + strings.TrimSpace(s) + "\"" }
