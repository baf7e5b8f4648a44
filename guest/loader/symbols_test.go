package loader

import (
	"debug/elf"
	"os"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// TestSymbolsAgreeWithDebugELF looks up every function that the standard
// library's reader finds.
func TestSymbolsAgreeWithDebugELF(t *testing.T) {
	program := gcctest.C(t, "static int f(void){return 1;} int g(void){return f();} int main(){return g();}", "-O0", "-g")
	for _, path := range []string{program, "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		s, err := ReadSymbols(file)
		if err != nil {
			t.Fatal(err)
		}
		other, err := elf.NewFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all, _ := other.Symbols()
		dynamic, _ := other.DynamicSymbols()
		names := map[uint64][]string{}
		for _, sym := range append(all, dynamic...) {
			if kind := elf.ST_TYPE(sym.Info); (kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC) && sym.Section != elf.SHN_UNDEF {
				names[sym.Value] = append(names[sym.Value], sym.Name)
			}
		}
		if len(names) == 0 || len(s.frames) == 0 {
			t.Errorf("%s: %d functions, %d frames", path, len(names), len(s.frames))
		}
		for addr, known := range names {
			if got, offset, ok := s.Lookup(addr); !ok || offset != 0 || !slices.Contains(known, got) {
				t.Errorf("%s: %#x is %q+%#x, want one of %q", path, addr, got, offset, known)
			}
		}
		text := other.Section(".text")
		if addr, ok := s.Address(text.Offset + 5); !ok || addr != text.Addr+5 {
			t.Errorf("%s: .text+5 is at %#x, want %#x", path, addr, text.Addr+5)
		}
	}
}

// TestNoSymbols: files without tables, and what is no file.
func TestNoSymbols(t *testing.T) {
	stripped, err := os.Open(gcctest.C(t, "int main(){}", "-s", "-static"))
	if err != nil {
		t.Fatal(err)
	}
	defer stripped.Close()
	s, err := ReadSymbols(stripped)
	if err != nil {
		t.Fatal(err)
	}
	if name, _, ok := s.Lookup(0x401000); ok {
		t.Errorf("a stripped program has %q", name)
	}
	script, err := os.Open("loader.go")
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	if _, err := ReadSymbols(script); err == nil {
		t.Error("a text has symbols")
	}
}
