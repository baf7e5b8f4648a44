package loader

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/frame"
	"github.com/go-delve/delve/pkg/dwarf/op"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
)

// Frame is a function on a stack.
type Frame struct {
	PC       arch.Addr // of the next instruction, or of the one that faulted
	Path     string    // of the file; empty if the address is in none
	Function string    // empty if not known
	Offset   uint64    // of PC in the function
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

// Unwinder finds the functions on stacks. It reads memory without making pages
// resident, and keeps the tables that it has read from files.
type Unwinder struct {
	files map[*mm.Object]*tables // nil: cannot be read
}

// NewUnwinder makes an Unwinder.
func NewUnwinder() *Unwinder { return &Unwinder{files: map[*mm.Object]*tables{}} }

// Registers are numbered here as in the psABI's DWARF tables.
const (
	dwarfRBP, dwarfRSP, dwarfRA = 6, 7, 16
	dwarfRegisters              = 17
)

// dwarfOrder is the index in arch.Regs.GPR of each register.
var dwarfOrder = [16]int{
	arch.RAX, arch.RDX, arch.RCX, arch.RBX, arch.RSI, arch.RDI, arch.RBP, arch.RSP,
	arch.R8, arch.R9, arch.R10, arch.R11, arch.R12, arch.R13, arch.R14, arch.R15,
}

// registers are those of one frame; the last is the program counter.
type registers [dwarfRegisters]uint64

// Stack walks the stack of a thread that is stopped with the given registers,
// at most limit frames, the innermost first. Where tables are missing it
// follows frame pointers.
func (u *Unwinder) Stack(as *mm.AddressSpace, r arch.Regs, limit int) []Frame {
	var regs registers
	for i, gpr := range dwarfOrder {
		regs[i] = r.GPR[gpr]
	}
	regs[dwarfRA] = r.RIP
	w := stackWalker{u: u, as: as, regs: regs, exact: true}
	var frames []Frame
	for len(frames) < limit {
		frames = append(frames, w.currentFrame())
		if !w.stepToCaller() {
			break
		}
	}
	return frames
}

// stackWalker is at one frame of a stack.
type stackWalker struct {
	u     *Unwinder
	as    *mm.AddressSpace
	regs  registers
	exact bool // the program counter is at an instruction, not after a call
}

// place is where the program counter is.
type place struct {
	tables *tables // of the file; nil without any
	path   string
	addr   uint64 // in the file
}

// placeOf finds the file at an address.
func (u *Unwinder) placeOf(as *mm.AddressSpace, pc arch.Addr) (p place) {
	v, ok := as.Find(pc)
	if !ok || v.File == nil {
		return p
	}
	p.path, _, _ = v.File.MapName()
	t := u.tablesOf(v.Object)
	if t == nil {
		return p
	}
	if addr, ok := t.symbols.Address(v.Offset + uint64(pc-v.Start)); ok {
		p.tables, p.addr = t, addr
	}
	return p
}

// tablesOf reads the file that o holds, once; nil if it is not an ELF file.
func (u *Unwinder) tablesOf(o *mm.Object) *tables {
	t, ok := u.files[o]
	if !ok {
		t, _ = readTables(objectReader{o})
		u.files[o] = t
	}
	return t
}

// tables are the names of a file's functions, and how to unwind the stack from within
// them.
type tables struct {
	symbols *debuginfo.File
	frames  frame.FrameDescriptionEntries
}

// maxFrames bounds the call frame information that is read, in bytes.
const maxFrames = 16 << 20

// readTables reads an ELF file. It fails if the file is not an ELF file.
func readTables(r io.ReaderAt) (*tables, error) {
	e, err := debuginfo.ParseELF(r)
	if err != nil {
		return nil, err
	}
	return &tables{symbols: debuginfo.NewFile(e), frames: parseFrames(e.Section(".eh_frame", maxFrames))}, nil
}

// parseFrames reads call frame information that is loaded at addr; nil if it cannot
// be read.
func parseFrames(data []byte, addr uint64) (entries frame.FrameDescriptionEntries) {
	defer func() {
		if recover() != nil { // the parser is not proof against damaged tables
			entries = nil
		}
	}()
	entries, err := frame.Parse(data, binary.LittleEndian, 0, 8, addr)
	if err != nil {
		return nil
	}
	return entries.Append(nil) // sorts
}

// objectReader makes an io.ReaderAt of an object.
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
func (w *stackWalker) lookupPC() arch.Addr {
	if w.exact {
		return arch.Addr(w.regs[dwarfRA])
	}
	return arch.Addr(w.regs[dwarfRA]) - 1 // the call may be the last of its function
}

func (w *stackWalker) currentFrame() Frame {
	f := Frame{PC: arch.Addr(w.regs[dwarfRA])}
	at := w.lookupPC()
	p := w.u.placeOf(w.as, at)
	f.Path = p.path
	if p.tables != nil {
		if function, offset := p.tables.symbols.FunctionAt(p.addr); function != nil {
			f.Function, f.Offset = function.Name(), offset+uint64(f.PC-at)
		}
	}
	return f
}

// stepToCaller moves to the caller's frame, and reports whether it could be found.
func (w *stackWalker) stepToCaller() bool {
	p := w.u.placeOf(w.as, w.lookupPC())
	before := w.regs[dwarfRSP]
	switch {
	case p.tables != nil && w.stepByTable(p):
	case p.path == "" && w.exact:
		// A call to an address without code: the return address is still on top.
		if !w.loadWord(w.regs[dwarfRSP], &w.regs[dwarfRA]) {
			return false
		}
		w.regs[dwarfRSP] += 8
		w.exact = false
	case !w.stepByFramePointer():
		return false
	}
	return w.regs[dwarfRA] != 0 && w.regs[dwarfRSP] > before
}

// stepByFramePointer assumes that RBP points to the caller's RBP and the return
// address.
func (w *stackWalker) stepByFramePointer() bool {
	var rbp, ra uint64
	at := w.regs[dwarfRBP]
	if at < w.regs[dwarfRSP] || !w.loadWord(at, &rbp) || !w.loadWord(at+8, &ra) {
		return false
	}
	w.regs[dwarfRSP], w.regs[dwarfRBP], w.regs[dwarfRA] = at+16, rbp, ra
	w.exact = false
	return true
}

// stepByTable follows the call frame information, and reports whether it could;
// otherwise nothing is changed.
func (w *stackWalker) stepByTable(p place) (ok bool) {
	before := w.regs
	defer func() {
		// The interpreter of the tables panics on damaged ones.
		if recover() != nil {
			w.regs, ok = before, false
		}
	}()
	fde, err := p.tables.frames.FDEForPC(p.addr)
	if err != nil || !isAffordable(fde) {
		return false
	}
	row := fde.EstablishFrame(p.addr)
	cfa, ok := w.ruleValue(row.CFA, 0)
	if !ok {
		return false
	}
	next := w.regs
	next[dwarfRSP] = cfa
	for n := range next {
		rule, given := row.Regs[uint64(n)]
		if !given || rule.Rule == frame.RuleSameVal || rule.Rule == frame.RuleUndefined && n != dwarfRA {
			continue // a register that a row does not mention is unchanged
		}
		if next[n], ok = w.ruleValue(rule, cfa); !ok {
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

// isAffordable reports whether a function's table can be interpreted in bounded
// memory: each DW_CFA_remember_state keeps a copy of all rules so far. The
// largest function of GCC's cc1 needs 1.5 million.
func isAffordable(fde *frame.FrameDescriptionEntry) bool {
	const limit = 1 << 21
	program := fde.Instructions
	return len(fde.CIE.InitialInstructions) < 1<<10 &&
		len(program)*bytes.Count(program, []byte{frame.DW_CFA_remember_state}) < limit && len(program) < limit
}

// ruleValue applies a rule; false: the value is undefined.
func (w *stackWalker) ruleValue(rule frame.DWRule, cfa uint64) (x uint64, ok bool) {
	switch rule.Rule {
	case frame.RuleCFA:
		return w.regs[rule.Reg] + uint64(rule.Offset), true
	case frame.RuleOffset:
		ok = w.loadWord(cfa+uint64(rule.Offset), &x)
		return x, ok
	case frame.RuleValOffset:
		return cfa + uint64(rule.Offset), true
	case frame.RuleRegister:
		return w.regs[rule.Reg], true
	case frame.RuleExpression, frame.RuleValExpression:
		x, ok = w.evaluate(rule.Expression, cfa)
		if ok && cfa != 0 && rule.Rule == frame.RuleExpression {
			ok = w.loadWord(x, &x)
		}
		return x, ok
	}
	return 0, false
}

// evaluate runs a DWARF expression with the CFA, if there is one, on its stack.
func (w *stackWalker) evaluate(expression []byte, cfa uint64) (uint64, bool) {
	regs := op.NewDwarfRegisters(0, nil, binary.LittleEndian, dwarfRA, dwarfRSP, dwarfRBP, 0)
	for i, x := range w.regs {
		regs.AddReg(uint64(i), op.DwarfRegisterFromUint64(x))
	}
	program := expression
	if cfa != 0 {
		program = append(binary.LittleEndian.AppendUint64([]byte{byte(op.DW_OP_const8u)}, cfa), expression...)
	}
	read := func(b []byte, at uint64) (int, error) {
		n, why := w.as.Space().ReadAt(b, arch.Addr(at))
		if why != arch.NoFault {
			return n, fmt.Errorf("no memory at %#x", at)
		}
		return n, nil
	}
	x, _, err := op.ExecuteStackProgram(*regs, program, 8, read)
	return uint64(x), err == nil
}

// loadWord reads a word of guest memory.
func (w *stackWalker) loadWord(at uint64, to *uint64) bool {
	var b [8]byte
	if _, why := w.as.Space().ReadAt(b[:], arch.Addr(at)); why != arch.NoFault {
		return false
	}
	*to = binary.LittleEndian.Uint64(b[:])
	return true
}
