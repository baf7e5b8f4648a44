package machine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/flow"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/pt/decode"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// pathsWork has more threads than cores, which race for a number and wait for each
// other, so that they move about.
const pathsWork = `
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long shared;
static void *run(void *arg) {
	for (long i = 0; i < 200 * ((long)arg + 1); i++) {
		if (shared % 3 == (long)arg % 3) shared++;
		pthread_mutex_lock(&mutex);
		shared += (long)arg;
		pthread_mutex_unlock(&mutex);
		if (i % 50 == 0) usleep(1);
	}
	return 0;
}
int main(void) {
	pthread_t t[4];
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, run, (void *)i);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	printf("%ld\n", shared);
	return 0;
}`

// recordPaths runs the program with everything recorded, and returns the trace and the
// instructions of each thread.
func recordPaths(t *testing.T, cores int, seed uint64) (string, map[arch.ThreadID][]uint64) {
	t.Helper()
	dir := t.TempDir()
	bin, path := gcctest.C(t, pathsWork, "-static"), filepath.Join(dir, "trace")
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Cores, c.Seed = []string{bin}, dir, cores, seed
	c.Sched.TimeSlice = 20_000
	if cores == 2 { // so that turns end between any two instructions
		c.Sched = sched.Options{Policy: sched.Random, Granularity: sched.Instruction, Quantum: 400}
	}
	c.Record = &machine.Record{To: to, PT: &pt.Config{PSBPeriod: 1000, RetCompression: true}, Sync: &machine.SyncRecord{}, Inputs: true}
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	log := map[arch.ThreadID][]uint64{}
	take := func(at event.Stamp, pcs []uint64) { log[at.Thread] = append(log[at.Thread], pcs...) }
	if err := m.Watch(&instructionLog{t: t, take: take}); err != nil {
		t.Fatal(err)
	}
	if result, err := m.Run(context.Background()); err != nil || result.ExitCode != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	if err := m.CloseTrace(); err != nil {
		t.Fatal(err)
	}
	return path, log
}

// stripped copies the parts of a trace that H3 uses, branch traces, code and context switches,
// up to the given number of bytes of each core's branch trace; nothing else is left.
func stripped(t *testing.T, path string, bytes int64) *trace.Reader {
	t.Helper()
	from, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	name := filepath.Join(t.TempDir(), "stripped")
	to, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	w := trace.NewWriter(to)
	for s, err := range trace.Get[event.Switch](from, trace.Key{Kind: trace.Sideband}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		trace.Put(w.Stream(trace.Sideband, 0), &s)
	}
	for c, err := range trace.Get[event.Code](from, trace.Key{Kind: trace.Code}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		trace.Put(w.Stream(trace.Code, 0), &c)
	}
	for _, id := range from.IDs(trace.PT) {
		b, err := io.ReadAll(io.LimitReader(from.Bytes(trace.Key{Kind: trace.PT, ID: id}), bytes))
		if err != nil {
			t.Fatal(err)
		}
		w.ByteStream(trace.PT, id).Append(b, event.Stamp{Thread: arch.NoThread})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	for _, kind := range []trace.Kind{trace.Sync, trace.Memory, trace.Inputs, trace.Syscalls, trace.Decisions, trace.Threads} {
		if r.Has(kind) {
			t.Fatalf("the stripped trace has %s", kind)
		}
	}
	return r
}

// runsOf decodes a core's branch trace.
func runsOf(r *trace.Reader, core arch.CoreID) iter.Seq2[paths.Run, error] {
	return func(yield func(paths.Run, error) bool) {
		d, err := flow.NewDecoder(r, core)
		if err != nil {
			yield(paths.Run{}, err)
			return
		}
		steps := make([]decode.Step, 256)
		for {
			n, _, err := d.Next(steps)
			for _, s := range steps[:n] {
				run := paths.Run{Addr: arch.Addr(s.Addr), Count: s.Count, Bytes: s.Length(), AppendAddresses: s.AppendAddresses}
				if !yield(run, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(paths.Run{}, err)
				return
			}
		}
	}
}

func readPaths(t *testing.T, r *trace.Reader, change func([]event.Switch)) (*paths.Profile, error) {
	t.Helper()
	var switches []event.Switch
	for s, err := range trace.Get[event.Switch](r, trace.Key{Kind: trace.Sideband}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		switches = append(switches, s)
	}
	change(switches)
	var cores []paths.Core
	for _, id := range r.IDs(trace.PT) {
		cores = append(cores, paths.Core{ID: arch.CoreID(id), Runs: runsOf(r, arch.CoreID(id))})
	}
	return paths.Read(cores, switches)
}

const wholeStream = 1 << 40

// Invariant 1: from branch traces, code and context switches alone, each thread's
// path is the one that the engine executed, and no block is longer.
func TestPathsAreWhatRan(t *testing.T) {
	for i, cores := range []int{1, 2, 3} {
		path, log := recordPaths(t, cores, uint64(i+1))
		p, err := readPaths(t, stripped(t, path, wholeStream), func([]event.Switch) {})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Threads) != len(log) {
			t.Errorf("%d cores: %d threads, executed have %d", cores, len(p.Threads), len(log))
		}
		if cut := endsWithin(t, p.Blocks); cut == 0 && cores == 2 {
			t.Errorf("%d cores: no block ends where another goes on", cores)
		}
		blocks := 0
		for i := range p.Threads {
			th := &p.Threads[i]
			if got := slices.Collect(p.Instructions(th)); !slices.Equal(got, log[th.ID]) {
				t.Errorf("%d cores: the path of thread %d has %d instructions, executed were %d, or others", cores, th.ID, len(got), len(log[th.ID]))
			}
			for _, s := range th.Turns {
				blocks += len(s.Blocks)
			}
		}
		t.Logf("%d cores: %d threads, %d blocks executed, %d different", cores, len(p.Threads), blocks, len(p.Blocks))
	}
}

// endsWithin counts the blocks that end where another one continues, since a thread lost its
// turn there, and demands that they end after their last instructions.
func endsWithin(t *testing.T, blocks []paths.Block) (n int) {
	t.Helper()
	behind := map[uint64]uint64{}
	for i := range blocks {
		all := blocks[i].Instructions
		for k := 1; k < len(all); k++ {
			behind[all[k-1]] = all[k]
		}
	}
	for i := range blocks {
		b := &blocks[i]
		last := b.Instructions[len(b.Instructions)-1]
		next, ok := behind[last]
		if !ok {
			continue
		}
		n++
		if end := uint64(b.Addr) + uint64(b.Bytes); end != next {
			t.Errorf("the block at %#x ends at %#x, and its last instruction before %#x", b.Addr, end, next)
		}
	}
	return n
}

// Invariant 2.
func TestDamageIsFound(t *testing.T) {
	path, _ := recordPaths(t, 2, 1)
	_, err := readPaths(t, stripped(t, path, 4000), func([]event.Switch) {})
	if err == nil {
		t.Error("a branch trace that is cut is read without an error")
	}
	t.Log(err)
	_, err = readPaths(t, stripped(t, path, wholeStream), func(all []event.Switch) {
		for i := range all {
			if all[i].CoreInstructions > 100 {
				all[i].CoreInstructions -= 3
			}
		}
	})
	if err == nil || !strings.Contains(err.Error(), "at which the core switched to thread") {
		t.Errorf("context switches of another run: %v", err)
	}
	_, err = readPaths(t, stripped(t, path, wholeStream), func(all []event.Switch) { all[len(all)-1].CoreInstructions += 1 << 30 })
	if want := fmt.Sprint(1 << 30); err == nil || !strings.Contains(err.Error(), "and its context switches after") {
		t.Errorf("a context switch %s instructions later: %v", want, err)
	}
}
