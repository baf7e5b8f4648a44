package direct

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// approximations executes RCPPS and RSQRTPS of four numbers.
func approximations(s *subject, in [4]float32) (reciprocals, roots [4]float32) {
	run := func(opcode byte) (out [4]float32) {
		var c oracleCase
		c.CodeAt, c.NCode = oracleCode, uint32(copy(c.Code[:], []byte{0x0f, opcode, 0xc8}))
		c.State.Regs.RIP = c.CodeAt
		binary.LittleEndian.PutUint32(c.State.FP[24:], 0x1f80)
		for i, f := range in {
			binary.LittleEndian.PutUint32(c.State.FP[160+4*i:], math.Float32bits(f))
		}
		r, _ := s.run(&c)
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.State.FP[176+4*i:]))
		}
		return out
	}
	return run(0x53), run(0x52)
}

// TestApproximations: RCPPS and RSQRTPS are within the error that Intel's manual allows, 1.5 *
// 2^-12, and the special cases are those of its tables.
func TestApproximations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	s := newSubject(t, arch.V2, newData(rnd))
	const allowed = 1.5 / 4096
	for range 500 {
		var in [4]float32
		for i := range in {
			in[i] = math.Float32frombits(uint32(rnd.IntN(2))<<31 | uint32(2+rnd.IntN(250))<<23 | rnd.Uint32()>>9)
		}
		reciprocals, roots := approximations(s, in)
		for i, x := range in {
			if e := math.Abs(float64(reciprocals[i])*float64(x) - 1); e > allowed {
				t.Errorf("1/%g is %g", x, reciprocals[i])
			}
			if e := math.Abs(float64(roots[i])*math.Sqrt(math.Abs(float64(x))) - 1); x > 0 && e > allowed {
				t.Errorf("1/sqrt(%g) is %g", x, roots[i])
			}
			if x < 0 && math.Float32bits(roots[i]) != 0xffc00000 {
				t.Errorf("1/sqrt(%g) is %#x", x, math.Float32bits(roots[i]))
			}
		}
	}
	inf := float32(math.Inf(1))
	denormal, huge := math.Float32frombits(1), math.Float32frombits(0x7f000001)
	reciprocals, roots := approximations(s, [4]float32{0, -inf, -denormal, huge})
	if want := [4]float32{inf, float32(math.Copysign(0, -1)), -inf, 0}; reciprocals != want {
		t.Errorf("reciprocals of special numbers are %v, want %v", reciprocals, want)
	}
	if roots[0] != inf || roots[2] != -inf || !math.IsNaN(float64(roots[1])) {
		t.Errorf("reciprocal square roots of special numbers are %v", roots)
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
		nop
	1:	push 0x33
		lea rax, [rip + 2f]
		push rax
		retfq
		nop
	2:	lea rax, [rip + 3f]
		mov [rsp - 16], rax
		mov word ptr [rsp - 12], 0x33
		jmp fword ptr [rsp - 16]
		nop
	3:	mov ebx, cs
		mov ecx, ss
		pushfq
		pop rdx
		syscall`)
	s := b.CPU.Run(arch.Limit{})
	if r := b.Regs(); s.Reason != arch.StopSyscall || r.GPR[arch.RBX] != 0x33 || r.GPR[arch.RCX] != 0x2b || r.GPR[arch.RDX]&0x202 != 0x202 {
		t.Errorf("%+v, cs %#x, ss %#x, flags %#x", s, r.GPR[arch.RBX], r.GPR[arch.RCX], r.GPR[arch.RDX])
	}
	b = newBench(t, "push 0x10\n lea rax, [rip]\n push rax\n retfq")
	if s := b.CPU.Run(arch.Limit{}); s.Reason != arch.StopException || s.Vector != 13 {
		t.Errorf("a return to the kernel's segment: %+v", s)
	}
}
