package emu

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// memoryLog is the log of a bench and a model of memory that does what it says.
type memoryLog struct {
	*bench
	buffer *MemoryBuffer
	pages  map[uint64]*[PageSize]byte
	mapped map[event.Addr]uint64
	lines  []string // the accesses
	counts map[MemoryKind]int
	part   bool // the log leaves out what a model of memory needs
}

func (b *bench) logMemory(f MemoryFilter) *memoryLog {
	b.Helper()
	if err := b.cpu.LogMemory(f); err != nil {
		b.Fatal(err)
	}
	m := &memoryLog{
		bench: b, buffer: NewMemoryBuffer(), pages: map[uint64]*[PageSize]byte{}, mapped: map[event.Addr]uint64{},
		counts: map[MemoryKind]int{}, part: f.Partial || len(f.Code) > 0,
	}
	b.Cleanup(m.buffer.Close)
	return m
}

// run runs to something else than a full log, and takes what was logged.
func (m *memoryLog) run(l Limit) Stop {
	s := m.cpu.Run(l)
	m.take()
	for s.Reason == StopLog {
		s = m.cpu.Resume()
		m.take()
	}
	return s
}

func (m *memoryLog) take() {
	m.cpu.SwapMemory(m.buffer)
	entries := m.buffer.Entries()
	for i := range entries {
		e := &entries[i]
		m.counts[e.Kind]++
		switch e.Kind {
		case MemoryLoad, MemoryStore:
			value := binary.LittleEndian.AppendUint64(nil, e.Value)
			if e.Size > 8 {
				value = binary.LittleEndian.AppendUint64(value, entries[i+1].Value)
			}
			m.access(e, value[:e.Size])
		case MemoryMap:
			m.mapped[e.Addr] = e.PC
		case MemoryZero:
			m.pages[e.PC] = &[PageSize]byte{}
		case MemoryContent:
			m.pages[e.PC] = (*[PageSize]byte)(m.buffer.Bytes(e))
			copied := *m.pages[e.PC]
			m.pages[e.PC] = &copied
		case MemoryCopy:
			copied := *m.pages[e.Value]
			m.pages[e.PC] = &copied
		case MemoryKernel:
			if e.Flags&FlagLater == 0 {
				copy(m.pages[e.PC][e.Addr%PageSize:], m.buffer.Bytes(e))
			}
		}
	}
}

func (m *memoryLog) access(e *MemoryEntry, value []byte) {
	letter := "L"
	if e.Kind == MemoryStore {
		letter = "S"
	}
	if e.Flags&FlagAtomic != 0 {
		letter += "a"
	}
	line := fmt.Sprintf("%x %s %x", e.PC, letter, e.Addr)
	for _, b := range slices.Backward(value) {
		line += fmt.Sprintf(" %02x", b)
	}
	m.lines = append(m.lines, line)
	if m.part {
		return
	}
	for i, v := range value {
		at := e.Addr + event.Addr(i)
		page, ok := m.mapped[at&^(PageSize-1)]
		if !ok || m.pages[page] == nil {
			m.Fatalf("%s: nothing is known of the page at %#x", line, at)
		}
		b := &m.pages[page][at%PageSize]
		if e.Kind == MemoryStore {
			*b = v
		} else if *b != v {
			m.Fatalf("%s: the model has %02x at %#x", line, *b, at)
		}
	}
}

// expect compares the accesses since the last call with lines of the form "L
// 600000 11 22": the bytes of the value from the highest down. The PCs must be
// those of instructions.
func (m *memoryLog) expect(want string) {
	m.Helper()
	var got []string
	for _, line := range m.lines {
		_, rest, _ := strings.Cut(line, " ")
		got = append(got, rest)
	}
	m.lines = nil
	var wanted []string
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			wanted = append(wanted, line)
		}
	}
	if !slices.Equal(got, wanted) {
		m.Errorf("accesses:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

// The expectations are those of the instructions' descriptions in the Intel
// SDM, volume 2.
func TestMemoryLogHasOperands(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"integers", "mov [rbx], rax\n mov cl, [rbx+1]\n add word ptr [rbx+2], 1", `
			S 600000 11 22 33 44 55 66 77 88
			L 600001 77
			L 600002 55 66
			S 600002 55 67`},
		{"signed", "movsx rcx, byte ptr [rbx+0x100]\n movsxd rcx, dword ptr [rbx+0x100]", "L 600100 f0\nL 600100 80 e1 d2 f0"},
		{"sse", "movdqu xmm0, [rbx+0x100]\n movups [rbx+16], xmm0\n movsd [rbx], xmm0\n paddd xmm0, [rbx+16]", `
			L 600100 0f 1e 2d 3c 4b 5a 69 78 87 96 a5 b4 80 e1 d2 f0
			S 600010 0f 1e 2d 3c 4b 5a 69 78 87 96 a5 b4 80 e1 d2 f0
			S 600000 87 96 a5 b4 80 e1 d2 f0
			L 600010 0f 1e 2d 3c 4b 5a 69 78 87 96 a5 b4 80 e1 d2 f0`},
		{"x87", "fld tbyte ptr [rbx+0x100]\n fstp tbyte ptr [rbx+1]\n fild word ptr [rbx+1]", `
			L 600100 69 78 87 96 a5 b4 80 e1 d2 f0
			S 600001 69 78 87 96 a5 b4 80 e1 d2 f0
			L 600001 d2 f0`},
		{"two pages", "mov [rbx+4093], rax\n mov rcx, [rbx+4095]\n mov [rbx+4095], cx\n mov cx, [rbx+4095]", `
			S 600ffd 11 22 33 44 55 66 77 88
			L 600fff 00 00 11 22 33 44 55 66
			S 600fff 55 66
			L 600fff 55 66`},
		{"two pages of 16", "movdqu xmm0, [rbx+0x100]\n movdqu [rbx+4091], xmm0\n movdqu [rbx+4088], xmm0\n movdqu xmm1, [rbx+4095]", `
			L 600100 0f 1e 2d 3c 4b 5a 69 78 87 96 a5 b4 80 e1 d2 f0
			S 600ffb 0f 1e 2d 3c 4b 5a 69 78 87 96 a5 b4 80 e1 d2 f0
			S 600ff8 0f 1e 2d 3c 4b 5a 69 78 87 96 a5 b4 80 e1 d2 f0
			L 600fff 00 00 00 00 0f 1e 2d 0f 1e 2d 3c 4b 5a 69 78 87`},
		{"atomic", "lock xadd [rbx+8], rax\n xchg [rbx+8], al\n xor eax, eax\n lock cmpxchg16b [rbx+32]\n xchg rax, rcx\n lock inc dword ptr [rbx]", `
			La 600008 00 00 00 00 00 00 00 00
			Sa 600008 11 22 33 44 55 66 77 88
			La 600008 88
			Sa 600008 00
			La 600020 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
			Sa 600020 00 00 00 00 00 00 00 00 00 00 00 00 00 60 00 00
			La 600000 00 00 00 00
			Sa 600000 00 00 00 01`},
		{"stack", "push rax\n push word ptr [rbx+0x100]\n pop cx\n pop [rbx]\n call 1f\n 1: ret 8", `
			S 7f0ff8 11 22 33 44 55 66 77 88
			L 600100 d2 f0
			S 7f0ff6 d2 f0
			L 7f0ff6 d2 f0
			L 7f0ff8 11 22 33 44 55 66 77 88
			S 600000 11 22 33 44 55 66 77 88`},
		{"strings", "lea rsi, [rbx+0x100]\n lea rdi, [rbx+7]\n mov ecx, 3\n rep movsb\n mov al, 0xd2\n mov rdi, rsi\n dec rdi\n sub rdi, 2\n mov ecx, 9\n repne scasb\n cmpsw", `
			L 600100 f0
			S 600007 f0
			L 600101 d2
			S 600008 d2
			L 600102 e1
			S 600009 e1
			L 600100 f0
			L 600101 d2
			L 600102 80 e1
			L 600103 b4 80`},
		{"enter", "mov rbp, rsp\n enter 16, 2\n leave", `
			S 7f0ff8 00 00 00 00 00 7f 10 00
			L 7f0ff8 00 00 00 00 00 7f 10 00
			S 7f0ff0 00 00 00 00 00 7f 10 00
			S 7f0fe8 00 00 00 00 00 7f 0f f8
			L 7f0ff8 00 00 00 00 00 7f 10 00`},
		{"none", "lea rcx, [rbx+8]\n nop dword ptr [rbx]\n prefetcht0 [rbx]\n mov rcx, rax", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := strings.Replace(c.code, "ret 8", "syscall", 1)
			b := newBench(t, "mov rax, 0x1122334455667788\n mov rbx, 0x600000\n"+code+"\n syscall")
			data := b.ram.Bytes(b.space.Get(dataBase).Page())[0x100:]
			copy(data, []byte{0xf0, 0xd2, 0xe1, 0x80, 0xb4, 0xa5, 0x96, 0x87, 0x78, 0x69, 0x5a, 0x4b, 0x3c, 0x2d, 0x1e, 0x0f})
			m := b.logMemory(MemoryFilter{})
			m.run(Limit{})
			if strings.Contains(code, "call") {
				c.want += "\nS 7f0ff8 " + m.lines[len(m.lines)-1][len("400000 S 7f0ff8 "):]
			}
			m.expect(c.want)
		})
	}
}

// A PC is that of the instruction, wherever in a block it stands and whatever
// makes the access.
func TestMemoryLogHasExactPCs(t *testing.T) {
	b := newBench(t, `mov rbx, 0x600000
		mov ecx, 50
	again:
		fld qword ptr [rbx]
		fstp qword ptr [rbx+8]
		movsd xmm0, [rbx]
		addsd xmm0, [rbx+8]
		mulps xmm0, [rbx+16]
		lock inc dword ptr [rbx+64]
		movups [rbx+32], xmm0
		push rcx
		pop [rbx+72]
		stmxcsr [rbx+80]
		dec ecx
		jnz again
		syscall`)
	m := b.logMemory(MemoryFilter{})
	m.run(Limit{})
	// Offsets of the instructions by the lengths that the assembler gives.
	want := []int{0, 2, 5, 9, 14, 18, 18, 22, 26, 27, 27, 30}
	for i, line := range m.lines {
		if pc := fmt.Sprintf("%x ", int(codeBase)+12+want[i%len(want)]); !strings.HasPrefix(line, pc) {
			t.Fatalf("access %d is %q, want PC %s", i, line, pc)
		}
	}
	if len(m.lines) != 50*len(want) {
		t.Errorf("%d accesses, want %d", len(m.lines), 50*len(want))
	}
}

// An instruction that faults has no accesses; once it can complete it has them
// once. The engine's own state after a fault in the second page must not hide
// what follows.
func TestMemoryLogAndFaults(t *testing.T) {
	for _, op := range []string{
		"mov rax, [rbx+0x3ffd]", "mov [rbx+0x3ffd], rax", "movdqu [rbx+0x3ff8], xmm0", "movdqu xmm0, [rbx+0x3ff1]",
		"lea rsi, [rbx+8]\n lea rdi, [rbx+0x3ffe]\n movsd", "push [rbx+0x3fff]", "lock inc dword ptr [rbx+0x3ffe]",
		"lea rdi, [rbx+0x3ffd]\n mov ecx, 7\n rep stosb", "fxsave [rbx+0x3f00]",
	} {
		logs := map[bool][]string{}
		for _, faults := range []bool{false, true} {
			b := newBench(t, "mov rbx, 0x600000\n mov rcx, [rbx]\n"+op+"\n mov [rbx+0x3fff], rbx\n mov rcx, [rbx+0x3fff]\n syscall")
			m := b.logMemory(MemoryFilter{})
			if !faults {
				b.mapPage(dataBase+4*PageSize, Read|Write)
			}
			s := m.run(Limit{})
			for s.Reason == StopFault {
				b.mapPage(s.Page, Read|Write)
				s = b.cpu.Resume()
				m.take()
			}
			if s.Reason != StopSyscall {
				t.Fatalf("%s: %+v", op, s)
			}
			logs[faults] = m.lines
		}
		if !slices.Equal(logs[true], logs[false]) {
			t.Errorf("%s: with a fault\n%s\nwithout\n%s", op, strings.Join(logs[true], "\n"), strings.Join(logs[false], "\n"))
		}
	}
}

// Two addresses of one page, in turns.
func TestMemoryLogTellsAliasesApart(t *testing.T) {
	b := newBench(t, `mov rbx, 0x600000
		mov ecx, 2000
	again:
		mov [rbx+8], rcx
		mov rax, [rbx+0x100008]
		xor [rbx+0x100ffe], eax
		mov rdx, [rbx+0x200008]
		mov rdx, [rbx+0x300008]
		movdqu xmm0, [rbx+0x200ff8]
		loop again
		syscall`)
	e := b.space.Get(dataBase).Page()
	for _, at := range []event.Addr{0x100000, 0x101000} {
		b.ram.Ref(e)
		b.space.Set(dataBase+at, MakePTE(e, Read|Write, true))
	}
	b.ram.Ref(e)
	b.space.Set(dataBase, MakePTE(e, Read|Write, true))
	b.space.FillZero(dataBase+0x200000, dataBase+0x400000, Read|Write)
	m := b.logMemory(MemoryFilter{})
	if s := m.run(Limit{}); s.Reason != StopSyscall {
		t.Fatalf("%+v", s)
	}
	if len(m.lines) != 7*2000 {
		t.Fatalf("%d accesses, want 14000", len(m.lines))
	}
	for i, at := range []string{"S 600008", "L 700008", "L 700ffe", "S 700ffe", "L 800008", "L 900008", "L 800ff8"} {
		for _, line := range []string{m.lines[i], m.lines[7*1999+i]} {
			if !strings.Contains(line, at) {
				t.Errorf("%s, want %s", line, at)
			}
		}
	}
}

// Code that is written through one address and run through another.
func TestMemoryLogOfCodeMappedTwice(t *testing.T) {
	b := newBench(t, `mov rbx, 0x600000
		mov ecx, 300
	again:
		mov byte ptr [rbx], 0xb8
		mov [rbx+1], ecx
		mov byte ptr [rbx+5], 0xc3
		mov rax, 0x700000
		call rax
		add rdx, rax
		loop again
		syscall`)
	e := b.space.Get(dataBase).Page()
	b.ram.Ref(e)
	b.space.Set(dataBase, MakePTE(e, Read|Write, true))
	b.ram.Ref(e)
	b.space.Set(0x700000, MakePTE(e, Read|Exec, true))
	m := b.logMemory(MemoryFilter{})
	if s := m.run(Limit{}); s.Reason != StopSyscall || b.regs().GPR[RDX] != 300*301/2 {
		t.Fatalf("%+v, rdx %d", s, b.regs().GPR[RDX])
	}
	if len(m.lines) != 5*300 {
		t.Errorf("%d accesses, want 1500", len(m.lines))
	}
}

// A store into the block that it is in is executed anew by the engine, which then
// may tell of nothing more.
func TestMemoryLogOfSelfModifyingCode(t *testing.T) {
	for padding := range 16 {
		source := fmt.Sprintf(`lea rbx, [rip+target]
			mov ecx, 40
		again:
			mov [rbx+1], ecx
			movq xmm0, [rbx]
			movq [rbx], xmm0
			movups xmm1, [rbx]
			movups [rbx], xmm1
			push rbx
			.space %d, 0x90
		target:
			mov eax, 0
			add rdx, rax
			pop rax
			loop again
			syscall`, padding)
		var ends [2]Stop
		for kind := range ends {
			b := newBench(t, source)
			b.space.Protect(codeBase, codeBase+PageSize, Read|Write|Exec)
			if kind == 0 {
				ends[0] = b.cpu.Run(Limit{})
				continue
			}
			m := b.logMemory(MemoryFilter{})
			ends[1] = m.run(Limit{})
			ends[1].Page = ends[0].Page
			for i, line := range m.lines {
				if want := []string{"S", "L", "S", "L", "S", "S", "L"}[i%7]; strings.Fields(line)[1] != want {
					t.Fatalf("padding %d: access %d is %s, want %s", padding, i, line, want)
				}
			}
			if len(m.lines) != 40*7 || b.regs().GPR[RDX] != 40*41/2 {
				t.Fatalf("padding %d: %d accesses, want 280; rdx %d", padding, len(m.lines), b.regs().GPR[RDX])
			}
		}
		if ends[0].Instructions != ends[1].Instructions || ends[0].Reason != StopSyscall {
			t.Errorf("padding %d: %+v without, %+v with a log", padding, ends[0], ends[1])
		}
	}
}

// Everything that changes memory but the guest's stores.
func TestMemoryLogOfTheKernel(t *testing.T) {
	b := newBench(t, `mov rbx, 0x600000
		mov eax, 39
	again:
		mov rcx, [rbx+8]
		mov rcx, [rbx+0x1008]
		mov rcx, [rbx+0x2008]
		mov rcx, [rbx+0x3ff8]
		inc qword ptr [rbx+0x10]
		inc qword ptr [rbx+0x2010]
		syscall
		jmp again`)
	m := b.logMemory(MemoryFilter{})
	big := make([]byte, 3*PageSize)
	var clones []*Space
	for i := range 40 {
		if s := m.run(Limit{}); s.Reason != StopSyscall {
			t.Fatalf("%+v", s)
		}
		m.expect(fmt.Sprintf("L 600008 %s\nL 601008 %s\nL 602008 %s\nL 603ff8 %s", b.hex(0x600008), b.hex(0x601008), b.hex(0x602008), b.hex(0x603ff8)) +
			m.increments())
		for k := range big {
			big[k] = byte(k + i)
		}
		switch i % 8 {
		case 0:
			b.space.WriteAt([]byte{byte(i), 1, 2}, 0x600007)
		case 1:
			b.space.WriteAt(big, 0x600100)
		case 2: // a fork, and the copies that follow
			clones = append(clones, b.space.Clone())
		case 3: // another page in place of one
			b.mapPage(0x602000, Read|Write)
		case 4: // a write to what a shared mapping shows
			p := b.space.Get(0x603000).Page()
			copy(b.ram.Bytes(p)[0xff8:], big[i:i+8])
			b.ram.Written(p)
		case 5: // a return to an earlier state
			b.space.Release()
			b.space = clones[len(clones)-1].Clone()
			b.cpu.Load(b.ctx, b.space)
			b.cpu.ForgetMemory()
		case 6:
			b.space.Unmap(0x601000, 0x602000)
			b.space.FillZero(0x601000, 0x602000, Read|Write)
		case 7:
			b.space.WriteAt(big[:PageSize], 0x601000)
			b.space.WriteAt(big[100:300], 0x601000-100)
		}
	}
	if m.counts[MemoryCopy] == 0 || m.counts[MemoryKernel] == 0 || m.counts[MemoryContent] == 0 {
		t.Errorf("%v entries of each kind", m.counts)
	}
}

// hex is the value at an address.
func (b *bench) hex(at event.Addr) string {
	var v [8]byte
	b.space.ReadAt(v[:], at)
	return fmt.Sprintf("% x", reverse(v))
}

func reverse(v [8]byte) [8]byte {
	slices.Reverse(v[:])
	return v
}

// increments is what the two increments of TestMemoryLogOfTheKernel are, which
// have happened.
func (m *memoryLog) increments() string {
	var all strings.Builder
	for _, at := range []event.Addr{0x600010, 0x602010} {
		var v [8]byte
		m.space.ReadAt(v[:], at)
		after := binary.LittleEndian.Uint64(v[:])
		binary.LittleEndian.PutUint64(v[:], after-1)
		fmt.Fprintf(&all, "\nL %x % x\nS %x %s", uint64(at), reverse(v), uint64(at), m.hex(at))
	}
	return all.String()
}

func TestMemoryLogSelects(t *testing.T) {
	source := "mov rbx, 0x600000\n nop\n mov [rbx], rbx\n mov rax, [rbx+8]\n mov [rbx+12], ecx\n mov rax, [rbx+15]\n syscall"
	for _, c := range []struct {
		filter MemoryFilter
		want   string
	}{
		{MemoryFilter{Data: []AddrRange{{0x600010, 0x600011}}}, "L 60000f 00 00 00 00 00 00 00 00"},
		{MemoryFilter{Data: []AddrRange{{0x600000, 0x600001}, {0x60000f, 0x600010}}}, `
			S 600000 00 00 00 00 00 60 00 00
			L 600008 00 00 00 00 00 00 00 00
			S 60000c 00 00 00 00
			L 60000f 00 00 00 00 00 00 00 00`},
		{MemoryFilter{Code: []AddrRange{{codeBase + 11, codeBase + 12}}}, "L 600008 00 00 00 00 00 00 00 00"},
		{MemoryFilter{Data: []AddrRange{{0x700000, 0x800000}}}, ""},
	} {
		m := newBench(t, source).logMemory(c.filter)
		m.run(Limit{})
		m.expect(c.want)
	}
	m := newBench(t, source).logMemory(MemoryFilter{Partial: true})
	m.cpu.MuteMemory(true)
	m.run(Limit{Instructions: 4, Exact: true})
	m.cpu.MuteMemory(false)
	m.run(Limit{})
	m.expect("S 60000c 00 00 00 00\nL 60000f 00 00 00 00 00 00 00 00")
}

// The place of an access among the branches.
func TestMemoryLogCountsBranches(t *testing.T) {
	b := newBench(t, `mov rbx, 0x600000
		mov rax, [rbx]
		jmp 1f
	1:	mov rax, [rbx]
		cmp rbx, 0
		jz 2f
		mov rax, [rbx]
		call f
		mov rax, [rbx]
		lea rcx, [rip+f]
		call rcx
		mov ecx, 3
		lea rdi, [rbx+8]
		rep stosb
	2:	syscall
	f:	ret`)
	m := b.logMemory(MemoryFilter{})
	s := b.cpu.Run(Limit{})
	b.cpu.SwapMemory(m.buffer)
	var got []uint32
	for _, e := range m.buffer.Entries() {
		if e.Kind == MemoryLoad || e.Kind == MemoryStore {
			got = append(got, e.Branches)
		}
	}
	if want := []uint32{0, 0, 1, 1, 1, 2, 2, 3, 4, 4, 4}; !slices.Equal(got, want) {
		t.Errorf("branches before the accesses: %v, want %v", got, want)
	}
	if n := b.cpu.CountedBranches(); n != 4 || s.Repeated != 3 {
		t.Errorf("%d branches and %d repetitions, want 4 and 3", n, s.Repeated)
	}
}

// straight is code that the engine cuts into blocks where it likes, with a
// fault in it.
func straight() string {
	var body strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&body, "add rax, [rbx+%d]\npaddd xmm0, [rbx+%d]\nmov [rbx+%d], rax\n", i%100*8, i%100*16, i%100*8)
		if i%400 == 333 {
			fmt.Fprintf(&body, "mov [rbx+0x%d000], rax\n", i)
		}
	}
	return "mov rbx, 0x600000\n again:\n" + body.String() + "jmp again"
}

// With the log the engine cuts blocks elsewhere. That must not move the ends of
// runs, nor what a run does.
func TestMemoryLogMovesNothing(t *testing.T) {
	for name, source := range map[string]string{"branchy": branchy, "straight": straight()} {
		for _, l := range []Limit{{Instructions: 1}, {Instructions: 37}, {Instructions: 1201}, {Cycles: 500}, {Instructions: 777, Exact: true}} {
			var ends [3][]string
			for kind := range ends {
				b := newBench(t, source)
				switch kind {
				case 1:
					b.logMemory(MemoryFilter{})
				case 2:
					b.logMemory(MemoryFilter{})
					b.cpu.SetBreakpoints([]event.Addr{codeBase + 1000, codeBase + 3001})
				}
				ends[kind] = b.endsOfRuns(l)
			}
			for kind := 1; kind < 3; kind++ {
				if !slices.Equal(ends[kind], ends[0]) {
					t.Fatalf("%s, %+v, way %d:\n%v\nwithout a log:\n%v", name, l, kind, ends[kind], ends[0])
				}
			}
		}
	}
}

func (b *bench) endsOfRuns(l Limit) (ends []string) {
	spare := NewMemoryBuffer()
	defer spare.Close()
	for range 60 {
		s := b.cpu.Run(l)
		for {
			switch s.Reason {
			case StopFault:
				b.mapPage(s.Page, Read|Write)
			case StopLog:
				b.cpu.SwapMemory(spare)
			}
			if s.Reason != StopFault && s.Reason != StopLog && s.Reason != StopBreakpoint {
				break
			}
			s = b.cpu.Resume()
		}
		r := b.regs()
		ends = append(ends, fmt.Sprintf("%d at %#x after %d, %d", s.Reason, r.RIP, s.Instructions, s.Cycles))
		if s.Reason == StopSyscall {
			break
		}
	}
	return ends
}

func BenchmarkMemoryLog(b *testing.B) {
	m := newBench(b, `mov rbx, 0x600000
		mov rcx, 1000000
		1: add rax, [rbx]
		xor rdx, rax
		mov [rbx+8], rdx
		dec rcx
		jnz 1b
		syscall`)
	if err := m.cpu.LogMemory(MemoryFilter{}); err != nil {
		b.Fatal(err)
	}
	spare := NewMemoryBuffer()
	defer spare.Close()
	for b.Loop() {
		m.setRegs(func(r *Regs) { r.RIP = uint64(codeBase) })
		s := m.cpu.Run(Limit{})
		for s.Reason == StopLog {
			m.cpu.SwapMemory(spare)
			s = m.cpu.Resume()
		}
		b.ReportMetric(float64(s.Instructions)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Minstr/s")
	}
}
