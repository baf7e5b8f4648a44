package insn

import (
	"fmt"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// TestInspect compares accesses and orders with Intel's manual (SDM volume 2, the instruction's
// operation; volume 3, sections 9.2 and 9.3 for the order).
func TestInspect(t *testing.T) {
	regs := arch.Regs{FSBase: 0x7000}
	regs.GPR[arch.RSP], regs.GPR[arch.RBP], regs.GPR[arch.RSI], regs.GPR[arch.RDI] = 0x1000, 0x2000, 0x3000, 0x4000
	regs.GPR[arch.RAX], regs.GPR[arch.RCX], regs.GPR[arch.RBX] = 0x5000, 2, 0x6000
	for _, c := range []struct {
		name     string
		code     []byte
		accesses string
		order    Order
	}{
		{"push rax", []byte{0x50}, "store 8 at ff8", 0},
		{"pop rax", []byte{0x58}, "load 8 at 1000", 0},
		{"pop [rbx]", []byte{0x8f, 0x03}, "load 8 at 1000, store 8 at 6000", 0},
		{"push [rbx]", []byte{0xff, 0x33}, "load 8 at 6000, store 8 at ff8", 0},
		{"call +0", []byte{0xe8, 0, 0, 0, 0}, "store 8 at ff8", 0},
		{"call [rbx]", []byte{0xff, 0x13}, "load 8 at 6000, store 8 at ff8", 0},
		{"ret", []byte{0xc3}, "load 8 at 1000", 0},
		{"mov eax, fs:[rcx*4+8]", []byte{0x64, 0x8b, 0x04, 0x8d, 8, 0, 0, 0}, "load 4 at 7010", 0},
		{"mov [rbx], al", []byte{0x88, 0x03}, "store 1 at 6000", 0},
		{"add [rbx], rax", []byte{0x48, 0x01, 0x03}, "load 8 at 6000, store 8 at 6000", 0},
		{"lock add [rbx], rax", []byte{0xf0, 0x48, 0x01, 0x03}, "load 8 at 6000, store 8 at 6000", Locked},
		{"xchg [rbx], eax", []byte{0x87, 0x03}, "load 4 at 6000, store 4 at 6000", Locked},
		{"lock cmpxchg16b [rbx]", []byte{0xf0, 0x48, 0x0f, 0xc7, 0x0b}, "load 16 at 6000, store 16 at 6000", Locked},
		{"cmp [rbx], eax", []byte{0x39, 0x03}, "load 4 at 6000", 0},
		{"lea rax, [rbx]", []byte{0x48, 0x8d, 0x03}, "", 0},
		{"nop [rbx]", []byte{0x0f, 0x1f, 0x03}, "", 0},
		{"prefetcht0 [rbx]", []byte{0x0f, 0x18, 0x0b}, "", 0},
		{"movsq", []byte{0x48, 0xa5}, "load 8 at 3000, store 8 at 4000", 0},
		{"cmpsb", []byte{0xa6}, "load 1 at 3000, load 1 at 4000", 0},
		{"rep stosd", []byte{0xf3, 0xab}, "store 4 at 4000", 0},
		{"movups xmm0, [rbx+1]", []byte{0x0f, 0x10, 0x43, 1}, "load 16 at 6001", 0},
		{"movnti [rbx], eax", []byte{0x0f, 0xc3, 0x03}, "store 4 at 6000", Weak},
		{"fstp tbyte [rbx]", []byte{0xdb, 0x3b}, "store 10 at 6000", 0},
		{"mfence", []byte{0x0f, 0xae, 0xf0}, "", Full},
		{"sfence", []byte{0x0f, 0xae, 0xf8}, "", Stores},
		{"cpuid", []byte{0x0f, 0xa2}, "", Full},
	} {
		accesses, order, ok := Inspect(c.code, &regs)
		got := ""
		for i, a := range accesses {
			if i > 0 {
				got += ", "
			}
			kind := "load"
			if a.Store {
				kind = "store"
			}
			got += fmt.Sprintf("%s %d at %x", kind, a.Size, uint64(a.At))
		}
		if !ok || got != c.accesses || order != c.order {
			t.Errorf("%s: %v, %q, order %d; want %q, order %d", c.name, ok, got, order, c.accesses, c.order)
		}
	}
	for name, code := range map[string][]byte{
		"fxsave [rbx]": {0x0f, 0xae, 0x03}, "leave": {0xc9}, "vmovdqu ymm0, [rbx]": {0xc5, 0xfe, 0x6f, 0x03}, "no instruction": {0x06}, "half of one": {0x48, 0x8b},
	} {
		if a, _, ok := Inspect(code, &regs); ok {
			t.Errorf("%s has the accesses %v", name, a)
		}
	}
}
