package machine_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// controlled is a program with mutexes, conditions, barriers, a once routine,
// semaphores, system calls that wait and threads that come and go, in which
// everything depends on everything; it prints a sum that no order changes.
var controlled = source("../../experiments/peregrine/testdata/sync.c")

// source reads the text of a program.
func source(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestFirstComeFirstServed: the program runs to its end with its operations one
// at a time, the same way each time, and its recording can be repeated.
func TestFirstComeFirstServed(t *testing.T) {
	bin := machinetest.Compile(t, controlled)
	for _, cores := range []int{1, 4} {
		t.Run(fmt.Sprint(cores), func(t *testing.T) {
			c, out := machinetest.Config(t, bin)
			c.Cores, c.Seed = cores, 5
			c.Control = dmt.Control{Policy: dmt.FCFS}
			first := machinetest.Run(t, c)
			if first.Outcome != "exit" || out.String() != "210 1\n" {
				t.Fatalf("%s: %s%s", first.Outcome, first.Message, out)
			}
			file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			c.Record = &machine.Record{To: file, Sync: &machine.SyncRecord{}, Inputs: true}
			if again := machinetest.Run(t, c); again.Digest != first.Digest {
				t.Errorf("recorded: %s, not %s", again.Digest, first.Digest)
			}
			r, err := machine.OpenReplay(file.Name())
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			c, err = r.Config()
			if err != nil {
				t.Fatal(err)
			}
			c.Stdout, c.Stderr = io.Discard, io.Discard
			if again := machinetest.Run(t, c); again.Digest != first.Digest || again.Message != "" {
				t.Errorf("replayed: %s (%s), not %s", again.Digest, again.Message, first.Digest)
			}
		})
	}
}

// A machine that is controlled continues from a snapshot as it did the first time.
func TestSnapshotOfControlledRun(t *testing.T) {
	c, _ := machinetest.Config(t, machinetest.Compile(t, controlled))
	c.Control = dmt.Control{Policy: dmt.FCFS}
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for range 100 {
		m.Step()
	}
	if m.Done() {
		t.Fatal("the run is over")
	}
	s := m.Snapshot()
	defer s.Release()
	first, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := first.Digest
	m.Restore(s)
	if again, err := m.Run(t.Context()); err != nil || again.Digest != want || again.Outcome != "exit" {
		t.Errorf("%v: %+v", err, again)
	}
}
