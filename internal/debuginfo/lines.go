package debuginfo

import (
	"cmp"
	"debug/dwarf"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
)

// Frame is a function of the source at an instruction: the one that the instruction
// was compiled from, or one that it was inlined into.
type Frame struct {
	Function string // demangled; empty if not known
	File     string // as the compiler was given it; empty if not known
	Line     int    // 0 if not known
}

// String is the base name of the file and the line.
func (f Frame) String() string { return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line) }

// dwarfInfo is the DWARF tables of a file.
type dwarfInfo struct {
	data  *dwarf.Data
	units []unit // by first address
	lines map[dwarf.Offset][]lineRow
}

// unit is a range of addresses of a compilation unit.
type unit struct {
	start, end uint64
	entry      *dwarf.Entry
}

// lineRow is the source line of the instructions from an address to the next row. A
// row without a file ends a sequence of rows.
type lineRow struct {
	addr uint64
	file string
	line int
}

// readDWARF reads the debug sections of a file; nil if it has none that can be read.
func readDWARF(e *ELF) (info *dwarfInfo) {
	defer func() {
		if recover() != nil { // debug/dwarf is not proof against damaged sections
			info = nil
		}
	}()
	lines := e.dwarfSection("debug_line")
	if lines == nil {
		return nil
	}
	data, err := dwarf.New(e.dwarfSection("debug_abbrev"), nil, nil, e.dwarfSection("debug_info"), lines, nil,
		e.dwarfSection("debug_ranges"), e.dwarfSection("debug_str"))
	if err != nil {
		return nil
	}
	for _, name := range []string{"debug_addr", "debug_line_str", "debug_str_offsets", "debug_rnglists"} {
		if content := e.dwarfSection(name); content != nil && data.AddSection("."+name, content) != nil {
			return nil
		}
	}
	if types := e.dwarfSection("debug_types"); types != nil && data.AddTypes("types-0", types) != nil {
		return nil
	}
	info = &dwarfInfo{data: data, lines: map[dwarf.Offset][]lineRow{}}
	info.readUnits()
	return info
}

// readUnits lists the compilation units by their addresses.
func (d *dwarfInfo) readUnits() {
	r := d.data.Reader()
	for {
		entry, err := r.Next()
		if err != nil || entry == nil {
			break
		}
		r.SkipChildren()
		if entry.Tag != dwarf.TagCompileUnit {
			continue
		}
		ranges, err := d.data.Ranges(entry)
		if err != nil {
			continue
		}
		for _, a := range ranges {
			d.units = append(d.units, unit{a[0], a[1], entry})
		}
	}
	sort.SliceStable(d.units, func(i, j int) bool { return d.units[i].start < d.units[j].start })
}

// unitAt returns the compilation unit of an address, nil if it belongs to none.
func (d *dwarfInfo) unitAt(addr uint64) *dwarf.Entry {
	for i := sort.Search(len(d.units), func(i int) bool { return d.units[i].start > addr }) - 1; i >= 0; i-- {
		if addr < d.units[i].end {
			return d.units[i].entry
		}
	}
	return nil
}

// Line returns the source file and line that the instruction at an address was
// compiled from. The name of the file is as the compiler was given it.
func (f *File) Line(addr uint64) (file string, line int, ok bool) {
	if f.dwarf == nil {
		if f.goTable != nil {
			return f.goLine(addr)
		}
		return "", 0, false
	}
	defer func() {
		if recover() != nil { // damaged tables
			file, line, ok = "", 0, false
		}
	}()
	entry := f.dwarf.unitAt(addr)
	if entry == nil {
		return "", 0, false
	}
	return f.dwarf.lineIn(entry, addr)
}

// CodeRange is a range of addresses of a file, without End.
type CodeRange struct{ Start, End uint64 }

// CodeOf lists the instructions that were compiled from source files that match, by address. It reads all line
// tables.
func (f *File) CodeOf(match func(file string) bool) (list []CodeRange) {
	if f.dwarf == nil {
		return nil
	}
	defer func() {
		if recover() != nil { // damaged tables
			list = nil
		}
	}()
	read := map[dwarf.Offset]bool{}
	for _, u := range f.dwarf.units {
		if read[u.entry.Offset] {
			continue
		}
		read[u.entry.Offset] = true
		rows := f.dwarf.lineTable(u.entry)
		for i := range rows[:max(0, len(rows)-1)] {
			if next := rows[i+1].addr; rows[i].file != "" && next > rows[i].addr && match(rows[i].file) {
				list = append(list, CodeRange{rows[i].addr, next})
			}
		}
	}
	slices.SortFunc(list, func(a, b CodeRange) int { return cmp.Compare(a.Start, b.Start) })
	return list
}

// lineIn returns the source file and line of an address of a compilation unit.
func (d *dwarfInfo) lineIn(entry *dwarf.Entry, addr uint64) (file string, line int, ok bool) {
	rows := d.lineTable(entry)
	n := sort.Search(len(rows), func(i int) bool { return rows[i].addr > addr }) - 1
	if n < 0 || rows[n].file == "" || rows[n].line == 0 {
		return "", 0, false
	}
	return rows[n].file, rows[n].line, true
}

// lineTable returns the line table of a compilation unit, by address.
func (d *dwarfInfo) lineTable(entry *dwarf.Entry) []lineRow {
	if rows, ok := d.lines[entry.Offset]; ok {
		return rows
	}
	var rows []lineRow
	r, err := d.data.LineReader(entry)
	for err == nil && r != nil {
		var e dwarf.LineEntry
		if err = r.Next(&e); err != nil {
			break
		}
		row := lineRow{addr: e.Address, line: e.Line}
		if !e.EndSequence && e.File != nil {
			row.file = e.File.Name
		}
		rows = append(rows, row)
	}
	// The end of a sequence may have the address at which the next one starts.
	sort.SliceStable(rows, func(i, j int) bool {
		a, b := &rows[i], &rows[j]
		return a.addr < b.addr || a.addr == b.addr && a.file == "" && b.file != ""
	})
	d.lines[entry.Offset] = rows
	return rows
}

// Frames returns the functions of the source at an instruction, the innermost
// first: the functions that were inlined there, then the one that they were inlined
// into. It returns nil without debug information.
func (f *File) Frames(addr uint64) (frames []Frame) {
	if f.dwarf == nil {
		if f.goTable == nil {
			return nil
		}
		file, line, ok := f.goLine(addr)
		if function, _ := f.FunctionAt(addr); ok && function != nil {
			return []Frame{{function.Name(), file, line}}
		}
		return nil
	}
	defer func() {
		if recover() != nil { // damaged tables
			frames = nil
		}
	}()
	entry := f.dwarf.unitAt(addr)
	if entry == nil {
		return nil
	}
	file, line, ok := f.dwarf.lineIn(entry, addr)
	if !ok {
		return nil
	}
	var files []*dwarf.LineFile
	if r, err := f.dwarf.data.LineReader(entry); err == nil && r != nil {
		files = r.Files()
	}
	functions := f.dwarf.functionsAt(entry, addr)
	for _, function := range functions {
		frames = append(frames, Frame{f.dwarf.functionName(function), file, line})
		number, _ := function.Val(dwarf.AttrCallFile).(int64)
		callLine, _ := function.Val(dwarf.AttrCallLine).(int64)
		file, line = "", int(callLine)
		if number >= 0 && number < int64(len(files)) && files[number] != nil {
			file = files[number].Name
		}
	}
	if len(functions) == 0 {
		frames = []Frame{{File: file, Line: line}}
	}
	return frames
}

// SourceLine returns the source line of an instruction as BASENAME:LINE. Of inlined
// functions it takes the innermost in the program's own source, which is neither a
// header nor the standard library of Rust.
func (f *File) SourceLine(addr uint64) (line string, ok bool) {
	frames := f.Frames(addr)
	for _, frame := range frames {
		if frame.File != "" && !isLibrarySource(frame.File) {
			return frame.String(), true
		}
	}
	if len(frames) == 0 {
		return "", false
	}
	return frames[0].String(), true
}

// isLibrarySource reports whether a source file is a header, with or without an
// ending as the C++ library has them, or a part of Rust's standard library.
func isLibrarySource(name string) bool {
	switch path.Ext(name) {
	case "", ".h", ".hh", ".hpp", ".hxx", ".tcc":
		return true
	}
	return strings.HasPrefix(name, "/rustc/")
}

// functionsAt returns the entries of the functions at an address, the innermost
// first: inlined ones, then the one that has the code.
func (d *dwarfInfo) functionsAt(unit *dwarf.Entry, addr uint64) []*dwarf.Entry {
	r := d.data.Reader()
	r.Seek(unit.Offset)
	if _, err := r.Next(); err != nil {
		return nil
	}
	var functions []*dwarf.Entry
	for {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == dwarf.TagCompileUnit {
			return functions
		}
		switch e.Tag {
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine, dwarf.TagLexDwarfBlock:
			if !d.covers(e, addr) {
				r.SkipChildren()
			} else if e.Tag != dwarf.TagLexDwarfBlock {
				functions = slices.Insert(functions, 0, e)
			}
		case dwarf.TagNamespace, dwarf.TagModule, dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType, dwarf.TagEnumerationType:
			// Rust defines functions within these.
		default:
			r.SkipChildren()
		}
	}
}

// covers reports whether an entry's code includes an address.
func (d *dwarfInfo) covers(e *dwarf.Entry, addr uint64) bool {
	ranges, err := d.data.Ranges(e)
	return err == nil && slices.ContainsFunc(ranges, func(r [2]uint64) bool { return r[0] <= addr && addr < r[1] })
}

// functionName returns the demangled name of a function's entry. An inlined or
// concrete instance refers to an abstract one, and that to a declaration.
func (d *dwarfInfo) functionName(e *dwarf.Entry) string {
	const longestChain = 8
	name := ""
	for range longestChain {
		if linkage, ok := e.Val(dwarf.AttrLinkageName).(string); ok {
			return Demangle(linkage)
		}
		if source, ok := e.Val(dwarf.AttrName).(string); ok && name == "" {
			name = source
		}
		next, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			next, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !ok {
			return name
		}
		r := d.data.Reader()
		r.Seek(next)
		var err error
		if e, err = r.Next(); err != nil || e == nil {
			return name
		}
	}
	return name
}
