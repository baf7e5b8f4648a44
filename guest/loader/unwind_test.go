package loader

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// snapshot is the output of testdata/backtrace.c.
type snapshot struct {
	regs   arch.Regs
	frames []uint64
}

// rebuild makes as look like the process that printed text.
func rebuild(t *testing.T, as *mm.AddressSpace, text []byte) (s snapshot) {
	t.Helper()
	files := &opener{ram: as.RAM()}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "reg":
			g := &s.regs.GPR
			scan(t, rest, "%x %x %x %x %x %x %x %x", &g[arch.RSP], &g[arch.RBP], &g[arch.RBX],
				&g[arch.R12], &g[arch.R13], &g[arch.R14], &g[arch.R15], &s.regs.RIP)
		case "frame":
			var pc uint64
			scan(t, rest, "%x", &pc)
			s.frames = append(s.frames, pc)
		case "map":
			mapLine(t, as, files, rest)
		case "stack":
			var at arch.Addr
			var content string
			scan(t, rest, "%x %s", &at, &content)
			b, err := hex.DecodeString(content)
			if err != nil {
				t.Fatal(err)
			}
			if errno := as.CopyOut(at, b); errno != 0 {
				t.Fatalf("stack at %#x: %v", at, errno)
			}
		}
	}
	return s
}

func scan(t *testing.T, text, format string, to ...any) {
	t.Helper()
	if _, err := fmt.Sscanf(text, format, to...); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

// mapLine maps memory as a line of /proc/self/maps says: files as they are, zeros
// for the rest.
func mapLine(t *testing.T, as *mm.AddressSpace, files *opener, line string) {
	var start, end arch.Addr
	var offset uint64
	var perms string
	scan(t, line, "%x-%x %s %x", &start, &end, &perms, &offset)
	if start >= mm.TaskSize {
		return
	}
	r := mm.MapRequest{
		Addr: start, Length: uint64(end - start), Prot: unix.PROT_READ | unix.PROT_WRITE,
		Flags: unix.MAP_PRIVATE | unix.MAP_FIXED, Offset: offset, Readable: true,
	}
	if i := strings.Index(line, "/"); i >= 0 {
		f, errno := files.OpenExec(line[i:])
		if errno != 0 {
			t.Fatalf("%s: %v", line[i:], errno)
		}
		defer f.Close()
		r.Object, r.File = f.Object(), f.MapFile()
	} else {
		r.Flags |= unix.MAP_ANONYMOUS
	}
	if _, errno := as.Mmap(r); errno != 0 {
		t.Fatalf("%s: %v", line, errno)
	}
}

// TestStackAgreesWithBacktrace unwinds the stack of a native process, through a
// signal handler, the C library and frames of variable size, and expects what
// the process itself found with backtrace(3).
func TestStackAgreesWithBacktrace(t *testing.T) {
	for _, flags := range [][]string{
		{"-O2"}, {"-O0"}, {"-O2", "-static"}, {"-O2", "-fno-omit-frame-pointer", "-no-pie"},
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			program := gcctest.C(t, string(readFile(t, "testdata/backtrace.c")), flags...)
			text, err := exec.Command(program).Output()
			if err != nil {
				t.Fatal(err)
			}
			as := newSpace(t)
			s := rebuild(t, as, text)
			frames := NewUnwinder().Stack(as, s.regs, 64)
			var got, want strings.Builder
			for _, pc := range s.frames[1:] { // the innermost is at another instruction of dump
				fmt.Fprintf(&want, "%x\n", pc)
			}
			for _, f := range frames[1:] {
				fmt.Fprintf(&got, "%x\n", f.PC)
			}
			if got.String() != want.String() {
				t.Errorf("found\n%swant\n%s", got.String(), want.String())
			}
			for _, name := range []string{"dump", "raise", "raiser", "compare", "main"} {
				if !named(frames, name) {
					t.Errorf("no frame is in %s: %v", name, frames)
				}
			}
		})
	}
}

func named(frames []Frame, name string) bool {
	for _, f := range frames {
		if f.Function == name {
			return true
		}
	}
	return false
}
