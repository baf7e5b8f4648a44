package machine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// streams are the contents of a trace's streams. The code and the memory are left
// out: the ends of a block depend on how the engine reached it, and pages are copied
// after a snapshot.
func streams(t *testing.T, path string) map[string]string {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if bad := r.Check(); len(bad) > 0 {
		t.Fatal(bad)
	}
	all := map[string]string{}
	for _, key := range r.Streams() {
		if key.Kind == trace.Code || key.Kind == trace.Memory || key.Kind == trace.SummaryK {
			continue
		}
		var text bytes.Buffer
		if chunks := r.Chunks(key); chunks[0].Bytes {
			if _, err := io.Copy(&text, r.Bytes(key)); err != nil {
				t.Fatal(err)
			}
		}
		if !r.Chunks(key)[0].Bytes {
			for record, err := range r.Records(key, trace.Where{}) {
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&text, "%x\n", record)
			}
		}
		all[fmt.Sprint(key)] = text.String()
	}
	return all
}

// TestRecordingWithSnapshots: a machine that goes back and forth leaves, for
// readers, the trace of one that did not, and it replays.
func TestRecordingWithSnapshots(t *testing.T) {
	bin := machinetest.Compile(t, machinetest.Racy)
	for how, set := range machinetest.Machines() {
		if testing.Short() && how != "timed" {
			continue
		}
		t.Run(how, func(t *testing.T) {
			c, _ := machinetest.Config(t, bin)
			set(&c)
			plain, path := record(t, c, everythingOf(&c))
			want := streams(t, path)

			f := traceFile(t)
			c.Record = everythingOf(&c)(f)
			again := backAndForth(t, c)
			if again.Digest != plain.Digest {
				t.Fatalf("digest %s, want %s", again.Digest, plain.Digest)
			}
			got := streams(t, path)
			for key, text := range want {
				if got[key] != text {
					t.Errorf("stream %s has %d bytes that differ from %d", key, len(got[key]), len(text))
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d streams, want %d", len(got), len(want))
			}
			if r, _ := replayed(t, path, nil); r.Digest != plain.Digest {
				t.Errorf("replayed: %s: %s", r.Outcome, r.Message)
			}
		})
	}
}

// backAndForth runs a machine, returns to each of its snapshots in turn, runs on
// a little, and at last from a middle one to the end.
func backAndForth(t *testing.T, c machine.Config) *machine.Result {
	t.Helper()
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var snapshots []*machine.Snapshot
	for n := 0; !m.Done() && n < 2000; n++ {
		if n%60 == 50 && len(snapshots) < 6 {
			snapshots = append(snapshots, m.Snapshot())
		}
		m.Step()
	}
	for i := range snapshots {
		m.Restore(snapshots[len(snapshots)-1-i])
		for n := 0; n < 40*i && !m.Done(); n++ {
			m.Step()
		}
	}
	if len(snapshots) > 0 {
		m.Restore(snapshots[len(snapshots)/2])
	}
	r, err := m.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CloseTrace(); err != nil {
		t.Fatal(err)
	}
	for _, s := range snapshots {
		s.Release()
	}
	return r
}

// TestReplayGoesBackToSnapshots: a replay can be stepped and restored as a run
// can.
func TestReplayGoesBackToSnapshots(t *testing.T) {
	c, _ := machinetest.Config(t, machinetest.Compile(t, machinetest.Racy))
	want, path := record(t, c, everything)
	r, err := machine.OpenReplay(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err = r.Config()
	if err != nil {
		t.Fatal(err)
	}
	if got := backAndForth(t, c); got.Digest != want.Digest {
		t.Errorf("digest %s, want %s: %s", got.Digest, want.Digest, got.Message)
	}
}

// rewrite copies a trace with its decisions changed.
func rewrite(t *testing.T, path string, change func([]event.Decision) []event.Decision) string {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var file bytes.Buffer
	w := trace.NewWriter(&file)
	for _, key := range r.Streams() {
		if key.Kind == trace.Decisions {
			var all []event.Decision
			for d, err := range trace.Get[event.Decision](r, key, trace.Where{}) {
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, d)
			}
			s := w.Stream(trace.Decisions, 0)
			for _, d := range change(all) {
				trace.Put(s, &d)
			}
			continue
		}
		if key.Kind == trace.ManifestK || key.Kind == trace.SummaryK {
			for record := range r.Records(key, trace.Where{}) {
				w.Stream(key.Kind, 0).Append(record, event.Stamp{})
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(out, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDivergenceIsReported: a log that is not of the run ends the replay at the
// first decision that differs, with a sentence that names it.
func TestDivergenceIsReported(t *testing.T) {
	c, _ := machinetest.Config(t, machinetest.Compile(t, machinetest.Racy))
	_, path := record(t, c, everything)
	slice := func(list []event.Decision, from int) int {
		return from + slices.IndexFunc(list[from:], func(d event.Decision) bool { return d.Kind == event.DecideQuantum && d.Budget })
	}
	for _, x := range []struct {
		name, says string
		change     func([]event.Decision) []event.Decision
	}{
		{"nothing", "", func(l []event.Decision) []event.Decision { return l }},
		{"thread", "cannot now", func(l []event.Decision) []event.Decision { l[20].Thread = 4711; return l }},
		{"core", "core 77", func(l []event.Decision) []event.Decision { l[20].Cores[0].Core = 77; return l }},
		{"longer", "ran", func(l []event.Decision) []event.Decision { l[slice(l, 10)].Instructions += 100_000_000; return l }},
		{"shorter", "", func(l []event.Decision) []event.Decision {
			i := slice(l, 10)
			l[i].Instructions /= 2
			return l
		}},
		{"check", "system calls, signals or their results differ", func(l []event.Decision) []event.Decision { l[20].Check ^= 1; return l }},
		{"clock", "", func(l []event.Decision) []event.Decision { l[30].Cores[0].Clock += 5_000_000; return l }},
		{"dropped", "", func(l []event.Decision) []event.Decision { return slices.Delete(l, 30, 31) }},
		{"cut", "", func(l []event.Decision) []event.Decision { return l[:30] }},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, _ := replayed(t, rewrite(t, path, x.change), nil)
			switch {
			case x.name == "nothing":
				if r.Outcome != "exit" {
					t.Errorf("%s: %s", r.Outcome, r.Message)
				}
			case x.name == "cut":
				if r.Outcome != "interrupted" || r.Message != "the recording has 30 decisions and no end" {
					t.Errorf("%s: %s", r.Outcome, r.Message)
				}
			case r.Outcome != "diverged" || r.ExitCode != machine.ExitFailure || !bytes.Contains([]byte(r.Message), []byte("the replay is not the recorded run: decision ")) || !bytes.Contains([]byte(r.Message), []byte(x.says)):
				t.Errorf("%s, status %d: %s", r.Outcome, r.ExitCode, r.Message)
			}
		})
	}
}

// TestRecordingOfASecondEnding: a machine that has run to its end and returns to
// a snapshot records its second way there.
func TestRecordingOfASecondEnding(t *testing.T) {
	c, _ := machinetest.Config(t, machinetest.Compile(t, machinetest.Racy))
	plain, path := record(t, c, everything)
	want := streams(t, path)

	f := traceFile(t)
	c.Record = everything(f)
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for range 100 {
		m.Step()
	}
	middle := m.Snapshot()
	defer middle.Release()
	for range 2 {
		r, err := m.Run(context.Background())
		if err != nil || r.Digest != plain.Digest {
			t.Fatalf("digest %s, want %s: %v", r.Digest, plain.Digest, err)
		}
		m.Restore(middle)
	}
	if _, err := m.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := m.CloseTrace(); err != nil {
		t.Fatal(err)
	}
	got := streams(t, path)
	for key, text := range want {
		if got[key] != text {
			t.Errorf("stream %s has %d bytes that differ from %d", key, len(got[key]), len(text))
		}
	}
	if r, _ := replayed(t, path, nil); r.Digest != plain.Digest {
		t.Errorf("replayed: %s: %s", r.Outcome, r.Message)
	}
}

// endsAtFaults ends quanta at page faults twice: before the second time no instruction has been executed.
type endsAtFaults struct {
	machine.NoHook
	times, empty int
}

// EngineStopped implements machine.Hook.
func (e *endsAtFaults) EngineStopped(_ *kernel.Task, stop arch.Stop) machine.Reaction {
	if stop.Reason != arch.StopFault || e.times == 2 {
		e.times = 0
		return machine.Proceed
	}
	if e.times++; stop.Instructions == 0 {
		e.empty++
	}
	return machine.EndQuantum
}

// TestReplayOfEmptyQuanta: a hook may end a quantum before its first instruction, and so does the replay.
func TestReplayOfEmptyQuanta(t *testing.T) {
	bin := machinetest.Compile(t, machinetest.Racy)
	for how, set := range machinetest.Machines() {
		t.Run(how, func(t *testing.T) {
			c, _ := machinetest.Config(t, bin)
			set(&c)
			f := traceFile(t)
			c.Record = everythingOf(&c)(f)
			m, err := machine.New(c)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			e := &endsAtFaults{}
			m.AddHook(e)
			r, err := m.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if err := m.CloseTrace(); err != nil {
				t.Fatal(err)
			}
			if e.empty == 0 {
				t.Fatal("each quantum had an instruction")
			}
			if again, _ := replayed(t, f.Name(), nil); again.Digest != r.Digest {
				t.Errorf("replayed: %s: %s", again.Outcome, again.Message)
			}
		})
	}
}
