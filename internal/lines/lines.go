// Package lines tells what source line the code at an address in an ELF file was
// compiled from, and which variable lies at one, for reports that people read. It
// needs debug information (-g) and symbols; without them it knows nothing.
//
// A file is read as it is on the host, once. Damage counts as missing information.
package lines

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"path"
	"slices"
	"strings"
)

// File is what is known of an ELF file. The zero value knows nothing.
type File struct {
	debug   *dwarf.Data
	objects []object // by address
}

// object is a variable.
type object struct {
	start, end uint64
	name       string
}

// Open reads a file. One that cannot be read, or is no ELF file, gives a File that
// knows nothing.
func Open(name string) *File {
	f := &File{}
	e, err := elf.Open(name)
	if err != nil {
		return f
	}
	defer e.Close()
	f.debug, _ = e.DWARF() // nil: no lines
	symbols, _ := e.Symbols()
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_OBJECT && s.Size > 0 {
			f.objects = append(f.objects, object{s.Value, s.Value + s.Size, s.Name})
		}
	}
	slices.SortStableFunc(f.objects, func(a, b object) int { return cmp.Compare(a.start, b.start) })
	return f
}

// Variable names the variable at an address, with the offset in it.
func (f *File) Variable(addr uint64) (string, bool) {
	i, found := slices.BinarySearchFunc(f.objects, addr, func(o object, a uint64) int { return cmp.Compare(o.start, a) })
	if !found {
		i--
	}
	if i < 0 || addr >= f.objects[i].end {
		return "", false
	}
	if offset := addr - f.objects[i].start; offset > 0 {
		return fmt.Sprintf("%s+%d", f.objects[i].name, offset), true
	}
	return f.objects[i].name, true
}

// Line names the source line of the code at an address, as FILE:LINE. Of inlined
// functions it takes the innermost that is not in a header.
func (f *File) Line(addr uint64) (line string, ok bool) {
	if f.debug == nil {
		return "", false
	}
	defer func() {
		if recover() != nil { // damaged tables
			line, ok = "", false
		}
	}()
	r := f.debug.Reader()
	unit, err := r.SeekPC(addr)
	if err != nil {
		return "", false
	}
	lines, err := f.debug.LineReader(unit)
	if err != nil || lines == nil {
		return "", false
	}
	var at dwarf.LineEntry
	if lines.SeekPC(addr, &at) != nil || at.File == nil {
		return "", false
	}
	frames := []string{form(at.File.Name, at.Line)}
	for _, call := range f.calls(r, addr) {
		number, _ := call.Val(dwarf.AttrCallFile).(int64)
		n, _ := call.Val(dwarf.AttrCallLine).(int64)
		if files := lines.Files(); int(number) < len(files) && files[number] != nil {
			frames = append(frames, form(files[number].Name, int(n)))
		}
	}
	for _, frame := range frames {
		if !strings.Contains(frame, ".h:") {
			return frame, true
		}
	}
	return frames[0], true
}

func form(name string, line int) string { return fmt.Sprintf("%s:%d", path.Base(name), line) }

// calls are the inlined calls around an address, the innermost first. The reader
// is behind the entry of the unit.
func (f *File) calls(r *dwarf.Reader, addr uint64) []*dwarf.Entry {
	var calls []*dwarf.Entry
	for {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == dwarf.TagCompileUnit {
			return calls
		}
		switch e.Tag {
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine, dwarf.TagLexDwarfBlock:
			if !f.covers(e, addr) {
				r.SkipChildren()
			} else if e.Tag == dwarf.TagInlinedSubroutine {
				calls = slices.Insert(calls, 0, e)
			}
		default:
			r.SkipChildren()
		}
	}
}

func (f *File) covers(e *dwarf.Entry, addr uint64) bool {
	ranges, err := f.debug.Ranges(e)
	return err == nil && slices.ContainsFunc(ranges, func(r [2]uint64) bool { return r[0] <= addr && addr < r[1] })
}
