package hybrid_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// long is a schedule file that is read by parts.
func long(t *testing.T) string {
	t.Helper()
	f := &hybrid.File{Kind: "hybrid", Model: "sc", Schedule: &event.Schedule{Threads: []string{"1", "1.1"}}}
	for i := range 5000 {
		n := uint64(i)
		c := event.Constraint{
			First:  event.Point{PC: 0x401000 + arch.Addr(n%7), Branches: n, Instructions: 10 * n, Occurrence: 1 + n, Span: 1, Ends: i%50 == 0},
			Second: event.Point{Thread: 1, PC: 0x7ffff7e66059, Branches: n * n, Instructions: 10 * n * n, Occurrence: 1 + n, Span: 1 + n%2},
		}
		f.Schedule.Constraints = append(f.Schedule.Constraints, c)
		f.Notes = append(f.Notes, []string{"", "a.c:1 -> a b.c:2"}[i%2])
	}
	return text(t, f)
}

func text(t *testing.T, f *hybrid.File) string {
	t.Helper()
	var b strings.Builder
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sealed gives a text without its last line the right one.
func sealed(body string) string { return body + fmt.Sprintf("end %016x\n", xxh3.HashString(body)) }

// A file that is read in parts has the content that was written, and the same as if it is read line
// by line.
func TestLongFileIsReadAsWritten(t *testing.T) {
	want := long(t)
	f, err := hybrid.Parse(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, f); got != want {
		t.Error("the file is not what was written")
	}
	body := want[:strings.LastIndex(want, "end ")]
	other, err := hybrid.Parse(sealed(body + "stuck\n"))
	if err != nil || !other.Schedule.Stuck {
		t.Fatalf("a line behind the constraints: %v", err)
	}
	other.Schedule.Stuck = false
	if got := text(t, other); got != want {
		t.Error("line by line something else is read")
	}
}

// A line that cannot be is named, wherever it is.
func TestLongFileNamesTheLine(t *testing.T) {
	lines := strings.SplitAfter(long(t), "\n")
	lines = lines[:len(lines)-2]
	for _, i := range []int{20, len(lines) / 2, len(lines) - 1} {
		for _, wrong := range []string{"constraint 0 0 x", "constraint", "constraint 0 0 401000 1 1 1 1 -> 1 0 401000 1 1 1", "constrain "} {
			bad := strings.Join(lines[:i], "") + wrong + "\n" + strings.Join(lines[i+1:], "")
			var at *hybrid.SyntaxError
			if _, err := hybrid.Parse(sealed(bad)); !errors.As(err, &at) || at.Line != i+1 {
				t.Errorf("line %d is %q: %v", i+1, wrong, err)
			}
		}
	}
}
