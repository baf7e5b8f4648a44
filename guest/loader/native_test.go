package loader

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// start is the state of a process when it begins.
type start struct {
	sp    arch.Addr
	maps  []string
	stack []byte // from sp to the end
}

// nativeStart runs testdata/start.c natively, without address randomisation.
func nativeStart(t *testing.T, program string, args, env []string) (s start) {
	t.Helper()
	cmd := exec.Command("setarch", append([]string{"-R", program}, args[1:]...)...)
	cmd.Env = env
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "sp "):
			scan(t, line, "sp %x", &s.sp)
		case strings.HasPrefix(line, "stack "):
			if s.stack, err = hex.DecodeString(line[6:]); err != nil {
				t.Fatal(err)
			}
		case line != "maps" && !regexp.MustCompile(`\[v[a-z_]*\]$`).MatchString(line):
			s.maps = append(s.maps, mapsLine(line))
		}
	}
	return s
}

// mapsLine leaves out of a line of maps the fields that the loader does not decide: device
// and inode.
func mapsLine(line string) string {
	f := strings.Fields(line)
	return strings.Join(append(f[:3:3], f[5:]...), " ")
}

// loadedStart is the same for an address space.
func loadedStart(t *testing.T, as *mm.AddressSpace, image Image) (s start) {
	t.Helper()
	s.sp = image.StackPointer
	for line := range strings.Lines(as.Maps()) {
		if !strings.Contains(line, "[vsyscall]") {
			s.maps = append(s.maps, mapsLine(strings.TrimSuffix(line, "\n")))
		}
	}
	s.stack = make([]byte, mm.TaskSize-s.sp)
	if errno := as.CopyIn(s.sp, s.stack); errno != 0 {
		t.Fatal(errno)
	}
	return s
}

func (s start) word(i int) uint64 { return binary.LittleEndian.Uint64(s.stack[8*i:]) }

// text is the string at an address of the stack.
func (s start) text(at uint64) string {
	b, _, _ := bytes.Cut(s.stack[at-uint64(s.sp):], []byte{0})
	return string(b)
}

// vector is an entry of the auxiliary vector.
type vector struct{ key, value uint64 }

// split takes the stack apart: strings with their addresses, and the vector.
func (s start) split() (strings []string, auxv []vector) {
	i := 1
	for range 2 {
		for ; s.word(i) != 0; i++ {
			strings = append(strings, fmt.Sprintf("%#x %q", s.word(i), s.text(s.word(i))))
		}
		i++
		strings = append(strings, "--")
	}
	for ; s.word(i) != atNull; i += 2 {
		auxv = append(auxv, vector{s.word(i), s.word(i + 1)})
	}
	return strings, auxv
}

// Entries of the vector that heddle leaves out: the vDSO, rseq, and capability
// words that newer kernels have added.
var leftOut = []uint64{33, 27, 28, 29, 30}

// comparable removes the parts that depend on the machine or the user, not on the layout.
func comparable(auxv []vector) (kept []vector, removed int) {
	for _, v := range auxv {
		if slices.Contains(leftOut, v.key) {
			removed++
			continue
		}
		if slices.Contains([]uint64{atHWCap, atHWCap2, atMinSigSize, atUID, atEUID, atGID, atEGID}, v.key) {
			v.value = 0
		}
		kept = append(kept, v)
	}
	return kept, removed
}

// TestStartsAsOnLinux compares mappings, stack and auxiliary vector of programs
// of all kinds with those of native processes.
func TestStartsAsOnLinux(t *testing.T) {
	source := string(readFile(t, "testdata/start.c"))
	common := []string{"-O1", "-nostdlib", "-fno-stack-protector"}
	linker := gcctest.C(t, source, append(common, "-static-pie", "-fPIE")...)
	for name, flags := range map[string][]string{
		"static":             {"-static"},
		"static PIE":         {"-static-pie", "-fPIE"},
		"PIE":                {"-pie", "-fPIE", "-Wl,--dynamic-linker," + linker},
		"dynamic":            {"-no-pie", "-Wl,--dynamic-linker," + linker},
		"executable stack":   {"-static", "-Wl,-z,execstack"},
		"large alignment":    {"-pie", "-fPIE", "-Wl,--dynamic-linker," + linker, "-Wl,-z,max-page-size=0x200000"},
		"one segment":        {"-static", "-Wl,-N"},
		"much zeroed memory": {"-static", "-DBSS=50000000"},
		"no separate code":   {"-static", "-Wl,-z,noseparate-code"},
	} {
		t.Run(name, func(t *testing.T) {
			program := gcctest.C(t, source, append(slices.Clone(common), flags...)...)
			args := []string{program, "", "one", strings.Repeat("long ", 2000)}
			env := []string{"A=B", "EMPTY=", strings.Repeat("E", 300) + "=x"}
			want := nativeStart(t, program, args, env)
			as := newSpace(t)
			image, err := Load(as, &opener{ram: as.RAM()}, program, args, env, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := loadedStart(t, as, image)
			if !slices.Equal(got.maps, want.maps) {
				t.Errorf("mappings\n%s\nwant\n%s", strings.Join(got.maps, "\n"), strings.Join(want.maps, "\n"))
			}
			gotStrings, gotAuxv := got.split()
			wantStrings, wantAuxv := want.split()
			if !slices.Equal(gotStrings, wantStrings) {
				t.Errorf("strings\n%s\nwant\n%s", strings.Join(gotStrings, "\n"), strings.Join(wantStrings, "\n"))
			}
			gotAuxv, _ = comparable(gotAuxv)
			wantAuxv, more := comparable(wantAuxv)
			if !slices.Equal(gotAuxv, wantAuxv) {
				t.Errorf("auxiliary vector\n%x\nwant\n%x", gotAuxv, wantAuxv)
			}
			if got.sp != want.sp+arch.Addr(16*more) {
				t.Errorf("stack pointer %#x, want %#x and %d entries less", got.sp, want.sp, more)
			}
			// From the platform's name up all bytes are decided, except the
			// random ones below it.
			at := slices.IndexFunc(gotAuxv, func(v vector) bool { return v.key == atPlatform })
			from := gotAuxv[at].value
			if !bytes.Equal(got.stack[from-uint64(got.sp):], want.stack[from-uint64(want.sp):]) {
				t.Error("the bytes above the pointers differ")
			}
		})
	}
}

// TestBSSIsZero reads all memory that is not mapped from a file.
func TestBSSIsZero(t *testing.T) {
	source := string(readFile(t, "testdata/start.c"))
	program := gcctest.C(t, source, "-O1", "-nostdlib", "-fno-stack-protector", "-static", "-DBSS=100000")
	as := newSpace(t)
	if _, err := Load(as, &opener{ram: as.RAM()}, program, nil, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	end := as.Layout.StartBrk
	start := as.Layout.EndData
	b := make([]byte, end-start)
	if errno := as.CopyIn(start, b); errno != 0 || len(b) < 100000 {
		t.Fatalf("%d bytes from %#x: %v", len(b), start, errno)
	}
	if i := slices.IndexFunc(b, func(x byte) bool { return x != 0 }); i >= 0 {
		t.Errorf("byte %d is %d", i, b[i])
	}
}

// TestRandomLayout: the same seed gives the same layout, seeds differ, and the parts that
// Linux keeps aligned and apart stays so.
func TestRandomLayout(t *testing.T) {
	layouts := map[string]uint64{}
	for seed := range uint64(20) {
		var maps [2]string
		for i := range maps {
			as := newSpace(t)
			image, err := Load(as, &opener{ram: as.RAM()}, "/bin/true", []string{"true"}, nil, Options{Randomize: true, LayoutSeed: seed})
			if err != nil {
				t.Fatal(err)
			}
			if image.StackPointer%16 != 0 || image.Program.Bias%arch.PageSize != 0 || as.Layout.StartBrk%arch.PageSize != 0 {
				t.Errorf("seed %d: %+v", seed, image)
			}
			maps[i] = as.Maps() + fmt.Sprint(image.StackPointer, as.Layout.StartBrk)
			for _, v := range as.VMAs() {
				if v.Start < as.Layout.StartBrk && as.Layout.StartBrk < v.End {
					t.Errorf("seed %d: the heap begins in a mapping", seed)
				}
			}
		}
		if maps[0] != maps[1] {
			t.Errorf("seed %d gives two layouts", seed)
		}
		if other, ok := layouts[maps[0]]; ok {
			t.Errorf("seeds %d and %d give one layout", seed, other)
		}
		layouts[maps[0]] = seed
	}
}

// TestImage checks the information for the kernel.
func TestImage(t *testing.T) {
	as := newSpace(t)
	o := Options{HWCap: 0x78bfbff, Identify: func(File) Identity {
		return Identity{UID: 1, EUID: 2, GID: 3, EGID: 4, Secure: true}
	}}
	copy(o.Random[:], "0123456789abcdef")
	image, err := Load(as, &opener{ram: as.RAM()}, "/bin/sh", []string{"sh", "-c", ":"}, []string{"A=1"}, o)
	if err != nil {
		t.Fatal(err)
	}
	s := loadedStart(t, as, image)
	_, auxv := s.split()
	values := map[uint64]uint64{}
	for _, v := range auxv {
		values[v.key] = v.value
	}
	for key, want := range map[uint64]uint64{
		atUID: 1, atEUID: 2, atGID: 3, atEGID: 4, atSecure: 1, atHWCap: 0x78bfbff, atPageSize: 4096, atClockTicks: 100,
		atBase: uint64(image.Linker.Bias), atFlags: 0, atPhent: 56,
	} {
		if values[key] != want {
			t.Errorf("entry %d of the auxiliary vector is %#x, want %#x", key, values[key], want)
		}
	}
	if random := s.stack[values[atRandom]-uint64(s.sp):][:16]; string(random) != "0123456789abcdef" {
		t.Errorf("random bytes %q", random)
	}
	if name := s.text(values[atExecFile]); name != "/bin/sh" {
		t.Errorf("executed %q", name)
	}
	if name := s.text(values[atPlatform]); name != "x86_64" {
		t.Errorf("platform %q", name)
	}
	args := make([]byte, as.Layout.ArgEnd-as.Layout.ArgStart)
	as.CopyIn(as.Layout.ArgStart, args)
	env := make([]byte, as.Layout.EnvEnd-as.Layout.EnvStart)
	as.CopyIn(as.Layout.EnvStart, env)
	if string(args) != "sh\x00-c\x00:\x00" || string(env) != "A=1\x00" {
		t.Errorf("command line %q, environment %q", args, env)
	}
	shown := as.Layout.Auxv
	if len(shown) != 16*(len(auxv)+1) || !bytes.Contains(s.stack, shown) {
		t.Error("/proc/PID/auxv is not what is on the stack")
	}
	if image.Program.Path != "/bin/sh" || !strings.Contains(image.Linker.Path, "ld-linux") || !slices.Equal(image.Args, []string{"sh", "-c", ":"}) {
		t.Errorf("%+v", image)
	}
	code, _ := as.Find(image.Entry)
	if cmp.Compare(code.Start, image.Linker.Bias) < 0 {
		t.Errorf("the entry is at %#x", image.Entry)
	}
}
