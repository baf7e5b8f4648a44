package loader

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Name is a function that a file names.
type Name struct {
	Name string
	Addr uint64 // in the file, without bias
	// Indirect marks a resolver: it returns the function's address (IFUNC).
	Indirect bool
}

// Names is what an ELF file says of where functions are. Other than Symbols it
// keeps every name of an address, and of the functions only those asked for.
type Names struct {
	Functions []Name // in the order of the tables
	// Complete tells that the file has a table of all its symbols (.symtab),
	// not only of those that dynamic linking needs.
	Complete bool
	// DebugLink and DebugCRC name the file that has the symbols instead, and
	// BuildID is the number by which it may also be found; empty if not given.
	DebugLink string
	DebugCRC  uint32
	BuildID   []byte

	loads []segment
}

// Constants of elf(5) for what is read below.
const (
	segmentDynamic             = 2
	dynamicStrings             = 5
	dynamicSymbols             = 6
	dynamicStringsSize         = 10
	buildIDNote                = 3
	dynamicSize, maxDynamic    = 16, 1 << 16
	maxDebugLink, maxBuildID   = 4096, 4096
	noteHeader, noteNameLength = 12, 4
)

// ReadNames reads an ELF file for this machine and keeps the functions whose
// names are wanted. want must not keep its argument.
func ReadNames(r io.ReaderAt, want func(name []byte) bool) (*Names, error) {
	t := &tables{r: r}
	head := t.read(0, headerSize, headerSize)
	if head == nil || !bytes.HasPrefix(head, []byte("\x7fELF")) || head[classOffset] != class64 || head[dataOffset] != littleEndian {
		return nil, fmt.Errorf("no 64-bit ELF file")
	}
	le := binary.LittleEndian
	n := &Names{}
	var dynamic segment
	programs := t.read(le.Uint64(head[32:]), uint64(le.Uint16(head[56:]))*programSize, maxPrograms*programSize)
	for ; len(programs) > 0; programs = programs[programSize:] {
		switch p := parseSegment(programs); p.typ {
		case segmentLoad:
			n.loads = append(n.loads, p)
		case segmentDynamic:
			dynamic = p
		case segmentNote:
			n.readNotes(t.read(p.offset, p.fileSize, maxBuildID))
		}
	}
	t.readSections(head)
	tabled := false
	for i := range t.sections {
		if typ := t.sections[i].typ; typ == sectionSymbols || typ == sectionDynamic {
			n.Complete = n.Complete || typ == sectionSymbols
			tabled = true
			n.add(t, &t.sections[i], want)
		}
	}
	if !tabled {
		n.addDynamic(t, dynamic, want)
	}
	n.readDebugLink(t, head)
	return n, nil
}

// add takes the wanted functions of a table of symbols.
func (n *Names) add(t *tables, table *section, want func(name []byte) bool) {
	if int64(table.link) >= int64(len(t.sections)) {
		return
	}
	names := t.read(t.sections[table.link].offset, t.sections[table.link].size, maxTable)
	n.addTable(t.read(table.offset, table.size, maxTable), names, want)
}

func (n *Names) addTable(symbols, names []byte, want func(name []byte) bool) {
	le := binary.LittleEndian
	for ; len(symbols) >= symbolSize; symbols = symbols[symbolSize:] {
		at, kind, in := uint64(le.Uint32(symbols)), symbols[4]&15, le.Uint16(symbols[6:])
		if kind != symbolFunction && kind != symbolIndirect || in == 0 || at >= uint64(len(names)) {
			continue
		}
		name := names[at:min(uint64(len(names)), at+maxName)]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if want(name) {
			n.Functions = append(n.Functions, Name{string(name), le.Uint64(symbols[8:]), kind == symbolIndirect})
		}
	}
}

// addDynamic reads the table that dynamic linking uses, of a file whose section
// headers were stripped. Its length is not given anywhere; linkers put the
// strings right behind it.
func (n *Names) addDynamic(t *tables, dynamic segment, want func(name []byte) bool) {
	var symbols, strings, size uint64
	le := binary.LittleEndian
	for b := t.read(dynamic.offset, dynamic.fileSize, maxDynamic); len(b) >= dynamicSize; b = b[dynamicSize:] {
		switch value := le.Uint64(b[8:]); le.Uint64(b) {
		case dynamicSymbols:
			symbols = value
		case dynamicStrings:
			strings = value
		case dynamicStringsSize:
			size = value
		}
	}
	from, ok := n.offset(symbols)
	to, found := n.offset(strings)
	if !ok || !found || to <= from {
		return
	}
	n.addTable(t.read(from, to-from, maxTable), t.read(to, size, maxTable), want)
}

// offset is where in the file the byte is that is loaded at addr.
func (n *Names) offset(addr uint64) (uint64, bool) {
	for _, p := range n.loads {
		if addr >= p.addr && addr-p.addr < p.fileSize {
			return addr - p.addr + p.offset, true
		}
	}
	return 0, false
}

// Address is where the byte at an offset of the file is loaded, without bias.
func (n *Names) Address(offset uint64) (uint64, bool) {
	s := Symbols{loads: n.loads}
	return s.Address(offset)
}

// Extent is the range of addresses that the file takes when it is loaded,
// without bias.
func (n *Names) Extent() (start, end uint64) {
	for i, p := range n.loads {
		if i == 0 || p.addr < start {
			start = p.addr
		}
		end = max(end, p.end())
	}
	return start, end
}

// readNotes looks for the build ID.
func (n *Names) readNotes(b []byte) {
	le := binary.LittleEndian
	for len(b) >= noteHeader {
		name, size, typ := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint32(b[8:])
		at := noteHeader + (name+3)&^3
		if at+size > uint64(len(b)) {
			return
		}
		if typ == buildIDNote && name == noteNameLength && string(b[noteHeader:noteHeader+4]) == "GNU\x00" {
			n.BuildID = b[at : at+size]
		}
		b = b[min(at+(size+3)&^3, uint64(len(b))):]
	}
}

// readDebugLink reads .gnu_debuglink: a file name, and its CRC at the next
// multiple of four.
func (n *Names) readDebugLink(t *tables, head []byte) {
	s := t.find(head, ".gnu_debuglink")
	if s == nil {
		return
	}
	b := t.read(s.offset, s.size, maxDebugLink)
	end := bytes.IndexByte(b, 0)
	if end <= 0 || len(b) < (end+4)&^3+4 {
		return
	}
	n.DebugLink, n.DebugCRC = string(b[:end]), binary.LittleEndian.Uint32(b[(end+4)&^3:])
}
