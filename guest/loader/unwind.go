package loader

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/frame"
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Frame is a function on a stack.
type Frame struct {
	PC       event.Addr // of the next instruction, or of the one that faulted
	Path     string     // of the file; empty if the address is in none
	Function string     // empty if it is not known
	Offset   uint64     // of PC in the function
}

// String is a line of a report.
func (f Frame) String() string {
	switch {
	case f.Function != "":
		return fmt.Sprintf("%s+%#x (%s)", f.Function, f.Offset, f.Path)
	case f.Path != "":
		return fmt.Sprintf("%#x (%s)", f.PC, f.Path)
	}
	return fmt.Sprintf("%#x", f.PC)
}

// Unwinder finds the functions on stacks. It reads memory without changing
// what is resident, and keeps what it has read of files.
type Unwinder struct {
	files map[*mm.Object]*Symbols // nil: cannot be read
}

// NewUnwinder makes an Unwinder.
func NewUnwinder() *Unwinder { return &Unwinder{files: map[*mm.Object]*Symbols{}} }

// Registers are numbered here as in the psABI's DWARF tables.
const (
	dwarfRBP, dwarfRSP, dwarfRA = 6, 7, 16
	dwarfRegisters              = 17
)

// dwarfOrder is the index in emu.Regs.GPR of each register.
var dwarfOrder = [16]int{
	emu.RAX, emu.RDX, emu.RCX, emu.RBX, emu.RSI, emu.RDI, emu.RBP, emu.RSP,
	emu.R8, emu.R9, emu.R10, emu.R11, emu.R12, emu.R13, emu.R14, emu.R15,
}

// registers are those of one frame; the last is the program counter.
type registers [dwarfRegisters]uint64

// Stack walks the stack of a thread that is stopped with the given registers,
// at most limit frames, the innermost first. Where tables are missing it
// follows frame pointers.
func (u *Unwinder) Stack(as *mm.AddressSpace, r emu.Regs, limit int) []Frame {
	var regs registers
	for i, gpr := range dwarfOrder {
		regs[i] = r.GPR[gpr]
	}
	regs[dwarfRA] = r.RIP
	w := walker{u: u, as: as, regs: regs, exact: true}
	var frames []Frame
	for len(frames) < limit {
		frames = append(frames, w.frame())
		if !w.up() {
			break
		}
	}
	return frames
}

// walker is at one frame of a stack.
type walker struct {
	u     *Unwinder
	as    *mm.AddressSpace
	regs  registers
	exact bool // the program counter is at an instruction, not after a call
}

// place is where the program counter is.
type place struct {
	symbols *Symbols
	path    string
	addr    uint64 // in the file
}

// lookup finds the file at an address.
func (u *Unwinder) lookup(as *mm.AddressSpace, pc event.Addr) (p place) {
	v, ok := as.Find(pc)
	if !ok || v.File == nil {
		return p
	}
	p.path, _, _ = v.File.MapName()
	s := u.symbols(v.Object)
	if s == nil {
		return p
	}
	if addr, ok := s.Address(v.Offset + uint64(pc-v.Start)); ok {
		p.symbols, p.addr = s, addr
	}
	return p
}

// symbols reads the file that o holds, once.
func (u *Unwinder) symbols(o *mm.Object) *Symbols {
	s, ok := u.files[o]
	if !ok {
		s, _ = ReadSymbols(objectReader{o})
		u.files[o] = s
	}
	return s
}

// objectReader reads an object as debug/elf wants it.
type objectReader struct{ o *mm.Object }

func (r objectReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("offset %d", off)
	}
	n, errno := r.o.ReadAt(p, off)
	switch {
	case errno != 0:
		return n, errno
	case n < len(p):
		return n, fmt.Errorf("end of file at %d", off+int64(n))
	}
	return n, nil
}

// lookupPC is an address in the instruction that the frame is at.
func (w *walker) lookupPC() event.Addr {
	if w.exact {
		return event.Addr(w.regs[dwarfRA])
	}
	return event.Addr(w.regs[dwarfRA]) - 1 // the call may be the last of its function
}

func (w *walker) frame() Frame {
	f := Frame{PC: event.Addr(w.regs[dwarfRA])}
	at := w.lookupPC()
	p := w.u.lookup(w.as, at)
	f.Path = p.path
	if p.symbols != nil {
		if name, offset, ok := p.symbols.Lookup(p.addr); ok {
			f.Function, f.Offset = name, offset+uint64(f.PC-at)
		}
	}
	return f
}

// up goes to the caller's frame; false: there is none that can be found.
func (w *walker) up() bool {
	p := w.u.lookup(w.as, w.lookupPC())
	before := w.regs[dwarfRSP]
	switch {
	case p.symbols != nil && w.upByTable(p):
	case p.path == "" && w.exact:
		// A call to where no code is: the return address is still on top.
		if !w.load(w.regs[dwarfRSP], &w.regs[dwarfRA]) {
			return false
		}
		w.regs[dwarfRSP] += 8
		w.exact = false
	case !w.upByFramePointer():
		return false
	}
	return w.regs[dwarfRA] != 0 && w.regs[dwarfRSP] > before
}

// upByFramePointer assumes that RBP points to the caller's RBP and the return
// address.
func (w *walker) upByFramePointer() bool {
	var rbp, ra uint64
	at := w.regs[dwarfRBP]
	if at < w.regs[dwarfRSP] || !w.load(at, &rbp) || !w.load(at+8, &ra) {
		return false
	}
	w.regs[dwarfRSP], w.regs[dwarfRBP], w.regs[dwarfRA] = at+16, rbp, ra
	w.exact = false
	return true
}

// upByTable follows the call frame information; false: there is none, and
// nothing is changed.
func (w *walker) upByTable(p place) (ok bool) {
	before := w.regs
	defer func() {
		// The interpreter of the tables panics on damaged ones.
		if recover() != nil {
			w.regs, ok = before, false
		}
	}()
	fde, err := p.symbols.frames.FDEForPC(p.addr)
	if err != nil || !affordable(fde) {
		return false
	}
	row := fde.EstablishFrame(p.addr)
	cfa, ok := w.value(row.CFA, 0)
	if !ok {
		return false
	}
	next := w.regs
	next[dwarfRSP] = cfa
	for n := range next {
		rule, given := row.Regs[uint64(n)]
		if !given || rule.Rule == frame.RuleSameVal || rule.Rule == frame.RuleUndefined && n != dwarfRA {
			continue // what a row does not mention is kept
		}
		if next[n], ok = w.value(rule, cfa); !ok {
			if n == dwarfRA {
				next[dwarfRA] = 0 // the outermost frame
				continue
			}
			return false
		}
	}
	w.regs = next
	w.exact = strings.Contains(fde.CIE.Augmentation, "S")
	return true
}

// affordable tells whether a function's table can be interpreted in bounded
// memory: each DW_CFA_remember_state keeps a copy of all rules so far. The
// largest function of GCC's cc1 needs 1.5 million.
func affordable(fde *frame.FrameDescriptionEntry) bool {
	const limit = 1 << 21
	program := fde.Instructions
	return len(fde.CIE.InitialInstructions) < 1<<10 &&
		len(program)*bytes.Count(program, []byte{frame.DW_CFA_remember_state}) < limit && len(program) < limit
}

// value applies a rule; false: it gives none.
func (w *walker) value(rule frame.DWRule, cfa uint64) (x uint64, ok bool) {
	switch rule.Rule {
	case frame.RuleCFA:
		return w.regs[rule.Reg] + uint64(rule.Offset), true
	case frame.RuleOffset:
		ok = w.load(cfa+uint64(rule.Offset), &x)
		return x, ok
	case frame.RuleValOffset:
		return cfa + uint64(rule.Offset), true
	case frame.RuleRegister:
		return w.regs[rule.Reg], true
	case frame.RuleExpression, frame.RuleValExpression:
		x, ok = w.evaluate(rule.Expression, cfa)
		if ok && cfa != 0 && rule.Rule == frame.RuleExpression {
			ok = w.load(x, &x)
		}
		return x, ok
	}
	return 0, false
}

// evaluate runs a DWARF expression with the CFA, if there is one, on its stack.
func (w *walker) evaluate(expression []byte, cfa uint64) (uint64, bool) {
	regs := op.NewDwarfRegisters(0, nil, binary.LittleEndian, dwarfRA, dwarfRSP, dwarfRBP, 0)
	for i, x := range w.regs {
		regs.AddReg(uint64(i), op.DwarfRegisterFromUint64(x))
	}
	program := expression
	if cfa != 0 {
		program = append(binary.LittleEndian.AppendUint64([]byte{byte(op.DW_OP_const8u)}, cfa), expression...)
	}
	read := func(b []byte, at uint64) (int, error) {
		n, why := w.as.Space().ReadAt(b, event.Addr(at))
		if why != emu.NoFault {
			return n, fmt.Errorf("no memory at %#x", at)
		}
		return n, nil
	}
	x, _, err := op.ExecuteStackProgram(*regs, program, 8, read)
	return uint64(x), err == nil
}

// load reads a word of guest memory.
func (w *walker) load(at uint64, to *uint64) bool {
	var b [8]byte
	if _, why := w.as.Space().ReadAt(b[:], event.Addr(at)); why != emu.NoFault {
		return false
	}
	*to = binary.LittleEndian.Uint64(b[:])
	return true
}
