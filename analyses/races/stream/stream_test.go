package stream_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/analyses/races/stream"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

const program = `
#include <pthread.h>
#include <stdlib.h>
static volatile int shared;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg) {
	for (int i = 0; i < 3000; i++) {
		shared++;
		if (i % 100 == 0) { pthread_mutex_lock(&mu); free(malloc(i)); pthread_mutex_unlock(&mu); }
	}
	return arg;
}
int main(void) {
	pthread_t t[3];
	for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, work, 0);
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	return 0;
}`

// traceOf records a run of the program, with the streams that are asked for.
func traceOf(t testing.TB, what machine.Record) []byte {
	t.Helper()
	bin := gcctest.C(t, program)
	var to bytes.Buffer
	what.To = &to
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Cores, c.Record = []string{bin}, filepath.Dir(bin), 4, &what
	if r, err := machine.Run(context.Background(), c); err != nil || r.ExitCode != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	return to.Bytes()
}

func everything() machine.Record {
	return machine.Record{Sync: &machine.SyncRecord{Heap: true}, Memory: &recorder.MemoryConfig{}}
}

// through goes through a trace and returns the races that were found.
func through(text []byte, o stream.Options) (list []races.Race, c stream.Counts, err error) {
	r, err := trace.NewReader("test", bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, c, err
	}
	defer r.Close()
	o.Race = func(r *races.Race) { list = append(list, *r) }
	x, err := stream.New(r, o)
	if err != nil {
		return nil, c, err
	}
	defer x.Close()
	err = x.ReadAll()
	return list, x.Counts(), err
}

func isKind(err error, id string) bool {
	var e *errs.Error
	return errors.As(err, &e) && e.Kind().ID() == id
}

// TestMissingStreams: a trace that lacks a stream is refused with its name.
func TestMissingStreams(t *testing.T) {
	for _, c := range []struct {
		what machine.Record
		id   string
	}{
		{machine.Record{}, "races-without-memory"},
		{machine.Record{Sync: &machine.SyncRecord{}}, "races-without-memory"},
		{machine.Record{Memory: &recorder.MemoryConfig{}}, "races-without-sync"},
	} {
		if _, _, err := through(traceOf(t, c.what), stream.Options{}); !isKind(err, c.id) {
			t.Errorf("%v, want %s", err, c.id)
		}
	}
}

// TestNoOperations: a run that ends before its first operation is examined, if operations were recorded.
func TestNoOperations(t *testing.T) {
	for _, sync := range []*machine.SyncRecord{{Heap: true}, nil} {
		var to bytes.Buffer
		c := machine.DefaultConfig()
		c.Args, c.Dir, c.MaxInstructions = []string{"/bin/true"}, "/", 500
		c.Record = &machine.Record{To: &to, Sync: sync, Memory: &recorder.MemoryConfig{}}
		if r, err := machine.Run(context.Background(), c); err != nil || r.Instructions != 500 {
			t.Fatalf("%+v, %v", r, err)
		}
		list, counts, err := through(to.Bytes(), stream.Options{})
		switch {
		case sync == nil && !isKind(err, "races-without-sync"):
			t.Errorf("without --sync: %v", err)
		case sync != nil && (err != nil || len(list) > 0 || counts.Syncs != 0 || counts.Accesses == 0 || counts.Cut):
			t.Errorf("%d races, %+v, %v", len(list), counts, err)
		}
	}
}

// TestUntouchedMemory: a load of memory that no thread has stored to races with a later store, although all such
// memory leads to the page of zeros before; and blocks at different addresses do not race for that.
func TestUntouchedMemory(t *testing.T) {
	bin := gcctest.C(t, `
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static int untouched[1 << 20];
void *load(void *arg) { return (void *)(long)*(volatile int *)&untouched[500000]; }
void *store(void *arg) { usleep(1000); *(volatile int *)&untouched[500000] = 1; return arg; }
void *block(void *arg) {
	for (int i = 0; i < 3; i++) {
		volatile char *p = calloc(1, 1 << 22);
		(void)p[1 << 20];
		free((void *)p);
	}
	return arg;
}
int main(void) {
	void *(*routine[])(void *) = {load, store, block, block};
	pthread_t t[4];
	for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, routine[i], 0);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	return 0;
}`, "-O1", "-no-pie")
	var to bytes.Buffer
	what := everything()
	what.To = &to
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Record = []string{bin}, filepath.Dir(bin), &what
	if r, err := machine.Run(context.Background(), c); err != nil || r.ExitCode != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	list, _, err := through(to.Bytes(), stream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	symbols := gcctest.Symbols(t, bin)
	in := func(name string, pc arch.Addr) bool { return uint64(pc)-symbols[name].Value < symbols[name].Size }
	found := false
	for _, r := range list {
		found = found || in("load", r.First.PC) && in("store", r.Second.PC)
		if in("block", r.First.PC) || in("block", r.Second.PC) {
			t.Errorf("a race of the blocks: %+v", r)
		}
	}
	if !found {
		t.Errorf("no race of the load and the store in %+v", list)
	}
}

// Invariant 3, and 1 as far as operations show it: the place of each is after the accesses before
// it.
func TestOrder(t *testing.T) {
	text := traceOf(t, everything())
	for _, order := range []races.Order{races.HappensBefore, races.ScheduleRelative} {
		var syncs []uint64
		one, c, err := through(text, stream.Options{Order: order, Values: true, Sync: func(_ int, at uint64, e *event.Sync) {
			syncs = append(syncs, at)
		}})
		if err != nil {
			t.Fatal(err)
		}
		two, d, err := through(text, stream.Options{Order: order, Values: true})
		if err != nil || !slices.Equal(one, two) || c != d {
			t.Errorf("another time there are %d races, not %d; %v", len(two), len(one), err)
		}
		if len(one) == 0 || c.Threads != 4 || c.Cut || uint64(len(syncs)) != c.Syncs || !slices.IsSorted(syncs) || syncs[len(syncs)-1] > c.Accesses {
			t.Errorf("%d races, %+v, operations at %v", len(one), c, syncs)
		}
		for _, r := range one {
			if r.First.At >= r.Second.At || r.First.Thread == r.Second.Thread || r.Second.At >= c.Accesses {
				t.Fatalf("%+v", r)
			}
		}
	}
}

// TestCutTraces: if the end is missing, the rest is examined up to the last operation, and its
// races are the first ones of the whole trace.
func TestCutTraces(t *testing.T) {
	text := traceOf(t, machine.Record{Sync: &machine.SyncRecord{}, Memory: &recorder.MemoryConfig{}})
	all, _, err := through(text, stream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for cut := len(text) - 1; cut > 0; cut -= 1 + len(text)/40 {
		found, c, err := through(text[:cut], stream.Options{})
		if err != nil {
			var e *errs.Error
			if !errors.As(err, &e) {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			continue
		}
		looked++
		if !c.Cut || len(found) > len(all) || !slices.Equal(found, all[:len(found)]) {
			t.Fatalf("cut at %d: %d races, %+v", cut, len(found), c)
		}
	}
	if looked == 0 {
		t.Error("no trace that was cut could be looked at")
	}
}

// TestDamage: a trace with a byte changed is refused in a sentence, or gives the same as the whole
// one.
func TestDamage(t *testing.T) {
	text := traceOf(t, everything())
	all, _, err := through(text, stream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := 100; at < len(text); at += 1 + len(text)/60 {
		bad := slices.Clone(text)
		bad[at] ^= 0x55
		found, c, err := through(bad, stream.Options{})
		var e *errs.Error
		switch {
		case errors.As(err, &e):
			refused++
		case err != nil:
			t.Fatalf("byte %d: %v", at, err)
		case !c.Cut && !slices.Equal(found, all):
			t.Fatalf("byte %d: %d races, not %d", at, len(found), len(all))
		}
	}
	if refused < 20 {
		t.Errorf("only %d of the damaged traces were refused", refused)
	}
}

// drawEvents writes events that make no sense into a trace, in the order of their
// numbers.
func drawEvents(t *rapid.T, w *trace.Writer) {
	number := func(name string) uint64 {
		return rapid.OneOf(rapid.Uint64Range(0, 8), rapid.Uint64Range(0x7ffff7dd0000, 0x7ffff7dd2000), rapid.Uint64()).Draw(t, name)
	}
	at := event.Stamp{Seq: 1}
	for range rapid.IntRange(0, 60).Draw(t, "events") {
		at.Seq += rapid.Uint64Range(0, 9).Draw(t, "later")
		at.Thread = arch.ThreadID(rapid.Int32Range(1000, 1004).Draw(t, "thread"))
		at.Branches = number("branches")
		phase := event.Phase(rapid.Uint8Range(0, 3).Draw(t, "phase"))
		addr := arch.Addr(number("addr"))
		switch rapid.SampledFrom([]string{"start", "start", "exit", "sync", "sync", "sync", "heap", "heap", "call", "signal", "mapping"}).Draw(t, "kind") {
		case "start":
			trace.Put(w.Stream(trace.Threads, 0), &event.Start{Stamp: at, Process: int32(number("process") % 3), Parent: at.Thread - 1})
		case "exit":
			trace.Put(w.Stream(trace.Exits, 0), &event.Exit{Stamp: at})
		case "sync":
			trace.Put(w.Stream(trace.Sync, 0), &event.Sync{
				Stamp: at, Op: event.SyncOp(rapid.Uint16Range(0, uint16(event.OpFork)).Draw(t, "op")), Phase: phase,
				Object: event.ObjectID(number("object")), Second: event.ObjectID(number("second")), Addr: addr,
				PC: arch.Addr(number("pc")), Effects: event.Effects(rapid.Uint8().Draw(t, "effects")), Value: number("value"),
			})
		case "heap":
			trace.Put(w.Stream(trace.Heap, 0), &event.Heap{
				Stamp: at, Op: event.HeapOp(number("op") % 3), Phase: phase, Old: arch.Addr(number("old")),
				Size: number("size") % (1 << 30), Addr: addr, PC: arch.Addr(number("pc")),
			})
		case "call":
			trace.Put(w.Stream(trace.Syscalls, 0), &event.Syscall{
				Stamp: at, Phase: phase, Number: rapid.SampledFrom([]uint64{9, 11, 12, 15, 25, 28, 59}).Draw(t, "call"),
				Args: [6]uint64{number("a"), number("b"), number("c"), number("d")}, Result: number("result"),
			})
		case "signal":
			trace.Put(w.Stream(trace.Signals, 0), &event.Signal{Stamp: at})
		default:
			trace.Put(w.Stream(trace.Mappings, 0), &event.Mapping{Stamp: at, Process: int32(number("process") % 3), Addr: addr, Size: number("size")})
		}
	}
}

// TestEventsWithoutSense: whatever events a trace has beside its accesses, going
// through it ends with a sentence or without.
func TestEventsWithoutSense(t *testing.T) {
	text := traceOf(t, everything())
	real, err := trace.NewReader("test", bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	memory, ok, err := real.Record(memtrace.Key, 0)
	if err != nil || !ok {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var to bytes.Buffer
		w := trace.NewWriter(&to)
		w.Stream(trace.Memory, 0).Append(memory, event.Stamp{Thread: arch.NoThread})
		w.Stream(trace.Sync, 0)
		for thread := range arch.ThreadID(rapid.IntRange(0, 4).Draw(t, "threads")) {
			trace.Put(w.Stream(trace.Threads, 0), &event.Start{Stamp: event.Stamp{Seq: 1, Thread: 1000 + thread}, Process: 1})
		}
		drawEvents(t, w)
		if err := errors.Join(w.Summary(struct{}{}), w.Close()); err != nil {
			t.Fatal(err)
		}
		o := stream.Options{Values: true, Order: races.Order(rapid.IntRange(0, 1).Draw(t, "order"))}
		var e *errs.Error
		if _, _, err := through(to.Bytes(), o); err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
	})
}
