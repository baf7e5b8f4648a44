package litmus

import (
	"fmt"
	"strings"
)

// parseCode reads the table of instructions: a row of thread names, then rows of
// instructions, columns apart by | and rows ended by ;.
func (p parser) parseCode(s section) error {
	rows, err := p.splitRows(s)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return position{p.File, s.line}.errorSyntax("", "the names of the threads, P0 | P1 ;")
	}
	for i, cell := range rows[0] {
		if cell.text != fmt.Sprintf("P%d", i) {
			return position{p.File, cell.line}.errorSyntax(quoteTrimmed(cell.text), fmt.Sprintf("P%d", i))
		}
	}
	if len(rows[0]) > MaxThreads {
		return position{p.File, rows[0][0].line}.errorMeaning("%d threads, more than the %d that a test may have", len(rows[0]), MaxThreads)
	}
	for _, init := range p.Regs {
		if init.Thread >= len(rows[0]) {
			return position{p.File, s.line}.errorMeaning("the initial state has a register of P%d, which is no thread of the test", init.Thread)
		}
	}
	p.Threads = make([]Thread, len(rows[0]))
	if p.intel, err = p.looksIntel(rows[1:]); err != nil {
		return err
	}
	return p.parseColumns(rows[1:])
}

// splitRows splits the table into cells.
func (p parser) splitRows(s section) ([][]section, error) {
	var rows [][]section
	line := s.line
	for rest := s.text; strings.TrimSpace(rest) != ""; {
		row, after, ended := strings.Cut(rest, ";")
		if !ended {
			return nil, position{p.File, line + strings.Count(strings.TrimRight(row, "\n \t"), "\n")}.errorSyntax("", quoteTrimmed(";"))
		}
		var cells []section
		for _, cell := range strings.Split(row, "|") {
			lead := len(cell) - len(strings.TrimLeft(cell, "\n \t\r"))
			cells = append(cells, section{strings.TrimSpace(cell), line + strings.Count(cell[:lead], "\n")})
			line += strings.Count(cell, "\n")
		}
		rows = append(rows, cells)
		rest = after
	}
	return rows, nil
}

// parseColumns gives each thread its instructions.
func (p parser) parseColumns(rows [][]section) error {
	prefix := make([]bool, len(p.Threads)) // a LOCK that stands alone
	label := make([]string, len(p.Threads))
	for _, row := range rows {
		if len(row) > len(p.Threads) {
			return position{p.File, row[len(p.Threads)].line}.errorSyntax("one more column", quoteTrimmed(";"))
		}
		for t, cell := range row {
			in, what, err := p.parseCell(cell)
			if err != nil {
				return err
			}
			if in.Label != "" {
				if label[t] != "" {
					return position{p.File, cell.line}.errorMeaning("%s and %s are labels of one instruction", label[t], in.Label)
				}
				label[t] = in.Label
			}
			switch what {
			case cellEmpty:
			case cellLock:
				prefix[t] = true
			default:
				in.Label, label[t] = label[t], ""
				in.Lock = in.Lock || prefix[t]
				prefix[t] = false
				if err := p.checkLock(in); err != nil {
					return err
				}
				p.Threads[t].Code = append(p.Threads[t].Code, in)
			}
		}
	}
	for t := range p.Threads {
		if label[t] != "" { // of the end
			p.Threads[t].Code = append(p.Threads[t].Code, Instr{Label: label[t], Op: "nop", Line: rows[len(rows)-1][0].line})
		}
	}
	return nil
}

type cellKind uint8

const (
	cellEmpty cellKind = iota
	cellLock
	cellInstruction
)

// checkLock refuses LOCK where the processor does.
func (p parser) checkLock(in Instr) error {
	if !in.Lock || operations[in.Op].lockable && in.Dst.Kind == MemOperand {
		return nil
	}
	return position{p.File, in.Line}.errorMeaning("%s cannot have the lock prefix", in.text)
}

// parseCell reads one cell of the table.
func (p parser) parseCell(s section) (Instr, cellKind, error) {
	r := newReader(p.File, s.text, s.line)
	label := ""
	for r.peekToken().kind == tokName && r.peekTokenAt(1).text == ":" {
		label = r.nextToken().text
		r.nextToken()
	}
	if r.peekToken().kind == tokEnd {
		return Instr{Label: label}, cellEmpty, nil
	}
	lock := false
	if w := r.peekToken(); strings.EqualFold(w.text, "lock") {
		r.nextToken()
		lock = true
		if r.peekToken().kind == tokEnd {
			return Instr{Label: label}, cellLock, nil
		}
	}
	word, err := r.readName("an instruction")
	if err != nil {
		return Instr{}, 0, err
	}
	in, ok := lookUpMnemonic(word.text)
	if !ok {
		return in, 0, errInstruction.New(p.File, word.line, quoteTrimmed(s.text), Supported())
	}
	in.Label, in.Line, in.Lock, in.text = label, word.line, lock, quoteTrimmed(s.text)
	return in, cellInstruction, p.parseOperands(r, &in)
}

// parseOperands reads the operands and gives them their roles.
func (p parser) parseOperands(r *reader, in *Instr) error {
	shape := operations[in.Op].shape
	if shape == shapeJump {
		t, err := r.readName("a label")
		in.target = t.text
		return expectEnd(r, err)
	}
	var list []Operand
	for r.peekToken().kind != tokEnd {
		if len(list) > 0 && !r.acceptText(",") {
			return r.errorExpected(quoteTrimmed(",") + " or the end of the instruction")
		}
		o, err := p.operandOf(r)
		if err != nil {
			return err
		}
		list = append(list, o)
	}
	if n := operandCount(shape); len(list) != n {
		return r.positionOf(r.peekToken()).errorSyntax(in.text, fmt.Sprintf("%d operands for %s", n, in.Op))
	}
	if len(list) == 2 && !p.intel {
		list[0], list[1] = list[1], list[0]
	}
	if len(list) > 0 {
		in.Dst = list[0]
	}
	if len(list) > 1 {
		in.Src = list[1]
	}
	return p.assignRoles(in, shape)
}

func expectEnd(r *reader, err error) error {
	if err == nil && r.peekToken().kind != tokEnd {
		return r.errorExpected("the end of the instruction")
	}
	return err
}

func operandCount(s shape) int {
	switch s {
	case shapeNone:
		return 0
	case shapeOne:
		return 1
	}
	return 2
}

// assignRoles checks the kinds of operands and finds their size.
func (p parser) assignRoles(in *Instr, s shape) error {
	d, o := in.Dst.Kind, in.Src.Kind
	if in.Op == "xchg" && o == MemOperand {
		in.Dst, in.Src = in.Src, in.Dst
		d, o = o, d
	}
	fits := true
	switch s {
	case shapeOne:
		fits = d != ImmOperand
	case shapeTwo:
		fits = d != ImmOperand && !(d == MemOperand && o == MemOperand)
	case shapeStore:
		fits = d == MemOperand && o == RegOperand
	case shapeLoad:
		fits = d == RegOperand && o != ImmOperand
	case shapeExchange:
		fits = d != ImmOperand && o == RegOperand
	case shapeAddress:
		fits = d == RegOperand && o == MemOperand
	}
	if !fits {
		return position{p.File, in.Line}.errorSyntax(in.text, "operands that "+in.Op+" takes")
	}
	if s == shapeNone {
		return nil
	}
	return p.inferSize(in)
}

// inferSize finds the operands' size: from a register, a suffix, "ptr", or the type
// of the location, in this order.
func (p parser) inferSize(in *Instr) error {
	at := position{p.File, in.Line}
	size := in.suffix
	both := []*Operand{&in.Dst}
	switch in.Op {
	case "setcc":
		size = 1
	case "movzx", "movsx":
		if in.SrcSize == 0 {
			in.SrcSize = in.Src.size
		}
		if in.SrcSize == 0 || in.Src.Kind == RegOperand && in.Src.size != in.SrcSize {
			return at.errorSyntax(in.text, "a source whose size is plain")
		}
	case "lea":
	default:
		both = append(both, &in.Src)
	}
	for _, o := range both {
		if o.size == 0 {
			continue
		}
		if size != 0 && size != o.size {
			return at.errorSyntax(in.text, "operands of one size")
		}
		size = o.size
	}
	if size == 0 {
		size = p.locationSize(both)
	}
	in.Size = size
	if in.SrcSize >= in.Size && in.SrcSize != 0 {
		return at.errorSyntax(in.text, "a source smaller than the destination")
	}
	if in.Size == 1 && (in.Op == "lea" || in.Op == "cmovcc") || in.Size < 4 && in.Op == "movnti" {
		return at.errorSyntax(in.text, "operands that "+in.Op+" takes")
	}
	return nil
}

// locationSize is the size of the location that operands name, or that of int.
func (p parser) locationSize(operands []*Operand) int {
	for _, o := range operands {
		if o.Kind == MemOperand && o.Sym != "" {
			if v := p.Var(o.Sym); v != nil && v.Typed {
				return v.Type.Size
			}
		}
	}
	return Int.Size
}

// resolveThread finds the targets of a thread's jumps and the types of its
// registers.
func (p parser) resolveThread(t int) error {
	code := p.Threads[t].Code
	labels := map[string]int{}
	for i, in := range code {
		if in.Label == "" {
			continue
		}
		if _, twice := labels[in.Label]; twice {
			return position{p.File, in.Line}.errorMeaning("the label %s is given twice in P%d", in.Label, t)
		}
		labels[in.Label] = i
	}
	for i := range code {
		in := &code[i]
		if operations[in.Op].shape != shapeJump {
			in.Target = len(code)
			continue
		}
		target, ok := labels[in.target]
		if !ok {
			return position{p.File, in.Line}.errorMeaning("P%d has no label %s", t, in.target)
		}
		in.Target = target
	}
	return nil
}
