package ptrace

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
)

func sample() Registers {
	r := Registers{Regs: arch.Regs{RIP: 100, RFLAGS: 0x246, FSBase: 200, GSBase: 300}, OrigRAX: 400}
	for i := range r.GPR {
		r.GPR[i] = uint64(1000 + i)
	}
	return r
}

// TestRegistersHaveLinuxsLayout compares with the structure of package unix.
func TestRegistersHaveLinuxsLayout(t *testing.T) {
	r := sample()
	var u unix.PtraceRegs
	b := r.Bytes()
	if len(b) != Size {
		t.Fatalf("%d bytes, want %d", len(b), Size)
	}
	if _, err := binary.Decode(b, binary.LittleEndian, &u); err != nil {
		t.Fatal(err)
	}
	g := &r.GPR
	want := unix.PtraceRegs{
		R15: g[arch.R15], R14: g[arch.R14], R13: g[arch.R13], R12: g[arch.R12], Rbp: g[arch.RBP], Rbx: g[arch.RBX],
		R11: g[arch.R11], R10: g[arch.R10], R9: g[arch.R9], R8: g[arch.R8], Rax: g[arch.RAX], Rcx: g[arch.RCX],
		Rdx: g[arch.RDX], Rsi: g[arch.RSI], Rdi: g[arch.RDI], Orig_rax: 400, Rip: 100, Cs: 0x33, Eflags: 0x246,
		Rsp: g[arch.RSP], Ss: 0x2b, Fs_base: 200, Gs_base: 300,
	}
	if u != want {
		t.Errorf("%+v, want %+v", u, want)
	}
}

func TestRegistersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b Registers
		for n := range Words {
			_ = a.SetWord(n, rapid.Uint64().Draw(t, "word")) // some are refused
		}
		if errno := b.SetBytes(a.Bytes()); errno != 0 {
			t.Fatal(errno)
		}
		if a != b {
			t.Fatalf("%+v became %+v", a, b)
		}
	})
}

func TestRegistersRefuse(t *testing.T) {
	for _, c := range []struct {
		word  int
		value uint64
		want  unix.Errno
	}{
		{wordCS, userCS, 0},
		{wordCS, 0x23, unix.EIO},
		{wordSS, 0, unix.EIO},
		{wordDS, 0, 0},
		{Words - 1, 7, unix.EIO},
		{wordFSBase, 0x7fffffffefff, 0},
		{wordFSBase, 0x7ffffffff000, unix.EIO},
		{wordGSBase, ^uint64(0), unix.EIO},
		{wordRIP, ^uint64(0), 0},
	} {
		r := sample()
		before := r
		errno := r.SetWord(c.word, c.value)
		if errno != c.want {
			t.Errorf("word %d, value %#x: %v, want %v", c.word, c.value, errno, c.want)
		}
		if errno != 0 && r != before {
			t.Errorf("word %d was refused and changed", c.word)
		}
	}
	r := sample()
	_ = r.SetWord(wordFlags, ^uint64(0))
	if r.RFLAGS != 0x54fd7 { // as Linux answers after the same
		t.Errorf("flags %#x", r.RFLAGS)
	}
	if errno := r.SetBytes(make([]byte, 24)); errno != 0 || r.GPR[arch.R13] != 0 || r.GPR[arch.R12] == 0 {
		t.Errorf("three words: %v, %+v", errno, r)
	}
}

// control is DR7 for one slot: in use, kind and length code.
func control(slot int, kind PointKind, length uint64) uint64 {
	return 1<<(2*slot) | (length<<2|uint64(kind))<<(16+4*slot)
}

func TestDebugRegisters(t *testing.T) {
	var d DebugRegisters
	if d.InUse() || d.Get(6) != statusFixed {
		t.Errorf("a new thread has %+v", d)
	}
	for _, c := range []struct {
		register int
		value    uint64
		want     unix.Errno
	}{
		{0, 0x1000, 0},
		{1, 0x2004, 0},
		{2, 0x7fffffffefff, 0},
		{2, 0x7ffffffff000, unix.EINVAL},
		{2, 0xffff800000000000, unix.EINVAL},
		{4, 0, unix.EIO},
		{5, 0, unix.EIO},
		{8, 0, unix.EIO},
		{7, control(0, Write, 1), 0},
		{7, control(0, Write, 1) | control(1, ReadWrite, 3), 0},
		{7, control(1, ReadWrite, 2), unix.EINVAL}, // not aligned
		{7, control(0, Execute, 0), 0},
		{7, control(0, Execute, 1), unix.EINVAL},
		{7, control(0, 2, 0), unix.EINVAL},
		{7, control(0, Write, 1) | control(1, ReadWrite, 3), 0},
		{1, 0x2001, unix.EINVAL}, // in use, and not aligned then
	} {
		before := d
		if errno := d.Set(c.register, c.value); errno != c.want {
			t.Errorf("DR%d=%#x: %v, want %v", c.register, c.value, errno, c.want)
		} else if errno != 0 && d != before {
			t.Errorf("DR%d was refused and changed", c.register)
		}
	}
	want := []Point{{0, Write, 0x1000, 2}, {1, ReadWrite, 0x2004, 4}}
	if got := d.Points(); !slices.Equal(got, want) || !d.InUse() {
		t.Errorf("%+v, want %+v", got, want)
	}
	d.Trap(true, want[1:])
	if got := d.Get(6); got != 0xffff4ff2 {
		t.Errorf("status %#x", got)
	}
	d.Trap(false, want[:1])
	if got := d.Get(6); got != 0xffff0ff1 {
		t.Errorf("status %#x", got)
	}
	if errno := d.Set(6, 0); errno != 0 || d.Get(6) != 0 {
		t.Errorf("status %#x, %v", d.Get(6), errno)
	}
}

func TestPointOverlaps(t *testing.T) {
	p := Point{0, Write, 0x1000, 4}
	for _, c := range []struct {
		at   arch.Addr
		size int
		want bool
	}{{0xfff, 1, false}, {0xfff, 2, true}, {0x1003, 1, true}, {0x1004, 8, false}, {0xff8, 16, true}} {
		if got := p.Overlaps(c.at, c.size); got != c.want {
			t.Errorf("%#x, %d: %v", c.at, c.size, got)
		}
	}
}

// TestSyscallInfo: the lengths and places are those of struct ptrace_syscall_info.
func TestSyscallInfo(t *testing.T) {
	base := SyscallInfo{IP: 0x1122, SP: 0x3344, Number: 5, Args: [6]uint64{6, 7, 8, 9, 10, 11}, Result: ^uint64(0), RetData: 12}
	for _, c := range []struct {
		op   SyscallOp
		size int
	}{{SyscallNone, 24}, {SyscallEntry, 80}, {SyscallExit, 33}, {SyscallSeccomp, 84}} {
		info := base
		info.Op = c.op
		b := info.Bytes()
		word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
		if len(b) != c.size || b[0] != byte(c.op) || word(8) != 0x1122 || word(16) != 0x3344 {
			t.Errorf("%d: %d bytes %x", c.op, len(b), b)
			continue
		}
		switch c.op {
		case SyscallEntry, SyscallSeccomp:
			if word(24) != 5 || word(32) != 6 || word(72) != 11 {
				t.Errorf("%d: %x", c.op, b)
			}
		case SyscallExit:
			if word(24) != ^uint64(0) || b[32] != 1 {
				t.Errorf("exit: %x", b)
			}
		}
	}
	for result, want := range map[uint64]byte{0: 0, ^uint64(4094): 1, ^uint64(4095): 0, 1 << 63: 0} {
		info := SyscallInfo{Op: SyscallExit, Result: result}
		if b := info.Bytes(); b[32] != want {
			t.Errorf("result %#x is an error: %d", result, b[32])
		}
	}
}
