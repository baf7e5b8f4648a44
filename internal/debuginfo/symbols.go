package debuginfo

import (
	"bytes"
	"cmp"
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"sort"
)

// maxName is the length of the longest name that is kept whole.
const maxName = 500

// File is the symbols and the debug information of an ELF file. It holds no
// descriptor. It is not safe for concurrent use. The zero File has no answers.
type File struct {
	Layout
	// HasSymbolTable reports whether the file has a table of all its symbols
	// (.symtab), not only of the ones that dynamic linking needs.
	HasSymbolTable bool
	// BuildID is the content of the note that identifies the build; nil without one.
	BuildID []byte

	debugLink    string // file name of the separate debug file, empty if not given
	debugLinkCRC uint32
	symbols      []Symbol
	sorted       bool // functions and variables are made
	functions    []Symbol
	variables    []Symbol
	codeEnds     []uint64 // ends of sections with code, ascending
	dwarf        *dwarfInfo
	linesApart   bool // dwarf is that of the separate debug file
	isGo         bool
	goTable      *gosym.Table // nil without one
}

// Kind is the kind of a symbol.
type Kind uint8

// The kinds of symbols that are kept.
const (
	Function Kind = iota
	// Resolver is a function that returns the address of the function that its
	// name stands for (STT_GNU_IFUNC).
	Resolver
	Variable
	// PLTEntry is the code that calls a function of another file.
	PLTEntry
)

// Symbol is a named range of addresses.
type Symbol struct {
	Addr uint64
	Size uint64 // 0: not given
	Kind Kind
	// rank orders the names of one address: the lowest is shown.
	rank uint8
	name []byte
}

// RawName returns the name as it is in the file. The caller must not change it.
func (s *Symbol) RawName() []byte { return s.name }

// Name returns the demangled name; of an entry of the PLT, the name of the called
// function and "@plt".
func (s *Symbol) Name() string {
	if s.Kind == PLTEntry {
		return Demangle(string(s.name)) + "@plt"
	}
	return Demangle(string(s.name))
}

// Open reads the symbols and the debug information of a file of the host, and of the
// separate debug file that belongs to it. It fails if the file is not an ELF file
// that can be read.
func Open(path string) (*File, error) {
	host, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer host.Close()
	e, err := ParseELF(host)
	if err != nil {
		return nil, err
	}
	f := NewFile(e)
	f.dwarf = readDWARF(e)
	separate := f.openSeparate(path, func(path string) (io.ReadSeekCloser, error) { return os.Open(path) })
	if separate == nil {
		return f, nil
	}
	defer separate.file.Close()
	f.addSymbols(separate.elf)
	if f.dwarf == nil {
		f.dwarf, f.linesApart = readDWARF(separate.elf), true
	}
	return f, nil
}

// HasOwnLines reports whether the file itself has debug information, and does not take
// it from a separate debug file.
func (f *File) HasOwnLines() bool { return f.dwarf != nil && !f.linesApart }

// IsGo reports whether Go's linker made the file (package debug/buildinfo).
func (f *File) IsGo() bool { return f.isGo }

// NewFile reads the symbols of an ELF file. It does not read debug information, and
// does not look for a separate debug file.
func NewFile(e *ELF) *File {
	f := &File{Layout: e.layout, isGo: e.findSection(".go.buildinfo") != nil}
	f.addSymbols(e)
	if !e.hasSection(elf.SHT_SYMTAB) && !e.hasSection(elf.SHT_DYNSYM) {
		f.addDynamicSymbols(e)
	}
	if f.isGo {
		f.goTable = readGoTable(e)
		f.addGoFunctions()
	}
	f.addPLT(e)
	f.readBuildID(e)
	f.readDebugLink(e)
	for i := range e.sections {
		if s := &e.sections[i]; s.flags&elf.SHF_EXECINSTR != 0 {
			f.codeEnds = append(f.codeEnds, s.addr+s.size)
		}
	}
	slices.Sort(f.codeEnds)
	return f
}

// Symbols returns the functions, resolvers and variables that the file defines and
// the entries of its PLT, in the order of the file's tables, with every name of an
// address. The caller must not change them.
func (f *File) Symbols() []Symbol { return f.symbols }

// hasSection reports whether the file has a section of a kind.
func (e *ELF) hasSection(kind elf.SectionType) bool {
	return slices.ContainsFunc(e.sections, func(s section) bool { return s.kind == kind })
}

// addSymbols adds the symbols of the file's sections.
func (f *File) addSymbols(e *ELF) {
	f.sorted = false
	for i := range e.sections {
		table := &e.sections[i]
		if table.kind != elf.SHT_SYMTAB && table.kind != elf.SHT_DYNSYM {
			continue
		}
		f.HasSymbolTable = f.HasSymbolTable || table.kind == elf.SHT_SYMTAB
		content, names := e.symbolTable(table)
		f.addTable(content, names)
	}
}

// symbolTable returns the content of a section with symbols, and the strings that
// their names are in.
func (e *ELF) symbolTable(table *section) (content, names []byte) {
	if int64(table.link) >= int64(len(e.sections)) {
		return nil, nil
	}
	strings := &e.sections[table.link]
	return e.readRange(table.offset, table.size, maxTable), e.readRange(strings.offset, strings.size, maxTable)
}

// addTable adds the symbols of a table that are defined in the file.
func (f *File) addTable(content, names []byte) {
	le := binary.LittleEndian
	for ; len(content) >= symbolSize; content = content[symbolSize:] {
		var kind Kind
		switch elf.ST_TYPE(content[4]) {
		case elf.STT_FUNC:
			kind = Function
		case elf.STT_GNU_IFUNC:
			kind = Resolver
		case elf.STT_OBJECT:
			kind = Variable
		default:
			continue
		}
		name, in := uint64(le.Uint32(content)), elf.SectionIndex(le.Uint16(content[6:]))
		if in == elf.SHN_UNDEF || in == elf.SHN_ABS || in == elf.SHN_COMMON || name >= uint64(len(names)) {
			continue
		}
		f.symbols = append(f.symbols, Symbol{
			Addr: le.Uint64(content[8:]), Size: le.Uint64(content[16:]), Kind: kind,
			rank: bindingRank(elf.ST_BIND(content[4])), name: cString(names, name),
		})
	}
}

// bindingRank orders the names of one address by their binding: global ones first.
func bindingRank(binding elf.SymBind) uint8 {
	switch binding {
	case elf.STB_GLOBAL:
		return 0
	case elf.STB_WEAK:
		return 1
	default:
		return 2
	}
}

// pltRank makes every other name of an address go before that of a PLT entry.
const pltRank = 3

// addDynamicSymbols adds the symbols that dynamic linking uses, of a file whose
// section headers were stripped. The length of that table is not in the file;
// linkers place the strings directly after it.
func (f *File) addDynamicSymbols(e *ELF) {
	var symbols, strings, size uint64
	le := binary.LittleEndian
	for _, s := range e.segments {
		if s.kind != elf.PT_DYNAMIC {
			continue
		}
		for b := e.readRange(s.Offset, s.FileSize, maxDynamic); len(b) >= dynamicSize; b = b[dynamicSize:] {
			switch value := le.Uint64(b[8:]); elf.DynTag(le.Uint64(b)) {
			case elf.DT_SYMTAB:
				symbols = value
			case elf.DT_STRTAB:
				strings = value
			case elf.DT_STRSZ:
				size = value
			}
		}
	}
	from, ok := e.layout.Offset(symbols)
	to, found := e.layout.Offset(strings)
	if !ok || !found || to <= from {
		return
	}
	f.addTable(e.readRange(from, to-from, maxTable), e.readRange(to, size, maxTable))
}

// sortSymbols makes the lists that addresses are looked up in.
func (f *File) sortSymbols() {
	if f.sorted {
		return
	}
	f.sorted = true
	f.functions, f.variables = nil, nil
	for _, s := range f.symbols {
		if s.Kind == Variable {
			f.variables = append(f.variables, s)
		} else {
			f.functions = append(f.functions, s)
		}
	}
	f.functions, f.variables = uniqueByAddress(f.functions), uniqueByAddress(f.variables)
	for i := range f.functions {
		if s := &f.functions[i]; s.Size == 0 {
			s.Size = f.unsizedEnd(i) - s.Addr
		}
	}
}

// unsizedEnd returns the end of a function whose symbol has no size, as assembly
// has: the next function, or the end of the section.
func (f *File) unsizedEnd(i int) uint64 {
	addr := f.functions[i].Addr
	end := addr + 1
	if n, _ := slices.BinarySearch(f.codeEnds, addr+1); n < len(f.codeEnds) {
		end = f.codeEnds[n]
	}
	if i+1 < len(f.functions) && (end == addr+1 || f.functions[i+1].Addr < end) {
		end = f.functions[i+1].Addr
	}
	return end
}

// uniqueByAddress sorts symbols by address and keeps one of each: by rank, then the
// shortest name, then the first in the alphabet.
func uniqueByAddress(list []Symbol) []Symbol {
	slices.SortStableFunc(list, func(a, b Symbol) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.rank, b.rank),
			cmp.Compare(len(a.name), len(b.name)), bytes.Compare(a.name, b.name))
	})
	return slices.CompactFunc(list, func(a, b Symbol) bool { return a.Addr == b.Addr })
}

// FunctionAt returns the function or PLT entry that contains an address, and the
// distance of the address from its start; nil outside of functions.
func (f *File) FunctionAt(addr uint64) (function *Symbol, offset uint64) {
	f.sortSymbols()
	return symbolAt(f.functions, addr)
}

// VariableAt returns the variable that contains an address, and the distance of the
// address from its start; nil outside of variables.
func (f *File) VariableAt(addr uint64) (variable *Symbol, offset uint64) {
	f.sortSymbols()
	return symbolAt(f.variables, addr)
}

func symbolAt(list []Symbol, addr uint64) (*Symbol, uint64) {
	i := sort.Search(len(list), func(i int) bool { return list[i].Addr > addr }) - 1
	if i < 0 || addr-list[i].Addr >= max(list[i].Size, 1) {
		return nil, 0
	}
	return &list[i], addr - list[i].Addr
}
