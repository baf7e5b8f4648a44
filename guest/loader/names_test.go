package loader_test

import (
	"bytes"
	"debug/elf"
	"os"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/guest/loader"
)

const libc = "/lib/x86_64-linux-gnu/libc.so.6"

func everyName([]byte) bool { return true }

// TestNamesAgreeWithTheStandardLibrary compares with debug/elf.
func TestNamesAgreeWithTheStandardLibrary(t *testing.T) {
	data, err := os.ReadFile(libc)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	const indirect = 10 // STT_GNU_IFUNC
	var want []loader.Name
	for _, s := range symbols {
		if kind := s.Info & 15; (kind == byte(elf.STT_FUNC) || kind == indirect) && s.Section != elf.SHN_UNDEF {
			want = append(want, loader.Name{Name: s.Name, Addr: s.Value, Indirect: kind == indirect})
		}
	}
	n, err := loader.ReadNames(bytes.NewReader(data), everyName)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(n.Functions, want) {
		t.Errorf("%d functions, want %d", len(n.Functions), len(want))
	}
	section := f.Section(".note.gnu.build-id")
	note, err := section.Data()
	if err != nil || !bytes.HasSuffix(note, n.BuildID) || len(n.BuildID) != 20 {
		t.Errorf("build ID %x, note %x", n.BuildID, note)
	}
	// Without section headers the same comes from what dynamic linking needs.
	bare := slices.Clone(data)
	clear(bare[40:48]) // e_shoff
	clear(bare[58:64]) // e_shentsize, e_shnum, e_shstrndx
	b, err := loader.ReadNames(bytes.NewReader(bare), everyName)
	if err != nil || !slices.Equal(b.Functions, want) {
		t.Errorf("without section headers: %d functions, want %d (%v)", len(b.Functions), len(want), err)
	}
	last := f.Progs[0]
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			last = p
		}
	}
	if start, end := n.Extent(); start != 0 || end != last.Vaddr+last.Memsz {
		t.Errorf("extent %#x to %#x, want to %#x", start, end, last.Vaddr+last.Memsz)
	}
}

// FuzzNames: damaged files give errors or fewer names, and take bounded memory.
func FuzzNames(f *testing.F) {
	data, err := os.ReadFile("/bin/true")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:200])
	f.Fuzz(func(_ *testing.T, data []byte) {
		n, err := loader.ReadNames(bytes.NewReader(data), everyName)
		if err == nil {
			n.Extent()
			n.Address(0x1000)
		}
	})
}
