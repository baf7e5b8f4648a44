package clap

import "github.com/heddle-dmt/heddle/internal/zydis"

// Code is a program's code.
type Code interface {
	// Read fills b with the code at an address, and returns how much of it there is.
	Read(addr uint64, b []byte) int
	// Function is where the function that has an address begins, if the program's
	// symbols say so.
	Function(addr uint64) (entry uint64, ok bool)
	// Instrumented reports whether the code at an address records its paths.
	Instrumented(addr uint64) bool
}

// CompilerFacts are facts that a compiler knows and the code alone does not show.
type CompilerFacts struct {
	// Whole: all code is instrumented.
	Whole bool
	// Entries are where functions begin, in order.
	Entries []uint64
	// Targets are the targets of jumps through registers and memory, by the address after the jump,
	// in order.
	Targets map[uint64][]uint64
}

// Program is code with instrumentation. Functions are instrumented when they are first
// asked for.
type Program struct {
	code    Code
	known   CompilerFacts
	entries map[uint64]bool
	// functions are in the order in which they were first asked for; nil: no code.
	functions []*Function
	byEntry   map[uint64]*Function
	nextBase  uint64
}

// NewProgram is code of which nothing is instrumented yet.
func NewProgram(code Code, known CompilerFacts) *Program {
	p := &Program{code: code, known: known, entries: map[uint64]bool{}, byEntry: map[uint64]*Function{}}
	for _, at := range known.Entries {
		p.entries[at] = true
	}
	return p
}

// Functions are the instrumented functions.
func (p *Program) Functions() []*Function { return p.functions }

// functionAt is the function that begins at an address; nil: there is no code.
func (p *Program) functionAt(entry uint64) *Function {
	f, ok := p.byEntry[entry]
	if ok {
		return f
	}
	if p.isInstrumented(entry) {
		f = p.findBlocks(entry)
		f.numberEdges()
		f.placeIncrements()
		f.Index, f.Base = len(p.functions), p.nextBase
		p.nextBase += f.Paths
		p.functions = append(p.functions, f)
	}
	p.byEntry[entry] = f
	return f
}

// isInstrumented reports whether instrumented code is at an address.
func (p *Program) isInstrumented(addr uint64) bool {
	var b [1]byte
	return p.code.Instrumented(addr) && p.code.Read(addr, b[:]) > 0
}

// beginsFunction reports whether a function begins at an address.
func (p *Program) beginsFunction(addr uint64) bool {
	if entry, ok := p.code.Function(addr); ok {
		return entry == addr
	}
	return p.entries[addr]
}

// blockHolding is the function and the block that have the instruction at an address.
func (p *Program) blockHolding(addr uint64) (*Function, *Block) {
	if entry, ok := p.code.Function(addr); ok {
		if f := p.functionAt(entry); f != nil {
			if b := f.blockWith(addr); b != nil {
				return f, b
			}
		}
	}
	f := p.functionAt(addr)
	if f == nil {
		return nil, nil
	}
	return f, f.firstBlock()
}

// callsInstrumented reports whether a call is to one function that is instrumented: such a call has
// written when it returns.
func (p *Program) callsInstrumented(b *Block) bool {
	switch b.Kind {
	case zydis.Call:
		return p.isInstrumented(b.target)
	case zydis.IndirectCall:
		return p.known.Whole
	}
	return false
}
