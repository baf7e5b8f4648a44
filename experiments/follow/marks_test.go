package follow_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	sym "github.com/heddle-dmt/heddle/analyses/symbolic/exec"
	"github.com/heddle-dmt/heddle/experiments/follow"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Marks make symbols of memory and are told of; natively the program is the same.
// A load can be a symbol of its own, whatever memory has.
func TestMarks(t *testing.T) {
	bin := gcctest.File(t, "testdata/marked.c", "-no-pie", "-I../../guest/programs/common")
	native, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []sym.MarkKind
	f := runWith(t, func(r *follow.Recording) {
		r.Executor.Marked = func(m *sym.Mark) {
			if kinds = append(kinds, m.Kind); m.Kind == sym.MarkRange && m.Args != [3]uint64{1, 1, 9} {
				t.Errorf("%+v", m)
			}
		}
		r.Executor.Fresh = func(a *sym.Access, _ event.ThreadID) string {
			if inside := a.PC >= 0x401000 && a.PC < 0x402000; inside && a.Size == 4 && a.Value[0] == 7 {
				return "read"
			}
			return ""
		}
	}, func(*event.Input) bool { return false }, nil, sym.DefaultSummaries(), bin)
	if f.output != string(native) {
		t.Errorf("%q, natively %q", f.output, native)
	}
	if want := []sym.MarkKind{sym.MarkBegin, sym.MarkInput, sym.MarkRange, sym.MarkEnd}; !slices.Equal(kinds, want) {
		t.Errorf("marks %v, want %v", kinds, want)
	}
	// The smallest of four numbers is one expression, however it is compiled.
	got := texts(f.constraints)
	if !slices.Contains(got, "read = 7") || !strings.Contains(strings.Join(got, "\n"), "input#1000.1[0]") {
		t.Errorf("%q", got)
	}
}
