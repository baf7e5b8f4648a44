package debuginfo

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
)

const libc = "/lib/x86_64-linux-gnu/libc.so.6"

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

// toolOutput runs a program of the host and returns its output.
func toolOutput(t testing.TB, tool string, args ...string) string {
	t.Helper()
	out, err := exec.Command(tool, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return string(out)
}

func parseHex(t testing.TB, digits string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSymbolsAgreeWithNM looks up the start, the middle and the last byte of each
// function and variable that nm(1) lists.
func TestSymbolsAgreeWithNM(t *testing.T) {
	bin := gcctest.C(t, source, "-O2", "-no-pie")
	f := open(t, bin)
	found := 0
	for _, m := range regexp.MustCompile(`(?m)^([0-9a-f]+) ([0-9a-f]+) ([TtDdBb]) (work|main|numbers|name)$`).FindAllStringSubmatch(toolOutput(t, "nm", "-S", bin), -1) {
		found++
		addr, size := parseHex(t, m[1]), parseHex(t, m[2])
		lookup := f.VariableAt
		if strings.ToLower(m[3]) == "t" {
			lookup = f.FunctionAt
		}
		for _, offset := range []uint64{0, size / 2, size - 1} {
			if s, distance := lookup(addr + offset); s == nil || s.Name() != m[4] || distance != offset {
				t.Errorf("%s+%d: %v+%d", m[4], offset, s, distance)
			}
		}
		if s, _ := lookup(addr + size); s != nil && s.Name() == m[4] {
			t.Errorf("%s extends past its end", m[4])
		}
	}
	if found != 4 {
		t.Errorf("%d symbols, want 4", found)
	}
}

// standardSymbols returns the symbols that debug/elf reads.
func standardSymbols(t testing.TB, f *elf.File) []elf.Symbol {
	t.Helper()
	all, _ := f.Symbols() // a file may have only one of the tables
	dynamic, _ := f.DynamicSymbols()
	if len(all)+len(dynamic) == 0 {
		t.Fatal("debug/elf finds no symbols")
	}
	return append(all, dynamic...)
}

// TestSymbolsAgreeWithDebugELF looks up every function that the standard library's
// reader finds.
func TestSymbolsAgreeWithDebugELF(t *testing.T) {
	program := gcctest.C(t, source, "-g")
	for _, path := range []string{program, "/lib64/ld-linux-x86-64.so.2", libc} {
		other, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		names := map[uint64][]string{}
		for _, s := range standardSymbols(t, other) {
			if kind := elf.ST_TYPE(s.Info); (kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC) && s.Section != elf.SHN_UNDEF {
				names[s.Value] = append(names[s.Value], s.Name)
			}
		}
		f := open(t, path)
		for addr, known := range names {
			if s, offset := f.FunctionAt(addr); s == nil || offset != 0 || !slices.Contains(known, string(s.RawName())) {
				t.Errorf("%s: %#x is %v+%#x, want one of %q", path, addr, s, offset, known)
			}
		}
		text := other.Section(".text")
		if addr, ok := f.Address(text.Offset + 5); !ok || addr != text.Addr+5 {
			t.Errorf("%s: .text+5 is at %#x, want %#x", path, addr, text.Addr+5)
		}
		if offset, ok := f.Offset(text.Addr + 5); !ok || offset != text.Offset+5 {
			t.Errorf("%s: .text+5 is at offset %#x, want %#x", path, offset, text.Offset+5)
		}
	}
}

// TestSymbolsOfFileWithoutSections reads the symbols of the C library from the table
// that dynamic linking uses.
func TestSymbolsOfFileWithoutSections(t *testing.T) {
	data, err := os.ReadFile(libc)
	if err != nil {
		t.Fatal(err)
	}
	other, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	dynamic, err := other.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range dynamic {
		if kind := elf.ST_TYPE(s.Info); (kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC) && s.Section != elf.SHN_UNDEF {
			want = append(want, s.Name)
		}
	}
	clear(data[40:48]) // e_shoff
	clear(data[58:64]) // e_shentsize, e_shnum, e_shstrndx
	for name, content := range map[string][]byte{"without section headers": data} {
		e, err := ParseELF(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		f := NewFile(e)
		var got []string
		for i := range f.Symbols() {
			if s := &f.Symbols()[i]; s.Kind == Function || s.Kind == Resolver {
				got = append(got, string(s.RawName()))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d functions, want %d", name, len(got), len(want))
		}
		last := other.Progs[0]
		for _, p := range other.Progs {
			if p.Type == elf.PT_LOAD {
				last = p
			}
		}
		if start, end := f.Extent(); start != 0 || end != last.Vaddr+last.Memsz {
			t.Errorf("extent %#x to %#x, want to %#x", start, end, last.Vaddr+last.Memsz)
		}
		note, err := other.Section(".note.gnu.build-id").Data()
		if err != nil || !bytes.HasSuffix(note, f.BuildID) || len(f.BuildID) != 20 {
			t.Errorf("build ID %x, note %x", f.BuildID, note)
		}
	}
}

// TestFunctionWithoutSize looks up functions of assembly: they extend to the next one.
func TestFunctionWithoutSize(t *testing.T) {
	bin := gcctest.C(t, `
__asm__(".text\n.type first, @function\nfirst:\n nop\n nop\n nop\n.type second, @function\nsecond:\n nop\n ret\n");
extern void first(void), second(void);
int main(void) { first(); second(); return 0; }`, "-no-pie")
	symbols := gcctest.Symbols(t, bin)
	f := open(t, bin)
	for offset := uint64(0); offset < 3; offset++ {
		if s, distance := f.FunctionAt(symbols["first"].Value + offset); s == nil || s.Name() != "first" || distance != offset {
			t.Errorf("first+%d is %v+%d", offset, s, distance)
		}
	}
	if s, distance := f.FunctionAt(symbols["second"].Value + 1); s == nil || s.Name() != "second" || distance != 1 {
		t.Errorf("second+1 is %v+%d", s, distance)
	}
}

// TestPLTAgreesWithObjdump compares the name of each entry of the procedure linkage
// table with the label that objdump(1) prints, for the layouts that linkers make.
func TestPLTAgreesWithObjdump(t *testing.T) {
	label := regexp.MustCompile(`(?m)^([0-9a-f]+) <(\w+)@plt>:`)
	for _, flags := range [][]string{{}, {"-no-pie"}, {"-fcf-protection=full"}, {"-Wl,-z,lazy"}, {"-Wl,-z,ibtplt"}, {"-Wl,-z,now"}} {
		bin := gcctest.C(t, source, flags...)
		f := open(t, bin)
		labels := label.FindAllStringSubmatch(toolOutput(t, "objdump", "-d", bin), -1)
		called := map[string]bool{}
		for _, m := range labels {
			s, offset := f.FunctionAt(parseHex(t, m[1]) + 2)
			if s == nil || s.Name() != m[2]+"@plt" || offset != 2 || s.Kind != PLTEntry {
				t.Errorf("%v: %s is %v+%d, objdump names it %s@plt", flags, m[1], s, offset, m[2])
			}
			called[m[2]] = true
		}
		if !called["qsort"] || !called["printf"] && !called["__printf_chk"] {
			t.Errorf("%v: objdump names the entries %v", flags, called)
		}
	}
}

// TestPLTOfStaticProgram: the C library's functions for the processor are called
// through entries whose relocation has a resolver instead of a name.
func TestPLTOfStaticProgram(t *testing.T) {
	f := open(t, gcctest.C(t, source, "-static"))
	names := map[string]bool{}
	for i := range f.Symbols() {
		if s := &f.Symbols()[i]; s.Kind == PLTEntry {
			names[s.Name()] = true
		}
	}
	if !names["strchrnul@plt"] && !names["__strchrnul@plt"] {
		t.Errorf("the entries are %v", names)
	}
}

// TestStrippedFileHasNoAnswers: files without tables, and files of other formats.
func TestStrippedFileHasNoAnswers(t *testing.T) {
	f := open(t, gcctest.C(t, source, "-s", "-static"))
	for addr := uint64(0x401000); addr < 0x402000; addr += 0x100 {
		if s, _ := f.FunctionAt(addr); s != nil && s.Kind != PLTEntry {
			t.Errorf("%#x is in %s", addr, s.Name())
		}
		if line, ok := f.SourceLine(addr); ok {
			t.Errorf("%#x is of %s", addr, line)
		}
	}
	if s, _ := f.VariableAt(0x4c0000); s != nil {
		t.Errorf("variable %s", s.Name())
	}
	for _, path := range []string{"/no/such", "lines.go"} {
		if _, err := Open(path); err == nil {
			t.Errorf("%s is read as an ELF file", path)
		}
	}
}

// TestDamagedFile changes or truncates a file at many offsets: invariants 1 and 2.
func TestDamagedFile(t *testing.T) {
	text, err := os.ReadFile(gcctest.C(t, source, "-O2", "-g"))
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(text); at += 1 + len(text)/150 {
		changed := bytes.Clone(text)
		for i := at; i < min(at+16, len(text)); i++ {
			changed[i] ^= 0xff
		}
		lookUpEverything(text[:at])
		lookUpEverything(changed)
	}
}

// lookUpEverything calls each method on the content of a file.
func lookUpEverything(content []byte) {
	e, err := ParseELF(bytes.NewReader(content))
	if err != nil {
		return
	}
	f := NewFile(e)
	f.dwarf = readDWARF(e)
	f.Extent()
	for addr := uint64(0x1000); addr < 0x1400; addr += 7 {
		f.FunctionAt(addr)
		f.VariableAt(addr)
		f.Line(addr)
		f.SourceLine(addr)
		f.Address(addr)
	}
}

// FuzzFile: damaged files give errors or fewer answers, and take bounded memory.
func FuzzFile(f *testing.F) {
	data, err := os.ReadFile("/bin/true")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:200])
	f.Fuzz(func(_ *testing.T, data []byte) { lookUpEverything(data) })
}
