package emu_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/memlog"
)

// TestMemoryLogAndFaults: an instruction that faults has no accesses; once it can complete, it has
// them once. The engine's state after a fault in the second page must not hide later accesses.
func TestMemoryLogAndFaults(t *testing.T) { onEngines(t, testMemoryLogAndFaults) }

func testMemoryLogAndFaults(t tester) {
	for _, op := range []string{
		"mov rax, [rbx+0x3ffd]", "mov [rbx+0x3ffd], rax", "movdqu [rbx+0x3ff8], xmm0", "movdqu xmm0, [rbx+0x3ff1]",
		"lea rsi, [rbx+8]\n lea rdi, [rbx+0x3ffe]\n movsd", "push [rbx+0x3fff]", "lock inc dword ptr [rbx+0x3ffe]",
		"lea rdi, [rbx+0x3ffd]\n mov ecx, 7\n rep stosb", "fxsave [rbx+0x3f00]",
	} {
		logs := map[bool][]string{}
		for _, faults := range []bool{false, true} {
			b := newBench(t, "mov rbx, 0x600000\n mov rcx, [rbx]\n"+op+"\n mov [rbx+0x3fff], rbx\n mov rcx, [rbx+0x3fff]\n syscall")
			m := b.LogMemory(memlog.Filter{})
			if !faults {
				b.MapPage(dataBase+4*arch.PageSize, arch.Read|arch.Write)
			}
			s := m.RunToStop(arch.Limit{})
			for s.Reason == arch.StopFault {
				b.MapPage(s.Page, arch.Read|arch.Write)
				s = b.CPU.Resume()
				m.TakeLog()
			}
			if s.Reason != arch.StopSyscall {
				t.Fatalf("%s: %+v", op, s)
			}
			logs[faults] = m.Lines
		}
		if !slices.Equal(logs[true], logs[false]) {
			t.Errorf("%s: with a fault\n%s\nwithout\n%s", op, strings.Join(logs[true], "\n"), strings.Join(logs[false], "\n"))
		}
	}
}

// TestMemoryLogOfAliases alternates between two addresses of one page.
func TestMemoryLogOfAliases(t *testing.T) { onEngines(t, testMemoryLogOfAliases) }

func testMemoryLogOfAliases(t tester) {
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
	e := b.Space.Get(dataBase).Page()
	for _, at := range []arch.Addr{0x100000, 0x101000} {
		b.RAM.Ref(e)
		b.Space.Set(dataBase+at, mem.MakePTE(e, arch.Read|arch.Write, true))
	}
	b.RAM.Ref(e)
	b.Space.Set(dataBase, mem.MakePTE(e, arch.Read|arch.Write, true))
	b.Space.FillZero(dataBase+0x200000, dataBase+0x400000, arch.Read|arch.Write)
	m := b.LogMemory(memlog.Filter{})
	if s := m.RunToStop(arch.Limit{}); s.Reason != arch.StopSyscall {
		t.Fatalf("%+v", s)
	}
	if len(m.Lines) != 7*2000 {
		t.Fatalf("%d accesses, want 14000", len(m.Lines))
	}
	for i, at := range []string{"S 600008", "L 700008", "L 700ffe", "S 700ffe", "L 800008", "L 900008", "L 800ff8"} {
		for _, line := range []string{m.Lines[i], m.Lines[7*1999+i]} {
			if !strings.Contains(line, at) {
				t.Errorf("%s, want %s", line, at)
			}
		}
	}
}

// TestMemoryLogOfCodeMappedTwice writes code through one address and runs it through another.
func TestMemoryLogOfCodeMappedTwice(t *testing.T) { onEngines(t, testMemoryLogOfCodeMappedTwice) }

func testMemoryLogOfCodeMappedTwice(t tester) {
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
	e := b.Space.Get(dataBase).Page()
	b.RAM.Ref(e)
	b.Space.Set(dataBase, mem.MakePTE(e, arch.Read|arch.Write, true))
	b.RAM.Ref(e)
	b.Space.Set(0x700000, mem.MakePTE(e, arch.Read|arch.Exec, true))
	m := b.LogMemory(memlog.Filter{})
	if s := m.RunToStop(arch.Limit{}); s.Reason != arch.StopSyscall || b.Regs().GPR[arch.RDX] != 300*301/2 {
		t.Fatalf("%+v, rdx %d", s, b.Regs().GPR[arch.RDX])
	}
	if len(m.Lines) != 5*300 {
		t.Errorf("%d accesses, want 1500", len(m.Lines))
	}
}

// TestMemoryLogOfSelfModifyingCode: the engine executes a store into its own block again, and may
// report no accesses after it.
func TestMemoryLogOfSelfModifyingCode(t *testing.T) { onEngines(t, testMemoryLogOfSelfModifyingCode) }

func testMemoryLogOfSelfModifyingCode(t tester) {
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
		var ends [2]arch.Stop
		for kind := range ends {
			b := newBench(t, source)
			b.Space.Protect(codeBase, codeBase+arch.PageSize, arch.Read|arch.Write|arch.Exec)
			if kind == 0 {
				ends[0] = b.CPU.Run(arch.Limit{})
				continue
			}
			m := b.LogMemory(memlog.Filter{})
			ends[1] = m.RunToStop(arch.Limit{})
			ends[1].Page = ends[0].Page
			for i, line := range m.Lines {
				if want := []string{"S", "L", "S", "L", "S", "S", "L"}[i%7]; strings.Fields(line)[1] != want {
					t.Fatalf("padding %d: access %d is %s, want %s", padding, i, line, want)
				}
			}
			if len(m.Lines) != 40*7 || b.Regs().GPR[arch.RDX] != 40*41/2 {
				t.Fatalf("padding %d: %d accesses, want 280; rdx %d", padding, len(m.Lines), b.Regs().GPR[arch.RDX])
			}
		}
		if ends[0].Instructions != ends[1].Instructions || ends[0].Reason != arch.StopSyscall {
			t.Errorf("padding %d: %+v without, %+v with a log", padding, ends[0], ends[1])
		}
	}
}

// TestMemoryLogOfTheKernel covers all changes of memory other than the guest's stores.
func TestMemoryLogOfTheKernel(t *testing.T) { onEngines(t, testMemoryLogOfTheKernel) }

func testMemoryLogOfTheKernel(t tester) {
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
	m := b.LogMemory(memlog.Filter{})
	big := make([]byte, 3*arch.PageSize)
	var clones []*mem.Space
	for i := range 40 {
		if s := m.RunToStop(arch.Limit{}); s.Reason != arch.StopSyscall {
			t.Fatalf("%+v", s)
		}
		m.ExpectAccesses(fmt.Sprintf("L 600008 %s\nL 601008 %s\nL 602008 %s\nL 603ff8 %s", b.hexAt(0x600008), b.hexAt(0x601008), b.hexAt(0x602008), b.hexAt(0x603ff8)) +
			b.incrementLines())
		for k := range big {
			big[k] = byte(k + i)
		}
		switch i % 8 {
		case 0:
			b.Space.WriteAt([]byte{byte(i), 1, 2}, 0x600007)
		case 1:
			b.Space.WriteAt(big, 0x600100)
		case 2: // a fork, and the copies after it
			clones = append(clones, b.Space.Clone())
		case 3: // another page replaces one
			b.MapPage(0x602000, arch.Read|arch.Write)
		case 4: // a write to a page of a shared mapping
			p := b.Space.Get(0x603000).Page()
			copy(b.RAM.Bytes(p)[0xff8:], big[i:i+8])
			b.RAM.Written(p)
		case 5: // a return to an earlier state
			b.Space.Release()
			b.Space = clones[len(clones)-1].Clone()
			b.CPU.Load(b.Ctx, b.Space)
			b.CPU.ForgetMemory()
		case 6:
			b.Space.Unmap(0x601000, 0x602000)
			b.Space.FillZero(0x601000, 0x602000, arch.Read|arch.Write)
		case 7:
			b.Space.WriteAt(big[:arch.PageSize], 0x601000)
			b.Space.WriteAt(big[100:300], 0x601000-100)
		}
	}
	if m.Counts[memlog.Copy] == 0 || m.Counts[memlog.Kernel] == 0 || m.Counts[memlog.Content] == 0 {
		t.Errorf("%v entries of each kind", m.Counts)
	}
}

// hexAt returns the value at an address in hexadecimal.
func (b *bench) hexAt(at arch.Addr) string {
	var v [8]byte
	b.Space.ReadAt(v[:], at)
	return fmt.Sprintf("% x", reverseBytes(v))
}

func reverseBytes(v [8]byte) [8]byte {
	slices.Reverse(v[:])
	return v
}

// incrementLines returns the log of the two increments of TestMemoryLogOfTheKernel after they were
// executed.
func (b *bench) incrementLines() string {
	var all strings.Builder
	for _, at := range []arch.Addr{0x600010, 0x602010} {
		var v [8]byte
		b.Space.ReadAt(v[:], at)
		after := binary.LittleEndian.Uint64(v[:])
		binary.LittleEndian.PutUint64(v[:], after-1)
		fmt.Fprintf(&all, "\nL %x % x\nS %x %s", uint64(at), reverseBytes(v), uint64(at), b.hexAt(at))
	}
	return all.String()
}

func TestMemoryLogSelects(t *testing.T) { onEngines(t, testMemoryLogSelects) }

func testMemoryLogSelects(t tester) {
	source := "mov rbx, 0x600000\n nop\n mov [rbx], rbx\n mov rax, [rbx+8]\n mov [rbx+12], ecx\n mov rax, [rbx+15]\n syscall"
	for _, c := range []struct {
		filter memlog.Filter
		want   string
	}{
		{memlog.Filter{Data: []memlog.Range{{Start: 0x600010, End: 0x600011}}}, "L 60000f 00 00 00 00 00 00 00 00"},
		{memlog.Filter{Data: []memlog.Range{{Start: 0x600000, End: 0x600001}, {Start: 0x60000f, End: 0x600010}}}, `
			S 600000 00 00 00 00 00 60 00 00
			L 600008 00 00 00 00 00 00 00 00
			S 60000c 00 00 00 00
			L 60000f 00 00 00 00 00 00 00 00`},
		{memlog.Filter{Code: []memlog.Range{{Start: codeBase + 11, End: codeBase + 12}}}, "L 600008 00 00 00 00 00 00 00 00"},
		{memlog.Filter{Data: []memlog.Range{{Start: 0x700000, End: 0x800000}}}, ""},
	} {
		m := newBench(t, source).LogMemory(c.filter)
		m.RunToStop(arch.Limit{})
		m.ExpectAccesses(c.want)
	}
	m := newBench(t, source).LogMemory(memlog.Filter{Partial: true})
	m.CPU.MuteMemory(true)
	m.RunToStop(arch.Limit{Instructions: 4, Exact: true})
	m.CPU.MuteMemory(false)
	m.RunToStop(arch.Limit{})
	m.ExpectAccesses("S 60000c 00 00 00 00\nL 60000f 00 00 00 00 00 00 00 00")
}

// TestMemoryLogCountsBranches checks the position of an access among the branches.
func TestMemoryLogCountsBranches(t *testing.T) { onEngines(t, testMemoryLogCountsBranches) }

func testMemoryLogCountsBranches(t tester) {
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
	m := b.LogMemory(memlog.Filter{})
	s := b.CPU.Run(arch.Limit{})
	b.CPU.SwapMemory(m.Buffer)
	var got []uint32
	for _, e := range m.Buffer.Entries() {
		if e.Kind == memlog.Load || e.Kind == memlog.Store {
			got = append(got, e.Branches)
		}
	}
	if want := []uint32{0, 0, 1, 1, 1, 2, 2, 3, 4, 4, 4}; !slices.Equal(got, want) {
		t.Errorf("branches before the accesses: %v, want %v", got, want)
	}
	if n := b.CPU.CountedBranches(); n != 4 || s.Repeated != 3 {
		t.Errorf("%d branches and %d repetitions, want 4 and 3", n, s.Repeated)
	}
}

// TestMemoryLogOfRewrittenCode expects that the facts about an instruction are dropped when its
// code is replaced.
func TestMemoryLogOfRewrittenCode(t *testing.T) { onEngines(t, testMemoryLogOfRewrittenCode) }

func testMemoryLogOfRewrittenCode(t tester) {
	b := newBench(t, `lea rsi, [rip+f]
		mov rbx, 0x600000
		mov ecx, 6
	again:
		call f
		xor byte ptr [rsi+1], 0x0c
		loop again
		syscall
		.balign 64
	f:	mov rax, [rbx]
		ret`)
	b.Space.Protect(codeBase, codeBase+arch.PageSize, arch.Read|arch.Write|arch.Exec)
	m := b.LogMemory(memlog.Filter{})
	if s := m.RunToStop(arch.Limit{}); s.Reason != arch.StopSyscall {
		t.Fatalf("%+v", s)
	}
	var kinds []string
	for _, line := range m.Lines {
		if f := strings.Fields(line); f[2] == "600000" {
			kinds = append(kinds, f[1])
		}
	}
	// MOV and XCHG alternate.
	if want := []string{"L", "La", "Sa", "L", "La", "Sa", "L", "La", "Sa"}; !slices.Equal(kinds, want) {
		t.Errorf("accesses %v, want %v", kinds, want)
	}
}
