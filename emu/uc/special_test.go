package uc

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/floats"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// state runs code to its SYSCALL and returns the registers.
func (b *bench) toSyscall() arch.Regs {
	b.Helper()
	if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopSyscall {
		b.Fatalf("stopped with %+v at %#x", s, b.Regs().RIP)
	}
	return b.Regs()
}

// TestFloatsAreShared: the x87 instructions of package floats have its results, whose tests compare
// them with exact values and with hardware.
func TestFloatsAreShared(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, op := range []byte{0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf8, 0xf9, 0xfb, 0xfd, 0xfe, 0xff} {
		b := newBench(t, "nop\n .byte 0xd9, "+hexByte(op)+"\n syscall")
		for range testsize.Runs(20, 200, 5000) {
			var image [arch.FPSize]byte
			binary.LittleEndian.PutUint16(image[0:], 0x37f&^0xf00|uint16(rnd.IntN(16))<<8)
			binary.LittleEndian.PutUint16(image[2:], uint16(rnd.IntN(8))<<11|uint16(rnd.IntN(64)))
			image[4] = byte(rnd.Uint32() | rnd.Uint32())
			binary.LittleEndian.PutUint32(image[24:], 0x1f80)
			for i := range 8 {
				binary.LittleEndian.PutUint64(image[32+16*i:], 1<<63|rnd.Uint64())
				binary.LittleEndian.PutUint16(image[40+16*i:], uint16(0x3fff+rnd.IntN(20)-10)|uint16(rnd.IntN(2))<<15)
			}
			want := floats.Image(image[:160])
			floats.Execute(&want, op)
			r := b.Regs()
			r.RIP = uint64(codeBase)
			b.CPU.SetRegs(&r)
			b.CPU.SetFP(&image)
			b.toSyscall()
			b.CPU.FP(&image)
			// After the control word, the status word and the tags, the registers.
			if string(image[:5]) != string(want[:5]) || string(image[32:160]) != string(want[32:160]) {
				t.Fatalf("d9 %x: % x, want % x", op, image[:160], want)
			}
		}
	}
}

func hexByte(b byte) string {
	return "0x" + string("0123456789abcdef"[b>>4]) + string("0123456789abcdef"[b&15])
}

// TestPendingExceptionComesFirst: with an unmasked exception in the status word, an x87 instruction
// raises #MF and does nothing else (Intel SDM volume 1, section 8.6).
func TestPendingExceptionComesFirst(t *testing.T) {
	b := newBench(t, "fsin\n syscall")
	image := [arch.FPSize]byte{0: 0x7e, 1: 3, 2: 0x81, 3: 0x80, 4: 1}
	binary.LittleEndian.PutUint32(image[24:], 0x1f80)
	b.CPU.SetFP(&image)
	if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopException || s.Vector != 16 || s.Instructions != 0 {
		t.Errorf("%+v", s)
	}
}

// TestX87Flags: the exception flags of arithmetic are those of the manual's tables (Intel SDM volume 2,
// FDIV; volume 1, section 8.5), wherever a program reads them.
func TestX87Flags(t *testing.T) {
	for _, c := range []struct {
		name, source string
		want         uint64
	}{
		{"0/0", "fldz\n fldz\n fdivp", 1},
		{"1/0", "fld1\n fldz\n fdivp", 4},
		{"1/3", "fld1\n push 3\n fild dword ptr [rsp]\n fdivp", 0x20},
		{"1/1", "fld1\n fld1\n fdivp", 0},
		{"cleared", "fldz\n fldz\n fdivp\n fnclex", 0},
		{"reset", "fldz\n fldz\n fdivp\n fninit", 0},
		{"saved", "fldz\n fldz\n fdivp\n fnsave [rsp-200]\n movzx ecx, word ptr [rsp-196]", 0},
		{"restored", "fldz\n fldz\n fdivp\n fnstenv [rsp-200]\n fnclex\n fldenv [rsp-200]", 1},
		{"loaded, then added to", "fninit\n fld1\n fldz\n fdivp\n fnstenv [rsp-200]\n fninit\n fldenv [rsp-200]\n fldz\n fldz\n fdivp", 5},
	} {
		b := newBench(t, c.source+`
			fnstsw ax
			fnstsw [rsp-8]
			movzx ebx, word ptr [rsp-8]
			fnstenv [rsp-100]
			movzx edx, word ptr [rsp-96]
			fxsave [0x600000]
			movzx esi, word ptr [0x600002]
			syscall`)
		r := b.toSyscall()
		for name, got := range map[string]uint64{"AX": r.GPR[arch.RAX], "memory": r.GPR[arch.RBX], "FNSTENV": r.GPR[arch.RDX], "FXSAVE": r.GPR[arch.RSI]} {
			if got&0x3f != c.want {
				t.Errorf("%s: flags in %s are %#x, want %#x", c.name, name, got&0x3f, c.want)
			}
		}
		if c.name == "saved" && r.GPR[arch.RCX]&0x3f != 1 {
			t.Errorf("FNSAVE stores flags %#x, want 1", r.GPR[arch.RCX]&0x3f)
		}
	}
}

// TestApproximationsAreShared: RCPPS and its kin give the rounded quotients of package floats, and no
// flags (Intel SDM volume 2, "RCPPS": SIMD floating-point exceptions: none).
func TestApproximationsAreShared(t *testing.T) {
	numbers := [4]uint32{0x40400000, 0x3dcccccd, 0x7f7fffff, 1}
	for source, function := range map[string]func(uint32) uint32{
		"rcpps xmm0, xmm1": floats.Reciprocal, "rsqrtps xmm0, xmm1": floats.ReciprocalRoot,
		"rcpps xmm0, [0x600000]": floats.Reciprocal, "rsqrtps xmm0, [0x600000]": floats.ReciprocalRoot,
	} {
		b := newBench(t, "movups [0x600000], xmm1\n "+source+"\n stmxcsr [0x600040]\n mov eax, [0x600040]\n syscall")
		var image [arch.FPSize]byte
		binary.LittleEndian.PutUint32(image[24:], 0x1f80)
		for i, n := range numbers {
			binary.LittleEndian.PutUint32(image[176+4*i:], n)
		}
		b.CPU.SetFP(&image)
		if r := b.toSyscall(); r.GPR[arch.RAX] != 0x1f80 {
			t.Errorf("%s: MXCSR is %#x", source, r.GPR[arch.RAX])
		}
		b.CPU.FP(&image)
		for i, n := range numbers {
			if got := binary.LittleEndian.Uint32(image[160+4*i:]); got != function(n) {
				t.Errorf("%s of %g is %#x, want %#x", source, math.Float32frombits(n), got, function(n))
			}
		}
	}
	b := newBench(t, "mov rax, 0x600004\n rcpps xmm0, [rax]\n syscall")
	if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopException || s.Vector != 13 {
		t.Errorf("an operand that is not aligned: %+v", s)
	}
}

// TestIntegerCorrections: results by the operation sections of Intel's manual, volume 2.
func TestIntegerCorrections(t *testing.T) {
	for _, c := range []struct {
		name, source string
		reg          int
		want         uint64
	}{
		// "If accumulator = destination: destination := source, else accumulator := destination": one is not written.
		{"an equal CMPXCHG keeps RAX", "mov rax, 0x1234567800000005\n mov ecx, 5\n mov edx, 7\n cmpxchg ecx, edx\n syscall", arch.RAX, 0x1234567800000005},
		{"an equal CMPXCHG in memory keeps RAX", "mov rax, 0x1234567800000000\n lock cmpxchg [0x600000], edx\n syscall", arch.RAX, 0x1234567800000000},
		{"an unequal CMPXCHG keeps the destination", "mov eax, 1\n mov rcx, 0x1234567800000005\n cmpxchg ecx, edx\n syscall", arch.RCX, 0x1234567800000005},
		{"an unequal CMPXCHG loads EAX", "mov rax, 0x1234567800000001\n mov ecx, 5\n cmpxchg ecx, edx\n syscall", arch.RAX, 5},
		{"CMPXCHG of EAX itself", "mov rax, 0x1234567800000001\n mov edx, 9\n cmpxchg eax, edx\n syscall", arch.RAX, 9},
		{"RET drops 0x8000 bytes", "mov rbx, rsp\n lea rax, [rip+1f]\n push rax\n ret 0x8000\n 1: sub rsp, rbx\n mov rcx, rsp\n syscall", arch.RCX, 0x8000},
		{"LAHF with REX", "mov rsp, 0x7f0800\n stc\n .byte 0x40, 0x9f\n syscall", arch.RAX, 0x300},
		{"SAHF with REX", "mov eax, 0xff00\n .byte 0x40, 0x9e\n setc bl\n syscall", arch.RBX, 1},
		{"BSF of zero", "mov rcx, 77\n xor edx, edx\n bsf rcx, rdx\n syscall", arch.RCX, 77},
		{"BSR of zero", "mov cx, 77\n xor edx, edx\n bsr cx, dx\n syscall", arch.RCX, 77},
		{"a prefetch of a register", ".byte 0x0f, 0x18, 0xc0, 0x0f, 0x18, 0xf8\n mov ecx, 3\n syscall", arch.RCX, 3},
		{"MPX and CET are NOPs", ".byte 0x0f, 0x1a, 0xc9, 0xf3, 0x0f, 0x1b, 0xc9, 0xf3, 0x0f, 0x1e, 0xfa, 0x66, 0x0f, 0x1f, 0xc0\n mov ecx, 3\n syscall", arch.RCX, 3},
		{"LZCNT is BSR", "mov edx, 16\n .byte 0xf3, 0x0f, 0xbd, 0xca\n syscall", arch.RCX, 4},
		// AMD's manual, volume 3, "Operand-size prefix": near branches take 16 bits of the target.
		{"a jump of 16 bits", "mov ecx, 4\n jmp 1f\n 1: mov ecx, 3\n data16 nop\n syscall", arch.RCX, 3},
	} {
		for _, exact := range []bool{false, true} {
			b := newBench(t, c.source)
			if exact {
				for b.CPU.Run(arch.Limit{Instructions: 1, Exact: true}).Reason == arch.StopBudget {
				}
			} else {
				b.toSyscall()
			}
			if got := b.Regs().GPR[c.reg]; got != c.want {
				t.Errorf("%s (instructions alone: %v): %#x, want %#x", c.name, exact, got, c.want)
			}
		}
	}
}

// TestFarBranches: far branches stay in the program's code segment, and others are refused.
func TestFarBranches(t *testing.T) {
	b := newBench(t, `
		push 0x2b
		mov rax, rsp
		add rax, 8
		push rax
		pushfq
		push 0x33
		lea rax, [rip + 1f]
		push rax
		iretq
		ud2
	1:	push 0x33
		lea rax, [rip + 2f]
		push rax
		retfq
		ud2
	2:	lea rax, [rip + 3f]
		mov [rsp - 16], rax
		mov word ptr [rsp - 12], 0x33
		jmp fword ptr [rsp - 16]
		ud2
	3:	lea rax, [rip + 4f]
		mov [rsp - 32], rax
		mov word ptr [rsp - 28], 0x33
		mov rbx, rsp
		call fword ptr [rsp - 32]
	5:	ud2
	4:	mov ecx, [rsp]
		mov edx, [rsp + 4]
		sub rbx, rsp
		lea rsi, [rip + 5b]
		syscall`)
	r := b.toSyscall()
	if r.GPR[arch.RCX] != r.GPR[arch.RSI] || r.GPR[arch.RDX] != 0x33 || r.GPR[arch.RBX] != 8 {
		t.Errorf("a far call pushed %#x:%#x in %d bytes, want 0x33:%#x", r.GPR[arch.RDX], r.GPR[arch.RCX], r.GPR[arch.RBX], r.GPR[arch.RSI])
	}
	for _, source := range []string{
		"push 0x10\n lea rax, [rip]\n push rax\n retfq",
		"mov word ptr [0x600004], 0x10\n jmp fword ptr [0x600000]",
		"mov word ptr [0x600004], 0x23\n call fword ptr [0x600000]",
		"push 0x10\n push 0\n push 0\n push 0x33\n push 0\n iretq",
	} {
		b := newBench(t, source)
		if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopException || s.Vector != 13 {
			t.Errorf("%s: %+v", source, s)
		}
	}
	b = newBench(t, "mov rsp, 0x100\n iretq")
	if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopFault || b.CPU.FaultAddr() != 0x100 {
		t.Errorf("IRETQ without a stack: %+v at %#x", s, b.CPU.FaultAddr())
	}
}

// TestICEBP: INT1 is a trap with vector 1, after the instruction (Intel SDM volume 2, "INT1").
func TestICEBP(t *testing.T) {
	b := newBench(t, "nop\n .byte 0xf1\n syscall")
	s := b.CPU.Run(arch.Limit{})
	b.ExpectStop(s, arch.StopInterrupt, uint64(codeBase)+2, 2)
	if s.Vector != 1 {
		t.Errorf("vector %d", s.Vector)
	}
	b.toSyscall()
}

// TestAlignmentCheck: with EFLAGS.AC, an operand of 2, 4 or 8 bytes that is not aligned raises #AC
// (Intel SDM volume 3, section 6.15, interrupt 17).
func TestAlignmentCheck(t *testing.T) {
	set := "pushfq\n or dword ptr [rsp], 0x40000\n popfq\n mov ebx, 0x600000\n"
	for source, fails := range map[string]bool{
		"mov eax, [rbx]": false, "mov eax, [rbx+2]": true, "mov ax, [rbx+2]": false, "mov ax, [rbx+1]": true, "mov al, [rbx+1]": false,
		"mov rax, [rbx+4]": true, "mov [rbx+4], rax": true, "lea rax, [rbx+1]": false, "add dword ptr [rbx+1], 1": true,
		"movups xmm0, [rbx+1]": false, "push rax\n pop rax": false, "mov ecx, 5\n 1: dec ecx\n jnz 1b": false,
		"mov eax, [rbx]\n mov ecx, 5\n 1: dec ecx\n jnz 1b\n mov eax, [rbx+1]": true,
		"pushfq\n and dword ptr [rsp], 0xfffbffff\n popfq\n mov eax, [rbx+1]":  false,
	} {
		b := newBench(t, set+source+"\n syscall")
		s := b.CPU.Run(arch.Limit{})
		if failed := s.Reason == arch.StopException && s.Vector == 17; failed != fails || (!fails && s.Reason != arch.StopSyscall) {
			t.Errorf("%s: %+v", source, s)
		}
	}
}

// TestAddressesThatAreNotCanonical: they raise #GP, or #SS for the stack segment (Intel SDM volume 1,
// section 3.3.7.1).
func TestAddressesThatAreNotCanonical(t *testing.T) {
	for source, vector := range map[string]uint8{
		"mov eax, [rbx]": 13, "mov [rbx], eax": 13, "mov rbp, rbx\n mov eax, [rbp]": 12, "mov rsp, rbx\n push rax": 12, "mov rsp, rbx\n pop rax": 12,
	} {
		b := newBench(t, "mov rbx, 0x800000000010\n "+source)
		if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopException || s.Vector != vector {
			t.Errorf("%s: %+v", source, s)
		}
	}
}
