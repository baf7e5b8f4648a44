package zydis_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/zydis"
)

// TestWalk has the bytes of each instruction from the opcode tables of Intel's
// SDM, volume 2.
func TestWalk(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       zydis.Run
	}{
		{"nop, jump short", "90 eb 10", zydis.Run{Count: 2, Bytes: 3, Kind: zydis.Jump, Relative: 0x10}},
		{"jump near back", "e9 fb ff ff ff", zydis.Run{Count: 1, Bytes: 5, Kind: zydis.Jump, Relative: -5}},
		{"call near", "e8 00 01 00 00", zydis.Run{Count: 1, Bytes: 5, Kind: zydis.Call, Relative: 0x100}},
		{"jne short", "75 fe", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.Conditional, Relative: -2}},
		{"jo near", "0f 80 04 00 00 00", zydis.Run{Count: 1, Bytes: 6, Kind: zydis.Conditional, Relative: 4}},
		{"jrcxz", "e3 01", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.Conditional, Relative: 1}},
		{"loop", "e2 fe", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.Conditional, Relative: -2}},
		{"loopne", "e0 fe", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.Conditional, Relative: -2}},
		{"jmp rax", "ff e0", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.IndirectJump}},
		{"notrack jmp rax", "3e ff e0", zydis.Run{Count: 1, Bytes: 3, Kind: zydis.IndirectJump}},
		{"call [rip+1]", "ff 15 01 00 00 00", zydis.Run{Count: 1, Bytes: 6, Kind: zydis.IndirectCall}},
		{"endbr64, ret", "f3 0f 1e fa c3", zydis.Run{Count: 2, Bytes: 5, Kind: zydis.Return}},
		{"rep ret", "f3 c3", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.Return}},
		{"bnd ret", "f2 c3", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.Return}},
		{"ret 8", "c2 08 00", zydis.Run{Count: 1, Bytes: 3, Kind: zydis.Return}},
		{"syscall", "0f 05", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.Far}},
		{"int3", "cc", zydis.Run{Count: 1, Bytes: 1, Kind: zydis.Far}},
		{"int1", "f1", zydis.Run{Count: 1, Bytes: 1, Kind: zydis.Far}},
		{"int 0x80", "cd 80", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.Far}},
		{"iretq", "48 cf", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.Far}},
		{"far ret", "cb", zydis.Run{Count: 1, Bytes: 1, Kind: zydis.Far}},
		{"far jmp [rax]", "ff 28", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.Far}},
		{"far call [rax]", "ff 18", zydis.Run{Count: 1, Bytes: 2, Kind: zydis.Far}},
		{"ud2, hlt, rep movsb, crc32, ret", "0f 0b f4 f3 a4 f2 0f 38 f1 c0 c3", zydis.Run{Count: 5, Bytes: 11, Kind: zydis.Return}},
		{"fsin, addps, ret", "d9 fe 0f 58 c1 c3", zydis.Run{Count: 3, Bytes: 6, Kind: zydis.Return}},
		{"cut", "90 e9 00", zydis.Run{Count: 1, Bytes: 1, Kind: zydis.Short}},
		{"invalid in 64-bit mode", "90 06", zydis.Run{Count: 1, Bytes: 1, Kind: zydis.Invalid}},
	} {
		code, err := hex.DecodeString(strings.ReplaceAll(c.code, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := zydis.Walk(code, make([]byte, 64)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestWalkStopsWhereLengthsEnd(t *testing.T) {
	lengths := make([]byte, 2)
	got := zydis.Walk([]byte{0x90, 0x48, 0x89, 0xc0, 0x90}, lengths)
	if want := (zydis.Run{Count: 2, Bytes: 4, Kind: zydis.Straight}); got != want || lengths[0] != 1 || lengths[1] != 3 {
		t.Errorf("%+v with lengths %v, want %+v with 1 and 3", got, lengths, want)
	}
	if got := zydis.Walk(nil, lengths); got != (zydis.Run{Kind: zydis.Short}) {
		t.Errorf("no code: %+v", got)
	}
}

// Flags are the SDM's, volume 2.
func TestDecode(t *testing.T) {
	for _, c := range []struct {
		code               string
		written, undefined uint64
		text               string
	}{
		{"\x48\x01\xd8", 0x8d5, 0, "add rax, rbx"},
		{"\x48\x31\xc0", 0x8c5, 0x10, "xor rax, rax"},
		{"\x48\xf7\xf1", 0, 0x8d5, "div rcx"},
		{"\x90", 0, 0, "nop"},
	} {
		in, ok := zydis.Decode([]byte(c.code), 0x1000)
		if !ok || in.Length != len(c.code) || in.Written != c.written || in.Undefined != c.undefined || in.Text != c.text {
			t.Errorf("% x: %+v, %v", c.code, in, ok)
		}
	}
	if _, ok := zydis.Decode([]byte("\x48"), 0); ok {
		t.Error("half an instruction is one")
	}
}
