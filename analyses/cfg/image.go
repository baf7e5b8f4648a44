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

// File is an ELF file at a host path. Its addresses in memory are Bias above those in the file.
type File struct {
	Path string
	Bias uint64
}

// Image is a program as it lies in memory: an ELF file, and the shared libraries that are analysed with it.
type Image struct {
	// Low and High bound its addresses.
	Low, High uint64

	code      []span // its own code, without the linkage tables
	linkage   []span // the linkage tables
	relocated []span // memory that only the dynamic linker writes
	segments  []segment
	slots     map[uint64]string // words that hold the addresses of imports
	links     map[uint64]uint64 // words that hold the addresses of functions of the image, for calls between its files
	exports   map[string]uint64 // by name, of the first file that has it
	originals map[string]Symbol // variables of libraries by name, which programs may copy
	functions []Symbol
	variables []Symbol
}

type span struct{ low, high uint64 }

type segment struct {
	span
	data  []byte
	write bool
}

// OpenImage reads the file at a host path, whose addresses in memory are bias above those in the file, and libraries that are
// linked with it, in the order in which the dynamic linker searches them. It returns an error if one is no ELF file of x86-64.
func OpenImage(path string, bias uint64, libraries ...File) (*Image, error) {
	m := &Image{Low: ^uint64(0), slots: map[uint64]string{}, links: map[uint64]uint64{}, exports: map[string]uint64{}, originals: map[string]Symbol{}}
	list := append([]File{{path, bias}}, libraries...)
	link := make([]func(), len(list))
	for i, x := range list {
		file, err := os.Open(x.Path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		if link[i], err = m.addFile(file, x); err != nil {
			return nil, fmt.Errorf("%s: %w", x.Path, err)
		}
	}
	for i := len(link) - 1; i >= 0; i-- { // the program copies variables of its libraries
		link[i]()
	}
	m.functions, m.variables = sortSymbols(m.functions), sortSymbols(m.variables)
	for _, list := range [][]span{m.code, m.linkage, m.relocated} {
		slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	}
	return m, nil
}

// addFile adds a file, and returns the function that links it when all files have been added.
func (m *Image) addFile(file *os.File, x File) (link func(), err error) {
	e, err := debuginfo.ParseELF(file)
	if err != nil {
		return nil, err
	}
	f, err := elf.NewFile(file)
	if err != nil {
		return nil, err
	}
	if f.Machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("it is for %v, expected %v", f.Machine, elf.EM_X86_64)
	}
	isLibrary := len(m.segments) > 0
	for _, p := range f.Progs {
		if p.Type == elf.PT_GNU_RELRO {
			m.relocated = append(m.relocated, span{x.Bias + p.Vaddr, x.Bias + p.Vaddr + p.Memsz})
		}
		if p.Type != elf.PT_LOAD {
			continue
		}
		data := make([]byte, p.Memsz)
		if _, err := p.ReadAt(data[:p.Filesz], 0); err != nil && p.Filesz > 0 {
			return nil, fmt.Errorf("segment at %#x: %w", p.Vaddr, err)
		}
		s := segment{span{x.Bias + p.Vaddr, x.Bias + p.Vaddr + p.Memsz}, data, p.Flags&elf.PF_W != 0}
		m.segments = append(m.segments, s)
		m.Low, m.High = min(m.Low, s.low), max(m.High, s.high)
	}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type != elf.SHT_PROGBITS {
			continue
		}
		to := &m.code
		if strings.HasPrefix(s.Name, ".plt") {
			to = &m.linkage
		}
		*to = append(*to, span{x.Bias + s.Addr, x.Bias + s.Addr + s.Size})
	}
	m.readSymbols(e, x.Bias)
	symbols, _ := f.DynamicSymbols() // a static file has no such symbols
	for _, y := range symbols {
		if !isExport(&y) {
			continue
		}
		if _, known := m.exports[y.Name]; !known {
			m.exports[y.Name] = x.Bias + y.Value
		}
		if _, known := m.originals[y.Name]; !known && elf.ST_TYPE(y.Info) == elf.STT_OBJECT && isLibrary {
			m.originals[y.Name] = Symbol{y.Name, x.Bias + y.Value, y.Size}
		}
	}
	relocations := readRelocations(f, x.Bias)
	return func() { m.applyRelocations(relocations, symbols, x.Bias) }, nil
}

// isExport reports whether a dynamic symbol is of a function or variable that its file defines for others.
func isExport(y *elf.Symbol) bool {
	kind := elf.ST_TYPE(y.Info)
	return y.Section != elf.SHN_UNDEF && elf.ST_BIND(y.Info) != elf.STB_LOCAL &&
		(kind == elf.STT_FUNC || kind == elf.STT_OBJECT || kind == elf.STT_NOTYPE)
}

// relocation is a word that the dynamic linker writes. Symbol counts from 1; 0: it has no symbol.
type relocation struct {
	at, addend uint64
	kind       elf.R_X86_64
	symbol     int
}

func readRelocations(f *elf.File, bias uint64) (list []relocation) {
	for _, s := range f.Sections {
		if s.Type != elf.SHT_RELA {
			continue
		}
		data, err := s.Data()
		if err != nil {
			continue
		}
		for ; len(data) >= 24; data = data[24:] {
			info := binary.LittleEndian.Uint64(data[8:])
			list = append(list, relocation{
				bias + binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[16:]),
				elf.R_X86_64(elf.R_TYPE64(info)), int(elf.R_SYM64(info)),
			})
		}
	}
	return list
}

// applyRelocations does the dynamic linker's work for words that do not depend on files outside of the image, and notes the
// imports of the others (System V ABI, AMD64 supplement, table 4.9).
func (m *Image) applyRelocations(list []relocation, symbols []elf.Symbol, bias uint64) {
	for _, x := range list {
		if x.kind == elf.R_X86_64_RELATIVE {
			m.writeWord(x.at, bias+x.addend)
			continue
		}
		if x.symbol == 0 || x.symbol > len(symbols) {
			continue
		}
		switch y := &symbols[x.symbol-1]; x.kind {
		case elf.R_X86_64_JMP_SLOT, elf.R_X86_64_GLOB_DAT, elf.R_X86_64_64:
			to, known := m.exports[y.Name]
			if !known && y.Section != elf.SHN_UNDEF {
				to, known = bias+y.Value, true
			}
			if !known {
				m.slots[x.at] = y.Name
				continue
			}
			m.writeWord(x.at, to+x.addend)
			if x.kind != elf.R_X86_64_64 {
				m.links[x.at] = to
			}
		case elf.R_X86_64_COPY:
			if from, known := m.originals[y.Name]; known {
				m.copyVariable(x.at, from)
			}
		}
	}
}

// copyVariable copies the initial value of a library's variable to the program, to an address.
func (m *Image) copyVariable(to uint64, from Symbol) {
	data := make([]byte, from.Size)
	n, _ := m.Read(from.Addr, data)
	for _, s := range m.segments {
		if to >= s.low && to < s.high {
			copy(s.data[to-s.low:], data[:n])
		}
	}
	for i := uint64(0); i < from.Size; i += 8 {
		if name, known := m.slots[from.Addr+i]; known {
			m.slots[to+i] = name
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

// readSymbols reads the functions and variables from a file's symbol tables.
func (m *Image) readSymbols(e *debuginfo.ELF, bias uint64) {
	for _, s := range debuginfo.NewFile(e).Symbols() {
		y := Symbol{string(s.RawName()), bias + s.Addr, s.Size}
		switch s.Kind {
		case debuginfo.Function:
			m.functions = append(m.functions, y)
		case debuginfo.Variable:
			m.variables = append(m.variables, y)
		}
	}
}

// sortSymbols sorts symbols by address and keeps the longest of those at one address.
func sortSymbols(list []Symbol) []Symbol {
	slices.SortStableFunc(list, func(a, b Symbol) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(b.Size, a.Size))
	})
	return slices.CompactFunc(list, func(a, b Symbol) bool { return a.Addr == b.Addr })
}

// OwnsCode reports whether an address is in the image's own code.
func (m *Image) OwnsCode(addr uint64) bool { return containsAddr(m.code, addr) }

// IsLinkage reports whether an address is in a linkage table of the image: code that only jumps to functions of other files.
func (m *Image) IsLinkage(addr uint64) bool { return containsAddr(m.linkage, addr) }

// containsAddr reports whether an address is in one of several spans, which are in order.
func containsAddr(list []span, addr uint64) bool {
	i := sort.Search(len(list), func(i int) bool { return list[i].high > addr })
	return i < len(list) && addr >= list[i].low
}

// Contains reports whether an address is in the image.
func (m *Image) Contains(addr uint64) bool {
	return addr >= m.Low && addr < m.High && slices.ContainsFunc(m.segments, func(s segment) bool { return addr >= s.low && addr < s.high })
}

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
			return copy(b, s.data[addr-s.low:]), !s.write || containsAddr(m.relocated, addr)
		}
	}
	return 0, false
}

// LinkOfSlot returns the function of the image whose address the dynamic linker has put into the word at an address, for
// calls between files of the image.
func (m *Image) LinkOfSlot(addr uint64) (uint64, bool) {
	to, ok := m.links[addr]
	return to, ok && m.OwnsCode(to)
}

// ImportOfSlot returns the import whose address is in the word at an address.
func (m *Image) ImportOfSlot(addr uint64) (string, bool) {
	name, ok := m.slots[addr]
	return name, ok
}
