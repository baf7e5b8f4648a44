package bpf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/internal/gcctest"
)

const dataSize = 64

// sample is the struct seccomp_data of the system call that testdata/native.c makes; where
// it is made is not known.
func sample() []byte {
	b := make([]byte, dataSize)
	binary.LittleEndian.PutUint32(b, unix.SYS_GETPRIORITY)
	binary.LittleEndian.PutUint32(b[4:], unix.AUDIT_ARCH_X86_64)
	for i, a := range []uint64{0x1122334455667788, 0x99aabbccddeeff00, 3, 0xffffffff, 0, 1 << 63} {
		binary.LittleEndian.PutUint64(b[16+8*i:], a)
	}
	return b
}

func TestRun(t *testing.T) {
	const retA = unix.BPF_RET | unix.BPF_A
	for _, c := range []struct {
		name    string
		program []Instruction
		want    uint32
		steps   int
	}{
		{"constant", []Instruction{{unix.BPF_RET | unix.BPF_K, 0, 0, 7}}, 7, 1},
		{"number", []Instruction{{unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, 0, 0, 0}, {retA, 0, 0, 0}}, unix.SYS_GETPRIORITY, 2},
		{"high half", []Instruction{{unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, 0, 0, 20}, {retA, 0, 0, 0}}, 0x11223344, 2},
		{"length", []Instruction{{unix.BPF_LDX | unix.BPF_W | unix.BPF_LEN, 0, 0, 0}, {unix.BPF_MISC | unix.BPF_TXA, 0, 0, 0}, {retA, 0, 0, 0}}, dataSize, 3},
		{"jump", []Instruction{
			{unix.BPF_LD | unix.BPF_IMM, 0, 0, 5},
			{unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, 1, 0, 5},
			{unix.BPF_RET | unix.BPF_K, 0, 0, 1},
			{unix.BPF_RET | unix.BPF_K, 0, 0, 2},
		}, 2, 3},
		{"division by X", []Instruction{
			{unix.BPF_LD | unix.BPF_IMM, 0, 0, 5}, {unix.BPF_ALU | unix.BPF_DIV | unix.BPF_X, 0, 0, 0}, {unix.BPF_RET | unix.BPF_K, 0, 0, 9},
		}, 0, 2},
		{"scratch", []Instruction{
			{unix.BPF_LD | unix.BPF_IMM, 0, 0, 5},
			{unix.BPF_ST, 0, 0, 15},
			{unix.BPF_ALU | unix.BPF_NEG, 0, 0, 0},
			{unix.BPF_LD | unix.BPF_MEM, 0, 0, 15},
			{retA, 0, 0, 0},
		}, 5, 5},
	} {
		p, errno := New(c.program, dataSize)
		if errno != 0 {
			t.Errorf("%s: %v", c.name, errno)
			continue
		}
		if got, steps := p.Run(sample()); got != c.want || steps != c.steps {
			t.Errorf("%s: %#x in %d steps, want %#x in %d", c.name, got, steps, c.want, c.steps)
		}
	}
}

func TestEncodeDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(anyInstruction()).Draw(t, "program")
		if got := Decode(Encode(list)); !slices.Equal(got, list) {
			t.Fatalf("%v became %v", list, got)
		}
	})
}

func anyInstruction() *rapid.Generator[Instruction] {
	return rapid.Custom(func(t *rapid.T) Instruction {
		return Instruction{
			rapid.Uint16().Draw(t, "code"), rapid.Uint8().Draw(t, "jt"), rapid.Uint8().Draw(t, "jf"), rapid.Uint32().Draw(t, "k"),
		}
	})
}

// likely draws an instruction of which programs are made that have a chance to be valid.
func likely() *rapid.Generator[Instruction] {
	return rapid.Custom(func(t *rapid.T) Instruction {
		i := Instruction{
			Code: rapid.SampledFrom([]uint16{
				0x20, 0x80, 0x81, 0x00, 0x01, 0x60, 0x61, 0x02, 0x03, 0x16, 0x06, 0x07, 0x87, 0x84, 0x05,
				0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x44, 0x4c, 0x54, 0x5c, 0x64, 0x6c, 0x74, 0x7c, 0xa4, 0xac,
				0x15, 0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d,
				0x94, 0x9c, 0x28, 0x30, 0x40, 0xb1, 0x0d, 0x8c, 0x0e, 0x62, 0x08,
			}).Draw(t, "code"),
			JT: rapid.Uint8Range(0, 3).Draw(t, "jt"), JF: rapid.Uint8Range(0, 3).Draw(t, "jf"),
		}
		switch i.Code {
		case 0x20, 0x28, 0x30:
			i.K = 4 * rapid.Uint32Range(0, 16).Draw(t, "word")
			if i.K == 8 || i.K == 12 {
				i.K = 0 // where the call is made
			}
		case 0x60, 0x61, 0x02, 0x03:
			i.K = rapid.SampledFrom([]uint32{0, 0, 0, 1, 1, 15, 16}).Draw(t, "scratch")
		case 0x05:
			i.K = rapid.Uint32Range(0, 3).Draw(t, "jump")
		case 0x64, 0x74:
			i.K = rapid.Uint32Range(0, 33).Draw(t, "shift")
		default:
			i.K = rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32()).Draw(t, "k")
		}
		return i
	})
}

// TestAgreesWithLinux has the host's kernel check and run random programs. Of a result
// it shows twelve bits, as an errno.
func TestAgreesWithLinux(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) []Instruction {
		body := rapid.SliceOfN(likely(), 0, 12).Draw(t, "body")
		return append(body,
			Instruction{unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K, 0, 0, rapid.SampledFrom([]uint32{0, 11, 22}).Draw(t, "bits")},
			Instruction{unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, 0, 0, 0x7ff},
			Instruction{unix.BPF_ALU | unix.BPF_OR | unix.BPF_K, 0, 0, unix.SECCOMP_RET_ERRNO},
			// Only for the call that is looked at.
			Instruction{unix.BPF_MISC | unix.BPF_TAX, 0, 0, 0},
			Instruction{unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, 0, 0, 0},
			Instruction{unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, 1, 0, unix.SYS_GETPRIORITY},
			Instruction{unix.BPF_RET | unix.BPF_K, 0, 0, unix.SECCOMP_RET_ALLOW},
			Instruction{unix.BPF_MISC | unix.BPF_TXA, 0, 0, 0},
			Instruction{unix.BPF_RET | unix.BPF_A, 0, 0, 0})
	})
	var programs [][]Instruction
	for seed := range 1500 {
		programs = append(programs, gen.Example(seed))
	}
	programs = append(programs, nil, make([]Instruction, 4096), slices.Repeat([]Instruction{{unix.BPF_RET, 0, 0, unix.SECCOMP_RET_ALLOW}}, 4096),
		slices.Repeat([]Instruction{{unix.BPF_RET, 0, 0, unix.SECCOMP_RET_ALLOW}}, 4097))
	valid := 0
	for i, want := range native(t, programs) {
		got := [2]int{}
		p, errno := New(programs[i], dataSize)
		got[0] = int(errno)
		if errno == 0 {
			valid++
			result, _ := p.Run(sample())
			switch result & unix.SECCOMP_RET_ACTION_FULL {
			case unix.SECCOMP_RET_ERRNO:
				got[1] = int(result & unix.SECCOMP_RET_DATA)
			case unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_LOG:
				got[1] = int(unix.EINVAL)
			case unix.SECCOMP_RET_TRACE, unix.SECCOMP_RET_USER_NOTIF:
				got[1] = int(unix.ENOSYS)
			default:
				got = [2]int{-1, -1} // the child was killed
			}
			if want == [2]int{-1, -1} && killsWrite(p) {
				continue
			}
		}
		if got != want {
			t.Errorf("program %d %v: %v, natively %v", i, programs[i], got, want)
		}
	}
	if valid < 200 {
		t.Errorf("%d programs are valid, want more", valid)
	}
}

// killsWrite reports whether the filter prevents the child from reporting its result.
func killsWrite(p *Program) bool {
	data := sample()
	binary.LittleEndian.PutUint32(data, unix.SYS_WRITE)
	result, _ := p.Run(data)
	return result != unix.SECCOMP_RET_ALLOW
}

// native runs programs on the host's kernel and returns its answers: the errno of their installation, and
// of the call.
func native(t *testing.T, programs [][]Instruction) (all [][2]int) {
	t.Helper()
	var in bytes.Buffer
	for _, p := range programs {
		_ = binary.Write(&in, binary.LittleEndian, uint16(len(p)))
		in.Write(Encode(p))
	}
	cmd := exec.Command(gcctest.File(t, "testdata/native.c"))
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("native: %v\n%s", err, out)
	}
	for range programs {
		var one [2]int
		if _, err := fmt.Fscan(bytes.NewReader(nextLine(&out)), &one[0], &one[1]); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if last := all[len(all)-2]; last != [2]int{0, int(unix.EINVAL)} {
		t.Skipf("the host's kernel does not take seccomp filters here: %v", last)
	}
	return all
}

func nextLine(out *[]byte) []byte {
	line, rest, _ := bytes.Cut(*out, []byte("\n"))
	*out = rest
	return line
}
