package concolicrun_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	sym "github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Marks make symbols of memory and are reported; natively the program behaves the same. A
// load can be a symbol of its own, whatever memory holds.
func TestMarks(t *testing.T) {
	bin := gcctest.File(t, "testdata/marked.c", "-no-pie", "-I../../guest/programs/suite/common")
	native, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []sym.MarkKind
	f := runWith(t, func(r *concolicrun.Recording) {
		r.Executor.OnMark = func(m *sym.Mark) {
			if kinds = append(kinds, m.Kind); m.Kind == sym.MarkRange && m.Args != [3]uint64{1, 1, 9} {
				t.Errorf("%+v", m)
			}
		}
		r.Executor.FreshSymbol = func(a *sym.Access, _ arch.ThreadID) string {
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
	// The smallest of four numbers is one expression, whether compiled to branches or not.
	got := texts(f.constraints)
	if !slices.Contains(got, "read = 7") || !strings.Contains(strings.Join(got, "\n"), "input#1000.1[0]") {
		t.Errorf("%q", got)
	}
}
