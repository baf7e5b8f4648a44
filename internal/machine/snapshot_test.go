package machine_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/guest/programs/conformance"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/sched"
)

func TestSnapshotsRepeatTheRun(t *testing.T) {
	c, out := machinetest.Config(t, machinetest.Compile(t, machinetest.Racy))
	checkSnapshots(t, c, out, 40)
}

// TestSnapshotsOfVectorRegisters: snapshots have the upper halves of the YMM registers, which the program
// checks.
func TestSnapshotsOfVectorRegisters(t *testing.T) {
	if p := engines.Check(engines.Auto, arch.V3); p != nil {
		t.Skipf("%s: %s", p.Found, p.Allowed)
	}
	for _, p := range conformance.Programs() {
		if p.Name != "x86_avx_threads" {
			continue
		}
		bin, err := p.Build(true)
		if err != nil {
			t.Fatal(err)
		}
		c, out := machinetest.Config(t, bin)
		c.Engine, c.CPU = engines.Auto, p.CPU
		c.Sched = sched.Options{Policy: sched.Random, Quantum: 300}
		checkSnapshots(t, c, out, 500)
	}
}

// checkSnapshots takes a snapshot after each so many steps, and repeats the run from some.
func checkSnapshots(t *testing.T, c machine.Config, out *bytes.Buffer, spacing int) {
	t.Helper()
	whole := machinetest.Run(t, c)
	if whole.ExitCode != 0 {
		t.Fatalf("exit %d: %s", whole.ExitCode, whole.Message)
	}
	want := out.String()

	out.Reset()
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var snapshots []*machine.Snapshot
	var before []string
	for n := 0; !m.Done(); n++ {
		if n%spacing == 0 {
			snapshots = append(snapshots, m.Snapshot())
			before = append(before, out.String())
		}
		m.Step()
	}
	if len(snapshots) < 5 {
		t.Fatalf("only %d snapshots", len(snapshots))
	}
	// Back to each, in another order than they were taken, and some twice.
	for _, i := range []int{len(snapshots) - 1, 0, len(snapshots) / 2, 1, 0} {
		m.Restore(snapshots[i])
		out.Reset()
		out.WriteString(before[i])
		r, err := m.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if r.Digest != whole.Digest || out.String() != want {
			t.Errorf("from snapshot %d: digest %s, output %q; want %s, %q", i, r.Digest, out.String(), whole.Digest, want)
		}
	}
	for _, s := range snapshots {
		s.Release()
	}
}

func TestSeedsChooseTheRun(t *testing.T) {
	bin := machinetest.Compile(t, machinetest.Racy)
	schedules := map[string]bool{}
	for seed := range uint64(30) {
		c, _ := machinetest.Config(t, bin)
		c.Seed = seed
		first, second := machinetest.Run(t, c), machinetest.Run(t, c)
		if first.Digest != second.Digest {
			t.Errorf("seed %d: digests %s and %s", seed, first.Digest, second.Digest)
		}
		schedules[first.ScheduleDigest] = true
	}
	if len(schedules) < 25 {
		t.Errorf("30 seeds give %d schedules", len(schedules))
	}
}
