package symmem_test

import (
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// newMemory is a memory in which each byte is the lowest byte of its address.
func newMemory() *symmem.Memory {
	return symmem.New(func(addr uint64, b []byte) int {
		for i := range b {
			b[i] = byte(addr) + byte(i)
		}
		return len(b)
	})
}

// Bytes are read as they were at the beginning or as they were written, also across pages.
func TestReadAndWrite(t *testing.T) {
	m := newMemory()
	var b [4]byte
	if !m.Read(0x1ffe, b[:]) || b != [4]byte{0xfe, 0xff, 0x00, 0x01} {
		t.Errorf("% x across two pages", b)
	}
	m.Write(0x1fff, []byte{1, 2})
	if !m.Read(0x1ffe, b[:]) || b != [4]byte{0xfe, 1, 2, 0x01} {
		t.Errorf("% x after the write", b)
	}
	if got := m.WrittenGranules(); !slices.Equal(got, []uint64{0x1ff8 / 8, 0x2000 / 8}) {
		t.Errorf("written granules %x", got)
	}
}

// An expression is loaded as it was stored, as a part, or joined with the bytes beside it;
// its bytes have no number.
func TestExpressions(t *testing.T) {
	p, m := symbolic.NewPool(), newMemory()
	x := p.Symbol("x", 32)
	m.Store(0x1000, x)
	if got := m.Load(p, 0x1000, 4); got != x {
		t.Errorf("%v, want x", got)
	}
	if got, want := m.Load(p, 0x1001, 2), p.Extract(x, 8, 16); got != want {
		t.Errorf("the middle is %v, want %v", got, want)
	}
	if got, want := m.Load(p, 0x1002, 4), p.Concat(p.Word(0x0504, 16), p.Extract(x, 16, 16)); got != want {
		t.Errorf("the end is %v, want %v", got, want)
	}
	var b [1]byte
	if m.Read(0x1003, b[:]) {
		t.Error("a byte of the expression has a number")
	}
	m.Write(0x1000, []byte{7})
	if !m.Read(0x1000, b[:]) || b[0] != 7 || m.Load(p, 0x1001, 1) != p.Extract(x, 8, 8) {
		t.Error("a known byte replaces one byte of the expression")
	}
}

// Copies do not see each other's writes. A fork begins without written granules.
func TestCopies(t *testing.T) {
	m := newMemory()
	m.Write(0x1000, []byte{1})
	clone, fork := m.Clone(), m.Fork()
	m.Write(0x1000, []byte{2})
	clone.Write(0x1001, []byte{3})
	for name, c := range map[string]struct {
		memory *symmem.Memory
		want   [2]byte
	}{"the original": {m, [2]byte{2, 1}}, "the clone": {clone, [2]byte{1, 3}}, "the fork": {fork, [2]byte{1, 1}}} {
		var b [2]byte
		if !c.memory.Read(0x1000, b[:]) || b != c.want {
			t.Errorf("%s has % x, want % x", name, b, c.want)
		}
	}
	if len(clone.WrittenGranules()) != 1 || len(fork.WrittenGranules()) != 0 {
		t.Errorf("written: clone %v, fork %v", clone.WrittenGranules(), fork.WrittenGranules())
	}
}
