package export_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/export"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// locks has two threads that lock and signal, in two processes.
const locks = `
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn;
static void *play(void *arg) {
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&mu);
		while (turn != (long)arg) pthread_cond_wait(&cond, &mu);
		turn = !turn;
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&mu);
	}
	return 0;
}
int main(void) {
	pthread_t t[2];
	if (fork() == 0) { usleep(10); _exit(3); }
	for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, play, (void *)i);
	for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
	wait(0);
	puts("played");
	return 0;
}`

// record runs the program and returns its trace.
func record(t *testing.T) *trace.Reader {
	t.Helper()
	dir := t.TempDir()
	bin, path := gcctest.C(t, locks), filepath.Join(dir, "trace")
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	c := machine.DefaultConfig()
	c.Args, c.Dir = []string{bin}, dir
	c.Record = &machine.Record{To: to, Sync: &machine.SyncRecord{Atomics: true}}
	if r, err := machine.Run(context.Background(), c); err != nil || r.ExitCode != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// entry is an object of the Chrome Trace Event Format; the field names are those
// of its document.
type entry struct {
	Name *string        `json:"name"`
	Cat  string         `json:"cat"`
	Ph   string         `json:"ph"`
	TS   *float64       `json:"ts"`
	Dur  *float64       `json:"dur"`
	PID  *int           `json:"pid"`
	TID  *int           `json:"tid"`
	ID   *int           `json:"id"`
	BP   string         `json:"bp"`
	S    string         `json:"s"`
	Args map[string]any `json:"args"`
}

type place struct{ pid, tid int }

// check judges a file by the document "Trace Event Format": the fields that each phase must
// have, that slices of one track nest, and that each flow has a begin and an end
// in slices, in the order of time. It returns slices and flows.
func check(t *testing.T, file []byte) (slices_ map[place][]entry, flows int) {
	t.Helper()
	var doc struct {
		TraceEvents     []entry `json:"traceEvents"`
		DisplayTimeUnit string  `json:"displayTimeUnit"`
	}
	decoder := json.NewDecoder(bytes.NewReader(file))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if doc.DisplayTimeUnit != "ns" && doc.DisplayTimeUnit != "ms" {
		t.Errorf("displayTimeUnit %q", doc.DisplayTimeUnit)
	}
	all := map[place][]entry{}
	starts, ends := map[int]entry{}, map[int]entry{}
	for _, e := range doc.TraceEvents {
		if e.Name == nil || e.PID == nil || e.TID == nil || e.TS == nil {
			t.Fatalf("an event lacks name, pid, tid or ts: %+v", e)
		}
		at := place{*e.PID, *e.TID}
		switch e.Ph {
		case "X":
			if e.Dur == nil || *e.Dur <= 0 {
				t.Fatalf("a slice without duration: %+v", e)
			}
			all[at] = append(all[at], e)
		case "M":
			if !slices.Contains([]string{"process_name", "thread_name", "process_sort_index"}, *e.Name) || e.Args == nil {
				t.Fatalf("metadata %s", *e.Name)
			}
		case "i":
			if e.S != "t" {
				t.Fatalf("an instant of scope %q", e.S)
			}
		case "s":
			starts[*e.ID] = e
		case "f":
			if e.BP != "e" {
				t.Fatalf("a flow that ends binds to %q", e.BP)
			}
			ends[*e.ID] = e
		default:
			t.Fatalf("phase %q", e.Ph)
		}
	}
	nest(t, all)
	for id, s := range starts {
		f, ok := ends[id]
		if !ok || *f.TS < *s.TS || f.Cat != s.Cat || *f.Name != *s.Name {
			t.Fatalf("flow %d from %+v to %+v", id, s, f)
		}
		for _, end := range []entry{s, f} {
			if !within(all[place{*end.PID, *end.TID}], *end.TS) {
				t.Fatalf("flow %d: no slice at %v of %d/%d", id, *end.TS, *end.PID, *end.TID)
			}
		}
	}
	if len(ends) != len(starts) {
		t.Fatalf("%d flows begin, %d end", len(starts), len(ends))
	}
	return all, len(starts)
}

// nanos is a time in whole nanoseconds, as the UI keeps it.
func nanos(micros float64) int64 { return int64(math.Round(micros * 1000)) }

func end(e entry) int64 { return nanos(*e.TS) + nanos(*e.Dur) }

func nest(t *testing.T, all map[place][]entry) {
	t.Helper()
	for at, list := range all {
		slices.SortStableFunc(list, func(a, b entry) int {
			return cmp.Or(cmp.Compare(nanos(*a.TS), nanos(*b.TS)), -cmp.Compare(end(a), end(b)))
		})
		var open []entry
		for _, e := range list {
			for len(open) > 0 && end(open[len(open)-1]) <= nanos(*e.TS) {
				open = open[:len(open)-1]
			}
			if n := len(open); n > 0 && end(e) > end(open[n-1]) {
				t.Fatalf("track %v: %s at %v for %v sticks out of %s at %v for %v", at, *e.Name, *e.TS, *e.Dur,
					*open[n-1].Name, *open[n-1].TS, *open[n-1].Dur)
			}
			open = append(open, e)
		}
	}
}

func within(list []entry, ts float64) bool {
	return slices.ContainsFunc(list, func(e entry) bool { return nanos(*e.TS) <= nanos(ts) && nanos(ts) < end(e) })
}

func TestPerfetto(t *testing.T) {
	r := record(t)
	var out bytes.Buffer
	if errs := export.Perfetto(&out, r, 2000); len(errs) > 0 {
		t.Fatal(errs)
	}
	tracks, flows := check(t, out.Bytes())
	// 40 turns each end with an unlock that the other thread's lock follows.
	if flows < 40 {
		t.Errorf("%d arrows, want 40 at least", flows)
	}
	names := map[string]int{}
	for at, list := range tracks {
		for _, e := range list {
			if e.Args["inner"] != true { // an operation of the C library's own
				names[*e.Name]++
			}
			if (at.pid == 1) != (e.Cat == "core") {
				t.Fatalf("%s on track %v", *e.Name, at)
			}
		}
	}
	// From the program's source: 2 threads of 20 turns.
	for name, want := range map[string]int{"mutex_unlock": 40, "cond_signal": 40, "create": 2, "join": 2} {
		if names[name] != want {
			t.Errorf("%d slices %s, want %d; all: %v", names[name], name, want, names)
		}
	}
	for _, name := range []string{"thread 1000", "futex", "write", "clone", "wait4", "exit_group"} {
		if names[name] == 0 {
			t.Errorf("no slice %s; all: %v", name, names)
		}
	}
}

func TestCSV(t *testing.T) {
	r := record(t)
	for _, kind := range trace.Tables() {
		var out bytes.Buffer
		if errs := export.CSV(&out, r, kind, trace.Where{}); len(errs) > 0 {
			t.Fatal(errs)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		n := 0
		for range r.Records(trace.Key{Kind: kind}, trace.Where{}) {
			n++
		}
		if len(rows) != n+1 {
			t.Errorf("%s: %d rows, want %d and a header", kind, len(rows), n)
		}
	}
}

// TestPerfettoOfPieces: events whose begin or end is missing, and clocks that go
// against the order of events, still make a file that is right.
func TestPerfettoOfPieces(t *testing.T) {
	var file, out bytes.Buffer
	w := trace.NewWriter(&file)
	syncs, calls, starts := w.Stream(trace.Sync, 0), w.Stream(trace.Syscalls, 0), w.Stream(trace.Threads, 0)
	seq := uint64(0)
	at := func(thread arch.ThreadID, time arch.Cycles) event.Stamp {
		seq++
		return event.Stamp{Seq: seq, Thread: thread, Time: time}
	}
	trace.Put(starts, &event.Start{Stamp: at(7, 5), Process: 7, Parent: -1, Name: "1"})
	for n := range 20 {
		a, b := arch.ThreadID(7+n%2), arch.ThreadID(8-n%2)
		late, early := arch.Cycles(9000+n), arch.Cycles(10+n)
		trace.Put(syncs, &event.Sync{Stamp: at(a, late), Op: event.OpMutexUnlock, Phase: event.Enter, Object: 1, Effects: event.Release})
		trace.Put(calls, &event.Syscall{Stamp: at(a, late), Phase: event.Enter, Number: 202})
		trace.Put(calls, &event.Syscall{Stamp: at(a, late), Phase: event.Enter, Number: 1})
		trace.Put(syncs, &event.Sync{Stamp: at(b, early), Op: event.OpMutexLock, Phase: event.Return, Object: 1, Effects: event.Acquire})
		trace.Put(syncs, &event.Sync{Stamp: at(b, early), Op: event.OpCondWait, Phase: event.Enter, Object: 2, Second: 1, Effects: event.ReleaseSecond})
		trace.Put(syncs, &event.Sync{Stamp: at(a, late), Op: event.OpAtomic, Object: 2, Effects: event.Acquire | event.Release})
		trace.Put(syncs, &event.Sync{Stamp: at(b, early), Op: event.OpCondWait, Phase: event.Return, Object: 2, Second: 1, Effects: event.Acquire | event.AcquireSecond})
		if n%3 == 0 {
			trace.Put(syncs, &event.Sync{Stamp: at(a, late), Op: event.OpMutexUnlock, Phase: event.Return, Object: 1})
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader("t", bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if errs := export.Perfetto(&out, r, 2000); len(errs) > 0 {
		t.Fatal(errs)
	}
	if _, flows := check(t, out.Bytes()); flows < 20 {
		t.Errorf("%d arrows", flows)
	}
	if !strings.Contains(out.String(), `"name":"thread 7 (1)"`) {
		t.Error(fmt.Sprint("the thread's name is missing: ", out.String()[:500]))
	}
}
