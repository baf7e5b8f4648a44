package direct

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// programForms are the forms that random programs consist of: mostly those of one-byte opcodes.
func programForms(level arch.Level) (list []form) {
	for _, f := range forms(level) {
		n := 1
		if f.table == 0 && f.opcode < 0xd8 {
			n = 40
		} else if f.table == 1 && !f.vex && f.prefix == 0 {
			n = 8
		}
		list = append(list, slices.Repeat([]form{f}, n)...)
	}
	return list
}

// programCode is the offset of random programs in their page: their operands relative to the
// program counter are near the data then.
const programCode = 300

// randomProgram makes code of n instructions, with registers set to addresses before those that
// use them, and branches that mostly go forward.
func randomProgram(rnd *rand.Rand, forms []form, level arch.Level, n int) []byte {
	var code []byte
	var starts []int
	for range n {
		starts = append(starts, len(code))
		switch rnd.IntN(10) {
		case 0:
			code = append(code, randomBranch(rnd, len(code), starts)...)
		case 1:
			code = append(code, randomStack(rnd)...)
		default:
			code = append(code, randomInsn(rnd, forms, level)...)
		}
	}
	return append(code, 0x0f, 0x05)
}

// randomInsn is an instruction of a form, after others that give its address registers values.
func randomInsn(rnd *rand.Rand, forms []form, level arch.Level) []byte {
	const unset = 0x123456789abcdef0
	for {
		f := forms[rnd.IntN(len(forms))]
		var gpr [16]uint64
		for i := range gpr {
			gpr[i] = unset
		}
		bit := func() byte { return byte(rnd.IntN(2)) }
		r, x, b, vvvv := bit(), bit(), bit(), byte(rnd.IntN(16))
		field := byte(f.field)
		if f.field < 0 {
			field = byte(rnd.IntN(8))
		}
		if f.vex && rnd.IntN(2) == 0 {
			vvvv = 0
		}
		operand := []byte{0xc0 | field<<3 | byte(rnd.IntN(8))}
		if f.memory {
			operand, x, b = f.operand(rnd, field, x, b, &gpr)
		}
		insn := append(f.head(r, x, b, vvvv), operand...)
		for range 9 {
			insn = append(insn, byte(rnd.Uint32()))
		}
		if locked := append([]byte{0xf0}, insn...); f.memory && !f.vex && rnd.IntN(2) == 0 && Inspect(level, locked, oracleCode).Length != 0 {
			insn = locked
		}
		i := Inspect(level, insn, oracleCode)
		if i.Length == 0 || i.Mnemonic != f.mnemonic || i.branches() && rnd.IntN(8) != 0 {
			continue
		}
		var code []byte
		for reg, v := range gpr {
			if v != unset {
				code = append(code, 0x48|byte(reg>>3), 0xb8|byte(reg&7))
				code = binary.LittleEndian.AppendUint64(code, v)
			}
		}
		return append(code, insn[:i.Length]...)
	}
}

func randomStack(rnd *rand.Rand) []byte {
	reg := byte(rnd.IntN(8))
	switch rnd.IntN(8) {
	case 0: // a stack pointer
		return binary.LittleEndian.AppendUint64([]byte{0x48, 0xbc}, randomAddress(rnd))
	case 1:
		return []byte{0x41, 0x50 | reg}
	case 2:
		return []byte{0x41, 0x58 | reg}
	case 3:
		return []byte{0x58 | reg}
	case 4:
		return []byte{0x6a, byte(rnd.Uint32())}
	case 5: // a frame, and leaving it
		return []byte{0x55, 0x48, 0x89, 0xe5, 0xc9}
	}
	return []byte{0x50 | reg}
}

func randomBranch(rnd *rand.Rand, at int, starts []int) []byte {
	switch rnd.IntN(8) {
	case 0: // to an earlier instruction
		to := starts[rnd.IntN(len(starts))]
		return binary.LittleEndian.AppendUint32([]byte{0x0f, 0x80 | byte(rnd.IntN(16))}, uint32(to-at-6))
	case 1: // call the next instruction
		return []byte{0xe8, 0, 0, 0, 0}
	case 2: // lea rax, [rip + 2]; push rax; ret
		return []byte{0x48, 0x8d, 0x05, 2, 0, 0, 0, 0x50, 0xc3}
	case 3: // lea r11, [rip + 3]; jmp r11
		return []byte{0x4c, 0x8d, 0x1d, 3, 0, 0, 0, 0x41, 0xff, 0xe3}
	case 4: // lea r10, [rip + 3]; call r10
		return []byte{0x4c, 0x8d, 0x15, 3, 0, 0, 0, 0x41, 0xff, 0xd2}
	case 5: // jmp over an instruction of two bytes
		return []byte{0xeb, 2, 0x31, 0xc0}
	}
	// A condition jumps over an instruction: add r10, 1.
	return []byte{0x70 | byte(rnd.IntN(16)), 4, 0x49, 0x83, 0xc2, 1}
}

// place puts the program into the subject's memory, which has its data anew, and its state into a
// new thread.
func (s *subject) place(state *cpuState, code []byte) {
	for i, p := range s.pages {
		copy(s.ram.Bytes(p), s.data[i*arch.PageSize:])
	}
	for i, p := range s.code {
		page := s.ram.Bytes(p)
		for at := range page {
			page[at] = 0xcc
			if k := i*arch.PageSize + at - programCode; k >= 0 && k < len(code) {
				page[at] = code[k]
			}
		}
		s.ram.Written(p)
	}
	s.restart(state)
}

func (s *subject) restart(state *cpuState) {
	s.ctx.Release()
	s.ctx = s.cpu.NewContext()
	s.cpu.Load(s.ctx, s.space)
	s.cpu.SetRegs(&state.Regs)
	s.cpu.setState(&state.FP)
}

// compareWith reports how two subjects that have stopped differ.
func (s *subject) compareWith(o *subject, a, b arch.Stop) string {
	if a != b {
		return fmt.Sprintf("stops %+v and %+v", a, b)
	}
	if a.Reason == arch.StopFault && s.cpu.FaultAddr() != o.cpu.FaultAddr() {
		return fmt.Sprintf("faults at %#x and %#x", s.cpu.FaultAddr(), o.cpu.FaultAddr())
	}
	var x, y cpuState
	s.cpu.Regs(&x.Regs)
	o.cpu.Regs(&y.Regs)
	if x.Regs != y.Regs {
		return fmt.Sprintf("registers\n%x and\n%x", x.Regs, y.Regs)
	}
	s.cpu.state(&x.FP)
	o.cpu.state(&y.FP)
	for at := range x.FP {
		if x.FP[at] != y.FP[at] {
			return fmt.Sprintf("floating-point states at %d: %x and %x", at, x.FP[at], y.FP[at])
		}
	}
	for i := range s.pages {
		if !slices.Equal(s.ram.Bytes(s.pages[i]), o.ram.Bytes(o.pages[i])) {
			return fmt.Sprintf("page %d", i)
		}
	}
	for i := range s.code {
		if !slices.Equal(s.ram.Bytes(s.code[i]), o.ram.Bytes(o.code[i])) {
			return fmt.Sprintf("code page %d", i)
		}
	}
	return ""
}

// TestBlocksAgainstSteps runs random programs in blocks and one instruction at a time: every stop
// is the same, with the same state.
func TestBlocksAgainstSteps(t *testing.T) {
	agreeWithSteps(t, arch.V3, straight(programForms(arch.V3), arch.V3), testsize.Runs(3_000, 20_000, 1_000_000), 1000)
}

// TestLoops does so with programs of integer instructions that run again and again, so that their blocks become long,
// and lead to each other and to themselves.
func TestLoops(t *testing.T) {
	list := integerForms(programForms(arch.V3))
	loop := func(rnd *rand.Rand) []byte {
		code := randomProgram(rnd, list, arch.V3, 2+rnd.IntN(12))
		code = code[:len(code)-2]
		code = binary.LittleEndian.AppendUint32(append(code, 0x0f, 0x80|byte(rnd.IntN(16))), -uint32(len(code)+6))
		return binary.LittleEndian.AppendUint32(append(code, 0xe9), -uint32(len(code)+5))
	}
	agreeWithSteps(t, arch.V3, loop, testsize.Runs(300, 1_500, 100_000), 4000)
}

// TestFlagsOfShifts does so with programs that consist of shifts and rotations, most of them by CL, of instructions that
// change or use a part of the flags, and of some others.
func TestFlagsOfShifts(t *testing.T) {
	var list []form
	for _, f := range programForms(arch.V3) {
		wide := f.table == 1 && !f.vex && f.prefix == 0
		switch {
		case f.table == 0 && (f.opcode == 0xd2 || f.opcode == 0xd3) && !f.vex:
			list = append(list, slices.Repeat([]form{f}, 4)...)
		case f.table == 0 && (f.opcode >= 0xfe || f.opcode&^1 == 0xd0 || f.opcode == 0x8d || f.opcode == 0x11),
			wide && (f.opcode&^15 == 0x40 || f.opcode&^15 == 0x90 || f.opcode == 0xa5 || f.opcode == 0xaf):
			list = append(list, f)
		case f.table == 0 && f.opcode < 0x40 || f.table == 0 && f.opcode&^3 == 0x88:
			if f.opcode&7 == 3 {
				list = append(list, f)
			}
		}
	}
	agreeWithSteps(t, arch.V3, straight(list, arch.V3), testsize.Runs(3_000, 10_000, 1_000_000), 1000)
}

// straight makes random programs of the forms.
func straight(list []form, level arch.Level) func(*rand.Rand) []byte {
	return func(rnd *rand.Rand) []byte { return randomProgram(rnd, list, level, 3+rnd.IntN(30)) }
}

// agreeWithSteps runs random programs in blocks and one instruction at a time, so many instructions at most before it compares
// them, and returns a hash of the registers at all stops.
func agreeWithSteps(t *testing.T, level arch.Level, program func(*rand.Rand) []byte, programs, most int) uint64 {
	t.Helper()
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("HEDDLE_SEED"), 10, 64); err == nil {
		seed = n
	}
	hash := fnv.New64a()
	only, _ := strconv.Atoi(os.Getenv("HEDDLE_CASE"))
	rnd := rand.New(rand.NewPCG(seed, 7))
	data := newData(rnd)
	blocks, steps := newSubject(t, level, data), newSubject(t, level, data)
	steps.cpu.setStepsOnly(true)
	failed := 0
	reasons := map[arch.StopReason]int{}
	for n := range programs {
		rnd := rand.New(rand.NewPCG(seed, uint64(n)))
		state := randomState(rnd)
		state.Regs.RFLAGS &^= 0x400
		state.Regs.RIP = oracleCode + programCode
		code := program(rnd)
		if only != 0 && n != only {
			continue
		}
		blocks.place(&state, code)
		steps.place(&state, code)
	runs:
		for range 3 {
			for range 4 {
				limit := arch.Limit{Instructions: 1 + uint64(rnd.IntN(most)), Exact: rnd.IntN(2) == 0}
				if rnd.IntN(3) == 0 {
					limit.Cycles = 1 + arch.Cycles(rnd.IntN(3000))
				}
				a, b := blocks.cpu.Run(limit), steps.cpu.Run(limit)
				reasons[a.Reason]++
				var regs arch.Regs
				blocks.cpu.Regs(&regs)
				fmt.Fprintln(hash, a, regs)
				if text := blocks.compareWith(steps, a, b); text != "" {
					t.Errorf("seed %d, case %d: % x: %s", seed, n, code, text)
					if failed++; failed > 5 {
						t.FailNow()
					}
					break runs
				}
				if a.Reason != arch.StopBudget {
					break
				}
			}
			blocks.restart(&state)
			steps.restart(&state)
		}
	}
	t.Log(reasons)
	return hash.Sum64()
}
