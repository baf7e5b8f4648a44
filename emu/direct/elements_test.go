package direct

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// The state of the processor has the registers YMM in two halves.
func vectorByte(fp *[stateBytes]byte, register byte, at int) *byte {
	if at < 16 {
		return &fp[160+16*int(register)+at]
	}
	return &fp[ymmHighAt+16*int(register)+at-16]
}

// elementForms are the gathering loads, and the moves of elements that a mask selects.
func elementForms() (list []form) {
	for _, w := range []byte{0, 1} {
		for _, l := range []byte{0, 1} {
			for _, opcode := range []byte{0x2c, 0x2d, 0x2e, 0x2f, 0x8c, 0x8e, 0x90, 0x91, 0x92, 0x93} {
				if opcode < 0x80 && w == 1 {
					continue
				}
				list = append(list, form{vex: true, prefix: 0x66, table: 2, opcode: opcode, w: w, l: l, field: -1, memory: true})
			}
		}
	}
	return list
}

// elementCase makes an instruction whose elements mostly lie in the data pages, across their ends too.
func (f form) elementCase(rnd *rand.Rand, c *oracleCase) Instruction {
	c.State = randomState(rnd)
	fp := &c.State.FP
	r, x, b, vvvv := byte(rnd.IntN(2)), byte(rnd.IntN(2)), byte(rnd.IntN(2)), byte(rnd.IntN(16))
	reg, index, base, disp := byte(rnd.IntN(8)), byte(rnd.IntN(8)), byte(rnd.IntN(8)), uint32(rnd.IntN(1<<20))
	scale := byte(rnd.IntN(4))
	gpr := &c.State.Regs.GPR
	if f.opcode >= 0x90 {
		size := 4 << (f.opcode & 1)
		for at := 0; at < 32; at += size {
			n := int64(rnd.IntN(600) - 100)
			for k := range size {
				*vectorByte(fp, index|x<<3, at+k) = byte(n >> (8 * k))
			}
		}
	} else {
		if index|x<<3 == 4 { // no index
			index = 3
		}
		gpr[index|x<<3] = uint64(rnd.IntN(9))
	}
	for at := range 32 {
		if rnd.IntN(3) > 0 {
			*vectorByte(fp, vvvv, at) ^= 0x80
		}
	}
	gpr[base|b<<3] = randomAddress(rnd) - uint64(disp)
	code := append(f.head(r, x, b, vvvv), 0x80|reg<<3|4, scale<<6|index<<3|base)
	code = binary.LittleEndian.AppendUint32(code, disp)
	c.CodeAt, c.NCode = oracleCode+256, uint32(copy(c.Code[:], code))
	c.State.Regs.RIP = c.CodeAt
	return Inspect(arch.V3, code, c.CodeAt)
}

// TestElementsAgainstHardware executes gathering loads and moves under masks.
func TestElementsAgainstHardware(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 11))
	data := newData(rnd)
	o, s := newOracle(t, data), newSubject(t, arch.V3, data)
	for _, f := range elementForms() {
		var cases []oracleCase
		var list []Instruction
		for len(cases) < testsize.Runs(20, 200, 20_000) {
			var c oracleCase
			if i := f.elementCase(rnd, &c); i.Length > 0 {
				cases, list = append(cases, c), append(list, i)
			}
		}
		compare(t, o, s, cases, func(i int) (string, Instruction) { return f.String(), list[i] })
	}
}

// TestOperandsOfElements: the operands that the engine names before the instruction are the accesses that
// the log of memory has of it.
func TestOperandsOfElements(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 12))
	s := newSubject(t, arch.V3, newData(rnd))
	if err := s.cpu.LogMemory(memlog.Filter{}); err != nil {
		t.Fatal(err)
	}
	buffer := memlog.NewBuffer()
	defer buffer.Close()
	elements := 0
	for _, f := range elementForms() {
		for range testsize.Runs(20, 200, 2000) {
			var c oracleCase
			if i := f.elementCase(rnd, &c); i.Length == 0 {
				continue
			}
			s.cpu.SetRegs(&c.State.Regs)
			s.cpu.setState(&c.State.FP)
			s.putCode(&c, c.Code[:c.NCode])
			want := s.cpu.Operands()
			stop := s.cpu.Run(arch.Limit{Instructions: 1, Exact: true})
			s.cpu.SwapMemory(buffer)
			if stop.Reason != arch.StopBudget {
				continue
			}
			var got []arch.Operand
			for _, e := range buffer.Entries() {
				if e.Kind <= memlog.Store {
					got = append(got, arch.Operand{Addr: arch.Addr(e.Addr), Size: int(e.Size), Write: e.Kind == memlog.Store})
				}
			}
			order := func(a, b arch.Operand) int { return cmp.Compare(a.Addr, b.Addr) }
			slices.SortFunc(got, order)
			slices.SortFunc(want, order)
			if !slices.Equal(got, want) {
				t.Fatalf("% x: operands %v, accesses %v", c.Code[:c.NCode], want, got)
			}
			elements += len(got)
		}
	}
	if elements < 1000 {
		t.Errorf("only %d elements", elements)
	}
}
