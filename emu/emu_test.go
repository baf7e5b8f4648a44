package emu_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu"
)

func TestBranchWord(t *testing.T) {
	// Three branches: taken, not taken, taken.
	w := emu.BranchWord(uint64(emu.TagTNT)<<emu.TagShift | 3<<48 | 0b101)
	if bits, n := w.Outcomes(); w.Tag() != emu.TagTNT || bits != 0b101 || n != 3 {
		t.Errorf("%#x: tag %d, %d outcomes %b", uint64(w), w.Tag(), n, bits)
	}
	w = emu.BranchWord(uint64(emu.TagRet)<<emu.TagShift | 0x7fff_ffff_f123)
	if w.Tag() != emu.TagRet || w.Value() != 0x7fff_ffff_f123 {
		t.Errorf("%#x: tag %d, value %#x", uint64(w), w.Tag(), w.Value())
	}
}

func TestStoreAsText(t *testing.T) {
	s := emu.Store{Addr: 0x601000, Data: [8]byte{1, 2, 0xfe, 9}, Size: 3}
	if got := s.String(); got != "0x601000=0102fe" {
		t.Errorf("%s", got)
	}
}
