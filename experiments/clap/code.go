package clap

import (
	"cmp"
	"debug/elf"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/symbols"
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// code is the code of a recorded program: of the files that it had in memory, and what
// ran of the rest.
type code struct {
	whole     bool
	segments  []segment
	functions []function
	rest      map[uint64]*page
	// lines are those of the program's file, which lies bias above its own addresses,
	// and own tells, by entry, of functions whether they have any.
	lines *symbols.File
	bias  uint64
	own   map[uint64]bool
}

// page is code that ran.
type page struct {
	bytes   [pageSize]byte
	present [pageSize]bool
}

const pageSize = emu.PageSize

type segment struct {
	addr  uint64
	bytes []byte
}

// function is a range of addresses; entry is where the function begins that it is a
// part of.
type function struct{ addr, size, entry uint64 }

// newCode reads the files that a run had in memory, below a root folder of the host.
func newCode(r *trace.Reader, root string, whole bool) (*code, error) {
	c := &code{whole: whole, rest: map[uint64]*page{}, lines: &symbols.File{}, own: map[uint64]bool{}}
	seen := map[string]bool{}
	for m, err := range trace.Get[event.Mapping](r, trace.Key{Kind: trace.Mappings}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		if m.Offset == 0 && !seen[m.Name] {
			c.read(filepath.Join(root, m.Name), uint64(m.Addr), len(seen) == 0)
			seen[m.Name] = true
		}
	}
	for x, err := range trace.Get[event.Code](r, trace.Key{Kind: trace.Code}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		c.keep(uint64(x.Addr), x.Bytes)
	}
	slices.SortFunc(c.segments, func(a, b segment) int { return cmp.Compare(a.addr, b.addr) })
	slices.SortStableFunc(c.functions, func(a, b function) int { return cmp.Compare(a.addr, b.addr) })
	return c, nil
}

// read takes the code and the functions of a file whose first bytes are at an address.
// The first is the
// program's. What is no ELF file of the host has none.
func (c *code) read(path string, at uint64, program bool) {
	f, err := elf.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	bias, first := uint64(0), true
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if first {
			bias, first = at-p.Vaddr&^(pageSize-1), false
		}
		data := make([]byte, p.Filesz)
		if _, err := p.ReadAt(data, 0); err == nil && p.Flags&elf.PF_X != 0 {
			c.segments = append(c.segments, segment{bias + p.Vaddr, data})
		}
	}
	if lines, err := symbols.Open(path); err == nil && program {
		c.lines, c.bias = lines, bias
	}
	c.name(f, bias)
}

// name takes the functions. The part of one that its compiler put elsewhere is of it.
func (c *code) name(f *elf.File, bias uint64) {
	all, _ := f.Symbols() // a file without some table has the other, or none
	dynamic, _ := f.DynamicSymbols()
	at, taken := map[string]uint64{}, map[uint64]bool{}
	var found []elf.Symbol
	for _, s := range append(all, dynamic...) {
		if t := elf.ST_TYPE(s.Info); t != elf.STT_FUNC && t != elf.STT_GNU_IFUNC || s.Section == elf.SHN_UNDEF || s.Size == 0 {
			continue
		}
		found = append(found, s)
		at[s.Name] = bias + s.Value
	}
	for _, s := range found {
		entry := bias + s.Value
		if taken[entry] {
			continue
		}
		taken[entry] = true
		whole, _, part := strings.Cut(s.Name, ".cold")
		if of, ok := at[whole]; part && ok {
			entry = of
		}
		c.functions = append(c.functions, function{bias + s.Value, s.Size, entry})
	}
}

// keep takes code that ran.
func (c *code) keep(addr uint64, b []byte) {
	for _, x := range b {
		p := c.rest[addr/pageSize]
		if p == nil {
			p = &page{}
			c.rest[addr/pageSize] = p
		}
		p.bytes[addr%pageSize], p.present[addr%pageSize] = x, true
		addr++
	}
}

// Read implements balllarus.Code.
func (c *code) Read(addr uint64, b []byte) int {
	i := sort.Search(len(c.segments), func(i int) bool { return c.segments[i].addr > addr }) - 1
	if i >= 0 && addr-c.segments[i].addr < uint64(len(c.segments[i].bytes)) {
		return copy(b, c.segments[i].bytes[addr-c.segments[i].addr:])
	}
	for n := range b {
		p := c.rest[addr/pageSize]
		if p == nil || !p.present[addr%pageSize] {
			return n
		}
		b[n] = p.bytes[addr%pageSize]
		addr++
	}
	return len(b)
}

// Function implements balllarus.Code.
func (c *code) Function(addr uint64) (uint64, bool) {
	i := sort.Search(len(c.functions), func(i int) bool { return c.functions[i].addr > addr }) - 1
	if i < 0 || addr-c.functions[i].addr >= c.functions[i].size {
		return 0, false
	}
	return c.functions[i].entry, true
}

// Instrumented implements balllarus.Code: functions of the program's own are those that
// begin with a source line.
func (c *code) Instrumented(addr uint64) bool {
	if c.whole {
		return true
	}
	entry, ok := c.Function(addr)
	if !ok {
		return false
	}
	own, known := c.own[entry]
	if !known {
		_, _, own = c.lines.Line(entry - c.bias)
		c.own[entry] = own
	}
	return own
}
