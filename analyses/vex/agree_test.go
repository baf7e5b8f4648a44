package vex_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/uc"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/randtest"
)

const (
	codeAt arch.Addr = 0x400000
	dataAt arch.Addr = 0x600000
	slot             = 32 // bytes between instructions
)

// undefined are the flags that an instruction leaves undefined (SDM volume 2), by the
// beginning of its template.
var undefined = []struct {
	prefix string
	flags  uint64
}{
	{"and", af},
	{"or", af},
	{"xor", af},
	{"test", af},
	{"shl", af | of},
	{"shr", af | of},
	{"sar", af | of},
	{"shld", af | of},
	{"shrd", af | of},
	{"rol", of},
	{"ror", of},
	{"rcl", of},
	{"rcr", of},
	{"mul", sf | zf | af | pf},
	{"imul", sf | zf | af | pf},
	{"div", cf | of | sf | zf | af | pf},
	{"idiv", cf | of | sf | zf | af | pf},
	{"bt", of | sf | zf | af | pf},
	{"bsf", cf | of | sf | af | pf},
	{"bsr", cf | of | sf | af | pf},
}

const cf, pf, af, zf, sf, of = 1, 4, 16, 64, 128, 2048

// templates are instructions: R, D, W, B stand for a register of 64, 32, 16, 8 bits, X and
// Y for SSE registers, M for memory, I for a small number.
//
// Left out, because the engine is wrong: PCMPxSTRx for parts of a string, PHADD of a
// register with itself, and of two NaNs the second (docs/engine.md).
var templates = strings.Split(strings.TrimSpace(`
add R, R|add D, D|add W, W|add B, B|add R, [M]|add dword ptr [M], I|adc R, R|adc B, B|adc W, I
sub R, R|sub D, I|sub B, B|sbb R, R|sbb W, W|sbb dword ptr [M], D|cmp R, R|cmp B, I|cmp word ptr [M], W
and R, R|and B, I|or D, D|or word ptr [M], W|xor R, R|xor B, [M]|test R, R|test B, I|not D|neg R|neg byte ptr [M]
inc R|inc B|inc dword ptr [M]|dec D|dec W|mul R|mul B|mul dword ptr [M]|imul R|imul W|imul R, R|imul D, D, I|imul W, W
shl R, 1|shl D, I|shl B, cl|shr R, cl|shr W, I|sar R, I|sar B, 1|sar D, cl|rol R, I|rol B, cl|ror D, I|ror W, cl
rcl R, 1|rcl B, cl|rcl W, I|rcr D, cl|rcr R, I|rcr B, 1|shld R, R, I|shld D, D, cl|shrd D, D, I|shrd R, R, cl
bt R, I|bt R, R|bt D, D|bt W, W|bts R, R|bts D, D|btr R, R|btr W, W|btc D, D|btc R, R|bts R, I|btr D, I|btc W, I|bsf R, R|bsr D, D|popcnt R, R|bswap R|bswap D
mov R, R|mov [M], W|mov D, [M]|movzx R, B|movzx D, word ptr [M]|movsx R, W|movsxd R, D|movsx D, byte ptr [M]
lea R, [R+R*4+I]|lea D, [R+R]|xchg R, R|xchg D, [M]|xadd R, R|lock xadd [M], D|cmpxchg R, R|lock cmpxchg [M], D|lock cmpxchg [M], B
lock inc dword ptr [M]|lock add [M], R|lock and [M], W|lock bts dword ptr [M], I|cmpxchg8b [M]|lock cmpxchg16b [M]
seta B|setb B|setge B|setle B|seto B|sets B|setp B|setne B|cmova R, R|cmovl D, D|cmovbe R, [M]|cmovno W, W|cmovp D, D
add ah, bl|mov ch, dl|sub bh, ah|cbw|cwde|cdqe|cwd|cdq|cqo|clc|stc|cmc|cld|std|lahf|sahf|push R|pop R|push I|leave
movsb|movsq|stosd|lodsw|scasd|cmpsb|cmpsw|cmpsd|cmpsq|xlat|pushfq|movbe R, [M]|crc32 D, B|crc32 R, R
addsd X, Y|subsd X, Y|mulsd X, Y|divsd X, Y|sqrtsd X, Y|minsd X, Y|maxsd X, Y|addss X, Y|subss X, Y|mulss X, Y|divss X, Y
sqrtss X, Y|minss X, Y|maxss X, Y|addpd X, Y|subpd X, Y|mulpd X, Y|divpd X, Y|addps X, Y|subps X, Y|mulps X, Y|divps X, Y
sqrtpd X, Y|sqrtps X, Y|minpd X, Y|maxps X, Y|ucomisd X, Y|comiss X, Y|cmpsd X, Y, 1|cmpss X, Y, 6|cmppd X, Y, 3|cmpps X, Y, 4
rcpps X, Y|rcpss X, Y|rsqrtps X, Y|rsqrtss X, Y|cvtsi2sd X, R|cvtsi2ss X, D|cvttsd2si R, Y|cvttss2si D, Y|cvtsd2si D, Y|cvtss2sd X, Y|cvtsd2ss X, Y|cvtdq2pd X, Y|cvtdq2ps X, Y|cvttpd2dq X, Y|cvttps2dq X, Y|cvtps2pd X, Y|cvtpd2ps X, Y
movd X, D|movq R, X|movq X, R|movaps X, Y|movups X, [M]|movdqu [M], X|movsd X, [M]|movss X, Y|movhpd X, [M]|movlps [M], X|movmskpd D, X|movmskps D, X|pmovmskb D, X|movddup X, Y|movhlps X, Y|movlhps X, Y
paddb X, Y|paddw X, Y|paddd X, Y|paddq X, Y|psubb X, Y|psubw X, Y|psubd X, Y|psubq X, Y|pmullw X, Y|pmulhw X, Y|pmulhuw X, Y|pmuludq X, Y|pmulld X, Y|pmaddwd X, Y|psadbw X, Y
paddsb X, Y|paddusw X, Y|psubsw X, Y|psubusb X, Y|pavgb X, Y|pavgw X, Y|pminub X, Y|pmaxub X, Y|pminsw X, Y|pmaxsw X, Y|pminud X, Y|pmaxsd X, Y
pcmpeqb X, Y|pcmpeqw X, Y|pcmpeqd X, Y|pcmpgtb X, Y|pcmpgtw X, Y|pcmpgtd X, Y|pcmpgtq X, Y|pcmpeqq X, Y
pand X, Y|pandn X, Y|por X, Y|pxor X, Y|psllw X, I|pslld X, I|psllq X, I|pslldq X, I|psrlw X, I|psrld X, I|psrlq X, I|psrldq X, I|psraw X, I|psrad X, I|psllq X, Y|psrad X, Y
punpcklbw X, Y|punpcklwd X, Y|punpckldq X, Y|punpcklqdq X, Y|punpckhbw X, Y|punpckhwd X, Y|punpckhdq X, Y|punpckhqdq X, Y|unpcklpd X, Y|unpckhps X, Y
packsswb X, Y|packssdw X, Y|packuswb X, Y|packusdw X, Y|pshufd X, Y, 0x1b|pshuflw X, Y, 0x9c|pshufhw X, Y, 0x36|shufps X, Y, 0x72|shufpd X, Y, 1|pshufb X, Y|palignr X, Y, 5|pblendw X, Y, 0x5a
pabsb X, Y|pabsd X, Y|psignw X, Y|pmulhrsw X, Y|pmaddubsw X, Y|pmovzxbw X, Y|pmovsxwd X, Y|pinsrw X, D, 3|pextrw D, X, 5|pinsrd X, D, 2|pextrq R, X, 1|ptest X, Y|pcmpistri X, Y, 0x1a|pcmpistri X, Y, 0x40|pcmpistri X, Y, 0x30|pcmpistri X, Y, 0x08|pcmpistrm X, Y, 0x40|pcmpistrm X, Y, 0x09|pcmpestri X, Y, 0x38|pcmpestri X, Y, 0x1a|pcmpestrm X, Y, 0x42|pcmpestrm X, Y, 0x0a|roundsd X, Y, 1|roundss X, Y, 2|roundpd X, Y, 3|blendpd X, Y, 1|dpps X, Y, 0x31|insertps X, Y, 0x4c
`), "\n")

var places = regexp.MustCompile(`\b[RDWBXYMI]\b`)

// fill puts registers and numbers into a template. RDI points to the memory.
func fill(template string, r *rand.Rand) string {
	const names = "rax rbx rcx rdx rsi r8 r9 r10 r11 r12 r13 r14 r15"
	n64 := strings.Fields(names)
	n32 := strings.Fields("eax ebx ecx edx esi r8d r9d r10d r11d r12d r13d r14d r15d")
	n16 := strings.Fields("ax bx cx dx si r8w r9w r10w r11w r12w r13w r14w r15w")
	n8 := strings.Fields("al bl cl dl sil r8b r9b r10b r11b r12b r13b r14b r15b")
	return places.ReplaceAllStringFunc(template, func(p string) string {
		i := r.IntN(13)
		switch p {
		case "R":
			return n64[i]
		case "D":
			return n32[i]
		case "W":
			return n16[i]
		case "B":
			return n8[i]
		case "M":
			return fmt.Sprintf("rdi+%d", 16*r.IntN(8))
		case "I":
			return fmt.Sprint(r.IntN(16))
		default:
			return fmt.Sprintf("xmm%d", r.IntN(16))
		}
	})
}

// pair is the machine and the interpreter with the same code and data.
type pair struct {
	ram   *mem.RAM
	cpu   emu.CPU
	space *mem.Space
	code  []byte
	ir    vex.Machine
	data  [2 * arch.PageSize]byte
}

// Load and Store are the interpreter's memory: two pages at dataAt.
func (p *pair) Load(addr uint64, b []byte) error  { copy(b, p.data[addr-uint64(dataAt):]); return nil }
func (p *pair) Store(addr uint64, b []byte) error { copy(p.data[addr-uint64(dataAt):], b); return nil }

func newPair(t *testing.T, source string) *pair {
	t.Helper()
	p := &pair{code: gcctest.Assemble(t, source)}
	var err error
	if p.ram, err = mem.NewRAM(64 << 20); err != nil {
		t.Fatal(err)
	}
	if p.cpu, err = uc.NewCPU(p.ram, 1, arch.DefaultCosts()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cpu.Close(); p.ram.Close() })
	p.space = mem.NewSpace(p.ram)
	for at := 0; at < len(p.code); at += arch.PageSize {
		copy(p.ram.Bytes(p.mapPage(t, codeAt+arch.Addr(at), arch.Read|arch.Exec)), p.code[at:])
	}
	p.mapPage(t, dataAt, arch.Read|arch.Write)
	p.mapPage(t, dataAt+arch.PageSize, arch.Read|arch.Write)
	p.cpu.Load(p.cpu.NewContext(), p.space)
	p.ir.Memory = p
	return p
}

func (p *pair) mapPage(t *testing.T, at arch.Addr, perm arch.Perm) mem.Page {
	t.Helper()
	page, ok := p.ram.Alloc()
	if !ok {
		t.Fatal("no memory")
	}
	p.space.Set(at, mem.MakePTE(page, perm, false))
	return page
}

func (p *pair) page(i int) []byte {
	return p.ram.Bytes(p.space.Get(dataAt + arch.Addr(i*arch.PageSize)).Page())
}

// registers is the number of general registers, which both sides number as encoded.
const registers = 16

// randomise gives both sides the same state.
func (p *pair) randomise(r *rand.Rand, pc uint64) {
	for i := range p.data {
		p.data[i] = byte(r.Uint32())
	}
	for i := 0; i < 256; i += 8 {
		w := randtest.Word(r)
		for j := range 8 {
			p.data[i+j] = byte(w >> (8 * j))
		}
	}
	copy(p.page(0), p.data[:arch.PageSize])
	copy(p.page(1), p.data[arch.PageSize:])
	regs := arch.Regs{RIP: pc, RFLAGS: 0x202 | r.Uint64()&(cf|pf|af|zf|sf|of)}
	for i := range registers {
		regs.GPR[i] = randtest.Word(r)
	}
	regs.GPR[arch.RDI] = uint64(dataAt) + 64
	regs.GPR[arch.RSP] = uint64(dataAt) + 1024
	regs.GPR[arch.RBP] = uint64(dataAt) + 2048
	p.cpu.SetRegs(&regs)
	var fp [arch.FPSize]byte
	p.cpu.FP(&fp)
	withNaN := r.IntN(16)
	for i := range 16 {
		for _, half := range []int{0, 8} {
			w := randtest.Word(r)
			if i != withNaN {
				w &^= 1<<62 | 1<<30 // exponents that are not all ones
			}
			p.ir.State.SetWord(vex.OffsetXMM+32*i+half, w)
			for j := range 8 {
				fp[160+16*i+half+j] = byte(w >> (8 * j))
			}
		}
	}
	p.cpu.SetFP(&fp)
	for i, w := range regs.GPR {
		p.ir.State.SetWord(vex.OffsetRAX+8*i, w)
	}
	p.ir.State.SetRFLAGS(regs.RFLAGS)
	p.ir.State.SetWord(vex.OffsetRIP, pc)
}

// pointers sets the implicit operands of string and other instructions to addresses in the
// data.
func (p *pair) pointers() {
	var regs arch.Regs
	p.cpu.Regs(&regs)
	for _, i := range []int{arch.RSI, arch.RBX} {
		regs.GPR[i] = uint64(dataAt) + 512
		p.ir.State.SetWord(vex.OffsetRAX+8*i, regs.GPR[i])
	}
	p.cpu.SetRegs(&regs)
}

// crashes reports whether the engine would crash: it takes the absolute value of the least
// number for a length (docs/engine.md).
func (p *pair) crashes(mnemonic string) bool {
	var regs arch.Regs
	p.cpu.Regs(&regs)
	return strings.HasPrefix(mnemonic, "pcmpestr") && (uint32(regs.GPR[arch.RAX]) == 1<<31 || uint32(regs.GPR[arch.RDX]) == 1<<31)
}

// narrow matches a register of 32 bits at the end of an instruction.
var narrow = regexp.MustCompile(`\b(e[a-z]{2}|r\d+d)$`)

// widens reports whether the instruction is a CMPXCHG of 32 bits that finds something in the upper half
// of RAX: the IR clears it also if EAX is not written, which processors do not.
func (p *pair) widens(mnemonic, instruction string) bool {
	var regs arch.Regs
	p.cpu.Regs(&regs)
	return mnemonic == "cmpxchg" && narrow.MatchString(instruction) && regs.GPR[arch.RAX]>>32 != 0
}

// differences compares both sides after an instruction.
func (p *pair) differences(ignore uint64) []string {
	var regs arch.Regs
	p.cpu.Regs(&regs)
	var out []string
	differ := func(what string, machine, ir uint64) {
		if machine != ir {
			out = append(out, fmt.Sprintf("%s is %#x on the machine, %#x in the IR", what, machine, ir))
		}
	}
	for i, w := range regs.GPR {
		differ(fmt.Sprintf("register %d", i), w, p.ir.State.Word(vex.OffsetRAX+8*i))
	}
	differ("RIP", regs.RIP, p.ir.State.Word(vex.OffsetRIP))
	differ("RFLAGS", regs.RFLAGS&^ignore, p.ir.State.RFLAGS()&^ignore)
	var fp [arch.FPSize]byte
	p.cpu.FP(&fp)
	for i := range 16 {
		for _, half := range []int{0, 8} {
			var w uint64
			for j := range 8 {
				w |= uint64(fp[160+16*i+half+j]) << (8 * j)
			}
			differ(fmt.Sprintf("xmm%d+%d", i, half), w, p.ir.State.Word(vex.OffsetXMM+32*i+half))
		}
	}
	for i := range 2 {
		for j, b := range p.page(i) {
			if b != p.data[i*arch.PageSize+j] {
				differ(fmt.Sprintf("memory at %#x", uint64(dataAt)+uint64(i*arch.PageSize+j)), uint64(b), uint64(p.data[i*arch.PageSize+j]))
			}
		}
	}
	return out
}

func ignored(instruction string) uint64 {
	instruction = strings.TrimPrefix(instruction, "lock ")
	for _, u := range undefined {
		if mnemonic, _, _ := strings.Cut(instruction, " "); mnemonic == u.prefix || u.prefix == "bt" && strings.HasPrefix(mnemonic, "bt") {
			return u.flags
		}
	}
	return 0
}

// TestAgreesWithTheMachine runs random instructions on random states on both sides.
func TestAgreesWithTheMachine(t *testing.T) {
	const rounds, states = 4, 25
	r := rand.New(rand.NewPCG(1, 1))
	var instructions []string
	var source strings.Builder
	for range rounds {
		for _, line := range templates {
			for _, template := range strings.Split(line, "|") {
				instructions = append(instructions, fill(template, r))
				fmt.Fprintf(&source, "%s\n.balign %d, 0xf4\n", instructions[len(instructions)-1], slot)
			}
		}
	}
	p := newPair(t, source.String())
	agreed, failed := 0, map[string]bool{}
	for i, instruction := range instructions {
		mnemonic, _, _ := strings.Cut(strings.TrimPrefix(instruction, "lock "), " ")
		if failed[mnemonic] {
			continue
		}
		pc := uint64(codeAt) + uint64(i*slot)
		b, err := vex.Lift(p.code[i*slot:][:slot/2], pc)
		if err == nil {
			b, err = vex.Lift(p.code[i*slot:][:b.Stmts[0].(*vex.Mark).Len], pc)
		}
		if err != nil {
			t.Errorf("%s: %v", instruction, err)
			failed[mnemonic] = true
			continue
		}
		for range states {
			p.randomise(r, pc)
			p.pointers()
			if p.crashes(mnemonic) || p.widens(mnemonic, instruction) {
				continue
			}
			if s := p.cpu.Run(arch.Limit{Instructions: 1, Exact: true}); s.Reason != arch.StopBudget {
				continue // a fault or division by zero, which the IR does not model
			}
			if _, _, err := p.ir.Run(b); err != nil {
				t.Errorf("%s: %v", instruction, err)
				failed[mnemonic] = true
				break
			}
			if d := p.differences(ignored(instruction)); len(d) > 0 {
				t.Errorf("%s: %s", instruction, strings.Join(d, "; "))
				failed[mnemonic] = true
				break
			}
			agreed++
		}
	}
	t.Logf("%d instructions, %d runs agree", len(instructions), agreed)
}
