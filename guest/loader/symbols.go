package loader

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/go-delve/delve/pkg/dwarf/frame"
)

// Symbols is what an ELF file says of its functions: names, and how to unwind
// the stack from within them. Addresses are those of the file, without bias.
//
// The tables are read here and not by debug/elf, which a hostile file can make
// allocate without bound: overlapping names are copied once for each symbol.
type Symbols struct {
	functions []function // by address
	loads     []segment
	frames    frame.FrameDescriptionEntries
}

type function struct {
	start, end uint64
	rank       int    // of several names for one address the lowest is taken
	name       []byte // with what follows it in the table of strings
}

// Bounds on what is read of a file for reports. Programs of 100 MB stay within.
const (
	maxSections     = 4096
	maxSectionNames = 64 << 10
	maxTable        = 64 << 20
	maxFrames       = 16 << 20
	maxName         = 500
)

// Numbers of elf(5) that tables of symbols are made of.
const (
	sectionSize, symbolSize                = 64, 24
	sectionSymbols, sectionDynamic         = 2, 11
	symbolFunction, symbolIndirect         = 2, 10
	symbolGlobal, symbolWeak               = 1, 2
	sectionsOffset, sectionsCount, namesIn = 40, 60, 62
)

// section is a section header.
type section struct {
	name, typ, link    uint32
	addr, offset, size uint64
}

// tables reads the parts of a file that symbols need.
type tables struct {
	r        io.ReaderAt
	sections []section
}

// read returns a part of the file, or nil if it is too large or not there.
func (t *tables) read(offset, size, limit uint64) []byte {
	if size == 0 || size > limit || offset > 1<<62 {
		return nil
	}
	var last [1]byte // before room is made for it all
	if n, _ := t.r.ReadAt(last[:], int64(offset+size-1)); n != 1 {
		return nil
	}
	b := make([]byte, size)
	if _, err := t.r.ReadAt(b, int64(offset)); err != nil {
		return nil
	}
	return b
}

// ReadSymbols reads an ELF file for this machine. A file without symbols or
// unwinding tables has none; that is no error.
func ReadSymbols(r io.ReaderAt) (*Symbols, error) {
	t := &tables{r: r}
	head := t.read(0, headerSize, headerSize)
	if head == nil || !bytes.HasPrefix(head, []byte("\x7fELF")) || head[classOffset] != class64 || head[dataOffset] != littleEndian {
		return nil, fmt.Errorf("no 64-bit ELF file")
	}
	le := binary.LittleEndian
	s := &Symbols{}
	programs := t.read(le.Uint64(head[32:]), uint64(le.Uint16(head[56:]))*programSize, maxPrograms*programSize)
	for ; len(programs) > 0; programs = programs[programSize:] {
		if p := parseSegment(programs); p.typ == segmentLoad {
			s.loads = append(s.loads, p)
		}
	}
	t.readSections(head)
	for i := range t.sections {
		if typ := t.sections[i].typ; typ == sectionSymbols || typ == sectionDynamic {
			s.addFunctions(t, &t.sections[i])
		}
	}
	s.sortFunctions()
	if at := t.find(head, ".eh_frame"); at != nil {
		s.frames = parseFrames(t.read(at.offset, at.size, maxFrames), at.addr)
	}
	return s, nil
}

func (t *tables) readSections(head []byte) {
	le := binary.LittleEndian
	b := t.read(le.Uint64(head[sectionsOffset:]), uint64(le.Uint16(head[sectionsCount:]))*sectionSize, maxSections*sectionSize)
	for ; len(b) > 0; b = b[sectionSize:] {
		t.sections = append(t.sections, section{
			name: le.Uint32(b), typ: le.Uint32(b[4:]), addr: le.Uint64(b[16:]), offset: le.Uint64(b[24:]),
			size: le.Uint64(b[32:]), link: le.Uint32(b[40:]),
		})
	}
}

// find returns the section of the given name, or nil.
func (t *tables) find(head []byte, name string) *section {
	i := int(binary.LittleEndian.Uint16(head[namesIn:]))
	if i >= len(t.sections) {
		return nil
	}
	names := t.read(t.sections[i].offset, t.sections[i].size, maxSectionNames)
	for i := range t.sections {
		if at := uint64(t.sections[i].name); at < uint64(len(names)) && bytes.HasPrefix(names[at:], []byte(name+"\x00")) {
			return &t.sections[i]
		}
	}
	return nil
}

// addFunctions reads a table of symbols.
func (s *Symbols) addFunctions(t *tables, table *section) {
	if int64(table.link) >= int64(len(t.sections)) {
		return
	}
	names := t.read(t.sections[table.link].offset, t.sections[table.link].size, maxTable)
	symbols := t.read(table.offset, table.size, maxTable)
	le := binary.LittleEndian
	for ; len(symbols) >= symbolSize; symbols = symbols[symbolSize:] {
		name, info, in := uint64(le.Uint32(symbols)), symbols[4], le.Uint16(symbols[6:])
		if kind := info & 15; kind != symbolFunction && kind != symbolIndirect || in == 0 || name >= uint64(len(names)) {
			continue
		}
		start, size := le.Uint64(symbols[8:]), le.Uint64(symbols[16:])
		s.functions = append(s.functions, function{start, start + size, rank(info >> 4), names[name:]})
	}
}

// rank orders the names of one function by their binding: global ones first.
func rank(binding byte) int {
	switch binding {
	case symbolGlobal:
		return 0
	case symbolWeak:
		return 1
	default:
		return 2
	}
}

// text is the name itself.
func (f *function) text() string {
	b := f.name[:min(len(f.name), maxName)]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

func (s *Symbols) sortFunctions() {
	slices.SortStableFunc(s.functions, func(a, b function) int {
		if c := cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.rank, b.rank)); c != 0 {
			return c
		}
		x, y := a.text(), b.text()
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
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

// parseFrames reads call frame information that is loaded at addr; nil if there
// is none that can be read.
func parseFrames(data []byte, addr uint64) (entries frame.FrameDescriptionEntries) {
	// The parser is not made for damaged tables.
	defer func() {
		if recover() != nil {
			entries = nil
		}
	}()
	entries, err := frame.Parse(data, binary.LittleEndian, 0, 8, addr)
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
	return s.functions[i].text(), addr - s.functions[i].start, true
}

// Address is where the byte at an offset of the file is loaded.
func (s *Symbols) Address(offset uint64) (uint64, bool) {
	for _, p := range s.loads {
		if offset >= p.offset && offset-p.offset < p.fileSize {
			return offset - p.offset + p.addr, true
		}
	}
	return 0, false
}
