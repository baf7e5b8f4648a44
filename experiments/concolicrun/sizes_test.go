package concolicrun_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	sym "github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// A program that reads blocks of a file up to its end, as pbzip2 does, yields constraints
// on the file's size, named by the argument; Check compares each expression with the
// machine's value.
func TestSizes(t *testing.T) {
	bin := gcctest.File(t, "testdata/blocks.c", "-no-pie")
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.WriteFile(data, bytes.Repeat([]byte("x"), 2500), 0o600); err != nil {
		t.Fatal(err)
	}
	c := machine.DefaultConfig()
	var out bytes.Buffer
	c.Args, c.Dir, c.Stdout, c.Stdin = []string{bin, "data"}, dir, &out, bytes.NewReader(nil)
	c.Mounts = append(c.Mounts, machine.Mount{Host: dir, Guest: dir})
	r := concolicrun.New(concolicrun.Options{
		Args: c.Args, Env: c.Env, Dir: dir, Check: true, Summaries: sym.DefaultSummaries(),
		Choose: func(e *event.Input) bool { return e.Name == data },
	})
	defer r.Close()
	var terms []*symbolic.Expr
	r.Executor.OnConstraint = func(k *sym.Constraint) { terms = append(terms, k.Expr) }
	c.Record = &machine.Record{To: io.Discard}
	if _, err := machine.Run(context.Background(), c, machine.WithRecordings(r)); err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	if out.String() != "2500 3 2500 2500\n" {
		t.Fatalf("output %q", out.String())
	}
	set := preconditions.Set{Terms: preconditions.Simplify(r.Executor.Pool, terms, r.Executor.Recorded, preconditions.Limits{Steps: preconditions.DefaultLimit})}
	// Three blocks; the program asks for at most 5000 bytes, and for 10.
	const want = "2048 < size(argv[1]) ∧ size(argv[1]) < 3073"
	if set.String() != want {
		t.Errorf("%s\nwant %s", &set, want)
	}
}
