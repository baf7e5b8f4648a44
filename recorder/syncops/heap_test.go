package syncops_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// calls are the completed calls of allocators in a trace, one line each.
func calls(t *testing.T, path string) []string {
	t.Helper()
	in, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	under := map[arch.ThreadID]event.Heap{}
	var lines []string
	for e, err := range trace.Get[event.Heap](in, trace.Key{Kind: trace.Heap}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		before, within := under[e.Thread]
		if within != (e.Phase != event.Enter) || within && (before.Op != e.Op || before.Old != e.Old || before.Size != e.Size) {
			t.Fatalf("%+v follows %+v", e, before)
		}
		if e.Phase == event.Enter {
			under[e.Thread] = e
			continue
		}
		delete(under, e.Thread)
		lines = append(lines, fmt.Sprintf("%v %#x %d %#x", e.Op, uint64(e.Old), e.Size, uint64(e.Addr)))
	}
	return lines
}

// TestHeap: the calls equal the program's own log of them, statically and
// dynamically linked, and the run is the same with and without.
func TestHeap(t *testing.T) {
	for _, flags := range [][]string{nil, {"-static"}, {"-O0", "-no-pie"}} {
		bin := build(t, "heap.c", flags...)
		c := config(bin)
		before, _ := plain(t, c)
		path := filepath.Join(t.TempDir(), "trace")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		c.Record = &machine.Record{To: f, Sync: &machine.SyncRecord{Heap: true}}
		r, out := plain(t, c)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if r.Digest != before.Digest {
			t.Errorf("%v: recording changes the run", flags)
		}
		_, said, _ := strings.Cut(out, "begin\n")
		said, _, _ = strings.Cut(said, "end\n")
		got := calls(t, path)
		rest := got
		for line := range strings.Lines(said) {
			// The C library has calls of its own between, as when a thread ends.
			at := slices.Index(rest, strings.TrimSpace(line))
			if at < 0 {
				t.Fatalf("%v: no %q in its place in\n%s", flags, line, strings.Join(got, "\n"))
			}
			rest = rest[at+1:]
		}
		if len(rest) > 0 || strings.Count(said, "\n") != 36 {
			t.Errorf("%v: the program said\n%s\nthe trace has besides %q", flags, said, rest)
		}
	}
}
