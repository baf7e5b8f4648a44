package debuginfo

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"
	"path"
	"strings"
)

// DebugFolder is the folder in which distributions install separate debug files.
const DebugFolder = "/usr/lib/debug"

// OpenFunc opens a file by its path.
type OpenFunc func(path string) (io.ReadSeekCloser, error)

// separateFile is an open separate debug file.
type separateFile struct {
	file io.ReadSeekCloser
	elf  *ELF
}

// AddSeparateSymbols adds the symbols of the separate debug file that belongs to a
// file with the given path (made by objcopy --only-keep-debug), if it is where gdb
// would look for it and has a symbol table. It returns the symbols that it added.
func (f *File) AddSeparateSymbols(filePath string, open OpenFunc) []Symbol {
	separate := f.openSeparate(filePath, open)
	if separate == nil {
		return nil
	}
	defer separate.file.Close()
	before := len(f.symbols)
	f.addSymbols(separate.elf)
	return f.symbols[before:]
}

// openSeparate opens the separate debug file of f, nil if it is not installed. The caller
// closes it.
func (f *File) openSeparate(filePath string, open OpenFunc) *separateFile {
	for _, candidate := range f.separatePaths(filePath) {
		file, err := open(candidate)
		if err != nil {
			continue
		}
		if e, err := ParseELF(seekingReader{file}); err == nil && e.hasSection(elf.SHT_SYMTAB) && f.belongsTo(e, file) {
			return &separateFile{file, e}
		}
		file.Close()
	}
	return nil
}

// separatePaths lists where gdb(1) looks for the separate debug file ("Debugging
// Information in Separate Files").
func (f *File) separatePaths(filePath string) (list []string) {
	if len(f.BuildID) > 1 {
		id := hex.EncodeToString(f.BuildID)
		list = append(list, path.Join(DebugFolder, ".build-id", id[:2], id[2:]+".debug"))
	}
	if f.debugLink != "" && !strings.Contains(f.debugLink, "/") {
		folder := path.Dir(filePath)
		list = append(list, path.Join(folder, f.debugLink), path.Join(folder, ".debug", f.debugLink),
			path.Join(DebugFolder, folder, f.debugLink))
	}
	return list
}

// belongsTo reports whether a debug file has the build ID of f, or the checksum that
// f demands.
func (f *File) belongsTo(e *ELF, file io.ReadSeeker) bool {
	var other File
	other.readBuildID(e)
	if len(f.BuildID) > 0 && bytes.Equal(f.BuildID, other.BuildID) {
		return true
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil || f.debugLink == "" {
		return false
	}
	sum := crc32.NewIEEE()
	_, err := io.Copy(sum, file)
	return err == nil && sum.Sum32() == f.debugLinkCRC
}

// readBuildID reads the note with the build ID.
func (f *File) readBuildID(e *ELF) {
	const buildIDNote, owner = 3, "GNU\x00"
	le := binary.LittleEndian
	for _, s := range e.segments {
		if s.kind != elf.PT_NOTE {
			continue
		}
		for b := e.readRange(s.Offset, s.FileSize, maxNote); len(b) >= noteHeaderSize; {
			nameSize, size, kind := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint32(b[8:])
			start := noteHeaderSize + (nameSize+3)&^3
			if start+size > uint64(len(b)) {
				break
			}
			if kind == buildIDNote && nameSize == uint64(len(owner)) && string(b[noteHeaderSize:noteHeaderSize+len(owner)]) == owner {
				f.BuildID = b[start : start+size]
			}
			b = b[min(start+(size+3)&^3, uint64(len(b))):]
		}
	}
}

// readDebugLink reads .gnu_debuglink: a file name, and its CRC at the next multiple
// of four.
func (f *File) readDebugLink(e *ELF) {
	b, _ := e.Section(".gnu_debuglink", maxDebugLink)
	end := bytes.IndexByte(b, 0)
	if end <= 0 || len(b) < (end+4)&^3+4 {
		return
	}
	f.debugLink, f.debugLinkCRC = string(b[:end]), binary.LittleEndian.Uint32(b[(end+4)&^3:])
}

// seekingReader makes an io.ReaderAt of a file that can only seek, for one user at a
// time.
type seekingReader struct{ io.ReadSeeker }

func (s seekingReader) ReadAt(p []byte, offset int64) (int, error) {
	if _, err := s.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	return io.ReadFull(s, p)
}
