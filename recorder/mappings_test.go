package recorder_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// TestMappings: the mappings in the trace equal those that the processes read in
// /proc/self/maps, proc(5), also after exec and fork.
func TestMappings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out bytes.Buffer
	c := machine.DefaultConfig()
	c.Args = []string{"/bin/sh", "-c", "/bin/cat /proc/self/maps"}
	c.Stdout, c.Record = &out, &machine.Record{To: f}
	if r, err := machine.Run(t.Context(), c); err != nil || r.ExitCode != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	in, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var at []event.Mapping
	for e, err := range trace.Get[event.Mapping](in, trace.Key{Kind: trace.Mappings}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, e)
	}
	process := at[len(at)-1].Process
	lines := 0
	for line := range strings.Lines(out.String()) {
		var start, end, offset uint64
		var perms, dev, name string
		var inode uint64
		if n, _ := fmt.Sscanf(line, "%x-%x %s %x %s %d %s", &start, &end, &perms, &offset, &dev, &inode, &name); n < 7 || name[0] == '[' {
			continue
		}
		lines++
		// The latest that has the address.
		i := len(at) - 1
		for ; i >= 0; i-- {
			if m := &at[i]; m.Process == process && uint64(m.Addr) <= start && start < uint64(m.Addr)+m.Size {
				break
			}
		}
		if i < 0 || at[i].Name != name || at[i].Offset+start-uint64(at[i].Addr) != offset {
			t.Errorf("%q is not in the trace, nearest %+v", line, at[max(i, 0)])
		}
	}
	if lines < 10 || !slices.ContainsFunc(at, func(m event.Mapping) bool { return strings.HasSuffix(m.Name, "/dash") }) {
		t.Errorf("%d lines, %+v", lines, at)
	}
}
