// Package pttest makes programs and executions to test branch traces with:
// random control-flow graphs of real x86-64 instructions, walks through them
// with system calls, interrupts, several threads and code that changes, and the
// branch logs that the engine would give for them.
//
// It is no emulator. The instructions mean nothing; where a branch
// goes is drawn at random. Only tests and benchmarks use the package.
package pttest

import "encoding/binary"

// kind is the kind of instruction that ends a block.
type kind int

const (
	jump kind = iota
	conditional
	shortConditional
	call
	callNext // to the next instruction, as old position-independent code does
	ret
	indirectJump
	indirectCall
	syscall
	fall // nothing: a block ends without a branch
	kinds
)

// bodies are instructions that go nowhere, from the SDM's opcode tables.
var bodies = [][]byte{
	{0x90},                               // nop
	{0x48, 0x89, 0xc3},                   // mov rbx, rax
	{0x0f, 0x1f, 0x00},                   // nop
	{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}, // nop
	{0xf3, 0x0f, 0x1e, 0xfa},             // endbr64
	{0xf2, 0x0f, 0x58, 0xc1},             // addsd
	{0xf3, 0xa4},                         // rep movsb
	{0xf0, 0x48, 0x0f, 0xb1, 0x0b},       // lock cmpxchg
	{0x48, 0xb8, 0xe8, 0xe8, 0xc3, 0xff, 0xe0, 0x0f, 0x05, 0x75}, // mov rax, imm64
	{0x0f, 0x28, 0xc1},                                     // movaps
	{0xd9, 0xfe},                                           // fsin
	{0x66, 0x0f, 0x38, 0x00, 0xc1},                         // pshufb
	{0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xc3},                   // crc32
	{0xc8, 0x10, 0x00, 0x00},                               // enter
	{0x0f, 0xa2},                                           // cpuid
	{0x0f, 0xae, 0xf0},                                     // mfence
	{0x8d, 0x84, 0x88, 0x78, 0x56, 0x34, 0x12},             // lea
	{0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00}, // mov rax, fs:28h
	{0x66, 0x0f, 0x3a, 0x63, 0xc1, 0x08},                   // pcmpistri
	{0xf3, 0x48, 0x0f, 0xb8, 0xc3},                         // popcnt
}

// block is a piece of the program.
type block struct {
	addr    uint64
	body    [][]byte
	kind    kind
	bias    int    // out of 100: how often it is taken
	target  int    // block that a direct branch goes to
	code    []byte // all of it
	starts  []uint64
	version int
}

func (b *block) endAddress() uint64 { return b.addr + uint64(len(b.code)) }

// Program is a control-flow graph.
type Program struct {
	rand   Rand
	blocks []block
}

// Rand is a generator of numbers that are the same everywhere.
type Rand uint64

// Next returns the next number (xorshift64*).
func (r *Rand) Next() uint64 {
	x := uint64(*r)
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*r = Rand(x)
	return x * 0x2545f4914f6cdd1d >> 1
}

// Below returns a number from 0 to n-1.
func (r *Rand) Below(n int) int { return int(r.Next() % uint64(n)) }

// Mix says how many of the blocks of a program end in which way, out of their
// sum.
type Mix [kinds]int

// Mixes of branches.
var (
	// Even has as many of each kind.
	Even = Mix{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	// Typical is about the mix of compiled programs.
	Typical = Mix{
		jump: 60, conditional: 400, shortConditional: 300, call: 80, ret: 80,
		indirectJump: 8, indirectCall: 12, syscall: 1, fall: 60,
	}
)

func (m Mix) drawKind(r *Rand) kind {
	sum := 0
	for _, n := range m {
		sum += n
	}
	at := r.Below(sum)
	for k, n := range m {
		if at -= n; at < 0 {
			return kind(k)
		}
	}
	panic("bug: a mix without kinds")
}

// NewProgram makes a program of n blocks at an address, from a seed.
func NewProgram(seed, addr uint64, n int, mix Mix) *Program {
	p := &Program{rand: Rand(seed*2 + 1), blocks: make([]block, n)}
	for range 8 {
		p.rand.Next()
	}
	for i := range p.blocks {
		b := &p.blocks[i]
		b.addr = addr
		b.kind = mix.drawKind(&p.rand)
		if i == n-1 {
			b.kind = indirectJump
		}
		b.bias = []int{2, 10, 50, 90, 98}[p.rand.Below(5)]
		p.drawTarget(i)
		p.fillBody(b)
		addr = b.endAddress()
	}
	for i := range p.blocks {
		p.encodeBlock(i)
	}
	return p
}

// drawTarget draws where a direct branch goes. Jumps and calls go forward, so that no
// circle is without a branch in the stream: Intel PT does not record how often
// the core runs round one without.
func (p *Program) drawTarget(i int) {
	b := &p.blocks[i]
	switch b.kind {
	case shortConditional:
		b.target = i + 1
	case jump, call:
		b.target = i + 1 + p.rand.Below(len(p.blocks)-1-i)
	default:
		b.target = p.rand.Below(len(p.blocks))
	}
}

// fillBody draws instructions, and the length of the block.
func (p *Program) fillBody(b *block) {
	b.body = nil
	for range p.rand.Below(6) {
		b.body = append(b.body, bodies[p.rand.Below(len(bodies))])
	}
	if b.kind == fall && len(b.body) == 0 {
		b.body = append(b.body, bodies[0])
	}
	b.code = make([]byte, p.blockSize(b))
}

func (p *Program) blockSize(b *block) int {
	n := len(terminators[b.kind])
	for _, in := range b.body {
		n += len(in)
	}
	return n
}

var terminators = [kinds][]byte{
	jump:             {0xe9, 0, 0, 0, 0},
	conditional:      {0x0f, 0x84, 0, 0, 0, 0},
	shortConditional: {0x75, 0},
	call:             {0xe8, 0, 0, 0, 0},
	callNext:         {0xe8, 0, 0, 0, 0},
	ret:              {0xc3},
	indirectJump:     {0xff, 0xe0},
	indirectCall:     {0xff, 0x14, 0x24},
	syscall:          {0x0f, 0x05},
	fall:             {},
}

// encodeBlock writes a block's code.
func (p *Program) encodeBlock(i int) {
	b := &p.blocks[i]
	b.code, b.starts = b.code[:0], nil
	for _, in := range b.body {
		b.starts = append(b.starts, b.addr+uint64(len(b.code)))
		b.code = append(b.code, in...)
	}
	t := terminators[b.kind]
	if len(t) == 0 {
		return
	}
	b.starts = append(b.starts, b.addr+uint64(len(b.code)))
	b.code = append(b.code, t...)
	distance := p.blocks[b.target].addr - b.endAddress()
	switch b.kind {
	case jump, conditional, call:
		binary.LittleEndian.PutUint32(b.code[len(b.code)-4:], uint32(distance))
	case shortConditional:
		b.code[len(b.code)-1] = byte(distance)
	}
}

// mutateBlock changes a block to other instructions of the same length.
func (p *Program) mutateBlock(i int) {
	b := &p.blocks[i]
	switch {
	case b.kind == jump || b.kind == call || b.kind == conditional:
		p.drawTarget(i)
	case b.kind == indirectJump && i < len(p.blocks)-1:
		b.kind = syscall
	case b.kind == syscall:
		b.kind = indirectJump
	}
	for j, in := range b.body {
		if same := bodies[p.rand.Below(len(bodies))]; len(same) == len(in) {
			b.body[j] = same
		}
	}
	b.version++
	p.encodeBlock(i)
}

// Text is the program's code, from its first address on.
func (p *Program) Text() (addr uint64, code []byte) {
	for i := range p.blocks {
		code = append(code, p.blocks[i].code...)
	}
	return p.blocks[0].addr, code
}
