package stores_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// memoryKinds are instructions with an operand in memory at RBX and an offset.
var memoryKinds = []string{
	"inc dword ptr [rbx+%d]", "add [rbx+%d], rax", "xor [rbx+%d], cx", "not byte ptr [rbx+%d]", "xadd [rbx+%d], rdx",
	"cmpxchg [rbx+%d], rcx", "adc rax, [rbx+%d]", "mov [rbx+%d], rax", "mov rdx, [rbx+%d]", "movups xmm0, [rbx+%d]",
	"movups [rbx+%d], xmm0", "push qword ptr [rbx+%d]\npop rcx", "pop qword ptr [rbx+%d]\npush rax", "and esi, 255\nbts [rbx+%d], rsi",
	"lea rsi, [rbx+%d]\nlea rdi, [rbx+200]\nmovsq", "lea rsi, [rbx+%d]\nlea rdi, [rbx+90]\nmov ecx, 3\nrep movsb",
	"lea rdi, [rbx+%d]\nlea rsi, [rbx+9]\ncmpsq", "shl dword ptr [rbx+%d], 3", "neg qword ptr [rbx+%d]", "fld tbyte ptr [rbx+%d]\nfstp tbyte ptr [rbx+20]",
	"lock inc qword ptr [rbx+%d]", "xchg [rbx+%d], rax", "setz byte ptr [rbx+%d]", "cvtsi2sd xmm1, qword ptr [rbx+%d]",
	"lea rdi, [rbx+%d]\nmov ecx, 5\nrep stosw", "movnti [rbx+%d], rax", "mov byte ptr [rbx+%d], 7",
	"mov dword ptr [rbx+%d], -3", "test [rbx+%d], rax\nsetc dl", "movhps [rbx+%d], xmm0", "pextrd [rbx+%d], xmm0, 2", "fistp qword ptr [rbx+%d]\nfild qword ptr [rbx+8]",
}

// otherKinds are instructions of other forms.
var otherKinds = []string{
	"mfence", "sfence", "lfence", "nop", "push rax", "push 5\npop rdx", "call 1f\n1:", "lea rsi, [rax+rdx]", "rol rax, 7",
	"and rsp, -9", "fxsave [0x600200]", "fnstenv [0x600405]\nfldenv [0x600405]", "stmxcsr [0x60003d]", "cmp rax, rdx\njl 1f\nadd [rbx+61], rdx\n1:",
	"mov ecx, 4\n1: add [rbx+rcx*8+3], rcx\ndec ecx\njnz 1b", "call 1f\njmp 2f\n1: add rdx, 3\nret\n2:", "fld1\nfbstp [rbx+59]",
}

// Images of floating-point state, which differ between engines in what the state of a processor does
// not depend on, lie in these bytes.
const (
	imagesAt   = dataBase + 0x200
	imagesSize = 0x300
)

// randomProgram is a program of one thread that ends with SYSCALL. Operands lie in the first bytes
// of each of the first pages of data.
func randomProgram(r *rand.Rand, n, pages int) string {
	var code strings.Builder
	code.WriteString("mov rbx, 0x600000\nmov rsi, 77\nfld1\n")
	for range n {
		switch k := r.IntN(len(memoryKinds) + len(otherKinds)/2); {
		case k < len(memoryKinds):
			if pages > 1 {
				page := 1 + r.IntN(pages-1)
				fmt.Fprintf(&code, "mov ebx, %#x\n", 0x600000+0x1000*page-40*r.IntN(2))
			}
			fmt.Fprintf(&code, memoryKinds[k]+"\n", []int{r.IntN(120), 56 + r.IntN(8), 64 * r.IntN(2)}[r.IntN(3)])
		default:
			code.WriteString(otherKinds[r.IntN(len(otherKinds))] + "\n")
		}
	}
	return code.String() + "syscall"
}

// fill puts numbers into the data.
func (b *bench) fill(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 5))
	for page := range arch.Addr(4) {
		for at := range arch.Addr(40) {
			b.writeNumber(dataBase+arch.PageSize*page+8*at, r.Uint64()>>r.IntN(60), 8)
		}
	}
}

// randomLimit is a limit of a run that may end inside an instruction.
func randomLimit(r *rand.Rand, from *arch.Interrupted) arch.Limit {
	l := arch.Limit{Exact: r.IntN(4) > 0, From: from}
	switch r.IntN(4) {
	case 0:
		l.Inside = arch.InsideAfter(uint8(r.IntN(4)))
	case 1, 2:
		l.Inside = arch.InsideByChance(r.Uint32())
	}
	if r.IntN(2) == 0 {
		l.Instructions = uint64(r.IntN(9))
		l.Immediately = l.Instructions == 0
	} else {
		l.Cycles = arch.Cycles(1 + r.IntN(20))
	}
	if r.IntN(6) == 0 {
		l.Most = uint64(1 + r.IntN(5))
	}
	l.AtSync = r.IntN(10) == 0
	l.Pass = true
	return l
}

// state is what two engines are compared by. Of the flags it has those that are defined after all
// instructions.
type state struct {
	stop   arch.Stop
	regs   arch.Regs
	inside arch.Interrupted
	stores string
	memory string
}

func (b *bench) observe(s arch.Stop) state {
	const carry, zero, trap, direction = 0x1, 0x40, 0x100, 0x400
	memory := b.readBytes(dataBase, 4*arch.PageSize)
	clear(memory[imagesAt-dataBase:][:imagesSize])
	o := state{stop: s, regs: b.Regs(), memory: string(memory)}
	o.regs.RFLAGS &= carry | zero | trap | direction
	o.stop.Repeated, o.stop.Access, o.stop.Kind, o.stop.Page = 0, 0, 0, 0
	if s.Reason != arch.StopException {
		o.stop.Vector = 0
	}
	if in, ok := b.CPU.Interrupted(); ok && s.Reason == arch.StopBudget {
		in.Branches = 0
		in.Saved.RFLAGS &= carry | zero | trap | direction
		o.inside = in
	}
	return o
}

// difference describes the first difference of two states, if there is one.
func (o state) difference(p state) string {
	switch {
	case o.stop != p.stop:
		return fmt.Sprintf("stops %+v at %#x and %+v at %#x", o.stop, o.regs.RIP, p.stop, p.regs.RIP)
	case o.regs != p.regs:
		return fmt.Sprintf("registers\n%x\n%x", o.regs, p.regs)
	case o.inside != p.inside:
		return fmt.Sprintf("inside\n%+v\n%+v", o.inside, p.inside)
	case o.stores != p.stores:
		return fmt.Sprintf("stores\n%s\n%s", o.stores, p.stores)
	case o.memory != p.memory:
		for i := range o.memory {
			if o.memory[i] != p.memory[i] {
				return fmt.Sprintf("memory at %#x: %x and %x", i, o.memory[i:min(i+16, len(o.memory))], p.memory[i:min(i+16, len(o.memory))])
			}
		}
	}
	return ""
}

// withoutImages hides the bytes of images.
func withoutImages(stores []emu.Store) (out []emu.Store) {
	for _, s := range stores {
		if s.Addr-imagesAt < imagesSize {
			s.Data, s.Size = [8]byte{}, 0
		}
		out = append(out, s)
	}
	return out
}

// TestEnginesStopInsideAlike runs random programs with random limits in equal steps on the engines.
// After each step their stops, registers and memory are equal, and so are the states inside
// instructions, and the stores that wait.
func TestEnginesStopInsideAlike(t *testing.T) {
	places, ends := map[uint8]int{}, map[arch.StopReason]int{}
	for seed := range testsize.Pick[uint64](20, 60, 1000) {
		r := rand.New(rand.NewPCG(seed, 18))
		code := randomProgram(r, 60, 1)
		buffered, capacity := r.IntN(2) == 0, r.IntN(5)
		var benches []*bench
		var buffers []emu.Buffers
		for _, e := range engines {
			b := e.newBench(t, code)
			if buffered {
				bb, err := b.CPU.BufferStores(capacity)
				if err != nil {
					t.Fatal(err)
				}
				buffers = append(buffers, bb)
			}
			b.fill(seed)
			b.ChangeRegs(func(r *arch.Regs) { r.GPR[arch.RSP] -= 1024 - 3 })
			benches = append(benches, b)
		}
		stores := make([][]emu.Store, len(benches))
		var from *arch.Interrupted
		for step := 0; ; step++ {
			l := randomLimit(r, from)
			commits := r.IntN(3)
			var states []state
			for i, b := range benches {
				if buffered {
					// The first stores are committed.
					for n := 0; n < commits && len(stores[i]) > 0; n++ {
						b.Space.WriteAt(stores[i][0].Data[:stores[i][0].Size], stores[i][0].Addr)
						stores[i] = stores[i][1:]
					}
					buffers[i].Apply(stores[i])
				}
				own := l
				if from != nil {
					in, _ := b.CPU.Interrupted()
					own.From = &in
				}
				s := b.CPU.Run(own)
				if buffered {
					stores[i] = buffers[i].Withdraw(nil)
				}
				o := b.observe(s)
				o.stores = fmt.Sprintf("%v", withoutImages(stores[i]))
				states = append(states, o)
			}
			if d := states[0].difference(states[1]); d != "" {
				t.Fatalf("seed %d, step %d, buffered %v (%d), limit %+v: %s\n%s", seed, step, buffered, capacity, l, d, code)
			}
			from = nil
			s := states[0]
			if s.inside.IsInside() {
				from = &s.inside
				places[s.inside.Done()]++
			}
			if s.stop.Reason != arch.StopBudget && s.stop.Reason != arch.StopSync {
				ends[s.stop.Reason]++
				break
			}
		}
	}
	if ends[arch.StopSyscall] < 8 {
		t.Errorf("programs have ended for reasons %v", ends)
	}
	if places[1] < 10 || places[2] == 0 || places[3] == 0 && !testing.Short() {
		t.Errorf("runs have ended inside instructions, by the accesses that were done: %v", places)
	}
}

// TestEnginesKeepPagesAlike runs random programs on cores with private pages in equal steps on the
// engines, with drains at random, and compares everything after each step.
func TestEnginesKeepPagesAlike(t *testing.T) {
	waited, ends := 0, map[arch.StopReason]int{}
	for seed := range testsize.Pick[uint64](20, 60, 1000) {
		r := rand.New(rand.NewPCG(seed, 7))
		var code strings.Builder
		for k := range 3 {
			fmt.Fprintf(&code, ".org %#x\n%s\n", 0x1000*k, strings.ReplaceAll(randomProgram(r, 50, 4), "rsp, -9", "rax, -9"))
		}
		var benches []*bench
		var private []emu.PrivatePages
		var contexts [][]arch.Context
		for _, e := range engines {
			b := e.newBench(t, code.String())
			p, err := b.CPU.UsePrivatePages()
			if err != nil {
				t.Fatal(err)
			}
			b.fill(seed)
			var all []arch.Context
			for k := range 3 {
				x := b.CPU.NewContext()
				b.CPU.Load(x, b.Space)
				b.ChangeRegs(func(r *arch.Regs) {
					r.RIP = uint64(codeBase) + uint64(0x1000*k)
					r.GPR[arch.RSP] = uint64(stackBase) + 4096 - 512*uint64(k)
				})
				all = append(all, x)
			}
			benches, private, contexts = append(benches, b), append(private, p), append(contexts, all)
		}
		from := make([][]*arch.Interrupted, 2)
		from[0], from[1] = make([]*arch.Interrupted, 3), make([]*arch.Interrupted, 3)
		left := []int{0, 1, 2}
		for step := 0; len(left) > 0; step++ {
			k := left[r.IntN(len(left))]
			l := randomLimit(r, nil)
			drain := r.IntN(12)
			var states []state
			for i, b := range benches {
				b.CPU.Load(contexts[i][k], b.Space)
				private[i].Begin(arch.CoreID(k), arch.ThreadID(10+k))
				own := l
				own.From = from[i][k]
				s := b.CPU.Run(own)
				drains := private[i].End()
				from[i][k] = nil
				o := b.observe(s)
				if in, ok := b.CPU.Interrupted(); ok && s.Reason == arch.StopBudget {
					from[i][k] = &in
				}
				for core := range 3 {
					pages, made := private[i].Waiting(arch.CoreID(core))
					o.stores += fmt.Sprint(pages, made, " ")
					waited += pages
				}
				o.stores += fmt.Sprint(drains)
				if drains {
					private[i].Drain(arch.CoreID(k))
				}
				if drain < 3 {
					private[i].Drain(arch.CoreID(drain))
				}
				states = append(states, o)
			}
			if d := states[0].difference(states[1]); d != "" {
				t.Fatalf("seed %d, step %d, core %d, limit %+v: %s\n%s", seed, step, k, l, d, code.String())
			}
			if reason := states[0].stop.Reason; reason != arch.StopBudget && reason != arch.StopSync {
				ends[reason]++
				left = slices.DeleteFunc(left, func(n int) bool { return n == k })
			}
		}
	}
	if ends[arch.StopSyscall] < 20 {
		t.Errorf("programs have ended for reasons %v", ends)
	}
	if waited < 1000 {
		t.Errorf("only %d pages have waited", waited)
	}
}
