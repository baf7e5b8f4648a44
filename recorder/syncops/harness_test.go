package syncops_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// build compiles a program of testdata.
func build(t testing.TB, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	compiler := "gcc"
	if filepath.Ext(source) == ".cc" {
		compiler = "g++"
	}
	args := append([]string{"-O1", "-pthread", "-o", out, filepath.Join("testdata", source)}, flags...)
	if text, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", compiler, args, err, text)
	}
	return out
}

func tool(t testing.TB, name string, args ...string) {
	t.Helper()
	if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, text)
	}
}

func config(args ...string) machine.Config {
	c := machine.DefaultConfig()
	c.Args, c.Dir = args, filepath.Dir(args[0])
	return c
}

// recording is the result of a run.
type recording struct {
	result  *machine.Result
	out     string
	syncs   []event.Sync
	threads map[arch.ThreadID]string
	objects map[event.ObjectID]event.Object
}

// plain runs a program without recording.
func plain(t testing.TB, c machine.Config) (*machine.Result, string) {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	r, err := machine.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r, out.String()
}

// record runs a program with its sync operations recorded, and without; that
// must be the same run.
func record(t testing.TB, c machine.Config, mode machine.SyncRecord) *recording {
	t.Helper()
	before, out := plain(t, c)
	f, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.Record = &machine.Record{To: f, Sync: &mode}
	r := &recording{threads: map[arch.ThreadID]string{}, objects: map[event.ObjectID]event.Object{}}
	r.result, r.out = plain(t, c)
	if r.result.Digest != before.Digest || r.result.Cycles != before.Cycles || r.out != out {
		t.Errorf("recorded: digest %s, %d cycles; not recorded: %s, %d", r.result.Digest, r.result.Cycles, before.Digest, before.Cycles)
	}
	r.read(t, f.Name())
	r.sound(t)
	return r
}

func (r *recording) read(t testing.TB, path string) {
	t.Helper()
	in, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for e, err := range trace.Get[event.Sync](in, trace.Key{Kind: trace.Sync}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		r.syncs = append(r.syncs, e)
	}
	for e, err := range trace.Get[event.Start](in, trace.Key{Kind: trace.Threads}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		r.threads[e.Thread] = e.Name
	}
	for e, err := range trace.Get[event.Object](in, trace.Key{Kind: trace.Objects}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		r.objects[e.ID] = e
	}
}

// nested checks that in each thread begins and ends are paired.
func (r *recording) nested(t testing.TB) {
	t.Helper()
	open := map[arch.ThreadID][]event.SyncOp{}
	for i, e := range r.syncs {
		stack := open[e.Thread]
		switch e.Phase {
		case event.Enter:
			open[e.Thread] = append(stack, e.Op)
		case event.Return, event.Unwound:
			if len(stack) == 0 || stack[len(stack)-1] != e.Op {
				t.Fatalf("event %d: thread %s ends %v, but is in %v", i, r.threads[e.Thread], e.Op, stack)
			}
			open[e.Thread] = stack[:len(stack)-1]
		}
	}
}
