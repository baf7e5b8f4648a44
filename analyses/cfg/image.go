package cfg

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/heddle-dmt/heddle/internal/debuginfo"
)

// Symbol is a named range of addresses.
type Symbol struct {
	Name       string
	Addr, Size uint64
}

// Image is an ELF file as it lies in memory.
type Image struct {
	// Low and High bound its addresses.
	Low, High uint64

	bias      uint64
	code      []span // its own code, without the linkage table
	segments  []segment
	slots     map[uint64]string // words that hold the addresses of imports
	functions []Symbol
	variables []Symbol
}

type span struct{ low, high uint64 }

type segment struct {
	span
	data  []byte
	write bool
}

// OpenImage reads the file at a host path. Its addresses in memory are bias above those in
// the file. It returns an error if the file is no ELF file of x86-64.
func OpenImage(path string, bias uint64) (*Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	e, err := debuginfo.ParseELF(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := elf.NewFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.Machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("%s is for %v, expected %v", path, f.Machine, elf.EM_X86_64)
	}
	m := &Image{Low: ^uint64(0), bias: bias, slots: map[uint64]string{}}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		data := make([]byte, p.Memsz)
		if _, err := p.ReadAt(data[:p.Filesz], 0); err != nil && p.Filesz > 0 {
			return nil, fmt.Errorf("%s: segment at %#x: %w", path, p.Vaddr, err)
		}
		s := segment{span{bias + p.Vaddr, bias + p.Vaddr + p.Memsz}, data, p.Flags&elf.PF_W != 0}
		m.segments = append(m.segments, s)
		m.Low, m.High = min(m.Low, s.low), max(m.High, s.high)
	}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Type == elf.SHT_PROGBITS && !strings.HasPrefix(s.Name, ".plt") {
			m.code = append(m.code, span{bias + s.Addr, bias + s.Addr + s.Size})
		}
	}
	m.applyRelocations(f)
	m.readSymbols(e)
	return m, nil
}

// applyRelocations does the dynamic linker's work for words that do not depend on other
// files, and notes the imports of the others (System V ABI, AMD64 supplement, table 4.9).
func (m *Image) applyRelocations(f *elf.File) {
	symbols, _ := f.DynamicSymbols() // a static file has no such symbols
	for _, s := range f.Sections {
		if s.Type != elf.SHT_RELA {
			continue
		}
		data, err := s.Data()
		if err != nil {
			continue
		}
		for ; len(data) >= 24; data = data[24:] {
			at, info := m.bias+binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
			addend := binary.LittleEndian.Uint64(data[16:])
			switch elf.R_X86_64(elf.R_TYPE64(info)) {
			case elf.R_X86_64_RELATIVE:
				m.writeWord(at, m.bias+addend)
			case elf.R_X86_64_JMP_SLOT, elf.R_X86_64_GLOB_DAT, elf.R_X86_64_64:
				n := int(elf.R_SYM64(info))
				if n == 0 || n > len(symbols) {
					continue
				}
				if y := symbols[n-1]; y.Section == elf.SHN_UNDEF {
					m.slots[at] = y.Name
				} else {
					m.writeWord(at, m.bias+y.Value+addend)
				}
			}
		}
	}
}

func (m *Image) writeWord(at, word uint64) {
	for _, s := range m.segments {
		if at >= s.low && at+8 <= s.high {
			binary.LittleEndian.PutUint64(s.data[at-s.low:], word)
		}
	}
}

// readSymbols reads the functions and variables from the file's symbol tables.
func (m *Image) readSymbols(e *debuginfo.ELF) {
	for _, s := range debuginfo.NewFile(e).Symbols() {
		y := Symbol{string(s.RawName()), m.bias + s.Addr, s.Size}
		switch s.Kind {
		case debuginfo.Function:
			m.functions = append(m.functions, y)
		case debuginfo.Variable:
			m.variables = append(m.variables, y)
		}
	}
	m.functions, m.variables = sortSymbols(m.functions), sortSymbols(m.variables)
}

// sortSymbols sorts symbols by address and keeps the longest of those at one address.
func sortSymbols(list []Symbol) []Symbol {
	slices.SortStableFunc(list, func(a, b Symbol) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(b.Size, a.Size))
	})
	return slices.CompactFunc(list, func(a, b Symbol) bool { return a.Addr == b.Addr })
}

// OwnsCode reports whether an address is in the image's own code.
func (m *Image) OwnsCode(addr uint64) bool {
	for _, s := range m.code {
		if addr >= s.low && addr < s.high {
			return true
		}
	}
	return false
}

// Contains reports whether an address is in the image.
func (m *Image) Contains(addr uint64) bool { return addr >= m.Low && addr < m.High }

// Function returns the function that contains an address, if the file names one.
func (m *Image) Function(addr uint64) (Symbol, bool) { return findSymbol(m.functions, addr) }

// Variable returns the variable that contains an address, if the file names one; otherwise
// the range between two variables.
func (m *Image) Variable(addr uint64) (Symbol, bool) {
	if y, ok := findSymbol(m.variables, addr); ok {
		return y, true
	}
	for _, s := range m.segments {
		if addr < s.low || addr >= s.high {
			continue
		}
		low, high := s.low, s.high
		i := sort.Search(len(m.variables), func(i int) bool { return m.variables[i].Addr > addr })
		if i > 0 {
			low = max(low, m.variables[i-1].Addr+m.variables[i-1].Size)
		}
		if i < len(m.variables) {
			high = min(high, m.variables[i].Addr)
		}
		return Symbol{fmt.Sprintf("%#x", low), low, high - low}, true
	}
	return Symbol{}, false
}

// FunctionNamed returns the function with a name.
func (m *Image) FunctionNamed(name string) (Symbol, bool) {
	i := slices.IndexFunc(m.functions, func(y Symbol) bool { return y.Name == name })
	if i < 0 {
		return Symbol{}, false
	}
	return m.functions[i], true
}

// VariableNamed returns the variable with a name.
func (m *Image) VariableNamed(name string) (Symbol, bool) {
	i := slices.IndexFunc(m.variables, func(y Symbol) bool { return y.Name == name })
	if i < 0 {
		return Symbol{}, false
	}
	return m.variables[i], true
}

func findSymbol(list []Symbol, addr uint64) (Symbol, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].Addr > addr }) - 1
	if i < 0 || addr-list[i].Addr >= max(list[i].Size, 1) {
		return Symbol{}, false
	}
	return list[i], true
}

// Read fills b with the memory at an address when the program begins, as far as the image
// extends, and returns the number of bytes. Constant is set if the program cannot change
// them.
func (m *Image) Read(addr uint64, b []byte) (n int, constant bool) {
	for _, s := range m.segments {
		if addr >= s.low && addr < s.high {
			return copy(b, s.data[addr-s.low:]), !s.write
		}
	}
	return 0, false
}

// ImportOfSlot returns the import whose address is in the word at an address.
func (m *Image) ImportOfSlot(addr uint64) (string, bool) {
	name, ok := m.slots[addr]
	return name, ok
}
