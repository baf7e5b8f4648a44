package symbols

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
)

const source = `
#include <stdio.h>
#include <stdlib.h>
int numbers[10] = {1};
static char name[3];
static inline int twice(int n) { return n + n; }
__attribute__((noinline)) static int work(int n)
{
	for (int i = 0; i < 10; i++)
		numbers[i] += twice(n);
	return numbers[3];
}
int main(int argc, char **argv)
{
	name[1] = argc;
	qsort(argv, argc, 0, (int (*)(const void *, const void *))work);
	return printf("%d %d\n", work(argc), name[1]) < 0;
}`

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(out)
}

// TestLines compares each instruction of the program's own functions with
// addr2line(1), of binutils.
func TestLines(t *testing.T) {
	for _, flags := range [][]string{{"-g"}, {"-g", "-no-pie"}, {"-gdwarf-4"}, {"-g", "-gz"}, {"-g", "-static"}, {}} {
		bin := gcctest.C(t, source, append([]string{"-O2"}, flags...)...)
		f, err := Open(bin)
		if err != nil {
			t.Fatal(err)
		}
		text := output(t, "objdump", "-d", "--no-show-raw-insn", "--disassemble=work", bin) +
			output(t, "objdump", "-d", "--no-show-raw-insn", "--disassemble=main", bin)
		lines := 0
		for _, m := range regexp.MustCompile(`(?m)^ +([0-9a-f]+):`).FindAllStringSubmatch(text, -1) {
			addr, err := strconv.ParseUint(m[1], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			got := "??:0"
			if file, number, ok := f.Line(addr); ok {
				got = fmt.Sprintf("%s:%d", file, number)
				lines++
			}
			// Without the remark on discriminators.
			want, _, _ := strings.Cut(strings.TrimSpace(output(t, "addr2line", "-e", bin, m[1])), " (")
			if strings.HasSuffix(want, ":?") { // the file's symbol tells it no line
				want = "??:0"
			}
			if got != want {
				t.Errorf("%v %s: %q, addr2line says %q", flags, m[1], got, want)
			}
		}
		if (lines > 10) != (len(flags) > 0) {
			t.Errorf("%v: %d lines", flags, lines)
		}
	}
}

// TestSymbols compares functions and variables with nm(1).
func TestSymbols(t *testing.T) {
	bin := gcctest.C(t, source, "-O2", "-no-pie")
	f, err := Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range regexp.MustCompile(`(?m)^([0-9a-f]+) ([0-9a-f]+) ([TtDdBb]) (work|main|numbers|name)$`).FindAllStringSubmatch(output(t, "nm", "-S", bin), -1) {
		found++
		addr, _ := strconv.ParseUint(m[1], 16, 64)
		size, _ := strconv.ParseUint(m[2], 16, 64)
		find := f.Variable
		if strings.ToLower(m[3]) == "t" {
			find = f.Function
		}
		for _, offset := range []uint64{0, size / 2, size - 1} {
			if name, at, ok := find(addr + offset); !ok || name != m[4] || at != offset {
				t.Errorf("%s+%d: %s+%d, %v", m[4], offset, name, at, ok)
			}
		}
		if name, _, ok := find(addr + size); ok && name == m[4] {
			t.Errorf("%s reaches behind its end", name)
		}
	}
	if found != 4 {
		t.Errorf("%d symbols", found)
	}
}

// Invariant 1: what is no ELF file, or half of one, tells nothing.
func TestDamaged(t *testing.T) {
	text, err := os.ReadFile(gcctest.C(t, source, "-O2", "-g"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "f")
	for at := 0; at < len(text); at += 1 + len(text)/150 {
		changed := bytes.Clone(text)
		for i := at; i < min(at+16, len(text)); i++ {
			changed[i] ^= 0xff
		}
		for _, b := range [][]byte{text[:at], changed} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := Open(path)
			if err != nil {
				continue
			}
			for addr := uint64(0x1000); addr < 0x1400; addr += 7 {
				f.Function(addr)
				f.Variable(addr)
				f.Line(addr)
				f.Address(addr)
			}
		}
	}
}
