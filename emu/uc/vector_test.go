package uc

import (
	"bytes"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/internal/zydis"
)

// vectorForms calls use with an encoding of each form of instruction that Zydis knows with a VEX,
// EVEX or XOP prefix: maps, opcodes, operand sizes, register and memory operands, and members of
// opcode groups.
func vectorForms(use func(code []byte, in zydis.Instruction)) {
	try := func(head ...byte) {
		for opcode := range 256 {
			for _, operand := range vectorOperands {
				code := append(append(append([]byte{}, head...), byte(opcode)), operand...)
				code = append(code, 0, 0, 0, 0)
				if in, ok := zydis.Decode(code, uint64(codeBase)); ok {
					use(code[:in.Length], in)
				}
			}
		}
	}
	// The bits R, X, B, R' and vvvv are inverted. An instruction either requires all ones in vvvv
	// or accepts any register there.
	for prefix := range byte(4) {
		for length := range byte(2) {
			for _, second := range []byte{0x78, 0x70} {
				try(0xc5, 0x80|second|length<<2|prefix)
				for wide := range byte(2) {
					last := wide<<7 | second | length<<2 | prefix
					for m := range byte(32) {
						try(0xc4, 0xe0|m, last)
					}
					for m := byte(8); m < 32; m++ {
						try(0x8f, 0xe0|m, last)
					}
				}
			}
		}
		for wide := range byte(2) {
			for _, second := range []byte{0x78, 0x70} {
				for m := range byte(8) {
					for _, third := range []byte{0x08, 0x28, 0x48, 0x09, 0x29, 0x49, 0x18, 0x38, 0x58} {
						try(0x62, 0xf0|m, wide<<7|second|4|prefix, third)
					}
				}
			}
		}
	}
}

// vectorOperands are bytes after an opcode: ModRM for each member of a group with a register, for
// memory at a register, and with an index for gathers and scatters.
var vectorOperands = [][]byte{
	{0xc1},
	{0xc9},
	{0xd1},
	{0xd9},
	{0xe1},
	{0xe9},
	{0xf1},
	{0xf9},
	{0x00},
	{0x08},
	{0x10},
	{0x18},
	{0x20},
	{0x28},
	{0x30},
	{0x38},
	{0x04, 0x10},
}

// vectorForm is an encoding with the name of its instruction.
type vectorForm struct {
	code []byte
	text string
}

// TestVectorExtensionsAreInvalid executes each form of instruction with a VEX, EVEX or XOP prefix,
// at the start of a block and after other instructions. The processor has no such instruction: each
// raises #UD without effect, and has a name and an extension for the report.
func TestVectorExtensionsAreInvalid(t *testing.T) {
	var forms []vectorForm
	extensions := map[string]int{}
	vectorForms(func(code []byte, in zydis.Instruction) {
		if in.Text == "" || in.Extension == "" || in.Extension == "BASE" {
			t.Errorf("% x: %q of extension %q", code, in.Text, in.Extension)
		}
		extensions[in.Extension]++
		forms = append(forms, vectorForm{bytes.Clone(code), in.Text})
	})
	for _, want := range []string{"AVX", "AVX2", "FMA", "FMA4", "BMI1", "BMI2", "F16C", "XOP", "TBM", "AVX512EVEX"} {
		if extensions[want] == 0 {
			t.Errorf("no form of %s among %v", want, extensions)
		}
	}
	t.Logf("%d encodings: %v", len(forms), extensions)
	b := newBench(t, ".fill 4000, 1, 0x90")
	const room = 32
	batches := slices.Collect(slices.Chunk(forms, arch.PageSize/room))
	for n, batch := range batches {
		if n%testsize.Pick(8, 1, 1) != 0 {
			continue
		}
		page := b.Space.Get(codeBase).Page()
		text := bytes.Repeat([]byte{0x90}, arch.PageSize)
		for i, f := range batch {
			copy(text[i*room+i%3:], f.code)
		}
		copy(b.RAM.Bytes(page), text)
		b.RAM.Written(page)
		for i, f := range batch {
			at, before := uint64(codeBase)+uint64(i*room), uint64(i%3)
			b.ChangeRegs(func(r *arch.Regs) { r.RIP = at; r.GPR[arch.RAX] = uint64(dataBase) })
			s := b.CPU.Run(arch.Limit{Instructions: 8, Exact: true})
			if s.Reason == arch.StopFault && s.Ahead {
				// The engine takes the code for a longer instruction.
				b.CPU.StepAhead()
				s = b.CPU.Resume()
			}
			if s.Reason != arch.StopException || s.Vector != 6 || b.Regs().RIP != at+before || s.Instructions != before {
				t.Fatalf("% x %q: reason %d, vector %d at %#x after %d instructions",
					f.code, f.text, s.Reason, s.Vector, b.Regs().RIP-at, s.Instructions)
			}
		}
	}
}
