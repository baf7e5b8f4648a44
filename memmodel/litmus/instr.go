package litmus

import (
	"fmt"
	"strings"
)

// Instr is one instruction, its operands in the order of Intel's manual:
// destination first.
type Instr struct {
	Line  int
	Label string // in front of it
	Lock  bool
	// Op is the mnemonic without a suffix for the size; jcc, setcc and cmovcc
	// have the condition in Cond, as Intel's shortest name.
	Op   string
	Cond string
	// Size is the operands' size in bytes, SrcSize that of a movzx's or movsx's
	// source.
	Size, SrcSize int
	Dst, Src      Operand
	// Target is the index of the instruction that a jump goes to; the number of
	// instructions of the thread means its end.
	Target int
	target string
	suffix int
	text   string
}

// OperandKind is the kind of an operand.
type OperandKind uint8

// Kinds of operands.
const (
	NoOperand OperandKind = iota
	RegOperand
	ImmOperand
	MemOperand
)

// Operand is a register, a number or a place in memory.
type Operand struct {
	Kind OperandKind
	Reg  Reg  // of RegOperand; the base of MemOperand, or NoReg
	High bool // the second byte of Reg: ah, ch, dh, bh
	// Imm is the number of an ImmOperand and the displacement of a MemOperand;
	// to either the address of Sym is added, if there is one.
	Imm   int64
	Sym   string
	Index Reg // of MemOperand, or NoReg
	Scale int
	size  int // of a register as it was named, or of "dword ptr"
}

// shape is which operands an instruction takes.
type shape uint8

const (
	shapeNone     shape = iota
	shapeOne            // register or memory
	shapeTwo            // register or memory, and register, memory or number
	shapeStore          // memory, register
	shapeLoad           // register, register or memory
	shapeExchange       // register or memory, register, in either order
	shapeAddress        // register, memory (lea)
	shapeJump
)

type operation struct {
	shape    shape
	lockable bool
	sized    bool // takes the suffixes b, w, l, q
}

var operations = map[string]operation{
	"nop": {shapeNone, false, false}, "endbr64": {shapeNone, false, false}, "ret": {shapeNone, false, false},
	"pause": {shapeNone, false, false}, "mfence": {shapeNone, false, false}, "sfence": {shapeNone, false, false},
	"lfence": {shapeNone, false, false},
	"mov":    {shapeTwo, false, true}, "movabs": {shapeTwo, false, true}, "add": {shapeTwo, true, true}, "sub": {shapeTwo, true, true},
	"and": {shapeTwo, true, true}, "or": {shapeTwo, true, true}, "xor": {shapeTwo, true, true},
	"cmp": {shapeTwo, false, true}, "test": {shapeTwo, false, true},
	"inc": {shapeOne, true, true}, "dec": {shapeOne, true, true}, "neg": {shapeOne, true, true}, "not": {shapeOne, true, true},
	"xchg": {shapeExchange, true, true}, "xadd": {shapeExchange, true, true}, "cmpxchg": {shapeExchange, true, true},
	"movnti": {shapeStore, false, true}, "movzx": {shapeLoad, false, false}, "movsx": {shapeLoad, false, false},
	"lea": {shapeAddress, false, true}, "jmp": {shapeJump, false, false}, "jcc": {shapeJump, false, false},
	"setcc": {shapeOne, false, false}, "cmovcc": {shapeLoad, false, true},
}

// conditions by all their names; the value is one name for each.
var conditions = map[string]string{
	"o": "o", "no": "no", "b": "b", "c": "b", "nae": "b", "ae": "ae", "nb": "ae", "nc": "ae", "e": "e", "z": "e",
	"ne": "ne", "nz": "ne", "be": "be", "na": "be", "a": "a", "nbe": "a", "s": "s", "ns": "ns", "p": "p", "pe": "p",
	"np": "np", "po": "np", "l": "l", "nge": "l", "ge": "ge", "nl": "ge", "le": "le", "ng": "le", "g": "g", "nle": "g",
	// herd's own names
	"lt": "l", "gt": "g",
}

var suffixes = map[byte]int{'b': 1, 'w': 2, 'l': 4, 'q': 8}

// Supported lists the mnemonics that tests may use.
func Supported() string {
	return "mov movnti movzx movsx lea add sub and or xor cmp test inc dec neg not xchg xadd cmpxchg (each but the first " +
		"five also with b, w, l, q), the lock prefix, mfence sfence lfence, jmp jcc setcc cmovcc, nop pause endbr64 ret"
}

// lookUpMnemonic finds the meaning of a word.
func lookUpMnemonic(word string) (in Instr, ok bool) {
	word = strings.ToLower(word)
	if _, ok := operations[word]; ok && !strings.HasSuffix(word, "cc") {
		return Instr{Op: word}, true
	}
	for _, prefix := range []string{"j", "set", "cmov"} {
		rest, found := strings.CutPrefix(word, prefix)
		if c, known := conditions[rest]; found && known {
			return Instr{Op: prefix + "cc", Cond: c}, true
		}
		if prefix != "cmov" || !found || len(rest) < 2 {
			continue
		}
		if c, known := conditions[rest[:len(rest)-1]]; known && suffixes[rest[len(rest)-1]] > 1 {
			return Instr{Op: "cmovcc", Cond: c, suffix: suffixes[rest[len(rest)-1]]}, true
		}
	}
	return lookUpSuffixed(word)
}

// lookUpSuffixed finds instructions with a suffix for the size of their operands.
func lookUpSuffixed(word string) (in Instr, ok bool) {
	n := len(word)
	if n < 2 {
		return in, false
	}
	last := suffixes[word[n-1]]
	if op, found := operations[word[:n-1]]; found && op.sized && last > 0 {
		return Instr{Op: word[:n-1], suffix: last}, true
	}
	// movzbl and the like: source and destination.
	if n == 6 && (word[:4] == "movz" || word[:4] == "movs") {
		from := suffixes[word[4]]
		if from > 0 && from < last {
			return Instr{Op: word[:4] + "x", SrcSize: from, suffix: last}, true
		}
	}
	return in, false
}

// assemblyText is the instruction as AT&T's syntax has it, with a number for every
// location and the given label for a jump to go to.
func (t *Test) assemblyText(in Instr, label string) string {
	if in.Op == "ret" {
		return "jmp " + label
	}
	return t.formatInstr(in, label, t.operandText)
}

// formatInstr is the instruction with operands in the given notation.
func (t *Test) formatInstr(in Instr, label string, operand func(o Operand, size int) string) string {
	var b strings.Builder
	if in.Lock {
		b.WriteString("lock ")
	}
	letter := map[int]string{1: "b", 2: "w", 4: "l", 8: "q"}
	switch shape := operations[in.Op].shape; {
	case shape == shapeNone:
		b.WriteString(in.Op)
	case shape == shapeJump:
		if in.Op == "jmp" {
			return "jmp " + label
		}
		return "j" + in.Cond + " " + label
	case in.Op == "setcc":
		b.WriteString("set" + in.Cond + " " + operand(in.Dst, 1))
	case in.Op == "cmovcc":
		b.WriteString("cmov" + in.Cond + " " + operand(in.Src, in.Size) + "," + operand(in.Dst, in.Size))
	case in.Op == "movzx" || in.Op == "movsx":
		fmt.Fprintf(&b, "%s%s%s %s,%s", in.Op[:4], letter[in.SrcSize], letter[in.Size], operand(in.Src, in.SrcSize), operand(in.Dst, in.Size))
	case shape == shapeOne:
		fmt.Fprintf(&b, "%s%s %s", in.Op, letter[in.Size], operand(in.Dst, in.Size))
	default:
		fmt.Fprintf(&b, "%s%s %s,%s", in.Op, letter[in.Size], operand(in.Src, in.Size), operand(in.Dst, in.Size))
	}
	return b.String()
}

func (t *Test) operandText(o Operand, size int) string {
	switch o.Kind {
	case RegOperand:
		return "%" + view{o.Reg, size, o.High}.partName()
	case ImmOperand:
		return fmt.Sprintf("$%d", t.Number(o))
	}
	s := fmt.Sprint(t.Number(o))
	if o.Reg == NoReg && o.Index == NoReg {
		return s
	}
	s += "("
	if o.Reg != NoReg {
		s += "%" + regNames[o.Reg]
	}
	if o.Index != NoReg {
		s += fmt.Sprintf(",%%%s,%d", regNames[o.Index], o.Scale)
	}
	return s + ")"
}

// Number is the number of an immediate operand, or the displacement of one in
// memory, with the addresses of locations put in.
func (t *Test) Number(o Operand) int64 {
	if o.Sym == "" {
		return o.Imm
	}
	return int64(t.Var(o.Sym).Addr) + o.Imm
}
