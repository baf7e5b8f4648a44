package emu

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// TestOperands: the memory that each instruction is about to access, by the SDM.
func TestOperands(t *testing.T) {
	const data, stack = dataBase, stackBase + PageSize/2
	for _, c := range []struct {
		source string
		want   []Operand
	}{
		{"mov rax, [rbx+8]", []Operand{{data + 8, 8, false}}},
		{"mov byte ptr [rbx+rcx*4-1], 7", []Operand{{data + 19, 1, true}}},
		{"add [rbx], ax", []Operand{{data, 2, true}}},
		{"lea rax, [rbx]", nil},
		{"nop dword ptr [rbx]", nil},
		{"prefetcht0 [rbx]", nil},
		{"push rax", []Operand{{stack - 8, 8, true}}},
		{"push qword ptr [rbx]", []Operand{{data, 8, false}, {stack - 8, 8, true}}},
		{"pop qword ptr [rbx]", []Operand{{data, 8, true}, {stack, 8, false}}},
		{"ret", []Operand{{stack, 8, false}}},
		{"movsw", []Operand{{data + 64, 2, true}, {data, 2, false}}},
		{"rep stosb", []Operand{{data + 64, 1, true}}},
		{"xor ecx, ecx", nil},
		{"movaps [rbx], xmm0", []Operand{{data, 16, true}}},
		{"mov [ebx], eax", []Operand{{data, 4, true}}},
		{"mov fs:[rcx], eax", []Operand{{data + 0x1005, 4, true}}},
		{"bts [rbx], rdx", []Operand{{data - 8, 8, true}}},
	} {
		b := newBench(t, c.source)
		b.setRegs(func(r *Regs) {
			r.GPR[RBX], r.GPR[RCX], r.GPR[RDX] = uint64(data), 5, ^uint64(0)
			r.GPR[RSI], r.GPR[RDI], r.GPR[RSP] = uint64(data), uint64(data+64), uint64(stack)
			r.FSBase = uint64(data + 0x1000)
		})
		got := b.cpu.Operands()
		byAddr := func(x, y Operand) int { return int(x.Addr) - int(y.Addr) }
		slices.SortFunc(got, byAddr)
		slices.SortFunc(c.want, byAddr)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.source, got, c.want)
		}
	}
}

// TestRepetitionIsOver: an instruction whose last iteration was stepped counts once more for
// leaving it.
func TestRepetitionIsOver(t *testing.T) {
	b := newBench(t, "rep stosb\nnop")
	b.setRegs(func(r *Regs) { r.GPR[RCX], r.GPR[RDI] = 2, uint64(dataBase) })
	for i, want := range []struct {
		pc   event.Addr
		over bool
	}{{codeBase, false}, {codeBase, true}, {codeBase + 2, false}} {
		b.cpu.Run(Limit{Most: 1})
		if got := b.cpu.RepetitionIsOver(); got != want.over || b.cpu.PC() != want.pc {
			t.Errorf("step %d: at %#x, over %v; want %#x, %v", i, b.cpu.PC(), got, want.pc, want.over)
		}
	}
	b.setRegs(func(r *Regs) { r.RIP, r.GPR[RCX] = uint64(codeBase), 0 })
	if len(b.cpu.Operands()) != 0 {
		t.Error("an instruction without iterations accesses memory")
	}
}
