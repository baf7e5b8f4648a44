package vex

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
)

func lift(t testing.TB, source string) *Block {
	t.Helper()
	b, err := Lift(gcctest.Assemble(t, source), 0x400000)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func expectLines(t *testing.T, b *Block, want ...string) {
	t.Helper()
	text := b.String()
	for _, line := range want {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

// Statements have the form that libvex_ir.h describes.
func TestLift(t *testing.T) {
	expectLines(t, lift(t, "add rax, rbx\n nop"),
		"IMark(0x400000, 3)", "Add64(", "PUT(16) = ", "IMark(0x400003, 1)", "goto {Boring} 0x400004:I64")
	expectLines(t, lift(t, "lock cmpxchg [rdx], rcx\n ret"), "CASle(", "goto {Ret} ")
	expectLines(t, lift(t, "lock cmpxchg16b [rdi]"), " = CASle(")
	expectLines(t, lift(t, "addsd xmm0, xmm1\n jmp rax"), "GET:V128(224)", "Add64F0x2(", "goto {Boring} t")
	expectLines(t, lift(t, "fld1\n faddp\n call rax"), "PUTI(776:8xF64)", "GETI(776:8xF64)", "goto {Call} ")
	expectLines(t, lift(t, "test eax, eax\n jnz .+7"), "if (t", "goto {Boring} 0x400009:I64")
	expectLines(t, lift(t, "cpuid\n mfence\n syscall"), "DIRTY 0x1:I1 MoFX-gst(16,8)", "GSPTR", "MBusEvent-Fence", "goto {Sys_syscall} ")
	expectLines(t, lift(t, "rep stosb"), "goto {Boring} 0x400002\n", "STle(", "goto {Boring} 0x400000:I64")
	expectLines(t, lift(t, "seta al\n ret"), "amd64g_calculate_condition(")
	expectLines(t, lift(t, "nop\n ud2"), "goto {NoDecode} 0x400001:I64")
}

// A block is not longer than the given code, nor than libVEX's limit.
func TestSize(t *testing.T) {
	long := lift(t, strings.Repeat("inc eax\n", 150))
	if long.Size != 99*2 {
		t.Errorf("%d bytes, want 99 instructions of 2", long.Size)
	}
	code := gcctest.Assemble(t, "mov eax, 1\n mov ebx, 2\n ret")
	for _, c := range []struct{ n, size int }{{5, 5}, {7, 5}, {9, 5}, {10, 10}, {11, 11}} {
		b, err := Lift(code[:c.n], 0)
		if err != nil || b.Size != c.size {
			t.Errorf("%d bytes of code: %v, %v", c.n, b, err)
		}
	}
	if _, err := Lift(nil, 0); err == nil {
		t.Error("no code is lifted")
	}
}

// An instruction that is cut off overwrites nothing.
func TestCutInstruction(t *testing.T) {
	code := gcctest.Assemble(t, "mov eax, [rdi]\n movabs rax, 0x1122334455667788")
	for n := 2; n < len(code); n++ {
		b, err := Lift(code[:n], 0)
		if err != nil || b.Size != 2 {
			t.Fatalf("%d bytes: %v, %v", n, b, err)
		}
		expectLines(t, b, "PUT(16) = ")
	}
}

// Instructions that libVEX treats differently from the processor, or does not know, are
// blocks of their own.
func TestSpecialInstructions(t *testing.T) {
	for _, special := range []string{"bts rax, rbx", "cmpsb", "cmpsq", "xlat", "pushfq", "stmxcsr [rsp]"} {
		n := len(gcctest.Assemble(t, special))
		b := lift(t, "nop\n nop\n "+special+"\n nop")
		if b.Size != 2 || b.Jump != JumpBoring {
			t.Errorf("before %s: %v", special, b)
		}
		if b = lift(t, special+"\n nop"); b.Size != n || b.Jump != JumpBoring {
			t.Errorf("%s: %v", special, b)
		}
	}
}

// Undecodable code, whole or cut off, is an error that names it.
func TestUndecodable(t *testing.T) {
	for _, code := range []string{"\x0f\xff\xff\xff", "\x06", "\x48", "\x48\x89", "\x66\x89\x84"} {
		b, err := Lift([]byte(code), 0x1000)
		if err == nil || !strings.Contains(err.Error(), "0x1000") {
			t.Errorf("% x: %v, %v", code, b, err)
		}
	}
}

var disassembled = regexp.MustCompile(`^ +([0-9a-f]+):\t((?:[0-9a-f]{2} )+)`)

// The instructions of a real library are at the disassembler's addresses.
func TestInstructionBoundaries(t *testing.T) {
	path := "/lib/x86_64-linux-gnu/libm.so.6"
	out, err := exec.Command("objdump", "-d", "-w", "-j", ".text", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	at := map[uint64]int{}
	var order []uint64
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	for lines.Scan() {
		if m := disassembled.FindStringSubmatch(lines.Text()); m != nil {
			pc, _ := strconv.ParseUint(m[1], 16, 64)
			at[pc] = len(m[2]) / 3
			order = append(order, pc)
		}
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	code, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	lifted, instructions := 0, 0
	for _, pc := range order[:min(len(order), 40_000)] {
		if lifted > 0 && pc%7 != 0 {
			continue
		}
		offset := pc - text.Addr
		b, err := Lift(code[offset:min(offset+200, uint64(len(code)))], pc)
		if err != nil {
			continue // AVX, which no program under study may use
		}
		lifted++
		for _, s := range b.Stmts {
			// objdump shows FWAIT and the following instruction as one.
			if m, ok := s.(*Mark); ok && !strings.Contains(string(code[max(m.Addr-text.Addr, 1)-1:][:2]), "\x9b") {
				if undecoded := m.Len == 0 && b.Jump == JumpNoDecode; undecoded {
					continue // AVX, after other instructions
				}
				if at[m.Addr] != m.Len {
					t.Fatalf("instruction at %#x has %d bytes, objdump says %d", m.Addr, m.Len, at[m.Addr])
				}
				instructions++
			}
		}
	}
	if lifted < 1000 {
		t.Errorf("only %d blocks were lifted", lifted)
	}
	t.Logf("%d blocks, %d instructions", lifted, instructions)
}

// Invariant 1.
func TestSameCodeSameBlock(t *testing.T) {
	const source = "mov eax, [rdi]\n add eax, 3\n mov [rdi+4], eax\n sqrtsd xmm0, xmm1\n ja .+10"
	one := lift(t, source)
	lift(t, "ret")
	if other := lift(t, source); fmt.Sprint(one) != fmt.Sprint(other) {
		t.Errorf("%v\n%v", one, other)
	}
}

func TestOpNames(t *testing.T) {
	names := opNames()
	if len(names) < 1000 || names[1] != "Add8" {
		t.Errorf("%d names, the first is %q", len(names), names[1])
	}
}

func BenchmarkLift(b *testing.B) {
	code := gcctest.Assemble(b, "mov eax, [rdi]\n add eax, 3\n mov [rdi+4], eax\n ja .+10")
	for b.Loop() {
		if _, err := Lift(code, 0x400000); err != nil {
			b.Fatal(err)
		}
	}
}
