package debuginfo

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// errNotELF is returned for files that are not 64-bit little-endian ELF files.
var errNotELF = errors.New("no 64-bit ELF file")

// Bounds on the parts of a file that are read. Programs of 100 MB stay within them.
const (
	maxSegments     = 1 << 10
	maxSections     = 4096
	maxSectionNames = 64 << 10
	maxTable        = 64 << 20
	maxDWARFSection = 1 << 30
	maxNote         = 4096
	maxDebugLink    = 4096
	maxDynamic      = 1 << 16
)

// Sizes of the structures of elf(5) in a 64-bit file.
const (
	headerSize      = 64
	segmentSize     = 56
	sectionSize     = 64
	symbolSize      = 24
	relocationSize  = 24
	dynamicSize     = 16
	compressionSize = 24
	noteHeaderSize  = 12
)

// ELF reads parts of an ELF file. Every read is bounded.
type ELF struct {
	file     io.ReaderAt
	layout   Layout
	segments []Segment
	sections []section
	names    []byte // of sections
}

// Segment is a part of a file that is loaded: FileSize bytes from Offset, and zeros up
// to MemSize.
type Segment struct {
	Offset, Addr, FileSize, MemSize uint64
	Executable                      bool

	kind elf.ProgType
}

type section struct {
	name      uint32 // offset in ELF.names
	kind      elf.SectionType
	flags     elf.SectionFlag
	addr      uint64
	offset    uint64
	size      uint64
	link      uint32
	entrySize uint64
}

// ParseELF reads the headers of a file. It fails if the file is not a 64-bit
// little-endian ELF file.
func ParseELF(file io.ReaderAt) (*ELF, error) {
	e := &ELF{file: file}
	header := e.readRange(0, headerSize, headerSize)
	if header == nil || !bytes.HasPrefix(header, []byte(elf.ELFMAG)) ||
		elf.Class(header[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(header[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, errNotELF
	}
	e.readSegments(header)
	e.readSections(header)
	return e, nil
}

// readRange returns a part of the file; nil if it is empty, above the limit, or
// not in the file.
func (e *ELF) readRange(offset, size, limit uint64) []byte {
	if size == 0 || size > limit || offset > 1<<62 {
		return nil
	}
	var last [1]byte // is read before memory is allocated for the whole range
	if n, _ := e.file.ReadAt(last[:], int64(offset+size-1)); n != 1 {
		return nil
	}
	b := make([]byte, size)
	if n, err := e.file.ReadAt(b, int64(offset)); n < len(b) && err != nil {
		return nil
	}
	return b
}

func (e *ELF) readSegments(header []byte) {
	le := binary.LittleEndian
	offset, count := le.Uint64(header[32:]), uint64(le.Uint16(header[56:]))
	for b := e.readRange(offset, count*segmentSize, maxSegments*segmentSize); len(b) > 0; b = b[segmentSize:] {
		s := Segment{
			kind: elf.ProgType(le.Uint32(b)), Executable: elf.ProgFlag(le.Uint32(b[4:]))&elf.PF_X != 0,
			Offset: le.Uint64(b[8:]), Addr: le.Uint64(b[16:]), FileSize: le.Uint64(b[32:]), MemSize: le.Uint64(b[40:]),
		}
		e.segments = append(e.segments, s)
		if s.kind == elf.PT_LOAD {
			e.layout.loaded = append(e.layout.loaded, s)
		}
	}
}

func (e *ELF) readSections(header []byte) {
	le := binary.LittleEndian
	offset, count, names := le.Uint64(header[40:]), uint64(le.Uint16(header[60:])), int(le.Uint16(header[62:]))
	for b := e.readRange(offset, count*sectionSize, maxSections*sectionSize); len(b) > 0; b = b[sectionSize:] {
		e.sections = append(e.sections, section{
			name: le.Uint32(b), kind: elf.SectionType(le.Uint32(b[4:])), flags: elf.SectionFlag(le.Uint64(b[8:])),
			addr: le.Uint64(b[16:]), offset: le.Uint64(b[24:]), size: le.Uint64(b[32:]),
			link: le.Uint32(b[40:]), entrySize: le.Uint64(b[56:]),
		})
	}
	if names < len(e.sections) {
		e.names = e.readRange(e.sections[names].offset, e.sections[names].size, maxSectionNames)
	}
}

// sectionName returns the name of a section, empty if it has none.
func (e *ELF) sectionName(s *section) string { return string(cString(e.names, uint64(s.name))) }

// cString returns the zero-terminated string at an offset of a table of strings.
func cString(table []byte, offset uint64) []byte {
	if offset >= uint64(len(table)) {
		return nil
	}
	text := table[offset:min(uint64(len(table)), offset+maxName)]
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	return text
}

// findSection returns the section of a name, nil if the file has no such section.
func (e *ELF) findSection(name string) *section {
	for i := range e.sections {
		if s := &e.sections[i]; bytes.HasPrefix(e.names[min(int64(s.name), int64(len(e.names))):], []byte(name+"\x00")) {
			return s
		}
	}
	return nil
}

// Section returns the content of a section of the file, at most limit bytes, and the
// address at which it is loaded; nil if there is no such section or it is larger.
func (e *ELF) Section(name string, limit uint64) (content []byte, addr uint64) {
	s := e.findSection(name)
	if s == nil || s.kind == elf.SHT_NOBITS {
		return nil, 0
	}
	return e.readRange(s.offset, s.size, limit), s.addr
}

// Layout returns where the file's bytes are loaded.
func (e *ELF) Layout() Layout { return e.layout }

// dwarfSection returns the decompressed content of a debug section, by its name
// without the leading dot: ".debug_info", or ".zdebug_info" of older compilers.
func (e *ELF) dwarfSection(name string) []byte {
	if s := e.findSection("." + name); s != nil && s.kind != elf.SHT_NOBITS {
		content := e.readRange(s.offset, s.size, maxDWARFSection)
		if s.flags&elf.SHF_COMPRESSED == 0 {
			return content
		}
		return decompressSection(content)
	}
	const magic = "ZLIB"
	s := e.findSection(".z" + name)
	if s == nil {
		return nil
	}
	content := e.readRange(s.offset, s.size, maxDWARFSection)
	if len(content) < len(magic)+8 || !strings.HasPrefix(string(content[:len(magic)]), magic) {
		return nil
	}
	return inflate(zlibReader(content[len(magic)+8:]), binary.BigEndian.Uint64(content[len(magic):]))
}

// decompressSection decompresses a section that begins with a compression header
// (Elf64_Chdr); nil if the method is unknown.
func decompressSection(content []byte) []byte {
	if len(content) < compressionSize {
		return nil
	}
	le := binary.LittleEndian
	size, packed := le.Uint64(content[8:]), content[compressionSize:]
	switch elf.CompressionType(le.Uint32(content)) {
	case elf.COMPRESS_ZLIB:
		return inflate(zlibReader(packed), size)
	case elf.COMPRESS_ZSTD:
		r, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil
		}
		defer r.Close()
		return inflate(r, size)
	}
	return nil
}

// zlibReader returns a reader of compressed bytes; nil if they do not begin with a
// header of zlib.
func zlibReader(packed []byte) io.Reader {
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil
	}
	return r
}

// inflate reads exactly size bytes; nil if there are fewer.
func inflate(r io.Reader, size uint64) []byte {
	if r == nil || size > maxDWARFSection {
		return nil
	}
	var b bytes.Buffer
	if n, _ := io.Copy(&b, io.LimitReader(r, int64(size))); uint64(n) != size {
		return nil
	}
	return b.Bytes()
}

// Layout says at which addresses the bytes of a file are loaded.
type Layout struct {
	loaded []Segment
}

// Address returns the address of the byte at an offset of the file; false if that
// byte is not loaded. An offset after the content of a segment is taken for one of
// the zeros that follow it in memory.
func (l Layout) Address(offset uint64) (uint64, bool) {
	for _, s := range l.loaded {
		if offset >= s.Offset && offset-s.Offset < s.FileSize {
			return offset - s.Offset + s.Addr, true
		}
	}
	for _, s := range l.loaded {
		if offset >= s.Offset && offset-s.Offset < s.MemSize {
			return offset - s.Offset + s.Addr, true
		}
	}
	return 0, false
}

// Offset returns the offset in the file of the byte that is loaded at an address;
// false if no byte of the file is.
func (l Layout) Offset(addr uint64) (uint64, bool) {
	for _, s := range l.loaded {
		if addr >= s.Addr && addr-s.Addr < s.FileSize {
			return addr - s.Addr + s.Offset, true
		}
	}
	return 0, false
}

// Segments returns the parts of the file that are loaded, in the file's order. The
// caller must not change them.
func (l Layout) Segments() []Segment { return l.loaded }

// FirstAddress returns the address of the first loaded segment, 0 if no segment
// is loaded from the file.
func (l Layout) FirstAddress() uint64 {
	if len(l.loaded) == 0 {
		return 0
	}
	return l.loaded[0].Addr
}

// Extent returns the half-open range of addresses from the first byte that is loaded
// to after the last.
func (l Layout) Extent() (start, end uint64) {
	for i, s := range l.loaded {
		if i == 0 || s.Addr < start {
			start = s.Addr
		}
		end = max(end, s.Addr+s.MemSize)
	}
	return start, end
}
