package debuginfo

import (
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
)

// maxGoTable is the greatest size of a table of Go's functions and lines that is read.
const maxGoTable = 1 << 28

// readGoTable returns the table of functions and lines that Go's linker puts into each program (section .gopclntab,
// package debug/gosym), stripped ones too; nil without one, or if it is damaged.
func readGoTable(e *ELF) (t *gosym.Table) {
	defer func() {
		if recover() != nil {
			t = nil
		}
	}()
	content, addr := e.Section(".gopclntab", maxGoTable)
	if content == nil {
		return nil
	}
	t, err := gosym.NewTable(nil, gosym.NewLineTable(content, e.goText(content, addr)))
	if err != nil {
		return nil
	}
	return t
}

// goText returns the address that a table's offsets of code are relative to. Since Go 1.18 it is in the table's header,
// or, in an executable that may be loaded anywhere, in the relocation of that word; otherwise it is that of the section of
// code.
func (e *ELF) goText(table []byte, addr uint64) uint64 {
	const at = 8 + 2*8 // magic number, sizes of instructions and of words; numbers of functions and of files
	le := binary.LittleEndian
	if len(table) >= at+8 {
		if text := le.Uint64(table[at:]); text != 0 {
			return text
		}
	}
	relocations, _ := e.Section(".rela.dyn", maxTable)
	for ; len(relocations) >= relocationSize; relocations = relocations[relocationSize:] {
		if le.Uint64(relocations) == addr+at && elf.R_X86_64(le.Uint32(relocations[8:])) == elf.R_X86_64_RELATIVE {
			return le.Uint64(relocations[16:])
		}
	}
	if s := e.findSection(".text"); s != nil {
		return s.addr
	}
	return 0
}

// addGoFunctions adds the functions of Go's table, of a file without a table of all its symbols.
func (f *File) addGoFunctions() {
	if f.goTable == nil || f.HasSymbolTable {
		return
	}
	for i := range f.goTable.Funcs {
		function := &f.goTable.Funcs[i]
		f.symbols = append(f.symbols, Symbol{Addr: function.Entry, Size: function.End - function.Entry, Kind: Function, name: []byte(function.Name)})
	}
}

// goLine returns the source file and line of an instruction by Go's table.
func (f *File) goLine(addr uint64) (file string, line int, ok bool) {
	defer func() {
		if recover() != nil { // damaged tables
			file, line, ok = "", 0, false
		}
	}()
	file, line, function := f.goTable.PCToLine(addr)
	return file, line, function != nil && line > 0
}
