package loader

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu"
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

// Bounds on what is read of a file: those of Linux.
const (
	maxPrograms    = 65536 / programSize
	maxInterpreter = 4096 // PATH_MAX
	startSize      = 256  // BINPRM_BUF_SIZE
)

// header is what the loader needs of an ELF file.
type header struct {
	typ         uint16
	entry       uint64
	tableOffset uint64 // of the program headers
	programs    []segment
	interpreter string
	loads       []segment // programs to load, by address
	stack       int       // rights of the stack that the file asks for
}

// segment is a program header.
type segment struct {
	typ, flags                      uint32
	offset, addr, fileSize, memSize uint64
	align                           uint64
}

func (s *segment) end() uint64 { return s.addr + s.memSize }

// readStart reads what decides the kind of file.
func readStart(path string, f File) ([]byte, error) {
	start := make([]byte, startSize)
	n, errno := f.ReadAt(start, 0)
	if errno != 0 {
		return nil, fail(unix.EIO, errRead.Wrap(errno, path))
	}
	return start[:n], nil
}

// part reads a part of the file whole.
func part(path string, f File, what string, offset, size uint64) ([]byte, error) {
	if end := offset + size; end < offset || end > uint64(f.Size()) {
		return nil, fail(unix.ENOEXEC, errTruncated.New(path, what, end, f.Size()))
	}
	b := make([]byte, size)
	n, errno := f.ReadAt(b, int64(offset))
	if errno != 0 {
		return nil, fail(unix.EIO, errRead.Wrap(errno, path))
	}
	if n < len(b) {
		return nil, fail(unix.ENOEXEC, errTruncated.New(path, what, offset+size, f.Size()))
	}
	return b, nil
}

func damaged(path, format string, values ...any) error {
	return fail(unix.ENOEXEC, errDamaged.New(path, fmt.Sprintf(format, values...)))
}

// parse reads and checks the headers of the file whose first bytes are given.
func parse(path string, f File, start []byte) (*header, error) {
	if err := identify(path, f, start); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	h := &header{typ: le.Uint16(start[16:]), entry: le.Uint64(start[24:]), tableOffset: le.Uint64(start[32:])}
	size, count := le.Uint16(start[54:]), int(le.Uint16(start[56:]))
	if size != programSize {
		return nil, damaged(path, "a program header has %d bytes instead of %d", size, programSize)
	}
	if count == 0 || count > maxPrograms {
		return nil, damaged(path, "there are %d program headers", count)
	}
	table, err := part(path, f, "table of program headers", h.tableOffset, uint64(count)*programSize)
	if err != nil {
		return nil, err
	}
	for i := range count {
		h.programs = append(h.programs, parseSegment(table[i*programSize:]))
	}
	return h, h.check(path, f)
}

// parseSegment reads the program header at the beginning of b.
func parseSegment(b []byte) segment {
	le := binary.LittleEndian
	return segment{
		typ: le.Uint32(b), flags: le.Uint32(b[4:]), offset: le.Uint64(b[8:]), addr: le.Uint64(b[16:]),
		fileSize: le.Uint64(b[32:]), memSize: le.Uint64(b[40:]), align: le.Uint64(b[48:]),
	}
}

// identify tells what else than an x86-64 program the file is.
func identify(path string, f File, start []byte) error {
	if !bytes.HasPrefix(start, []byte("\x7fELF")) {
		return fail(unix.ENOEXEC, errNotProgram.New(path))
	}
	if len(start) < headerSize {
		return fail(unix.ENOEXEC, errTruncated.New(path, "ELF header", headerSize, f.Size()))
	}
	if start[dataOffset] == bigEndian {
		return fail(unix.ENOEXEC, errMachine.New(path, machineName(binary.BigEndian.Uint16(start[18:]))))
	}
	machine, typ := binary.LittleEndian.Uint16(start[18:]), binary.LittleEndian.Uint16(start[16:])
	switch {
	case machine != machineX86 && machine != machine386:
		return fail(unix.ENOEXEC, errMachine.New(path, machineName(machine)))
	case start[classOffset] == class32 || machine == machine386:
		return fail(unix.ENOEXEC, err32Bit.New(path))
	case start[classOffset] != class64:
		return damaged(path, "its class is %d", start[classOffset])
	case start[dataOffset] != littleEndian:
		return damaged(path, "its byte order is %d", start[dataOffset])
	case typ == typeRelocatable:
		return fail(unix.ENOEXEC, errNotExecutable.New(path, "an object file"))
	case typ == typeCore:
		return fail(unix.ENOEXEC, errNotExecutable.New(path, "a core dump"))
	case typ != typeExecutable && typ != typeDynamic:
		return damaged(path, "its type is %d", typ)
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

// check goes through the program headers.
func (h *header) check(path string, f File) error {
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
				continue // Linux takes the first
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
		return damaged(path, "there is no segment to load")
	}
	if h.loads[0].addr < uint64(mm.MinAddr) && h.typ == typeExecutable {
		return damaged(path, "its first segment lies at address %#x", h.loads[0].addr)
	}
	return nil
}

func (h *header) checkLoad(path string, f File, s *segment) error {
	if s.fileSize > s.memSize {
		return damaged(path, "the segment at %#x has %d bytes in the file and %d in memory", s.addr, s.fileSize, s.memSize)
	}
	if s.memSize > uint64(mm.TaskSize) || s.addr > uint64(mm.TaskSize)-s.memSize {
		return damaged(path, "the segment at %#x of %d bytes lies outside the addresses of programs", s.addr, s.memSize)
	}
	if s.offset%emu.PageSize != s.addr%emu.PageSize {
		return damaged(path, "the segment at %#x begins elsewhere in its page than in the file", s.addr)
	}
	if end := s.offset + s.fileSize; end < s.offset || end > uint64(f.Size()) {
		return fail(unix.ENOEXEC, errTruncated.New(path, fmt.Sprintf("segment at %#x", s.addr), end, f.Size()))
	}
	if n := len(h.loads); n > 0 && s.addr < h.loads[n-1].end() {
		return damaged(path, "the segment at %#x overlaps the one before it or is out of order", s.addr)
	}
	return nil
}

func (h *header) readInterpreter(path string, f File, s *segment) error {
	if s.fileSize < 2 || s.fileSize > maxInterpreter {
		return damaged(path, "the name of its interpreter has %d bytes", s.fileSize)
	}
	b, err := part(path, f, "interpreter's name", s.offset, s.fileSize)
	if err != nil {
		return err
	}
	if b[len(b)-1] != 0 {
		return damaged(path, "the name of its interpreter does not end")
	}
	name, _, _ := bytes.Cut(b, []byte{0})
	if len(name) == 0 {
		return damaged(path, "the name of its interpreter is empty")
	}
	h.interpreter = string(name)
	return nil
}

// span is the range of addresses, in whole pages, that the segments take.
func (h *header) span() (low, high uint64) {
	last := h.loads[len(h.loads)-1]
	return h.loads[0].addr &^ (emu.PageSize - 1), pageAlign(last.end())
}

// tableAddr is where the program headers lie in memory, before the bias; 0 if
// they are in no segment.
func (h *header) tableAddr() uint64 {
	for _, s := range h.loads {
		if s.offset <= h.tableOffset && h.tableOffset-s.offset < s.fileSize {
			return h.tableOffset - s.offset + s.addr
		}
	}
	return 0
}

func pageAlign(n uint64) uint64 { return (n + emu.PageSize - 1) &^ (emu.PageSize - 1) }
