package loader

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/go-delve/delve/pkg/dwarf/frame"
)

// Symbols is what an ELF file says of its functions: names, and how to unwind
// the stack from within them. Addresses are those of the file, without bias.
type Symbols struct {
	functions []function // by address
	loads     []elf.ProgHeader
	frames    frame.FrameDescriptionEntries
}

type function struct {
	start, end uint64
	rank       int // of several names for one address the lowest is taken
	name       string
}

// maxFrames bounds the size of the unwinding tables that are read.
const maxFrames = 64 << 20

// ReadSymbols reads an ELF file. A file without symbols or unwinding tables has
// none; that is no error.
func ReadSymbols(r io.ReaderAt) (s *Symbols, err error) {
	// The libraries that read the tables are not made for damaged ones.
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("damaged symbol or frame tables: %v", p)
		}
	}()
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	s = &Symbols{}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			s.loads = append(s.loads, p.ProgHeader)
		}
	}
	s.addFunctions(f)
	s.frames = readFrames(f)
	return s, nil
}

// addFunctions reads both symbol tables.
func (s *Symbols) addFunctions(f *elf.File) {
	for _, read := range []func() ([]elf.Symbol, error){f.Symbols, f.DynamicSymbols} {
		list, err := read()
		if err != nil {
			continue // there is no such table
		}
		for _, sym := range list {
			if kind := elf.ST_TYPE(sym.Info); kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC {
				continue
			}
			if sym.Section == elf.SHN_UNDEF || sym.Name == "" {
				continue
			}
			s.functions = append(s.functions, function{sym.Value, sym.Value + sym.Size, rank(sym), sym.Name})
		}
	}
	slices.SortFunc(s.functions, func(a, b function) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.rank, b.rank),
			cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
	s.functions = slices.CompactFunc(s.functions, func(a, b function) bool { return a.start == b.start })
	for i := range s.functions {
		if fn := &s.functions[i]; fn.end <= fn.start { // assembly without a size: up to the next
			fn.end = fn.start + 1
			if i+1 < len(s.functions) {
				fn.end = s.functions[i+1].start
			}
		}
	}
}

// rank orders the names of one function: global ones first.
func rank(sym elf.Symbol) int {
	switch elf.ST_BIND(sym.Info) {
	case elf.STB_GLOBAL:
		return 0
	case elf.STB_WEAK:
		return 1
	default:
		return 2
	}
}

// readFrames reads .eh_frame; nil if there is none that can be read.
func readFrames(f *elf.File) frame.FrameDescriptionEntries {
	section := f.Section(".eh_frame")
	if section == nil || section.Size > maxFrames {
		return nil
	}
	data, err := section.Data()
	if err != nil {
		return nil
	}
	entries, err := frame.Parse(data, binary.LittleEndian, 0, 8, section.Addr)
	if err != nil {
		return nil
	}
	return entries.Append(nil) // sorts
}

// Lookup returns the function that addr is in, and how far in.
func (s *Symbols) Lookup(addr uint64) (name string, offset uint64, ok bool) {
	i := sort.Search(len(s.functions), func(i int) bool { return s.functions[i].start > addr }) - 1
	if i < 0 || addr >= s.functions[i].end {
		return "", 0, false
	}
	return s.functions[i].name, addr - s.functions[i].start, true
}

// Address is where the byte at an offset of the file is loaded.
func (s *Symbols) Address(offset uint64) (uint64, bool) {
	for _, p := range s.loads {
		if offset >= p.Off && offset-p.Off < p.Filesz {
			return offset - p.Off + p.Vaddr, true
		}
	}
	return 0, false
}
