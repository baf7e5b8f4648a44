package export_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/export"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// recordStores records a program of the suite under a memory model.
func recordStores(t *testing.T, o storebuffer.Options) (r *trace.Reader, path string) {
	t.Helper()
	p, err := suite.Find("peterson")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := p.Build(suite.Variant{Form: suite.Fixed, Optimize: 2, Static: true})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "trace")
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Memory = []string{bin, "-r", "50"}, "/", o
	c.Sched = sched.Options{Policy: sched.Random, Quantum: 20}
	c.Record = &machine.Record{To: to}
	if r, err := machine.Run(context.Background(), c); err != nil || r.ExitCode != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err = trace.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, path
}

// TestStoresThatWait: each store that other threads saw late is a slice on a track
// of its core, and none where stores do not wait.
func TestStoresThatWait(t *testing.T) {
	for _, c := range []struct {
		o    storebuffer.Options
		some bool
	}{
		{storebuffer.Options{Model: "sc"}, false},
		{storebuffer.Options{Model: "tso", Commit: "eager"}, false},
		{storebuffer.Options{Model: "tso"}, true},
		{storebuffer.Options{Model: "pso", Commit: "lazy"}, true},
	} {
		r, _ := recordStores(t, c.o)
		var out bytes.Buffer
		if errs := export.Perfetto(&out, r, 2000); len(errs) > 0 {
			t.Fatal(errs)
		}
		tracks, _ := check(t, out.Bytes())
		want := map[string]int{}
		for d, err := range trace.Get[event.Delay](r, trace.Key{Kind: trace.Delays}, trace.Where{}) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Size == 0 || d.Size > 8 || d.Thread < 1000 {
				t.Fatalf("%+v", d)
			}
			want[fmt.Sprintf("%d %#x %#x", d.Thread, uint64(d.Addr), d.Value)]++
		}
		got := map[string]int{}
		for at, list := range tracks {
			for _, e := range list {
				if e.Cat != "store" {
					continue
				}
				if at.pid != 1 || at.tid < 1024 {
					t.Fatalf("a store on track %v", at)
				}
				got[fmt.Sprintf("%v %v %v", e.Args["thread"], e.Args["address"], e.Args["value"])]++
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || (len(want) > 0) != c.some {
			t.Errorf("%+v: slices of stores\n%v\nwant\n%v", c.o, got, want)
		}
		if named := strings.Contains(out.String(), `"name":"core 0: stores that wait"`); named != c.some {
			t.Errorf("%+v: a track of stores: %v", c.o, named)
		}
	}
}

// TestReplayHasTheSameDelays: a replay records the same delays.
func TestReplayHasTheSameDelays(t *testing.T) {
	_, recorded := recordStores(t, storebuffer.Options{Model: "pso"})
	source, err := machine.OpenReplay(recorded)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	c, err := source.Config()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "again")
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	c.Record = &machine.Record{To: to}
	if result, err := machine.Run(context.Background(), c); err != nil || result.ExitCode != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	want, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the trace of the replay differs (%v)", err)
	}
}
