package uc

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// TestLeastStringLength: the smallest number in EAX or EDX stands for the whole operand, all of
// whose sixteen bytes are equal here (Intel SDM volume 2, "PCMPESTRI": lengths saturate at 16). CF
// means a match, SF that the first operand is shorter, ZF that the second is.
func TestLeastStringLength(t *testing.T) {
	for _, test := range []struct {
		eax, edx   uint64
		insn       string
		sign, zero bool
	}{
		{1 << 31, 1 << 31, "pcmpestri xmm0, xmm1, 0x48", false, false},
		{1<<31 | 7<<32, 15, "pcmpestri xmm0, xmm1, 0x40", false, true},
		{15, 1 << 31, "pcmpestri xmm0, xmm1, 0x40", true, false},
		{1 << 63, 1 << 63, ".byte 0x66, 0x48, 0x0f, 0x3a, 0x61, 0xc1, 0x48", false, false},
	} {
		b := newBench(t, `
			pxor xmm0, xmm0
			pxor xmm1, xmm1
			`+test.insn+`
			syscall
		`)
		r := b.Regs()
		r.GPR[arch.RAX], r.GPR[arch.RDX] = test.eax, test.edx
		b.CPU.SetRegs(&r)
		if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopSyscall {
			t.Fatalf("%s: %v", test.insn, s.Reason)
		}
		r = b.Regs()
		const carry, zero, sign = 1, 1 << 6, 1 << 7
		flags := r.RFLAGS
		if r.GPR[arch.RAX] != test.eax || r.GPR[arch.RDX] != test.edx {
			t.Errorf("%s: lengths %#x and %#x became %#x and %#x", test.insn, test.eax, test.edx, r.GPR[arch.RAX], r.GPR[arch.RDX])
		}
		if flags&carry == 0 || (flags&zero != 0) != test.zero || (flags&sign != 0) != test.sign {
			t.Errorf("%s of %#x and %#x: flags %#x", test.insn, test.eax, test.edx, flags)
		}
	}
}
