package concolic

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/randtest"
	"github.com/heddle-dmt/heddle/internal/zydis"
)

// instructions use rax, rbx, rcx, rdx, xmm0, xmm1 and the memory at rdi.
var instructions = strings.Split(`add rax, rbx|add al, bl|add ax, [rdi]|sub rax, rbx|sub ecx, edx|adc rax, rbx|adc al, bl|sbb ecx, edx|sbb dx, ax
cmp rax, rbx|cmp al, bl|test eax, ebx|and rax, [rdi]|or ax, bx|xor dword ptr [rdi], ecx|not rax|neg ebx|inc rax|inc bl|dec cx|dec rdx
mul rbx|mul cl|imul rbx|imul eax, ecx|imul dx, bx, 77|shl rax, 3|shl ebx, cl|shr rax, 1|shr dx, cl|sar rax, 7|sar bl, cl|rol eax, 5|ror rdx, cl|rol bx, 1
shld rax, rbx, 9|shrd edx, eax, cl|bt rax, rbx|bts eax, ecx|btr rdx, 13|bsf rax, rbx|bsr ecx, edx|popcnt rax, rbx|bswap rdx|tzcnt rax, rbx
movzx eax, bl|movsx rax, cx|movsxd rdx, eax|lea rax, [rbx+rcx*4+9]|lea ecx, [rax+rdx]|xchg rax, rbx|xadd rcx, rdx|cmpxchg rcx, rdx|lock cmpxchg [rdi], ebx
lock xadd [rdi], rcx|lock inc dword ptr [rdi]|cmpxchg8b [rdi+8]|seta al|setb bl|setg cl|setle dl|seto al|sets bl|setp cl|setbe dl|cmova rax, rbx|cmovl ecx, edx|cmovs rbx, rdx
cbw|cwde|cdqe|cwd|cdq|cqo|clc|cmc|lahf|push rax|pop rbx|movsb|stosd|lodsw|scasb|cmpsw|mov [rdi], rax|mov bl, [rdi+1]|add ah, bh|mov ch, [rdi]
addsd xmm0, xmm1|subsd xmm0, xmm1|mulsd xmm0, xmm1|divsd xmm0, xmm1|sqrtsd xmm0, xmm1|addss xmm0, xmm1|mulss xmm0, xmm1|divss xmm0, [rdi]|minsd xmm0, xmm1|maxss xmm0, xmm1
addpd xmm0, xmm1|mulps xmm0, xmm1|subps xmm0, xmm1|divpd xmm0, xmm1|sqrtpd xmm0, xmm1|minpd xmm0, xmm1|ucomisd xmm0, xmm1|comiss xmm0, xmm1|cmpsd xmm0, xmm1, 1|cmpps xmm0, xmm1, 4
cvtsi2sd xmm0, rax|cvtsi2ss xmm0, eax|cvttsd2si rax, xmm1|cvttss2si eax, xmm1|cvtss2sd xmm0, xmm1|cvtsd2ss xmm0, xmm1|cvtdq2pd xmm0, xmm1|roundsd xmm0, xmm1, 1
movd xmm0, eax|movq rax, xmm1|movaps xmm0, xmm1|movups xmm0, [rdi]|movss xmm0, xmm1|movhpd xmm0, [rdi]|movmskpd eax, xmm1|pmovmskb eax, xmm1|movddup xmm0, xmm1|movhlps xmm0, xmm1
paddb xmm0, xmm1|paddq xmm0, xmm1|psubw xmm0, xmm1|pmullw xmm0, xmm1|pmuludq xmm0, xmm1|pminub xmm0, xmm1|pmaxsw xmm0, xmm1|psubusb xmm0, xmm1|paddusw xmm0, xmm1
pcmpeqb xmm0, xmm1|pcmpgtd xmm0, xmm1|pcmpeqq xmm0, xmm1|pand xmm0, xmm1|pandn xmm0, xmm1|pxor xmm0, xmm1|psllw xmm0, 3|psrlq xmm0, 9|psrad xmm0, 5|pslldq xmm0, 3|psrldq xmm0, 5
punpcklbw xmm0, xmm1|punpckhwd xmm0, xmm1|punpckldq xmm0, xmm1|punpckhqdq xmm0, xmm1|unpcklps xmm0, xmm1|packuswb xmm0, xmm1|packssdw xmm0, xmm1
pshufd xmm0, xmm1, 0x1b|pshuflw xmm0, xmm1, 0x9c|shufps xmm0, xmm1, 0x72|pshufb xmm0, xmm1|palignr xmm0, xmm1, 5|pinsrw xmm0, eax, 3|pextrw eax, xmm1, 5|ptest xmm0, xmm1|pabsd xmm0, xmm1|pmulhw xmm0, xmm1
div rbx|div cl|idiv ebx|crc32 eax, bl|rcl rax, 3|fld qword ptr [rdi]`, "|")

const codeAt, dataAt, dataSize = 0x400000, 0x600000, 256

// recording is the memory of a run on values; it records the accesses.
type recording struct {
	data     [dataSize]byte
	pc       *uint64
	accesses []Access
}

func (m *recording) Load(addr uint64, p []byte) error {
	copy(p, m.data[addr-dataAt:])
	m.note(addr, p, false)
	return nil
}

func (m *recording) Store(addr uint64, p []byte) error {
	copy(m.data[addr-dataAt:], p)
	m.note(addr, p, true)
	return nil
}

func (m *recording) note(addr uint64, p []byte, store bool) {
	var b [16]byte
	copy(b[:], p)
	m.accesses = append(m.accesses, Access{
		PC: *m.pc, Addr: addr, Size: len(p), Store: store,
		Value: [2]uint64{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])},
	})
}

// draw fills a state and returns which of its bytes are to be symbols.
func draw(r *rand.Rand, s *vex.State) []vex.Span {
	var symbols []vex.Span
	for i := range 16 {
		s.SetWord(vex.OffsetRAX+8*i, randtest.Word(r))
		if i < 4 && r.IntN(4) > 0 {
			symbols = append(symbols, vex.SpanOf(vex.OffsetRAX+8*i, 8))
		}
		for half := 0; half < 16; half += 8 {
			s.SetWord(vex.OffsetXMM+32*i+half, randtest.Word(r))
			if i < 2 && r.IntN(4) > 0 {
				symbols = append(symbols, vex.SpanOf(vex.OffsetXMM+32*i+half, 8))
			}
		}
	}
	const rsp, rsi, rdi = 4, 6, 7
	s.SetWord(vex.OffsetRAX+8*rdi, dataAt+64)
	s.SetWord(vex.OffsetRAX+8*rsi, dataAt+32)
	s.SetWord(vex.OffsetRAX+8*rsp, dataAt+200)
	s.SetRFLAGS(0x202 | r.Uint64()&0x8d5)
	// The flags were set by an operation whose operands depend on inputs.
	if r.IntN(2) == 0 {
		s.SetWord(vex.OffsetCCOp, uint64(r.IntN(4*numKinds)+1))
		for _, at := range []int{vex.OffsetCCDep1, vex.OffsetCCDep2, vex.OffsetCCNDep} {
			s.SetWord(at, randtest.Word(r))
			symbols = append(symbols, vex.SpanOf(at, 8))
		}
	}
	return symbols
}

// noTrap makes dividends small.
func noTrap(s *vex.State) {
	const rax, rcx, rdx, rbx = vex.OffsetRAX, vex.OffsetRAX + 8, vex.OffsetRAX + 16, vex.OffsetRAX + 24
	s.SetWord(rax, s.Word(rax)&0x7f)
	s.SetWord(rdx, 0)
	s.SetWord(rbx, s.Word(rbx)&0x7fff_ffff_7fff_ffff|2)
	s.SetWord(rcx, s.Word(rcx)|1)
}

// Invariant 1, instruction by instruction: with symbols in registers, flags and memory,
// each expression has the computed value. Few instructions have no expression.
func TestInstructions(t *testing.T) {
	lines := strings.Split(strings.Join(instructions, "\n"), "\n")
	code := gcctest.Assemble(t, strings.Join(lines, "\n.balign 32, 0xf4\n")+"\n.balign 32, 0xf4")
	r := rand.New(rand.NewPCG(11, 12))
	fixed := map[string]bool{}
	for i, line := range lines {
		length := zydis.Walk(code[32*i:], make([]byte, 1)).Bytes
		for range 12 {
			x := New(func(_, addr uint64, b []byte) int { return copy(b, code[addr-codeAt:][:length]) })
			x.Check = true
			x.OnConstraint = func(c *Constraint) {
				v, err := x.evaluator.Value(c.Expr)
				if err != nil || v.Lo != 1 {
					t.Errorf("%s: constraint %v is %v, %v", line, c.Expr, v, err)
				}
			}
			var s vex.State
			symbols := draw(r, &s)
			if strings.Contains(line, "div ") {
				noTrap(&s)
			}
			s.SetWord(vex.OffsetRIP, uint64(codeAt+32*i))
			m := vex.Machine{State: s, MXCSR: 0x1f80}
			memory := &recording{pc: &m.PC}
			m.Memory = memory
			for at := 0; at < dataSize; at += 8 {
				binary.LittleEndian.PutUint64(memory.data[at:], randtest.Word(r))
			}
			x.Input(1, dataAt+64, "data", 0, memory.data[64:96])
			x.Resume(1, 1, &s)
			x.threads[1].machine.State = s
			for _, w := range symbols {
				for at := w.From; at < w.To; at++ {
					symbol := x.namedTerm(fmt.Sprintf("state[%d]", at), "", 8, symbolic.Value{Lo: uint64(s[at])})
					x.threads[1].registers.setTerm(vex.SpanOf(at, 1), symbol)
				}
			}
			b, err := vex.Lift(code[32*i:][:length], uint64(codeAt+32*i))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if _, _, err := m.Run(b); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if err := x.Run(1, 1, memory.accesses, &m.State); err != nil {
				t.Errorf("%s: %v", line, err)
				break
			}
			for reason := range x.Stats.Fixed {
				fixed[line+": "+reason] = true
			}
		}
	}
	t.Logf("fixed: %v", fixed)
	if len(fixed) > 12 {
		t.Errorf("%d instructions of %d have no expression", len(fixed), len(lines))
	}
}
