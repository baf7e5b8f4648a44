package loader

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// The parts of the ELF format that a kernel reads; constants from elf(5) and
// the System V ABI.
const (
	headerSize  = 64
	programSize = 56

	classOffset, dataOffset = 4, 5
	class32, class64        = 1, 2
	littleEndian, bigEndian = 1, 2

	typeRelocatable, typeExecutable, typeDynamic, typeCore = 1, 2, 3, 4

	machine386, machineX86 = 3, 62

	segmentLoad, segmentInterpreter, segmentNote = 1, 3, 4
	segmentStack, segmentProperty                = 0x6474e551, 0x6474e553

	flagExec, flagWrite, flagRead = 1, 2, 4
)

// Bounds on the parts of a file that are read: those of Linux.
const (
	maxPrograms    = 65536 / programSize
	maxInterpreter = 4096 // PATH_MAX
	startSize      = 256  // BINPRM_BUF_SIZE
)

// header is the loader's part of an ELF file's headers.
type header struct {
	typ         uint16
	entry       uint64
	tableOffset uint64 // of the program headers
	programs    []segment
	interpreter string
	loads       []segment // programs to load, by address
	stack       int       // rights of the stack that the file requests
}

// segment is a program header.
type segment struct {
	typ, flags                      uint32
	offset, addr, fileSize, memSize uint64
	align                           uint64
}

func (s *segment) end() uint64 { return s.addr + s.memSize }

// readStart reads the bytes that determine the kind of file.
func readStart(path string, f File) ([]byte, error) {
	start := make([]byte, startSize)
	n, errno := f.ReadAt(start, 0)
	if errno != 0 {
		return nil, newError(unix.EIO, errRead.Wrap(errno, path))
	}
	return start[:n], nil
}

// readPart reads a part of the file whole.
func readPart(path string, f File, what string, offset, size uint64) ([]byte, error) {
	if end := offset + size; end < offset || end > uint64(f.Size()) {
		return nil, newError(unix.ENOEXEC, errTruncated.New(path, what, end, f.Size()))
	}
	b := make([]byte, size)
	n, errno := f.ReadAt(b, int64(offset))
	if errno != 0 {
		return nil, newError(unix.EIO, errRead.Wrap(errno, path))
	}
	if n < len(b) {
		return nil, newError(unix.ENOEXEC, errTruncated.New(path, what, offset+size, f.Size()))
	}
	return b, nil
}

func damagedError(path, format string, values ...any) error {
	return newError(unix.ENOEXEC, errDamaged.New(path, fmt.Sprintf(format, values...)))
}

// parseHeader reads and checks the headers of the file whose first bytes are given.
func parseHeader(path string, f File, start []byte) (*header, error) {
	if err := identifyOther(path, f, start); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	h := &header{typ: le.Uint16(start[16:]), entry: le.Uint64(start[24:]), tableOffset: le.Uint64(start[32:])}
	size, count := le.Uint16(start[54:]), int(le.Uint16(start[56:]))
	if size != programSize {
		return nil, damagedError(path, "a program header has %d bytes instead of %d", size, programSize)
	}
	if count == 0 || count > maxPrograms {
		return nil, damagedError(path, "there are %d program headers", count)
	}
	table, err := readPart(path, f, "table of program headers", h.tableOffset, uint64(count)*programSize)
	if err != nil {
		return nil, err
	}
	for i := range count {
		h.programs = append(h.programs, parseSegment(table[i*programSize:]))
	}
	return h, h.checkSegments(path, f)
}

// parseSegment reads the program header at the beginning of b.
func parseSegment(b []byte) segment {
	le := binary.LittleEndian
	return segment{
		typ: le.Uint32(b), flags: le.Uint32(b[4:]), offset: le.Uint64(b[8:]), addr: le.Uint64(b[16:]),
		fileSize: le.Uint64(b[32:]), memSize: le.Uint64(b[40:]), align: le.Uint64(b[48:]),
	}
}

// identifyOther names the kind of a file that is not an x86-64 program.
func identifyOther(path string, f File, start []byte) error {
	if !bytes.HasPrefix(start, []byte("\x7fELF")) {
		return newError(unix.ENOEXEC, errNotProgram.New(path))
	}
	if len(start) < headerSize {
		return newError(unix.ENOEXEC, errTruncated.New(path, "ELF header", headerSize, f.Size()))
	}
	if start[dataOffset] == bigEndian {
		return newError(unix.ENOEXEC, errMachine.New(path, machineName(binary.BigEndian.Uint16(start[18:]))))
	}
	machine, typ := binary.LittleEndian.Uint16(start[18:]), binary.LittleEndian.Uint16(start[16:])
	switch {
	case machine != machineX86 && machine != machine386:
		return newError(unix.ENOEXEC, errMachine.New(path, machineName(machine)))
	case start[classOffset] == class32 || machine == machine386:
		return newError(unix.ENOEXEC, err32Bit.New(path))
	case start[classOffset] != class64:
		return damagedError(path, "its class is %d", start[classOffset])
	case start[dataOffset] != littleEndian:
		return damagedError(path, "its byte order is %d", start[dataOffset])
	case typ == typeRelocatable:
		return newError(unix.ENOEXEC, errNotExecutable.New(path, "an object file"))
	case typ == typeCore:
		return newError(unix.ENOEXEC, errNotExecutable.New(path, "a core dump"))
	case typ != typeExecutable && typ != typeDynamic:
		return damagedError(path, "its type is %d", typ)
	}
	return nil
}

// machineName names a processor by its number in the ELF header.
func machineName(machine uint16) string {
	switch machine {
	case 2, 18, 43:
		return "SPARC"
	case 8:
		return "MIPS"
	case 20:
		return "PowerPC"
	case 21:
		return "64-bit PowerPC"
	case 22:
		return "s390"
	case 40:
		return "32-bit ARM"
	case 183:
		return "64-bit ARM"
	case 243:
		return "RISC-V"
	case 258:
		return "LoongArch"
	}
	return fmt.Sprintf("machine number %d", machine)
}

// checkSegments checks the program headers.
func (h *header) checkSegments(path string, f File) error {
	for i := range h.programs {
		s := &h.programs[i]
		switch s.typ {
		case segmentLoad:
			if s.memSize == 0 && s.fileSize == 0 {
				continue
			}
			if err := h.checkLoad(path, f, s); err != nil {
				return err
			}
			h.loads = append(h.loads, *s)
		case segmentInterpreter:
			if h.interpreter != "" {
				continue // Linux uses the first
			}
			if err := h.readInterpreter(path, f, s); err != nil {
				return err
			}
		case segmentStack:
			if s.flags&flagExec != 0 {
				h.stack = unix.PROT_EXEC
			}
		}
	}
	if len(h.loads) == 0 {
		return damagedError(path, "there is no segment to load")
	}
	if h.loads[0].addr < uint64(mm.MinAddr) && h.typ == typeExecutable {
		return damagedError(path, "its first segment lies at address %#x", h.loads[0].addr)
	}
	return nil
}

func (h *header) checkLoad(path string, f File, s *segment) error {
	if s.fileSize > s.memSize {
		return damagedError(path, "the segment at %#x has %d bytes in the file and %d in memory", s.addr, s.fileSize, s.memSize)
	}
	if s.memSize > uint64(mm.TaskSize) || s.addr > uint64(mm.TaskSize)-s.memSize {
		return damagedError(path, "the segment at %#x of %d bytes lies outside the addresses of programs", s.addr, s.memSize)
	}
	if s.offset%arch.PageSize != s.addr%arch.PageSize {
		return damagedError(path, "the segment at %#x begins elsewhere in its page than in the file", s.addr)
	}
	if end := s.offset + s.fileSize; end < s.offset || end > uint64(f.Size()) {
		return newError(unix.ENOEXEC, errTruncated.New(path, fmt.Sprintf("segment at %#x", s.addr), end, f.Size()))
	}
	if n := len(h.loads); n > 0 && s.addr < h.loads[n-1].end() {
		return damagedError(path, "the segment at %#x overlaps the one before it or is out of order", s.addr)
	}
	return nil
}

func (h *header) readInterpreter(path string, f File, s *segment) error {
	if s.fileSize < 2 || s.fileSize > maxInterpreter {
		return damagedError(path, "the name of its interpreter has %d bytes", s.fileSize)
	}
	b, err := readPart(path, f, "interpreter's name", s.offset, s.fileSize)
	if err != nil {
		return err
	}
	if b[len(b)-1] != 0 {
		return damagedError(path, "the name of its interpreter does not end")
	}
	name, _, _ := bytes.Cut(b, []byte{0})
	if len(name) == 0 {
		return damagedError(path, "the name of its interpreter is empty")
	}
	h.interpreter = string(name)
	return nil
}

// pageSpan is the range of addresses, in whole pages, that the segments occupy.
func (h *header) pageSpan() (low, high uint64) {
	last := h.loads[len(h.loads)-1]
	return h.loads[0].addr &^ (arch.PageSize - 1), pageAlign(last.end())
}

// tableAddr is the address of the program headers in memory, before the bias; 0 if they
// are in no segment.
func (h *header) tableAddr() uint64 {
	for _, s := range h.loads {
		if s.offset <= h.tableOffset && h.tableOffset-s.offset < s.fileSize {
			return h.tableOffset - s.offset + s.addr
		}
	}
	return 0
}

func pageAlign(n uint64) uint64 { return (n + arch.PageSize - 1) &^ (arch.PageSize - 1) }
