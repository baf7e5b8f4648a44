package balllarus

import (
	"github.com/heddle-dmt/heddle/internal/zydis"
)

// Code is a program's code.
type Code interface {
	// Read fills b with the code at an address, and returns how much of it there is.
	Read(addr uint64, b []byte) int
	// Function is where the function that has an address begins, if the program's
	// symbols say so.
	Function(addr uint64) (entry uint64, ok bool)
	// Instrumented tells whether the code at an address records its paths.
	Instrumented(addr uint64) bool
}

// Known is what a compiler knows of the code, and the code alone does not tell.
type Known struct {
	// Whole tells that all code is instrumented.
	Whole bool
	// Entries are where functions begin, in order.
	Entries []uint64
	// Targets are where jumps through registers and memory go, by the address behind
	// the jump, in order.
	Targets map[uint64][]uint64
}

// Program is code with instrumentation. Functions are instrumented when they are first
// asked for.
type Program struct {
	code    Code
	known   Known
	entries map[uint64]bool
	// functions are in the order in which they were first asked for; nil: no code.
	functions []*Function
	byEntry   map[uint64]*Function
	base      uint64
}

// NewProgram is code of which nothing is instrumented yet.
func NewProgram(code Code, known Known) *Program {
	p := &Program{code: code, known: known, entries: map[uint64]bool{}, byEntry: map[uint64]*Function{}}
	for _, at := range known.Entries {
		p.entries[at] = true
	}
	return p
}

// Functions are those that are instrumented.
func (p *Program) Functions() []*Function { return p.functions }

// function is the function that begins at an address; nil: there is no code.
func (p *Program) function(entry uint64) *Function {
	f, ok := p.byEntry[entry]
	if ok {
		return f
	}
	if p.runs(entry) {
		f = p.explore(entry)
		f.number()
		f.place()
		f.Index, f.Base = len(p.functions), p.base
		p.base += f.Paths
		p.functions = append(p.functions, f)
	}
	p.byEntry[entry] = f
	return f
}

// runs tells whether instrumented code is at an address.
func (p *Program) runs(addr uint64) bool {
	var b [1]byte
	return p.code.Instrumented(addr) && p.code.Read(addr, b[:]) > 0
}

// begins tells whether a function begins at an address.
func (p *Program) begins(addr uint64) bool {
	if entry, ok := p.code.Function(addr); ok {
		return entry == addr
	}
	return p.entries[addr]
}

// holding is the function and the block that have the instruction at an address.
func (p *Program) holding(addr uint64) (*Function, *Block) {
	if entry, ok := p.code.Function(addr); ok {
		if f := p.function(entry); f != nil {
			if b := f.blockWith(addr); b != nil {
				return f, b
			}
		}
	}
	f := p.function(addr)
	if f == nil {
		return nil, nil
	}
	return f, f.first()
}

// expects tells that a call is of one function that is instrumented: what comes back
// from there has written.
func (p *Program) expects(b *Block) bool {
	switch b.Kind {
	case zydis.Call:
		return p.runs(b.target)
	case zydis.IndirectCall:
		return p.known.Whole
	}
	return false
}
