// Package symbols tells what is at a place in an ELF file: the function or
// variable by the file's symbols, and the source line by its debug information
// (DWARF line tables; the file itself, or the one in /usr/lib/debug that its
// build ID names).
//
// The main type is File. Where in a process a file is, is for others.
//
// Invariants:
//
//  1. A file without symbols or debug information answers nothing, not wrongly.
//  2. Only the line tables of compilation units that are asked for are read.
package symbols

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/hex"
	"path/filepath"
	"slices"
	"sort"
)

// File is what is known of an ELF file. It holds no descriptor.
type File struct {
	segments  []elf.ProgHeader
	functions []symbol
	variables []symbol
	data      *dwarf.Data
	units     []unit
	lines     map[dwarf.Offset][]line
}

// symbol is a named range of addresses.
type symbol struct {
	name       string
	addr, size uint64
}

// unit is a range of addresses of a compilation unit.
type unit struct {
	low, high uint64
	entry     *dwarf.Entry
}

// line is where in the source instructions from an address on are from; without
// a file it ends what was before.
type line struct {
	addr uint64
	file string
	line int
}

// DebugFolder is where files with split-off debug information are.
const DebugFolder = "/usr/lib/debug"

// Open reads the file at a path of the host. It fails if that is no ELF file
// that can be read.
func Open(path string) (*File, error) {
	e, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	f := &File{lines: map[dwarf.Offset][]line{}}
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD {
			f.segments = append(f.segments, p.ProgHeader)
		}
	}
	f.addSymbols(e)
	f.addLines(e)
	if split := splitFile(e); split != nil {
		defer split.Close()
		f.addSymbols(split)
		if f.data == nil {
			f.addLines(split)
		}
	}
	f.functions, f.variables = ordered(f.functions), ordered(f.variables)
	return f, nil
}

// splitFile is the file in DebugFolder that belongs to one, nil if there is none.
func splitFile(e *elf.File) *elf.File {
	s := e.Section(".note.gnu.build-id")
	if s == nil {
		return nil
	}
	const header = 16 // of the note, with its name
	note, err := s.Data()
	if err != nil || len(note) < header+2 {
		return nil
	}
	id := hex.EncodeToString(note[header:])
	split, err := elf.Open(filepath.Join(DebugFolder, ".build-id", id[:2], id[2:]+".debug"))
	if err != nil {
		return nil
	}
	return split
}

func (f *File) addSymbols(e *elf.File) {
	all, _ := e.Symbols() // a file without some table has the other, or none
	dynamic, _ := e.DynamicSymbols()
	for _, s := range append(all, dynamic...) {
		if s.Section == elf.SHN_UNDEF || s.Section >= elf.SHN_LORESERVE {
			continue
		}
		switch elf.ST_TYPE(s.Info) {
		case elf.STT_FUNC, elf.STT_GNU_IFUNC:
			f.functions = append(f.functions, symbol{s.Name, s.Value, s.Size})
		case elf.STT_OBJECT:
			f.variables = append(f.variables, symbol{s.Name, s.Value, s.Size})
		}
	}
}

// ordered sorts symbols by address; of those with the same address the first
// stays.
func ordered(list []symbol) []symbol {
	slices.SortStableFunc(list, func(a, b symbol) int {
		switch {
		case a.addr < b.addr:
			return -1
		case a.addr > b.addr:
			return 1
		}
		return 0
	})
	return slices.CompactFunc(list, func(a, b symbol) bool { return a.addr == b.addr })
}

// addLines notes the compilation units.
func (f *File) addLines(e *elf.File) {
	if e.Section(".debug_line") == nil && e.Section(".zdebug_line") == nil {
		return
	}
	data, err := e.DWARF()
	if err != nil {
		return // what cannot be read tells nothing
	}
	r := data.Reader()
	for {
		entry, err := r.Next()
		if err != nil || entry == nil {
			break
		}
		r.SkipChildren()
		if entry.Tag != dwarf.TagCompileUnit {
			continue
		}
		ranges, err := data.Ranges(entry)
		if err != nil {
			continue
		}
		for _, a := range ranges {
			f.units = append(f.units, unit{a[0], a[1], entry})
		}
	}
	f.data = data
	sort.SliceStable(f.units, func(i, j int) bool { return f.units[i].low < f.units[j].low })
}

// Address is the address in the file, without a process's bias, of the byte at an
// offset; false if it is not loaded.
func (f *File) Address(offset uint64) (uint64, bool) {
	for _, p := range f.segments {
		if offset >= p.Off && offset-p.Off < p.Filesz {
			return offset - p.Off + p.Vaddr, true
		}
	}
	// Behind a segment's content in the file are its zeros.
	for _, p := range f.segments {
		if offset >= p.Off && offset-p.Off < p.Memsz {
			return offset - p.Off + p.Vaddr, true
		}
	}
	return 0, false
}

// Function is the function that an address of the file is in, and the distance
// from its begin.
func (f *File) Function(addr uint64) (name string, offset uint64, ok bool) {
	return find(f.functions, addr)
}

// Variable is the variable that an address of the file is in.
func (f *File) Variable(addr uint64) (name string, offset uint64, ok bool) {
	return find(f.variables, addr)
}

func find(list []symbol, addr uint64) (string, uint64, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].addr > addr }) - 1
	if i < 0 || addr-list[i].addr >= max(list[i].size, 1) {
		return "", 0, false
	}
	return list[i].name, addr - list[i].addr, true
}

// Line is the source line that the instruction at an address of the file comes
// from. The name is as the compiler was given it.
func (f *File) Line(addr uint64) (file string, number int, ok bool) {
	for i := sort.Search(len(f.units), func(i int) bool { return f.units[i].low > addr }) - 1; i >= 0; i-- {
		u := &f.units[i]
		if addr >= u.high {
			continue
		}
		list := f.table(u.entry)
		n := sort.Search(len(list), func(i int) bool { return list[i].addr > addr }) - 1
		if n < 0 || list[n].file == "" || list[n].line == 0 {
			return "", 0, false
		}
		return list[n].file, list[n].line, true
	}
	return "", 0, false
}

// table is the line table of a compilation unit, by address.
func (f *File) table(entry *dwarf.Entry) []line {
	if list, ok := f.lines[entry.Offset]; ok {
		return list
	}
	var list []line
	r, err := f.data.LineReader(entry)
	for err == nil && r != nil {
		var e dwarf.LineEntry
		if err = r.Next(&e); err != nil {
			break
		}
		l := line{addr: e.Address, line: e.Line}
		if !e.EndSequence && e.File != nil {
			l.file = e.File.Name
		}
		list = append(list, l)
	}
	// The end of a sequence may have the address of the next one's begin.
	sort.SliceStable(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return a.addr < b.addr || a.addr == b.addr && a.file == "" && b.file != ""
	})
	f.lines[entry.Offset] = list
	return list
}
