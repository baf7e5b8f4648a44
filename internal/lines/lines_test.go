package lines

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const header = `static inline void set(long *to, long value) { *(volatile long *)to = value; }
`

const program = `#include "set.h"
static long pair[2], one;
__attribute__((noinline)) void work(long n) {
	set(&pair[1], n);
	set(&one, n);
}
int main(void) { work(3); return 0; }
`

// compile returns the program's file.
func compile(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"set.h": header, "p.c": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("gcc", append(flags, "-O2", "-o", "p", "p.c")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return filepath.Join(dir, "p")
}

// TestAgreesWithAddr2line compares every instruction of a function with the tool of
// the binutils: the innermost frame that is in no header.
func TestAgreesWithAddr2line(t *testing.T) {
	name := compile(t, "-g")
	f := Open(name)
	e, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	symbols, err := e.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for _, s := range symbols {
		switch s.Name {
		case "work":
			for addr := s.Value; addr < s.Value+s.Size; addr++ {
				got, _ := f.Line(addr)
				if want := addr2line(t, name, addr); got != want {
					t.Errorf("%#x is %q, addr2line says %q", addr, got, want)
				}
				lines[got] = true
			}
		case "pair", "one":
			if got, ok := f.Variable(s.Value); !ok || got != s.Name {
				t.Errorf("%s is %q", s.Name, got)
			}
			if got, _ := f.Variable(s.Value + s.Size - 1); got != fmt.Sprintf("%s+%d", s.Name, s.Size-1) {
				t.Errorf("the end of %s is %q", s.Name, got)
			}
		}
	}
	if !lines["p.c:4"] || !lines["p.c:5"] {
		t.Errorf("the lines are %v", lines)
	}
}

func addr2line(t *testing.T, name string, addr uint64) string {
	t.Helper()
	out, err := exec.Command("addr2line", "-i", "-s", "-e", name, fmt.Sprintf("%#x", addr)).Output()
	if err != nil {
		t.Fatal(err)
	}
	frames := strings.Fields(string(out))
	for _, frame := range frames {
		if strings.HasPrefix(frame, "p.c:") {
			return frame
		}
	}
	return frames[0]
}

func TestKnowsNothingOfOtherFiles(t *testing.T) {
	bare := compile(t, "-s")
	for _, name := range []string{bare, "/no/such", "lines.go"} {
		f := Open(name)
		if line, ok := f.Line(0x1139); ok {
			t.Errorf("%s: line %s", name, line)
		}
		if v, ok := f.Variable(0x4010); ok {
			t.Errorf("%s: variable %s", name, v)
		}
	}
}
