package emu_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// TestMemoryLogHasOperands: the expected accesses are from the descriptions of the instructions in
// the Intel SDM, volume 2.
func TestMemoryLogHasOperands(t *testing.T) { onEngines(t, testMemoryLogHasOperands) }

func testMemoryLogHasOperands(t tester) {
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
		t.Run(c.name, func(inner *testing.T) {
			t := tester{inner, t.open}
			code := strings.Replace(c.code, "ret 8", "syscall", 1)
			b := newBench(t, "mov rax, 0x1122334455667788\n mov rbx, 0x600000\n"+code+"\n syscall")
			data := b.RAM.Bytes(b.Space.Get(dataBase).Page())[0x100:]
			copy(data, []byte{0xf0, 0xd2, 0xe1, 0x80, 0xb4, 0xa5, 0x96, 0x87, 0x78, 0x69, 0x5a, 0x4b, 0x3c, 0x2d, 0x1e, 0x0f})
			m := b.LogMemory(memlog.Filter{})
			m.RunToStop(arch.Limit{})
			if strings.Contains(code, "call") {
				c.want += "\nS 7f0ff8 " + m.Lines[len(m.Lines)-1][len("400000 S 7f0ff8 "):]
			}
			m.ExpectAccesses(c.want)
		})
	}
}

// TestMemoryLogHasExactPCs expects the PC of the instruction, wherever it is in a block and
// whichever part of the engine makes the access.
func TestMemoryLogHasExactPCs(t *testing.T) { onEngines(t, testMemoryLogHasExactPCs) }

func testMemoryLogHasExactPCs(t tester) {
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
	m := b.LogMemory(memlog.Filter{})
	m.RunToStop(arch.Limit{})
	// Offsets of the instructions, by the lengths that the assembler reports.
	want := []int{0, 2, 5, 9, 14, 18, 18, 22, 26, 27, 27, 30}
	for i, line := range m.Lines {
		if pc := fmt.Sprintf("%x ", int(codeBase)+12+want[i%len(want)]); !strings.HasPrefix(line, pc) {
			t.Fatalf("access %d is %q, want PC %s", i, line, pc)
		}
	}
	if len(m.Lines) != 50*len(want) {
		t.Errorf("%d accesses, want %d", len(m.Lines), 50*len(want))
	}
}

// straightCode returns code that the engine may cut into blocks anywhere, with a fault in it.
func straightCode() string {
	var body strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&body, "add rax, [rbx+%d]\npaddd xmm0, [rbx+%d]\nmov [rbx+%d], rax\n", i%100*8, i%100*16, i%100*8)
		if i%400 == 333 {
			fmt.Fprintf(&body, "mov [rbx+0x%d000], rax\n", i)
		}
	}
	return "mov rbx, 0x600000\n again:\n" + body.String() + "jmp again"
}

// TestMemoryLogMovesNothing: with the log the engine cuts blocks elsewhere, which must change
// neither the ends nor the effects of runs.
func TestMemoryLogMovesNothing(t *testing.T) { onEngines(t, testMemoryLogMovesNothing) }

func testMemoryLogMovesNothing(t tester) {
	for name, source := range map[string]string{"branchy": branchy, "straight": straightCode()} {
		for _, l := range []arch.Limit{{Instructions: 1}, {Instructions: 37}, {Instructions: 1201}, {Cycles: 500}, {Instructions: 777, Exact: true}} {
			var ends [3][]string
			for kind := range ends {
				b := newBench(t, source)
				switch kind {
				case 1:
					b.LogMemory(memlog.Filter{})
				case 2:
					b.LogMemory(memlog.Filter{})
					b.CPU.SetBreakpoints([]arch.Addr{codeBase + 1000, codeBase + 3001})
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

func (b *bench) endsOfRuns(l arch.Limit) (ends []string) {
	spare := memlog.NewBuffer()
	defer spare.Close()
	for range 60 {
		s := b.CPU.Run(l)
		for {
			switch s.Reason {
			case arch.StopFault:
				b.MapPage(s.Page, arch.Read|arch.Write)
			case arch.StopLog:
				b.CPU.SwapMemory(spare)
			}
			if s.Reason != arch.StopFault && s.Reason != arch.StopLog && s.Reason != arch.StopBreakpoint {
				break
			}
			s = b.CPU.Resume()
		}
		r := b.Regs()
		ends = append(ends, fmt.Sprintf("%d at %#x after %d, %d", s.Reason, r.RIP, s.Instructions, s.Cycles))
		if s.Reason == arch.StopSyscall {
			break
		}
	}
	return ends
}
