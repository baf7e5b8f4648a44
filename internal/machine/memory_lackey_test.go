package machine_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// oneAccess is an access as valgrind's lackey prints it: L, S, or M for both.
type oneAccess struct {
	kind     string
	pc, addr uint64
	size     int
}

// stackFrom is where addresses are the stack's in both worlds, which have it at
// different places.
const stackFrom = 1 << 36

// relative gives addresses of the stack as differences to the first.
func relative(list []oneAccess) []string {
	first := uint64(0)
	out := make([]string, len(list))
	for i, a := range list {
		where := fmt.Sprintf("%#x", a.addr)
		if a.addr >= stackFrom {
			if first == 0 {
				first = a.addr
			}
			where = fmt.Sprintf("sp%+d", int64(a.addr-first))
		}
		out[i] = fmt.Sprintf("%s at %#x of %s, %d", a.kind, a.pc, where, a.size)
	}
	return out
}

// lackey runs a program under valgrind's lackey and returns the accesses by code
// in the range. A load and a compare-and-swap of the same place in
// its output are one locked instruction.
func lackey(t *testing.T, bin string, code memlog.Range) (list []oneAccess) {
	t.Helper()
	out, err := exec.Command("valgrind", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no", bin).CombinedOutput()
	if err != nil {
		t.Fatalf("valgrind: %v", err)
	}
	pc := uint64(0)
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		var a oneAccess
		if _, err := fmt.Sscanf(in.Text(), "%1s %x,%d", &a.kind, &a.addr, &a.size); err != nil || !strings.Contains("ILSM", a.kind) {
			continue
		}
		if a.kind == "I" {
			pc = a.addr
			continue
		}
		if a.pc = pc; arch.Addr(pc) < code.Start || arch.Addr(pc) >= code.End {
			continue
		}
		if n := len(list); n > 0 && a.kind == "M" && list[n-1] == (oneAccess{"L", a.pc, a.addr, a.size}) {
			list = list[:n-1]
		}
		list = append(list, a)
	}
	return list
}

// traced runs it on the machine, and puts loads and stores together as lackey
// does.
func traced(t *testing.T, bin string, code memlog.Range) (list []oneAccess) {
	t.Helper()
	c, _ := machinetest.Config(t, bin)
	_, path := recordMemory(t, c, func(r *machine.Record) { r.Memory.Code = []memlog.Range{code} })
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for e, err := range memtrace.Read(r, memtrace.Select{}) {
		if err != nil {
			t.Fatal(err)
		}
		a := oneAccess{"L", uint64(e.PC), uint64(e.Addr), int(e.Size)}
		if e.Kind == event.Store {
			if n := len(list); n > 0 && list[n-1] == a {
				list[n-1].kind = "M"
				continue
			}
			a.kind = "S"
		}
		list = append(list, a)
	}
	return list
}

// rangeOf is the code of a function.
func rangeOf(t *testing.T, bin, name string) memlog.Range {
	t.Helper()
	if s, ok := gcctest.Symbols(t, bin)[name]; ok {
		return memlog.Range{Start: arch.Addr(s.Value), End: arch.Addr(s.Value + s.Size)}
	}
	t.Fatalf("%s has no %s", bin, name)
	return memlog.Range{}
}

// The same instructions make the same accesses as valgrind says.
func TestMemoryTraceAgreesWithLackey(t *testing.T) {
	for name, p := range map[string]struct{ source, function string }{
		"operands": {operands, "work"}, "compiled": {compiled, "work"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := machinetest.Compile(t, p.source, "-static", "-no-pie", "-O2", "-fno-stack-protector")
			code := rangeOf(t, filepath.Clean(bin), p.function)
			want, got := relative(lackey(t, bin, code)), relative(traced(t, bin, code))
			if len(want) < 1000 {
				t.Fatalf("valgrind tells of %d accesses", len(want))
			}
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("access %d is %s, valgrind says %s", i, got[i], want[i])
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d accesses, valgrind says %d", len(got), len(want))
			}
			if !slices.ContainsFunc(want, func(s string) bool { return s[0] == 'M' }) {
				t.Error("nothing is modified")
			}
		})
	}
}

// operands has instructions with operands of all sizes, in one page and in two.
const operands = `
__asm__(
".intel_syntax noprefix\n"
".type work, @function\n"
"work:\n"
"	push rbx\n"
"	lea rbx, data[rip+4000]\n"
"	mov ecx, 100\n"
"1:	mov rax, [rbx+8]\n"
"	add dword ptr [rbx+16], 3\n"
"	mov [rbx+24], al\n"
"	movzx edx, word ptr [rbx+93]\n"
"	movdqu xmm0, [rbx+32]\n"
"	movups [rbx+61], xmm0\n"
"	movups [rbx+88], xmm0\n"
"	mulsd xmm1, [rbx+8]\n"
"	fld tbyte ptr [rbx+100]\n"
"	fstp qword ptr [rbx+120]\n"
"	fild dword ptr [rbx+93]\n"
"	fstp st(0)\n"
"	push rax\n"
"	pop [rbx+130]\n"
"	lock inc word ptr [rbx+140]\n"
"	xchg [rbx+152], rdx\n"
"	lock cmpxchg [rbx+160], rdx\n"
"	mov rsi, rbx\n"
"	lea rdi, [rbx+200]\n"
"	movsq\n"
"	call 2f\n"
"	not byte ptr [rbx+5]\n"
"	cmp byte ptr [rbx+5], 3\n"
"	paddd xmm0, [rbx+96]\n"
"	dec ecx\n"
"	jnz 1b\n"
"	pop rbx\n"
"	ret\n"
"2:	ret\n"
".size work, .-work\n"
".local data\n"
".comm data, 8192, 4096\n"
".att_syntax\n");
int main(void) { __asm__ volatile("call work" ::: "memory", "rax", "rcx", "rdx", "rsi", "rdi", "cc", "xmm0", "xmm1", "st"); return 0; }
`

const compiled = `
#include <stdint.h>
static uint64_t table[512];
static double sums[64];
struct { char c; short s; int i; long l; float f; } __attribute__((packed)) odd[100];
__attribute__((noinline)) uint64_t work(uint64_t seed) {
	uint64_t local[16] = {0};
	for (int i = 0; i < 2000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		table[seed >> 55] ^= seed;
		local[i & 15] += table[i & 511];
		sums[i & 63] = sums[i & 63] * 0.5 + (double)local[3];
		odd[i % 100].c += i; odd[i % 100].s -= i; odd[i % 100].i ^= i; odd[i % 100].l += odd[(i + 1) % 100].s;
		odd[i % 100].f += 1.5f;
	}
	return seed + local[1];
}
int main(void) { return work(1) == 0; }
`
