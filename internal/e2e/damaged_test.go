package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// program returns the bytes of a small program that works.
func program(t *testing.T, flags ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(compile(t, "hello", flags...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// changed returns a copy of b with v, little endian, at offset.
func changed[T uint16 | uint32 | uint64 | [1]byte](b []byte, offset int, v T) []byte {
	var w bytes.Buffer
	_ = binary.Write(&w, binary.LittleEndian, v)
	c := bytes.Clone(b)
	copy(c[offset:], w.Bytes())
	return c
}

// TestDamagedPrograms checks the sentence for each file that is no program.
func TestDamagedPrograms(t *testing.T) {
	good := program(t, "-pie")
	interpreter := []byte("/lib64/ld-linux-x86-64.so.2")
	if !bytes.Contains(good, interpreter) {
		t.Fatal("the program has no interpreter")
	}
	// Offsets are those of elf(5): e_ident[EI_CLASS] 4, e_ident[EI_DATA] 5,
	// e_type 16, e_machine 18, e_phoff 32, e_phentsize 54, e_phnum 56.
	for _, c := range []struct {
		name    string
		content []byte
		mode    os.FileMode
		want    string
	}{
		{"empty", nil, 0o755, "it is neither an ELF program nor a script that begins with #!"},
		{"text", []byte("hello\n"), 0o755, "it is neither an ELF program nor a script that begins with #!"},
		{"zeros", make([]byte, 4096), 0o755, "it is neither an ELF program nor a script that begins with #!"},
		{"noexec", good, 0o644, "permission denied"},
		{"magic", good[:4], 0o755, "the file is truncated: its "},
		{"header", good[:40], 0o755, "the file is truncated: its "},
		{"table", good[:100], 0o755, "the file is truncated: its "},
		{"half", good[:len(good)/3], 0o755, "the file is truncated: its "},
		{"class32", changed(good, 4, [1]byte{1}), 0o755, "it is a 32-bit program"},
		{"i386", changed(changed(good, 4, [1]byte{1}), 18, uint16(3)), 0o755, "it is a 32-bit program"},
		{"arm64", changed(good, 18, uint16(183)), 0o755, "it is built for "},
		{"arm", changed(changed(good, 4, [1]byte{1}), 18, uint16(40)), 0o755, "it is built for "},
		{"bigendian", changed(good, 5, [1]byte{2}), 0o755, "it is built for "},
		{"object", changed(good, 16, uint16(1)), 0o755, "not a program"},
		{"core", changed(good, 16, uint16(4)), 0o755, "not a program"},
		{"tableoffset", changed(good, 32, uint64(1<<63)), 0o755, ""},
		{"entrysize", changed(good, 54, uint16(3)), 0o755, "its ELF headers are damaged: "},
		{"nosegments", changed(good, 56, uint16(0)), 0o755, "its ELF headers are damaged: "},
		{"segments", changed(good, 56, uint16(65535)), 0o755, "its ELF headers are damaged: "},
		{
			"interpreter", bytes.Replace(good, interpreter, []byte("/lib64/ld-linux-missing.so2"), 1), 0o755,
			"its interpreter /lib64/ld-linux-missing.so2 cannot be opened",
		},
		{"script", []byte("#!/no/such/shell\necho x\n"), 0o755, "its interpreter /no/such/shell cannot be opened"},
		{"noname", []byte("#!\necho x\n"), 0o755, "its first line begins with #! but names no interpreter"},
		{"loop", []byte("#!./loop\n"), 0o755, "scripts are the interpreters of scripts too often"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, c.name), c.content, c.mode)
			refused(t, dir, "./"+c.name, c.want)
		})
	}
	t.Run("directory", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, "./folder", "it is a directory")
	})
	t.Run("missing", func(t *testing.T) { refused(t, t.TempDir(), "./missing", "no such file or directory") })
	t.Run("not in PATH", func(t *testing.T) { refused(t, t.TempDir(), "no-such-program", "no such program in the guest's PATH") })
	t.Run("device", func(t *testing.T) { refused(t, t.TempDir(), "/dev/null", "cannot run /dev/null") })
	t.Run("below a file", func(t *testing.T) { refused(t, t.TempDir(), "/bin/true/x", "not a directory") })
}

// refused checks that heddle refuses a file with one sentence.
func refused(t *testing.T, dir, name, want string) {
	t.Helper()
	o := run(t, dir, nil, name)
	line, rest, _ := strings.Cut(o.stderr, "\n")
	if o.status != 125 || o.stdout != "" || rest != "" || !strings.HasPrefix(line, "heddle: cannot run "+name+": ") ||
		!strings.Contains(line, want) {
		t.Errorf("want status 125 and one sentence with %q, got %v", want, o)
	}
}

// TestFlippedBits runs programs of which some bits are not as they were. Such a
// program may do anything that a program may do, but heddle ends, either with
// a sentence or with the program's own end.
func TestFlippedBits(t *testing.T) {
	for _, form := range []string{"-static", "-pie"} {
		good := program(t, form)
		for seed := range testsize.Pick(10, 40, 120) {
			t.Run(fmt.Sprintf("%s/%d", form, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(seed), uint64(len(form))))
				bad := bytes.Clone(good)
				// Half of them in the headers, half anywhere.
				reach := len(bad)
				if seed%2 == 0 {
					reach = 64 + 56*int(binary.LittleEndian.Uint16(bad[56:]))
				}
				for range 1 + r.IntN(4) {
					bad[r.IntN(reach)] ^= 1 << r.IntN(8)
				}
				dir := t.TempDir()
				writeFile(t, filepath.Join(dir, "flipped"), bad, 0o755)
				o := run(t, dir, []string{"--max-instructions", "2000000", "--max-memory", "64M"}, "./flipped")
				if o.status == 125 && (!strings.HasPrefix(o.stderr, "heddle: ") || strings.Count(o.stderr, "\n") != 1) {
					t.Errorf("no sentence: %v", o)
				}
				if o.peak > 400<<20 {
					t.Errorf("heddle took %d MB", o.peak>>20)
				}
			})
		}
	}
}
