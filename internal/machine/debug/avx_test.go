package debug_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
)

const vectors = `#include <immintrin.h>
static volatile int data[64] __attribute__((aligned(64)));
__attribute__((noinline)) void stop(void) { __asm__ volatile(""); }
int main(void) {
	__asm__ volatile("vpcmpeqd %%ymm3, %%ymm3, %%ymm3\n vpsrlq $4, %%ymm3, %%ymm3\n vpcmpeqd %%xmm4, %%xmm4, %%xmm4\n"
		"call stop" ::: "xmm3", "xmm4", "memory");
	__m256i g = _mm256_i32gather_epi32((int *)data, _mm256_setr_epi32(0, 9, 20, 3, 40, 5, 6, 7), 4);
	__m256i l = _mm256_loadu_si256((__m256i *)(data + 16));
	g = _mm256_add_epi32(g, l);
	return _mm256_extract_epi32(g, 2);
}`

func newVectorConfig(t *testing.T) (machine.Config, string) {
	t.Helper()
	if p := engines.Check(engines.Auto, arch.V3); p != nil {
		t.Skipf("%s: %s", p.Found, p.Allowed)
	}
	program := machinetest.Compile(t, vectors, "-g", "-O1", "-no-pie", "-march=x86-64-v3")
	c, _ := machinetest.Config(t, program)
	c.Engine, c.CPU = engines.Auto, arch.V3
	return c, program
}

// Debian's own GDB reads the registers of AVX.
func TestGDBReadsYMM(t *testing.T) {
	c, program := newVectorConfig(t)
	text := talk(t, serve(t, c), program, "set pagination off\nset sysroot /\ntarget remote ADDRESS\nbreak stop\ncontinue\nprint $ymm3.v4_int64\nprint $ymm4.v4_int64\nkill\n")
	for _, want := range []string{
		"{1152921504606846975, 1152921504606846975, 1152921504606846975, 1152921504606846975}", "{-1, -1, 0, 0}",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in what GDB said, which was\n%s", want, text)
		}
	}
}

// A watchpoint finds an element of a gathering load, and a load of 32 bytes, that lie behind the address
// where the instruction faults.
func TestGDBWatchesVectorLoads(t *testing.T) {
	c, program := newVectorConfig(t)
	s := serve(t, c)
	g := connect(t, s.addr)
	at := symbol(t, program, "data")
	g.ask("Z3," + add(t, at, 80) + ",4") // data[20]
	for _, want := range []string{"rwatch:", "rwatch:", "replaylog:end"} {
		if got := g.ask("vCont;c"); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	_ = g.conn.Close()
	s.end(t)
}

// add returns a hexadecimal number plus another number.
func add(t *testing.T, number string, n uint64) string {
	t.Helper()
	v, err := strconv.ParseUint(number, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatUint(v+n, 16)
}
