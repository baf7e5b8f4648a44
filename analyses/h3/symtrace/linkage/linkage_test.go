package linkage

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

const source = `
#include <stdio.h>
#include <stdlib.h>
static void (*volatile function)(int) = exit;
int main(int argc, char **argv)
{
	puts(argv[0]);
	srand(argc);
	function(atoi(argv[argc - 1]));
	return 0;
}`

// file is memory with the segments of a file where they are without an offset.
func file(t *testing.T, f *elf.File) Peek {
	t.Helper()
	return func(addr uint64, b []byte) int {
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && p.Vaddr <= addr && addr < p.Vaddr+p.Filesz {
				n, _ := p.ReadAt(b, int64(addr-p.Vaddr))
				return n
			}
		}
		return 0
	}
}

// lazySlots are the words through which stubs jump, by the file's relocations.
func lazySlots(t *testing.T, f *elf.File) []uint64 {
	t.Helper()
	const entry = 24 // of Elf64_Rela
	table, err := f.Section(".rela.plt").Data()
	if err != nil {
		t.Fatal(err)
	}
	var slots []uint64
	for ; len(table) >= entry; table = table[entry:] {
		if elf.R_X86_64(binary.LittleEndian.Uint32(table[8:])) == elf.R_X86_64_JMP_SLOT {
			slots = append(slots, binary.LittleEndian.Uint64(table))
		}
	}
	return slots
}

// A file has as many stubs as functions that the dynamic linker is to look up, in each layout of
// the linker; each leads to another function.
func TestStubsOfFiles(t *testing.T) {
	for name, c := range map[string]struct {
		flags        []string
		section      string
		instructions int
	}{
		"plain":    {[]string{"-Wl,-z,lazy"}, ".plt", 1},
		"at place": {[]string{"-Wl,-z,lazy", "-no-pie"}, ".plt", 1},
		"marked":   {[]string{"-Wl,-z,lazy,-z,ibtplt", "-fcf-protection"}, ".plt.sec", 2},
	} {
		f, err := elf.Open(gcctest.C(t, source, c.flags...))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		peek, s := file(t, f), f.Section(c.section)
		var binders []uint64
		for pc := s.Addr; pc < s.Addr+s.Size; pc += 16 {
			if stub, ok := StubAt(peek, pc); ok {
				binders = append(binders, stub.Binder)
				if stub.Instructions != c.instructions {
					t.Errorf("%s: the stub at %#x has %d instructions, want %d", name, pc, stub.Instructions, c.instructions)
				}
			}
		}
		slices.Sort(binders)
		if want := lazySlots(t, f); len(want) < 3 || len(slices.Compact(binders)) != len(want) {
			t.Errorf("%s: stubs of %d functions, want %d", name, len(binders), len(want))
		}
		text := f.Section(".text")
		for pc := text.Addr; pc < text.Addr+text.Size; pc++ {
			if _, ok := StubAt(peek, pc); ok {
				t.Errorf("%s: a stub at %#x in the program's own code", name, pc)
			}
		}
	}
}

// Where the parts of the code below are.
const (
	base, stub, binder, first = 0x1000, 0x1020, 0x1026, 0x1010
	resolver, search          = 0x1040, 0x1060
	inner, function, slot     = 0x1080, 0x10a0, 0x10c0
)

// table is a stub, the first entry, a resolver and a search, which calls another function by the
// same resolver.
const table = `
	.org 0x10
	push [rip]
	jmp [rip]
	.org 0x20
	jmp [rip + 0x9a]
	.byte 0x68, 0, 0, 0, 0, 0xe9
	.long -0x20
	.org 0x40
	push rbx
	mov rbx, rsp
	call $+0x1c
back:
	mov r11, rax
	jmp r11
	.org 0x60
	nop
	ret
	.org 0xc0
	.quad 0x1026
`

// track is a path of pieces of code that begin at addresses and have numbers of instructions.
func track(pieces ...[]uint64) *paths.Track {
	p := &paths.Profile{}
	thread := paths.Turn{}
	for _, addrs := range pieces {
		thread.Blocks = append(thread.Blocks, int32(len(p.Blocks)))
		p.Blocks = append(p.Blocks, paths.Block{Instructions: addrs})
	}
	return paths.NewTrack(p, &paths.Thread{Turns: []paths.Turn{thread}})
}

func TestFunctionsOfStubs(t *testing.T) {
	code := gcctest.Assemble(t, table)
	peek := func(addr uint64, b []byte) int {
		if addr < base || addr >= base+uint64(len(code)) {
			return 0
		}
		return copy(b, code[addr-base:])
	}
	s, ok := StubAt(peek, stub)
	if !ok || s != (Stub{1, binder}) {
		t.Fatalf("the stub is %+v, %v", s, ok)
	}
	jump, push, entry := []uint64{stub}, []uint64{binder, binder + 5}, []uint64{first, first + 6}
	resolve, end := []uint64{resolver, resolver + 1, resolver + 4}, []uint64{resolver + 9, resolver + 12}
	for name, c := range map[string]struct {
		path     *paths.Track
		searched bool
		want     uint64 // 0: the path ends before
	}{
		"known":          {track(jump, []uint64{function}), false, function},
		"searched":       {track(jump, push, entry, resolve, []uint64{search, search + 1}, end, []uint64{function}), true, function},
		"in pieces":      {track(jump, push[:1], push[1:], entry, resolve[:2], resolve[2:], []uint64{search}, []uint64{search + 1}, end[:1], end[1:], []uint64{function}), true, function},
		"within another": {track(jump, push, entry, resolve, jump, push, entry, resolve, []uint64{search}, end, []uint64{inner}, end, []uint64{function}), true, function},
		"ends at once":   {track(jump), false, 0},
		"ends searching": {track(jump, push, entry, resolve, []uint64{search}), true, 0},
		"ends in entry":  {track(jump, push, entry[:1]), true, 0},
	} {
		at, searched, err := s.Function(peek, c.path, paths.Position{})
		pc, ok := c.path.PCAt(at)
		if err != nil || searched != c.searched || ok != (c.want != 0) || pc != c.want {
			t.Errorf("%s: %#x, searched %v, %v; want %#x, %v", name, pc, searched, err, c.want, c.searched)
		}
	}
	if _, _, err := s.Function(peek, track(jump, push, []uint64{search, search + 1}, []uint64{function}), paths.Position{}); err == nil {
		t.Error("another first entry than the known one gives no error")
	}
}
