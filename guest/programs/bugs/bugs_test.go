package bugs

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os/exec"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

func programs(t *testing.T) []Program {
	t.Helper()
	list, err := All()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEverySourceIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, p := range programs(t) {
		if p.Fails == "" {
			t.Errorf("%s has no description of its failing schedules", p.Name)
		}
		listed["source/"+cmp.Or(p.Source, p.Name)+".c"] = true
	}
	sources, err := fs.Glob(files, "source/*.c")
	if err != nil || len(sources) != len(listed) {
		t.Errorf("%d sources, %d programs (%v)", len(sources), len(listed), err)
	}
	for _, name := range sources {
		if !listed[name] {
			t.Errorf("%s is not in bugs.yaml", name)
		}
	}
}

// The fixed form succeeds natively and under heddle's policies.
func TestFixedFormsSucceed(t *testing.T) {
	for _, p := range programs(t) {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			bin := build(t, p, false)
			for range testsize.Runs(2, 5, 200) {
				if out, err := exec.Command(bin).CombinedOutput(); err != nil {
					t.Fatalf("natively: %v: %s", err, out)
				}
			}
			for seed := range uint64(testsize.Runs(2, 6, 100)) {
				if got := runOnce(t, bin, seed); got != "exit 0" {
					t.Errorf("seed %d: %s", seed, got)
				}
			}
		})
	}
}

func build(t *testing.T, p Program, buggy bool) string {
	t.Helper()
	bin, err := p.Build(buggy, "-static")
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// runOnce runs a program with short quanta and describes how it ended.
func runOnce(t *testing.T, bin string, seed uint64) string {
	t.Helper()
	c := machine.DefaultConfig()
	c.Args, c.Cores, c.Seed = []string{bin}, 4, seed
	c.Sched = sched.Options{Policy: sched.Random, Granularity: sched.Instruction, Quantum: 20}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	r, err := machine.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case r.Signal != 0:
		return fmt.Sprint("signal ", r.Signal)
	case string(r.Outcome) == "deadlock":
		return "deadlock"
	}
	return fmt.Sprint("exit ", r.ExitCode)
}
