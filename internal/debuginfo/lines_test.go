package debuginfo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// instructionsOf lists the addresses of a function's instructions, as objdump(1)
// prints them.
func instructionsOf(t *testing.T, bin, function string) (addresses []string) {
	t.Helper()
	text := toolOutput(t, "objdump", "-d", "--no-show-raw-insn", "--disassemble="+function, bin)
	for _, m := range regexp.MustCompile(`(?m)^ +([0-9a-f]+):`).FindAllStringSubmatch(text, -1) {
		addresses = append(addresses, m[1])
	}
	if len(addresses) == 0 {
		t.Fatalf("objdump finds no function %s", function)
	}
	return addresses
}

// TestLineAgreesWithAddr2line compares each instruction of the program's own
// functions with addr2line(1), for each version of DWARF.
func TestLineAgreesWithAddr2line(t *testing.T) {
	for _, flags := range [][]string{
		{"-g"},
		{"-g", "-no-pie"},
		{"-gdwarf-2"},
		{"-gdwarf-3"},
		{"-gdwarf-4"},
		{"-gdwarf-5"},
		{"-g", "-gz"},
		{"-g", "-gz=zlib-gnu"},
		{"-g", "-static"},
		{},
	} {
		bin := gcctest.C(t, source, append([]string{"-O2"}, flags...)...)
		f := open(t, bin)
		lines := 0
		for _, addr := range append(instructionsOf(t, bin, "work"), instructionsOf(t, bin, "main")...) {
			got := "??:0"
			if file, number, ok := f.Line(parseHex(t, addr)); ok {
				got = fmt.Sprintf("%s:%d", file, number)
				lines++
			}
			// Without the remark on discriminators.
			want, _, _ := strings.Cut(strings.TrimSpace(toolOutput(t, "addr2line", "-e", bin, addr)), " (")
			if strings.HasSuffix(want, ":?") { // a symbol names the file, without a line
				want = "??:0"
			}
			if got != want {
				t.Errorf("%v %s: %q, addr2line prints %q", flags, addr, got, want)
			}
		}
		if (lines > 10) != (len(flags) > 0) {
			t.Errorf("%v: %d lines", flags, lines)
		}
	}
}

// addr2lineFrames returns "FUNCTION FILE:LINE" for each frame that addr2line(1) prints.
func addr2lineFrames(t *testing.T, bin, addr string) (frames []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(toolOutput(t, "addr2line", "-C", "-f", "-i", "-e", bin, addr)), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		place, _, _ := strings.Cut(lines[i+1], " (discriminator")
		frames = append(frames, lines[i]+" "+place)
	}
	return frames
}

// checkFrames compares the frames of each instruction of a function with those that
// addr2line prints, and returns how many inlined frames there were.
func checkFrames(t *testing.T, bin, function string) (inlined int) {
	t.Helper()
	f := open(t, bin)
	for _, addr := range instructionsOf(t, bin, function) {
		var got []string
		for _, frame := range f.Frames(parseHex(t, addr)) {
			got = append(got, fmt.Sprintf("%s %s:%d", frame.Function, frame.File, frame.Line))
		}
		want := addr2lineFrames(t, bin, addr)
		if len(got) == 0 && len(want) == 1 && strings.HasSuffix(want[0], "?") { // line 0
			continue
		}
		inlined += len(got) - 1
		if strings.Join(got, "; ") != strings.Join(want, "; ") {
			t.Errorf("%s: %q, addr2line prints %q", addr, got, want)
		}
	}
	return inlined
}

const header = `static inline void set(long *to, long value) { *(volatile long *)to = value; }
`

const includer = `#include "set.h"
static long pair[2], one;
__attribute__((noinline)) void work(long n) {
	set(&pair[1], n);
	set(&one, n);
}
int main(void) { work(3); return 0; }
`

// compileIn compiles files in a folder of their own, and returns the path of the
// program.
func compileIn(t *testing.T, files map[string]string, command ...string) string {
	t.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Skipf("the host has no %s to compile the program with", command[0])
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(command[0], append(command[1:], "-o", "p")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", command, err, out)
	}
	return filepath.Join(dir, "p")
}

// TestSourceLineIsNotInHeader: of the frames that addr2line prints, the innermost that
// is in no header.
func TestSourceLineIsNotInHeader(t *testing.T) {
	for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
		bin := compileIn(t, map[string]string{"set.h": header, "p.c": includer}, "gcc", "-O2", version, "p.c")
		if inlined := checkFrames(t, bin, "work"); inlined < 2 {
			t.Errorf("%s: %d inlined frames, want one for each call of set", version, inlined)
		}
		f := open(t, bin)
		lines := map[string]bool{}
		for _, addr := range instructionsOf(t, bin, "work") {
			got, _ := f.SourceLine(parseHex(t, addr))
			lines[got] = true
			var want string
			for _, frame := range addr2lineFrames(t, bin, addr) {
				if place := filepath.Base(frame); want == "" && strings.HasPrefix(place, "p.c:") {
					want = place
				}
			}
			if got != want {
				t.Errorf("%s: %s is of %q, addr2line prints %q", version, addr, got, want)
			}
		}
		if !lines["p.c:4"] || !lines["p.c:5"] {
			t.Errorf("%s: the lines are %v", version, lines)
		}
	}
}

// TestSeparateFileByBuildID and by debug link: symbols of a stripped program come from
// the file that objcopy(1) split off.
func TestSeparateFileByDebugLink(t *testing.T) {
	bin := gcctest.C(t, source, "-O2", "-g", "-no-pie")
	work := gcctest.Symbols(t, bin)["work"]
	_, line, ok := open(t, bin).Line(work.Value)
	if !ok {
		t.Fatal("the program has no line for work")
	}
	toolOutput(t, "objcopy", "--only-keep-debug", bin, bin+".debug")
	toolOutput(t, "objcopy", "--strip-all", "--add-gnu-debuglink="+bin+".debug", bin)
	f := open(t, bin)
	if s, offset := f.FunctionAt(work.Value + 1); s == nil || s.Name() != "work" || offset != 1 {
		t.Errorf("work+1 is %v+%d", s, offset)
	}
	if _, got, ok := f.Line(work.Value); !ok || got != line {
		t.Errorf("work is on line %d, before it was stripped on %d", got, line)
	}
	// A file that belongs to another build is not used.
	other := gcctest.C(t, strings.ReplaceAll(source, "work", "toil"), "-O2", "-g", "-no-pie")
	toolOutput(t, "objcopy", "--only-keep-debug", other, bin+".debug")
	if s, _ := open(t, bin).FunctionAt(work.Value); s != nil && s.Kind == Function {
		t.Errorf("the file of another build names %s", s.Name())
	}
}

// TestCodeOfAgreesWithAddr2line: an instruction is in the code of a source file if addr2line(1) names the file.
func TestCodeOfAgreesWithAddr2line(t *testing.T) {
	header := filepath.Join(t.TempDir(), "inlined.h")
	text := "static inline int twice(volatile int *p) { *p += 1; return *p * 2; }\n"
	if err := os.WriteFile(header, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := gcctest.C(t, fmt.Sprintf("#include %q\nvolatile int x;\nint main(int n, char **v)\n{\n\tint s = n + !v;\n\tx = s;\n\ts += twice(&x);\n\tx = 3 * s;\n\treturn twice(&x) - s;\n}\n", header), "-g", "-O2")
	code := open(t, bin).CodeOf(func(file string) bool { return strings.HasSuffix(file, "/inlined.h") })
	inside := 0
	for _, addr := range instructionsOf(t, bin, "main") {
		at, got := parseHex(t, addr), false
		for _, c := range code {
			got = got || c.Start <= at && at < c.End
		}
		want := strings.Contains(toolOutput(t, "addr2line", "-e", bin, addr), "/inlined.h:")
		if got != want {
			t.Errorf("%s: %t, addr2line says %t", addr, got, want)
		}
		if want {
			inside++
		}
	}
	if inside == 0 {
		t.Error("nothing was inlined")
	}
}
