package clap

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// programCode is the code of a recorded program: of the files that it had in memory, and the
// executed part of the rest.
type programCode struct {
	whole     bool
	segments  []segment
	functions []function
	rest      map[uint64]*page
	// lines are those of the program's file, which lies bias above its own addresses, and own says,
	// by entry, whether a function has any.
	lines *debuginfo.File
	bias  uint64
	own   map[uint64]bool
}

// page is code that ran.
type page struct {
	bytes   [pageSize]byte
	present [pageSize]bool
}

const pageSize = arch.PageSize

type segment struct {
	addr  uint64
	bytes []byte
}

// function is a range of addresses; entry is where the function begins that it is a
// part of.
type function struct{ addr, size, entry uint64 }

// newProgramCode reads the files that a run had in memory, below a root folder of the host.
func newProgramCode(r *trace.Reader, root string, whole bool) (*programCode, error) {
	c := &programCode{whole: whole, rest: map[uint64]*page{}, lines: &debuginfo.File{}, own: map[uint64]bool{}}
	seen := map[string]bool{}
	for m, err := range trace.Get[event.Mapping](r, trace.Key{Kind: trace.Mappings}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		if m.Offset == 0 && !seen[m.Name] {
			c.readFile(filepath.Join(root, m.Name), uint64(m.Addr), len(seen) == 0)
			seen[m.Name] = true
		}
	}
	for x, err := range trace.Get[event.Code](r, trace.Key{Kind: trace.Code}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		c.keepExecuted(uint64(x.Addr), x.Bytes)
	}
	slices.SortFunc(c.segments, func(a, b segment) int { return cmp.Compare(a.addr, b.addr) })
	slices.SortStableFunc(c.functions, func(a, b function) int { return cmp.Compare(a.addr, b.addr) })
	return c, nil
}

// readFile takes the code and the functions of a file whose first bytes are at an address.
// The first is the program's. A file that is not an ELF file of the host has none.
func (c *programCode) readFile(path string, at uint64, program bool) {
	host, err := os.Open(path)
	if err != nil {
		return
	}
	defer host.Close()
	e, err := debuginfo.ParseELF(host)
	if err != nil {
		return
	}
	f := debuginfo.NewFile(e)
	bias := at - f.FirstAddress()&^(pageSize-1)
	for _, s := range f.Segments() {
		data := make([]byte, s.FileSize)
		if _, err := host.ReadAt(data, int64(s.Offset)); err == nil && s.Executable {
			c.segments = append(c.segments, segment{bias + s.Addr, data})
		}
	}
	if lines, err := debuginfo.Open(path); err == nil && program {
		c.lines, c.bias = lines, bias
	}
	c.addFunctions(f.Symbols(), bias)
}

// addFunctions takes the functions. A part that the compiler placed elsewhere
// (NAME.cold) belongs to its function.
func (c *programCode) addFunctions(symbols []debuginfo.Symbol, bias uint64) {
	at, taken := map[string]uint64{}, map[uint64]bool{}
	var found []*debuginfo.Symbol
	for i := range symbols {
		s := &symbols[i]
		if s.Kind != debuginfo.Function && s.Kind != debuginfo.Resolver || s.Size == 0 {
			continue
		}
		found = append(found, s)
		at[string(s.RawName())] = bias + s.Addr
	}
	for _, s := range found {
		entry := bias + s.Addr
		if taken[entry] {
			continue
		}
		taken[entry] = true
		whole, _, part := strings.Cut(string(s.RawName()), ".cold")
		if of, ok := at[whole]; part && ok {
			entry = of
		}
		c.functions = append(c.functions, function{bias + s.Addr, s.Size, entry})
	}
}

// keepExecuted takes code that ran.
func (c *programCode) keepExecuted(addr uint64, b []byte) {
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
func (c *programCode) Read(addr uint64, b []byte) int {
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
func (c *programCode) Function(addr uint64) (uint64, bool) {
	i := sort.Search(len(c.functions), func(i int) bool { return c.functions[i].addr > addr }) - 1
	if i < 0 || addr-c.functions[i].addr >= c.functions[i].size {
		return 0, false
	}
	return c.functions[i].entry, true
}

// Instrumented implements clap.Code: the program's own functions are the ones that begin with a
// source line.
func (c *programCode) Instrumented(addr uint64) bool {
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
