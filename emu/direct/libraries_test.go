package direct

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// Binaries of the host whose instructions are compared, as far as they are installed.
var (
	someLibraries = []string{"libc.so.6", "libm.so.6", "libstdc++.so.6"}
	moreLibraries = []string{
		"libcrypto.so.3", "libgmp.so.10", "libzstd.so.1", "libpython3.*.so.1", "/usr/bin/python3", "libx264.so.*", "libx265.so.*",
		"libavcodec.so.*", "libswscale.so.*", "libdav1d.so.*", "libvpx.so.*", "libaom.so.*", "/usr/bin/ffmpeg",
	}
)

// specimen is an instruction of a binary.
type specimen struct {
	in    Instruction
	code  []byte
	where string
}

// collection has different specimens of each encoding, at most a number of them, in the order in which they were found.
type collection struct {
	each   int
	by     map[encoding][]specimen
	order  []encoding
	number int // instructions that were looked at
}

// add disassembles code from its beginning to its end, data between it included.
func (l *collection) add(name string, code []byte, pc uint64) {
	for at := 0; at < len(code); {
		in := Inspect(arch.V3, code[at:min(at+15, len(code))], pc+uint64(at))
		if in.Length == 0 {
			at++
			continue
		}
		l.number++
		if !in.differs() {
			l.keep(specimen{in, code[at : at+in.Length], fmt.Sprintf("%s at %#x", name, pc+uint64(at))})
		}
		at += in.Length
	}
}

func (l *collection) keep(s specimen) {
	list, ok := l.by[s.in.encoding]
	if !ok {
		l.order = append(l.order, s.in.encoding)
	}
	if len(list) == l.each {
		return
	}
	for _, other := range list {
		if string(other.code) == string(s.code) {
			return
		}
	}
	l.by[s.in.encoding] = append(list, s)
}

// addFile adds the code of an ELF binary.
func (l *collection) addFile(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, section := range f.Sections {
		if section.Flags&elf.SHF_EXECINSTR == 0 || section.Type == elf.SHT_NOBITS {
			continue
		}
		code, err := section.Data()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		l.add(filepath.Base(path), code, section.Addr)
	}
}

// instance makes a case of the instruction. Its operand in memory is mostly in the data pages.
func (s *specimen) instance(rnd *rand.Rand, c *oracleCase) {
	c.State = randomState(rnd)
	gpr := &c.State.Regs.GPR
	c.NCode = uint32(copy(c.Code[:], s.code))
	c.CodeAt = oracleCode + 256 + uint64(rnd.IntN(64))
	if rnd.IntN(8) == 0 {
		c.CodeAt = oracleCode + arch.PageSize - uint64(rnd.IntN(s.in.Length+1))
	}
	if s.in.branches() {
		c.Steps = 1
	}
	c.State.Regs.RIP = c.CodeAt
	o := &s.in.operand
	if *o == (operand{}) {
		return
	}
	want := randomAddress(rnd) - []uint64{0, c.State.Regs.FSBase, c.State.Regs.GSBase}[o.segment]
	if o.dispAt != 0 {
		if o.relative {
			want -= c.CodeAt + uint64(s.in.Length)
		}
		if o.segment == 0 || o.relative {
			binary.LittleEndian.PutUint32(c.Code[o.dispAt:], uint32(want))
		}
		return
	}
	want -= uint64(o.disp)
	switch {
	case o.base < 0:
		gpr[o.index] = want / uint64(o.scale)
	case o.index < 0:
		gpr[o.base] = want
	case o.index == o.base:
		gpr[o.base] = want / uint64(o.scale+1)
	default:
		gpr[o.index] = uint64(rnd.IntN(9))
		if rnd.IntN(4) == 0 {
			gpr[o.index] = rnd.Uint64()
		}
		gpr[o.base] = want - gpr[o.index]*uint64(o.scale)
	}
}

// TestInstructionsOfLibraries executes instructions of the host's libraries and programs, of each encoding that they have,
// from random states: as their binaries have them on the host's processor, and as the engine rewrites them, in a block and on
// their own.
func TestInstructionsOfLibraries(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 21))
	data := newData(rnd)
	o, blocks, steps := newOracle(t, data), newSubject(t, arch.V3, data), newSubject(t, arch.V3, data)
	steps.cpu.setStepsOnly(true)
	found := &collection{each: testsize.Pick(1, 2, 200), by: map[encoding][]specimen{}}
	for _, name := range testsize.Pick(someLibraries[:1], someLibraries, append(someLibraries, moreLibraries...)) {
		if !filepath.IsAbs(name) {
			name = filepath.Join("/usr/lib/x86_64-linux-gnu", name)
		}
		paths, err := filepath.Glob(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			found.addFile(t, path)
		}
	}
	if found.number == 0 {
		t.Skip("the host has none of the libraries where Debian has them")
	}
	states := testsize.Runs(1, 1, 4)
	only := os.Getenv("HEDDLE_FORM")
	var cases []oracleCase
	var list []*specimen
	specimens := 0
	compareAll := func() {
		what := func(i int) (string, Instruction) { return list[i].where, list[i].in }
		compare(t, o, blocks, cases, what)
		compare(t, o, steps, cases, what)
		cases, list = cases[:0], list[:0]
	}
	for _, e := range found.order {
		for i := range found.by[e] {
			s := &found.by[e][i]
			if only != "" && only != fmt.Sprintf("%x", s.code) {
				continue
			}
			specimens++
			for range states {
				var c oracleCase
				s.instance(rnd, &c)
				cases, list = append(cases, c), append(list, s)
			}
		}
		if len(cases) > 1000 {
			compareAll()
		}
	}
	compareAll()
	t.Logf("%d instructions, %d encodings, %d specimens", found.number, len(found.order), specimens)
}
