package direct

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// form is a kind of instruction, of which registers, addresses and constants are chosen at
// random.
type form struct {
	vex      bool
	prefix   byte // 0, 0x66, 0xf2 or 0xf3
	table    int  // the opcode map: 0 to 3
	opcode   byte
	w, l     byte
	field    int  // of ModRM, as a part of the opcode; -1: a register
	memory   bool // an operand in memory
	mnemonic int
}

func (f form) String() string {
	kind := "legacy"
	if f.vex {
		kind = "VEX"
	}
	return fmt.Sprintf("%s prefix %02x map %d opcode %02x W%d L%d field %d memory %v", kind, f.prefix, f.table, f.opcode, f.w, f.l, f.field, f.memory)
}

var vexPrefix = map[byte]byte{0: 0, 0x66: 1, 0xf3: 2, 0xf2: 3}

// head is the instruction of the form up to ModRM, with the bits that extend registers.
func (f form) head(r, x, b, vvvv byte) []byte {
	if f.vex {
		return []byte{
			0xc4, (r^1)<<7 | (x^1)<<6 | (b^1)<<5 | byte(f.table),
			f.w<<7 | (15-vvvv)<<3 | f.l<<2 | vexPrefix[f.prefix], f.opcode,
		}
	}
	var code []byte
	if f.prefix != 0 {
		code = append(code, f.prefix)
	}
	if rex := f.w<<3 | r<<2 | x<<1 | b; rex != 0 {
		code = append(code, 0x40|rex)
	}
	switch f.table {
	case 1:
		code = append(code, 0x0f)
	case 2:
		code = append(code, 0x0f, 0x38)
	case 3:
		code = append(code, 0x0f, 0x3a)
	}
	return append(code, f.opcode)
}

// forms lists the forms that a processor of the level has.
func forms(level arch.Level) (list []form) {
	tail := []byte{0x24, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	add := func(f form) {
		var all [8]Instruction
		for field := range all {
			mod := byte(0xc0)
			if f.memory {
				mod = 0
			}
			code := append(append(f.head(0, 0, 0, 0), mod|byte(field)<<3|3), tail...)
			all[field] = Inspect(level, code, oracleCode)
			if all[field].Length == 0 && f.vex { // perhaps vvvv is not to name a register
				code[2] |= 15 << 3
				all[field] = Inspect(level, code, oracleCode)
			}
		}
		same := !slices.ContainsFunc(all[:], func(i Instruction) bool { return i.Mnemonic != all[0].Mnemonic || i.Length == 0 })
		for field, i := range all {
			if i.Length == 0 {
				continue
			}
			f.field, f.mnemonic = field, i.Mnemonic
			if same {
				f.field = -1
			}
			list = append(list, f)
			if same {
				return
			}
		}
	}
	for _, prefix := range []byte{0, 0x66, 0xf2, 0xf3} {
		for table := range 4 {
			for opcode := range 256 {
				if table == 0 && isPrefix(byte(opcode)) || table == 1 && (opcode == 0x38 || opcode == 0x3a) {
					continue
				}
				for k := range byte(8) {
					f := form{prefix: prefix, table: table, opcode: byte(opcode), w: k & 1, memory: k&2 != 0}
					if k < 4 {
						add(f)
					}
					f.vex, f.l = true, k>>2
					if table > 0 {
						add(f)
					}
				}
			}
		}
	}
	return list
}

// isPrefix reports whether a byte is no opcode but a prefix, or the begin of one.
func isPrefix(b byte) bool {
	return b&^0xf == 0x40 || slices.Contains([]byte{0x0f, 0x26, 0x2e, 0x36, 0x3e, 0x62, 0x64, 0x65, 0x66, 0x67, 0xc4, 0xc5, 0xf0, 0xf2, 0xf3}, b)
}

// instance makes an instruction of the form, and a state to execute it in.
func (f form) instance(rnd *rand.Rand, level arch.Level, c *oracleCase) (Instruction, bool) {
	bit := func() byte { return byte(rnd.IntN(2)) }
	c.State = randomState(rnd)
	gpr := &c.State.Regs.GPR
	r, x, b, vvvv := bit(), bit(), bit(), byte(rnd.IntN(16))
	field := byte(f.field)
	if f.field < 0 {
		field = byte(rnd.IntN(8))
	} else if rnd.IntN(4) != 0 {
		r = 0
	}
	var code, operand []byte
	if !f.memory {
		operand = []byte{0xc0 | field<<3 | byte(rnd.IntN(8))}
	} else {
		operand, x, b = f.operand(rnd, field, x, b, gpr)
	}
	if rnd.IntN(16) == 0 {
		code = append(code, []byte{0x64, 0x65, 0x67, 0x3e}[rnd.IntN(4)])
	}
	if f.vex && rnd.IntN(2) == 0 {
		vvvv = 0
	}
	code = append(append(code, f.head(r, x, b, vvvv)...), operand...)
	for range 9 {
		code = append(code, byte(rnd.Uint32()))
	}
	i := Inspect(level, code, oracleCode)
	if i.Length == 0 || i.Mnemonic != f.mnemonic {
		return i, false
	}
	code = code[:i.Length]
	c.CodeAt = oracleCode + 256 + uint64(rnd.IntN(64))
	if rnd.IntN(8) == 0 {
		c.CodeAt = oracleCode + arch.PageSize - uint64(rnd.IntN(i.Length+1))
	}
	c.NCode, c.Steps = uint32(copy(c.Code[:], code)), 1
	if end := c.CodeAt + uint64(c.NCode); !i.branches() && end < oracleCode+2*arch.PageSize {
		c.Steps = 0
	}
	c.State.Regs.RIP = c.CodeAt
	return i, true
}

// operand makes a ModRM byte with a memory operand, mostly in the data pages.
func (f form) operand(rnd *rand.Rand, field, x, b byte, gpr *[16]uint64) ([]byte, byte, byte) {
	base, index := byte(rnd.IntN(8)), byte(rnd.IntN(8))
	address := randomAddress(rnd)
	switch rnd.IntN(5) {
	case 0: // [base]
		if base == 4 || base == 5 {
			base = 3
		}
		gpr[base|b<<3] = address
		return []byte{field<<3 | base}, x, b
	case 1: // [base + disp8]
		if base == 4 {
			base = 5
		}
		disp := byte(rnd.Uint32())
		gpr[base|b<<3] = address - uint64(int64(int8(disp)))
		return []byte{0x40 | field<<3 | base, disp}, x, b
	case 2: // [rip + disp32]
		disp := int64(address) - oracleCode - 300
		return binary.LittleEndian.AppendUint32([]byte{field<<3 | 5}, uint32(disp)), x, b
	default: // [base + index * scale + disp32]
		disp := uint32(rnd.Uint32()) >> 8
		gpr[index|x<<3] = uint64(rnd.IntN(9))
		gpr[base|b<<3] = address - uint64(disp)
		return binary.LittleEndian.AppendUint32([]byte{0x80 | field<<3 | 4, byte(rnd.IntN(4))<<6 | index<<3 | base}, disp), x, b
	}
}

// difference describes how two results differ, apart from flags that are undefined.
func difference(got, want *oracleResult, undefined uint64) string {
	var list []string
	add := func(name string, g, w uint64) {
		if g != w {
			list = append(list, fmt.Sprintf("%s is %#x, the processor has %#x", name, g, w))
		}
	}
	for i := range got.State.Regs.GPR {
		if a, b := got.State.Regs.GPR[i], want.State.Regs.GPR[i]; a != b {
			add("gpr "+strconv.Itoa(i), a, b)
		}
	}
	add("rip", got.State.Regs.RIP, want.State.Regs.RIP)
	add("rflags", got.State.Regs.RFLAGS&^undefined, want.State.Regs.RFLAGS&^undefined)
	if f := got.State.Regs.RFLAGS & undefined; f != 0 && want.Trap == 1 {
		list = append(list, fmt.Sprintf("undefined flags are %#x", f))
	}
	g, w := visibleState(got.State.FP), visibleState(want.State.FP)
	for at := 0; at < len(g); at += 8 {
		if a, b := binary.LittleEndian.Uint64(g[at:]), binary.LittleEndian.Uint64(w[at:]); a != b {
			add(fmt.Sprintf("state at %d", at), a, b)
		}
	}
	add("number of changed words", got.NChanges, want.NChanges)
	for i := range min(got.NChanges, want.NChanges, oracleChanges) {
		if g, w := got.Changes[i], want.Changes[i]; g != w {
			list = append(list, fmt.Sprintf("memory at %#x is %#x, the processor has %#x at %#x", g.At, g.Value, w.Value, w.At))
		}
	}
	return strings.Join(list, "; ")
}

// visibleState is a state without the parts that differ between processors: addresses of the last x87
// instruction, the mask of MXCSR, and bytes that are reserved.
func visibleState(s [stateBytes]byte) [stateBytes]byte {
	clear(s[5:24])
	clear(s[28:32])
	for i := range 8 {
		clear(s[32+16*i+10 : 48+16*i])
	}
	clear(s[416:576])
	return s
}

// outcome puts an engine's stop into the terms of the oracle.
func outcome(s executor, stop arch.Stop) (trap, address uint64) {
	switch stop.Reason {
	case arch.StopBudget:
		return 1, 0
	case arch.StopFault:
		return 14, uint64(s.faultAddress())
	case arch.StopException:
		return uint64(stop.Vector), 0
	}
	return 1000 + uint64(stop.Reason), 0
}

// compare runs cases on both and reports differences, at most five.
func compare(t *testing.T, o *oracle, s *subject, cases []oracleCase, what func(i int) (string, Instruction)) (differences int) {
	t.Helper()
	results := o.run(t, cases)
	for i := range cases {
		name, in := what(i)
		text := disagreement(s, &cases[i], &results[i], in)
		if text != "" {
			// Hypervisors that emulate some of the host's instructions refuse one now and then.
			again := o.run(t, cases[i:i+1])
			text = disagreement(s, &cases[i], &again[0], in)
		}
		if text != "" {
			differences++
			t.Errorf("%s: % x: %s", name, cases[i].Code[:cases[i].NCode], text)
		}
		if differences == 5 {
			t.Logf("%s: the remaining %d cases are left out", name, len(cases)-i-1)
			break
		}
	}
	return differences
}

// disagreement runs a case on the engine and describes how the result differs from the host's.
func disagreement(s *subject, c *oracleCase, want *oracleResult, in Instruction) string {
	got, stop := s.run(c)
	trap, address := outcome(s, stop)
	if in.lacksDescriptor(&got, want) || in.setsMisalignedMask(want) || hostIsIntel() && in.differsByVendor(c, trap) {
		return ""
	}
	text := difference(&got, want, in.undefinedAfter(c))
	if !in.Native { // several accesses, in an order of the processor's own
		address &^= arch.PageSize - 1
		want.Address &^= arch.PageSize - 1
	}
	if trap == 14 && want.Trap == 14 && c.mayNameSecondPage(address, want.Address) {
		want.Address = address
	}
	if trap != want.Trap || (trap == 14 && address != want.Address) {
		text = fmt.Sprintf("trap %d at %#x, the processor has %d at %#x (error %d); %s", trap, address, want.Trap, want.Address, want.Error, text)
	}
	return text
}

// TestInstructionsAgainstHardware executes instructions of every form with random operands and
// states on the engine and on the host's processor.
func TestInstructionsAgainstHardware(t *testing.T) {
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("HEDDLE_SEED"), 10, 64); err == nil {
		seed = n
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	data := newData(rnd)
	o, s := newOracle(t, data), newSubject(t, arch.V3, data)
	all := forms(arch.V3)
	t.Logf("%d forms, seed %d", len(all), seed)
	perForm := testsize.Runs(1, 4, 10_000)
	only := os.Getenv("HEDDLE_FORM")
	total, differences := 0, 0
	for n, f := range all {
		if n%1000 == 999 {
			t.Logf("%d forms, %d instructions", n+1, total)
		}
		if only != "" && !strings.Contains(f.String(), only) {
			continue
		}
		var cases []oracleCase
		var list []Instruction
		for tries := 0; len(cases) < perForm && tries < 20*perForm; tries++ {
			var c oracleCase
			i, ok := f.instance(rnd, arch.V3, &c)
			if !ok || i.differs() {
				continue
			}
			cases, list = append(cases, c), append(list, i)
		}
		if len(cases) == 0 {
			continue
		}
		total += len(cases)
		differences += compare(t, o, s, cases, func(i int) (string, Instruction) { return f.String(), list[i] })
		if differences > 200 {
			t.Fatal("too many differences")
		}
	}
	t.Logf("%d instructions", total)
}

// undefinedAfter are the flags that are undefined after the instruction, for the count that the
// case has in CL if it is a shift by that.
func (i Instruction) undefinedAfter(c *oracleCase) uint64 {
	const cf, of = 1, 0x800
	if !i.ByCount {
		return i.Undefined
	}
	count := c.State.Regs.GPR[arch.RCX] & 31
	if i.Width == 8 {
		count = c.State.Regs.GPR[arch.RCX] & 63
	}
	switch {
	case count == 0:
		return 0
	case count == 1:
		return i.Undefined &^ of
	case count >= uint64(8*i.Width) && i.shiftsOut():
		return i.Undefined | cf
	}
	return i.Undefined
}
