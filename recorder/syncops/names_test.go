package syncops_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched"
)

// histories are the operations of each thread, by names alone, without the C
// library's own.
func (r *recording) histories() map[string][]string {
	all := map[string][]string{}
	for _, e := range r.syncs {
		if e.Effects&event.Inner != 0 {
			continue
		}
		name := r.threads[e.Thread]
		all[name] = append(all[name], fmt.Sprint(e.Op, " ", e.Phase, " ", r.objects[e.Object].Name, " ", r.objects[e.Second].Name))
	}
	return all
}

// TestNamesDoNotDependOnTheInterleaving: threads that do the same in each run do
// it to objects of the same names, and are called the same.
func TestNamesDoNotDependOnTheInterleaving(t *testing.T) {
	bin := build(t, "all.c")
	var want map[string][]string
	schedules := map[string]bool{}
	for i, policy := range sched.PolicyNames() {
		c := config(bin)
		c.Cores, c.Seed, c.Sched.Policy = 1+i, uint64(11*i), policy
		c.RandomizeLayout = i%2 == 1
		r := record(t, c, machine.SyncRecord{})
		schedules[r.result.ScheduleDigest] = true
		got := r.histories()
		if want == nil {
			want = got
		}
		if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
			t.Fatalf("policy %s: threads %v, want %v", policy, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		for name, list := range got {
			if a, b := strings.Join(list, "\n"), strings.Join(want[name], "\n"); a != b {
				t.Errorf("policy %s, thread %s: %s", policy, name, firstDifference(a, b))
			}
		}
	}
	if len(schedules) < 2 {
		t.Error("all runs had one schedule")
	}
}

// TestReturnToASnapshot: the recording after a return to a snapshot equals
// one without.
func TestReturnToASnapshot(t *testing.T) {
	bin := build(t, "all.c")
	c := config(bin)
	c.Seed = 5
	want := record(t, c, machine.SyncRecord{Atomics: true})
	f, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.Record = &machine.Record{To: f, Sync: &machine.SyncRecord{Atomics: true}}
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for n := 0; n < 40; n++ {
		m.Step()
	}
	s := m.Snapshot()
	defer s.Release()
	for n := 0; n < 60 && !m.Done(); n++ {
		m.Step()
	}
	m.Restore(s)
	if _, err := m.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := m.CloseTrace(); err != nil {
		t.Fatal(err)
	}
	got := &recording{threads: map[arch.ThreadID]string{}, objects: map[event.ObjectID]event.Object{}}
	got.read(t, f.Name())
	if a, b := got.text(), want.text(); a != b {
		t.Error(firstDifference(a, b))
	}
}

// text is all that was recorded, a line each.
func (r *recording) text() string {
	var b strings.Builder
	for _, e := range r.syncs {
		fmt.Fprintf(&b, "%+v\n", e)
	}
	return b.String()
}

// TestThreadsThatExecute: the names of three processes' operations, each process in three
// programs one after the other, of which threads execute the next.
func TestThreadsThatExecute(t *testing.T) {
	bin := build(t, "execs.c")
	for seed := uint64(1); seed <= 4; seed++ {
		c := config(bin, "2")
		c.Seed = seed
		r := record(t, c, machine.SyncRecord{})
		got := map[string]int{}
		for _, e := range r.syncs {
			if e.Op == event.OpMutexLock && e.Phase == event.Enter && e.Effects&event.Inner == 0 {
				name, _, _ := strings.Cut(r.objects[e.Object].Name, "+")
				got[r.threads[e.Thread]+" locks "+name]++
			}
		}
		for _, first := range []string{"1", "1.1", "1.2"} {
			maker := first + ".1"
			if first == "1" {
				maker = "1.3" // after two processes
			}
			last := maker + ".1"
			for _, want := range []string{
				maker + " locks " + first + ":execs", last + " locks " + maker + "!1:execs", last + " locks " + last + "!1:execs",
			} {
				if got[want] != 1 {
					t.Errorf("seed %d: not once: %s; got %v", seed, want, got)
				}
				delete(got, want)
			}
		}
		if len(got) > 0 {
			t.Errorf("seed %d: %v", seed, got)
		}
		r.nested(t)
	}
}
