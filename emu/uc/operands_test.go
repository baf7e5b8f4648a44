package uc

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// TestOperands expects the memory that the SDM says each instruction accesses.
func TestOperands(t *testing.T) {
	const data, stack = dataBase, stackBase + arch.PageSize/2
	for _, c := range []struct {
		source string
		want   []arch.Operand
	}{
		{"mov rax, [rbx+8]", []arch.Operand{{Addr: data + 8, Size: 8, Write: false}}},
		{"mov byte ptr [rbx+rcx*4-1], 7", []arch.Operand{{Addr: data + 19, Size: 1, Write: true}}},
		{"add [rbx], ax", []arch.Operand{{Addr: data, Size: 2, Write: true}}},
		{"lea rax, [rbx]", nil},
		{"nop dword ptr [rbx]", nil},
		{"prefetcht0 [rbx]", nil},
		{"push rax", []arch.Operand{{Addr: stack - 8, Size: 8, Write: true}}},
		{"push qword ptr [rbx]", []arch.Operand{{Addr: data, Size: 8, Write: false}, {Addr: stack - 8, Size: 8, Write: true}}},
		{"pop qword ptr [rbx]", []arch.Operand{{Addr: data, Size: 8, Write: true}, {Addr: stack, Size: 8, Write: false}}},
		{"ret", []arch.Operand{{Addr: stack, Size: 8, Write: false}}},
		{"movsw", []arch.Operand{{Addr: data + 64, Size: 2, Write: true}, {Addr: data, Size: 2, Write: false}}},
		{"rep stosb", []arch.Operand{{Addr: data + 64, Size: 1, Write: true}}},
		{"xor ecx, ecx", nil},
		{"movaps [rbx], xmm0", []arch.Operand{{Addr: data, Size: 16, Write: true}}},
		{"mov [ebx], eax", []arch.Operand{{Addr: data, Size: 4, Write: true}}},
		{"mov fs:[rcx], eax", []arch.Operand{{Addr: data + 0x1005, Size: 4, Write: true}}},
		{"bts [rbx], rdx", []arch.Operand{{Addr: data - 8, Size: 8, Write: true}}},
	} {
		b := newBench(t, c.source)
		b.ChangeRegs(func(r *arch.Regs) {
			r.GPR[arch.RBX], r.GPR[arch.RCX], r.GPR[arch.RDX] = uint64(data), 5, ^uint64(0)
			r.GPR[arch.RSI], r.GPR[arch.RDI], r.GPR[arch.RSP] = uint64(data), uint64(data+64), uint64(stack)
			r.FSBase = uint64(data + 0x1000)
		})
		got := b.CPU.Operands()
		byAddr := func(x, y arch.Operand) int { return int(x.Addr) - int(y.Addr) }
		slices.SortFunc(got, byAddr)
		slices.SortFunc(c.want, byAddr)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.source, got, c.want)
		}
	}
}

// TestRepetitionIsOver: an instruction whose last iteration was stepped counts once more for
// leaving.
func TestRepetitionIsOver(t *testing.T) {
	b := newBench(t, "rep stosb\nnop")
	b.ChangeRegs(func(r *arch.Regs) { r.GPR[arch.RCX], r.GPR[arch.RDI] = 2, uint64(dataBase) })
	for i, want := range []struct {
		pc   arch.Addr
		over bool
	}{{codeBase, false}, {codeBase, true}, {codeBase + 2, false}} {
		b.CPU.Run(arch.Limit{Most: 1})
		if got := b.CPU.RepetitionIsOver(); got != want.over || b.CPU.PC() != want.pc {
			t.Errorf("step %d: at %#x, over %v; want %#x, %v", i, b.CPU.PC(), got, want.pc, want.over)
		}
	}
	b.ChangeRegs(func(r *arch.Regs) { r.RIP, r.GPR[arch.RCX] = uint64(codeBase), 0 })
	if len(b.CPU.Operands()) != 0 {
		t.Error("an instruction without iterations accesses memory")
	}
}
