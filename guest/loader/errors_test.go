package loader

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// load loads bytes as the program /p, with a directory and other files beside.
func loadBytes(t *testing.T, data []byte, others map[string][]byte) (Image, error) {
	t.Helper()
	return loadBytesWith(t, data, others, Options{})
}

func loadBytesWith(t *testing.T, data []byte, others map[string][]byte, o Options) (Image, error) {
	t.Helper()
	as := newSpace(t)
	own := map[string][]byte{"/p": data}
	for path, data := range others {
		own[path] = data
	}
	return Load(as, &opener{ram: as.RAM(), own: own}, "/p", []string{"p"}, nil, o)
}

// patched is a copy of a file with a number changed.
func patched(data []byte, at, size int, value uint64) []byte {
	b := slices.Clone(data)
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], value)
	copy(b[at:at+size], word[:])
	return b
}

// programHeader is the offset of the i-th program header of a given type.
func programHeader(data []byte, typ uint32, i int) int {
	at := int(binary.LittleEndian.Uint64(data[32:]))
	for range int(binary.LittleEndian.Uint16(data[56:])) {
		if binary.LittleEndian.Uint32(data[at:]) == typ {
			if i == 0 {
				return at
			}
			i--
		}
		at += programSize
	}
	panic("no such header")
}

// TestErrors damages a program in every way that has a sentence.
func TestErrors(t *testing.T) {
	static := readFile(t, gcctest.C(t, "int main(){}", "-static"))
	dynamic := readFile(t, gcctest.C(t, "int main(){}"))
	object := readFile(t, gcctest.C(t, "int f(){return 1;}", "-c"))
	first, second := programHeader(static, segmentLoad, 0), programHeader(static, segmentLoad, 1)
	interpreter := programHeader(dynamic, segmentInterpreter, 0)
	name := int(binary.LittleEndian.Uint64(dynamic[interpreter+8:]))
	// Offsets in a program header.
	const offset, addr, fileSize, memSize = 8, 16, 32, 40
	for what, c := range map[string]struct {
		data   []byte
		kind   *errs.Kind
		errno  unix.Errno
		phrase string
	}{
		"empty":              {nil, errNotProgram, unix.ENOEXEC, "neither an ELF program nor a script"},
		"text":               {[]byte("hello\n"), errNotProgram, unix.ENOEXEC, "cannot run /p: "},
		"only the magic":     {static[:4], errTruncated, unix.ENOEXEC, "ELF header ends at byte 64 and the file at byte 4"},
		"half a header":      {static[:50], errTruncated, unix.ENOEXEC, "the file is truncated"},
		"no program headers": {static[:64], errTruncated, unix.ENOEXEC, "table of program headers"},
		"half the file":      {static[:len(static)/2], errTruncated, unix.ENOEXEC, "segment at 0x"},
		"32-bit":             {patched(patched(static, 4, 1, 1), 18, 2, 3), err32Bit, unix.ENOEXEC, "it is a 32-bit program"},
		"x32":                {patched(static, 4, 1, 1), err32Bit, unix.ENOEXEC, "it is a 32-bit program"},
		"ARM":                {patched(static, 18, 2, 183), errMachine, unix.ENOEXEC, "built for 64-bit ARM"},
		"32-bit ARM":         {patched(patched(static, 4, 1, 1), 18, 2, 40), errMachine, unix.ENOEXEC, "built for 32-bit ARM"},
		"big-endian":         {patched(patched(static, 5, 1, 2), 18, 2, 0x1500), errMachine, unix.ENOEXEC, "built for 64-bit PowerPC"},
		"unheard of":         {patched(static, 18, 2, 999), errMachine, unix.ENOEXEC, "machine number 999"},
		"class":              {patched(static, 4, 1, 7), errDamaged, unix.ENOEXEC, "class is 7"},
		"byte order":         {patched(static, 5, 1, 7), errDamaged, unix.ENOEXEC, "byte order is 7"},
		"object file":        {object, errNotExecutable, unix.ENOEXEC, "an object file"},
		"core dump":          {patched(static, 16, 2, 4), errNotExecutable, unix.ENOEXEC, "a core dump"},
		"type":               {patched(static, 16, 2, 77), errDamaged, unix.ENOEXEC, "type is 77"},
		"header size":        {patched(static, 54, 2, 32), errDamaged, unix.ENOEXEC, "32 bytes instead of 56"},
		"no headers":         {patched(static, 56, 2, 0), errDamaged, unix.ENOEXEC, "0 program headers"},
		"too many headers":   {patched(static, 56, 2, 65535), errDamaged, unix.ENOEXEC, "65535 program headers"},
		"headers elsewhere":  {patched(static, 32, 8, 1<<63), errTruncated, unix.ENOEXEC, "table of program headers"},
		"nothing to load":    {patched(static, 56, 2, 1)[:], nil, 0, ""},
		"file larger":        {patched(static, first+fileSize, 8, 1<<40), errDamaged, unix.ENOEXEC, "bytes in the file and"},
		"past the end":       {patched(patched(static, first+fileSize, 8, 1<<30), first+memSize, 8, 1<<30), errTruncated, unix.ENOEXEC, "segment at"},
		"overflow":           {patched(static, first+memSize, 8, ^uint64(0)), errDamaged, unix.ENOEXEC, "outside the addresses"},
		"kernel address":     {patched(static, first+addr, 8, 1<<63), errDamaged, unix.ENOEXEC, "outside the addresses"},
		"offset overflow":    {patched(static, first+offset, 8, ^uint64(0)-4095), errTruncated, unix.ENOEXEC, "segment at"},
		"crooked":            {patched(static, first+addr, 8, 0x400123), errDamaged, unix.ENOEXEC, "elsewhere in its page"},
		"address 0":          {patched(static, first+addr, 8, 0), errDamaged, unix.ENOEXEC, "lies at address 0x0"},
		"overlap":            {patched(static, second+addr, 8, 0x400000), errDamaged, unix.ENOEXEC, "overlaps"},
		"on the stack":       {patched(static, second+memSize, 8, 1<<47-1<<24), errDamaged, unix.ENOEXEC, ""},
		"interpreter":        {patched(dynamic, name, 8, 0x6c612f6f6e2f), errInterpreter, unix.ENOENT, "/no/al"},
		"interpreter long":   {patched(dynamic, interpreter+fileSize, 8, 5000), errDamaged, unix.ENOEXEC, "has 5000 bytes"},
		"interpreter short":  {patched(dynamic, interpreter+fileSize, 8, 1), errDamaged, unix.ENOEXEC, "has 1 bytes"},
		"interpreter open":   {patched(dynamic, interpreter+fileSize, 8, 10), errDamaged, unix.ENOEXEC, "does not end"},
		"interpreter empty":  {patched(dynamic, name, 1, 0), errDamaged, unix.ENOEXEC, "is empty"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := loadBytes(t, c.data, nil)
			if c.kind == nil {
				return
			}
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, c.kind) || e.Errno != c.errno || Errno(err) != c.errno {
				t.Fatalf("error %v", err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "cannot run /p") || !strings.Contains(text, c.phrase) || strings.Contains(text, "\n") {
				t.Errorf("sentence %q", text)
			}
		})
	}
}

// TestOpeningErrors: files that cannot be opened, as program and as
// interpreter.
func TestOpeningErrors(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		path  string
		own   map[string][]byte
		kind  *errs.Kind
		errno unix.Errno
		want  string
	}{
		{dir + "/none", nil, errOpen, unix.ENOENT, "cannot run " + dir + "/none: no such file or directory"},
		{dir, nil, errDirectory, unix.EACCES, "cannot run " + dir + ": it is a directory"},
		{
			"/s",
			map[string][]byte{"/s": []byte("#!/no/such\n")},
			errInterpreter, unix.ENOENT,
			"cannot run /s: its interpreter /no/such cannot be opened: no such file or directory",
		},
		{
			"/s",
			map[string][]byte{"/s": []byte("#!" + dir + "\n")},
			errInterpreter, unix.EACCES,
			"cannot run /s: its interpreter " + dir + " cannot be opened: permission denied",
		},
		{"/s", map[string][]byte{"/s": []byte("#!\n")}, errScript, unix.ENOEXEC, "names no interpreter"},
		{"/s", map[string][]byte{"/s": []byte("#!/s\n")}, errScriptDepth, unix.ELOOP, "cannot run /s: scripts"},
		{
			"/s",
			map[string][]byte{"/s": []byte("#!/t\n"), "/t": []byte("data")},
			errNotProgram, unix.ENOEXEC,
			"cannot run /t: it is neither an ELF program",
		},
	} {
		as := newSpace(t)
		_, err := Load(as, &opener{ram: as.RAM(), own: c.own}, c.path, []string{"x"}, nil, Options{})
		if !errors.Is(err, c.kind) || Errno(err) != c.errno || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v (%v), want %q", c.path, err, Errno(err), c.want)
		}
	}
	if Errno(nil) != 0 || Errno(errors.New("other")) != unix.ENOEXEC {
		t.Error("Errno of what is no Error")
	}
}

// TestInterpretersAreChecked: the dynamic linker is an ELF file too.
func TestInterpretersAreChecked(t *testing.T) {
	program := readFile(t, gcctest.C(t, "int main(){}", "-Wl,--dynamic-linker,/ld"))
	linker := readFile(t, "/lib64/ld-linux-x86-64.so.2")
	for what, data := range map[string][]byte{
		"text":      []byte("no linker"),
		"script":    []byte("#!/bin/sh\n"),
		"truncated": linker[:100],
		"32-bit":    patched(patched(linker, 4, 1, 1), 18, 2, 3),
	} {
		_, err := loadBytes(t, program, map[string][]byte{"/ld": data})
		if !errors.Is(err, errBadInterpreter) || Errno(err) != unix.ELIBBAD || !strings.HasPrefix(err.Error(), "cannot run /p: its interpreter /ld ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := loadBytes(t, program, map[string][]byte{"/ld": linker}); err != nil {
		t.Errorf("the real one: %v", err)
	}
}

// TestLevels marks programs as the linker's -z x86-64-v3 does (psABI).
func TestLevels(t *testing.T) {
	const note = `__asm__(".section .note.gnu.property, \"a\"\n.align 8\n.long 4, 32, 5\n.string \"GNU\"\n"
	".long 0xc0000002, 4, 3, 0\n" // IBT and shadow stack
	".long 0xc0008002, 4, %d, 0\n.text");
void _start(void) {}`
	v3, v4 := "run it with --cpu x86-64-v3", "AVX-512 is not provided"
	for _, c := range []struct {
		bits  int
		level arch.Level
		want  string
	}{
		{0, arch.V2, ""},
		{1, arch.V2, ""},
		{2, arch.V2, ""},
		{3, arch.V2, ""},
		{4, arch.V2, v3},
		{7, arch.V2, v3},
		{8, arch.V2, v4},
		{15, arch.V2, v4},
		{7, arch.V3, ""},
		{15, arch.V3, v4},
	} {
		data := readFile(t, gcctest.C(t, fmt.Sprintf(note, c.bits), "-nostdlib", "-static", "-fcf-protection=none"))
		_, err := loadBytesWith(t, data, nil, Options{Level: c.level})
		if c.want == "" && err != nil {
			t.Errorf("%d on %v: %v", c.bits, c.level, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.level.String()+";")) {
			t.Errorf("%d on %v: %v", c.bits, c.level, err)
		}
	}
}

func TestArgumentsAreLimited(t *testing.T) {
	for _, c := range []struct {
		args  []string
		errno unix.Errno
	}{
		{[]string{strings.Repeat("x", maxString-1)}, 0},
		{[]string{strings.Repeat("x", maxString)}, unix.E2BIG},
		{slices.Repeat([]string{strings.Repeat("x", 100<<10)}, 19), 0},
		{slices.Repeat([]string{strings.Repeat("x", 100<<10)}, 21), unix.E2BIG},
		{slices.Repeat([]string{""}, 200000), 0},
		{slices.Repeat([]string{""}, 300000), unix.E2BIG},
		{nil, 0},
	} {
		as := newSpace(t)
		_, err := Load(as, &opener{ram: as.RAM()}, "/bin/true", c.args, nil, Options{})
		if Errno(err) != c.errno {
			t.Errorf("%d arguments: %v", len(c.args), err)
		}
	}
}

// TestArgumentLimitsAreThoseOfLinux starts programs natively with the same
// arguments.
func TestArgumentLimitsAreThoseOfLinux(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &limit); err != nil || limit.Cur != 8<<20 {
		t.Skip("the host's limit on the stack is not the usual 8 MiB")
	}
	for _, n := range []int{maxString - 1, maxString} {
		cmd := exec.Command("/bin/true", strings.Repeat("x", n))
		cmd.Env = []string{}
		native := cmd.Run()
		as := newSpace(t)
		_, err := Load(as, &opener{ram: as.RAM()}, "/bin/true", cmd.Args, nil, Options{})
		if errors.Is(native, unix.E2BIG) != (Errno(err) == unix.E2BIG) {
			t.Errorf("%d bytes: %v, natively %v", n, err, native)
		}
	}
	for _, count := range []int{19, 20, 21} {
		cmd := exec.Command("/bin/true", slices.Repeat([]string{strings.Repeat("x", 100<<10)}, count)...)
		cmd.Env = []string{}
		native := cmd.Run()
		as := newSpace(t)
		_, err := Load(as, &opener{ram: as.RAM()}, "/bin/true", cmd.Args, nil, Options{})
		if errors.Is(native, unix.E2BIG) != (Errno(err) == unix.E2BIG) {
			t.Errorf("%d arguments: %v, natively %v", count, err, native)
		}
	}
}

// TestScriptsAsOnLinux runs scripts with odd first lines natively, with an
// interpreter that prints its arguments, and compares arguments or errno.
func TestScriptsAsOnLinux(t *testing.T) {
	dir := t.TempDir()
	interpreter := filepath.Join(dir, "i")
	show := gcctest.C(t, `#include <stdio.h>
int main(int argc, char **argv) { for (int i = 0; i < argc; i++) printf("<%s>", argv[i]); }`, "-static")
	if err := os.Rename(show, interpreter); err != nil {
		t.Fatal(err)
	}
	nested := filepath.Join(dir, "nested")
	deep := nested
	for i := range 5 {
		deep = fmt.Sprint(nested, i)
		writeScript(t, deep, "#!"+map[bool]string{true: interpreter, false: fmt.Sprint(nested, i-1)}[i == 0]+" n\n")
	}
	long := strings.Repeat("a", 240-len(interpreter))
	for i, line := range []string{
		"#!I\n", "#! I\n", "#!\tI \t\n", "#!I arg\n", "#!I  two words \n", "#!I\targ\x00rest\n", "#!I\x00arg\n", "#!I",
		"#!I arg", "#!", "#! ", "#!\n", "#!   \nI\n", "#!I " + long + "\n", "#!I " + long + "bbbbbbbbbbbbbbbbbbb\n",
		"#!I " + strings.Repeat(" ", 300) + "x\n", "#!/" + strings.Repeat("x", 300) + "\n", "#!" + strings.Repeat(" ", 300) + "I\n",
		"#!" + deep + "\n", "#!" + nested + "3\n", "#!/\n", "#!" + dir + "/none\n", "#!I a b c\nmore\n", "# !I\n", "",
	} {
		script := filepath.Join(dir, fmt.Sprint("script", i))
		writeScript(t, script, strings.Replace(line, "I", interpreter, 1))
		cmd := exec.Command(script, "x", "y z")
		cmd.Args[0] = "zero"
		out, native := cmd.Output()
		as := newSpace(t)
		image, err := Load(as, &opener{ram: as.RAM()}, script, []string{"zero", "x", "y z"}, nil, Options{})
		if native != nil {
			var errno unix.Errno
			if !errors.As(native, &errno) || Errno(err) != errno {
				t.Errorf("%q: %v (%v), natively %v", line, err, Errno(err), native)
			}
			continue
		}
		var got strings.Builder
		for _, a := range image.Args {
			fmt.Fprintf(&got, "<%s>", a)
		}
		if err != nil || got.String() != string(out) {
			t.Errorf("%q: %s, %v, natively %s", line, got.String(), err, out)
		}
	}
}

func writeScript(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
