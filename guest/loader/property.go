package loader

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// The GNU property note, in which the linker states the level of x86-64 that
// the program's instructions need (Linux Extensions to gABI; x86-64 psABI,
// section "Program Property").
const (
	noteProperty      = 5
	propertyISANeeded = 0xc0008002
	levelV3, levelV4  = 4, 8

	maxNotes = 64 << 10 // bytes of notes that are searched
)

// checkLevel refuses a program that needs more than a level.
func checkLevel(p *program, level arch.Level) error {
	needed, err := p.neededLevels()
	if err != nil {
		return err
	}
	switch {
	case needed&levelV4 != 0:
		return newError(unix.ENOEXEC, errTopLevel.New(p.path, level.String()))
	case needed&levelV3 != 0 && level < arch.V3:
		return newError(unix.ENOEXEC, errLevel.New(p.path, level.String()))
	}
	return nil
}

func (p *program) neededLevels() (uint32, error) {
	var needed uint32
	for _, s := range p.programs {
		if s.typ != segmentNote && s.typ != segmentProperty || s.fileSize > maxNotes || s.align != 8 {
			continue
		}
		notes, err := readPart(p.path, p.file, "note", s.offset, s.fileSize)
		if err != nil {
			return 0, err
		}
		needed |= neededISA(notes)
	}
	return needed, nil
}

// neededISA finds the property in a segment of notes, which are aligned to 8
// bytes.
func neededISA(notes []byte) (needed uint32) {
	le := binary.LittleEndian
	for len(notes) >= 12 {
		nameSize, size, typ := uint64(le.Uint32(notes)), uint64(le.Uint32(notes[4:])), le.Uint32(notes[8:])
		begin := 12 + (nameSize+3)&^3
		next := begin + (size+7)&^7
		if begin+size > uint64(len(notes)) {
			return needed
		}
		if typ == noteProperty && nameSize == 4 && string(notes[12:16]) == "GNU\x00" {
			needed |= isaProperty(notes[begin : begin+size])
		}
		notes = notes[min(next, uint64(len(notes))):]
	}
	return needed
}

func isaProperty(properties []byte) (needed uint32) {
	le := binary.LittleEndian
	for len(properties) >= 8 {
		typ, size := le.Uint32(properties), uint64(le.Uint32(properties[4:]))
		if 8+size > uint64(len(properties)) {
			return needed
		}
		if typ == propertyISANeeded && size >= 4 {
			needed |= le.Uint32(properties[8:])
		}
		properties = properties[min(8+(size+7)&^7, uint64(len(properties))):]
	}
	return needed
}
