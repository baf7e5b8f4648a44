package machine_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/guest/programs/conformance"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// memoryModel is memory according to a trace.
type memoryModel struct {
	pages                  map[uint64]*[arch.PageSize]byte
	loads, stores, kernel  int
	atomics, wide, crosses int
	last                   event.Stamp
	threads                map[arch.ThreadID]event.Stamp // the last of each
}

// applyEvent applies an event, and checks the value of a load.
func (m *memoryModel) applyEvent(e *event.Memory) error {
	// A thread that another one's exec has put in the place of the first of the
	// process counts from 0.
	before := m.threads[e.Thread]
	again := e.Instructions < before.Instructions
	if e.Seq < m.last.Seq || e.Branches < before.Branches && !again {
		return fmt.Errorf("%+v goes back from %+v and %+v", e.Stamp, m.last, before)
	}
	m.last = e.Stamp
	m.threads[e.Thread] = e.Stamp
	switch e.Kind {
	case event.Content:
		page := new([arch.PageSize]byte)
		copy(page[:], e.Data)
		m.pages[e.Page] = page
	case event.Copy:
		from := m.pages[e.From]
		if from == nil {
			return fmt.Errorf("%+v copies a page that is not known", *e)
		}
		page := *from
		m.pages[e.Page] = &page
	case event.KernelStore, event.View:
		m.kernel++
		if e.Data != nil {
			copy(m.pages[e.Page][e.Addr%arch.PageSize:], e.Data)
		}
	default:
		return m.access(e)
	}
	return nil
}

func (m *memoryModel) access(e *event.Memory) error {
	var value [16]byte
	binary.LittleEndian.PutUint64(value[:], e.Value[0])
	binary.LittleEndian.PutUint64(value[8:], e.Value[1])
	if e.Atomic {
		m.atomics++
	}
	if e.Size > 8 {
		m.wide++
	}
	if e.Kind == event.Load {
		m.loads++
	} else {
		m.stores++
	}
	page, at := m.pages[e.Page], int(e.Addr%arch.PageSize)
	for i := range int(e.Size) {
		if at == arch.PageSize {
			m.crosses++
			page, at = m.pages[e.Next], 0
		}
		if page == nil {
			return fmt.Errorf("%+v is in a page that is not known", *e)
		}
		if e.Kind == event.Store {
			page[at] = value[i]
		} else if page[at] != value[i] {
			return fmt.Errorf("%+v: memory has %02x in byte %d", *e, page[at], i)
		}
		at++
	}
	return nil
}

// replayMemory applies the events of a trace and checks each load.
func replayMemory(t *testing.T, path string, s memtrace.Select) *memoryModel {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m := &memoryModel{pages: map[uint64]*[arch.PageSize]byte{}, threads: map[arch.ThreadID]event.Stamp{}}
	for e, err := range memtrace.Read(r, s) {
		if err == nil {
			err = m.applyEvent(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// recordMemory runs a program with and without its memory recorded, and demands
// that nothing else is different.
func recordMemory(t *testing.T, c machine.Config, change func(*machine.Record)) (*machine.Result, string) {
	t.Helper()
	plain := machinetest.Run(t, c)
	f := traceFile(t)
	c.Record = &machine.Record{To: f, Memory: &recorder.MemoryConfig{}}
	if change != nil {
		change(c.Record)
	}
	recorded := machinetest.Run(t, c)
	if recorded.Digest != plain.Digest || recorded.Cycles != plain.Cycles || recorded.Instructions != plain.Instructions {
		t.Errorf("recorded: %s, %d cycles, not recorded: %s, %d cycles", recorded.Digest, recorded.Cycles, plain.Digest, plain.Cycles)
	}
	return recorded, f.Name()
}

func TestMemoryTraceHasEveryLoadsValue(t *testing.T) {
	input := filepath.Join(t.TempDir(), "input")
	text := bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog\n"), 1000)
	if err := os.WriteFile(input, text, 0o600); err != nil {
		t.Fatal(err)
	}
	programs := map[string][]string{
		"racy":    {machinetest.Compile(t, machinetest.Racy)},
		"signals": {machinetest.Compile(t, signals)},
		"memory":  {machinetest.Compile(t, memoryUser)},
		"pbzip2":  {"/usr/bin/pbzip2", "-p4", "-b1", "-k", "-c", input},
		"python3": {"/usr/bin/python3", "-S", "-E", "-c", "import hashlib,zlib;print(hashlib.sha256(zlib.compress(b'x'*9999)).hexdigest())"},
	}
	for name, args := range programs {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && (name == "python3" || name == "pbzip2") {
				t.Skip("short")
			}
			c, _ := machinetest.Config(t, args[0])
			c.Args = args
			c.Mounts = append(c.Mounts, machine.Mount{Host: filepath.Dir(input), Guest: filepath.Dir(input)})
			r, path := recordMemory(t, c, nil)
			m := replayMemory(t, path, memtrace.Select{})
			info, _ := os.Stat(path)
			t.Logf("%d loads, %d stores, %d atomic, %d wide, %d in two pages, %d by the kernel, %d threads; %d instructions, %.2f bytes an access",
				m.loads, m.stores, m.atomics, m.wide, m.crosses, m.kernel, len(m.threads), r.Instructions, float64(info.Size())/float64(m.loads+m.stores))
			if m.loads+m.stores < int(r.Instructions/20) {
				t.Errorf("%d accesses in %d instructions", m.loads+m.stores, r.Instructions)
			}
		})
	}
}

// memoryUser maps, shares, forks, reads into memory and changes its own code.
const memoryUser = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static long *shared;
static void *worker(void *a) {
	for (int i = 0; i < 300; i++) { __sync_fetch_and_add(&shared[1], 1); shared[2 + (long)a] += i; }
	return a;
}
static int jit(int n) {
	static const int size = 4096;
	int fd = memfd_create("code", 0);
	if (ftruncate(fd, size)) return 1;
	unsigned char *w = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int (*f)(void) = (int (*)(void))mmap(0, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	int sum = 0;
	for (int i = 0; i < n; i++) {
		w[0] = 0xb8; memcpy(w + 1, &i, 4); w[5] = 0xc3;
		sum += f();
	}
	char line[] = "written by a system call";
	if (pwrite(fd, line, sizeof line, 4090 - sizeof line) < 0) return 1;
	return sum + w[4085 - sizeof line];
}
int main(void) {
	shared = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t t[3];
	for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, worker, (void *)i);
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	char *private = malloc(100000);
	for (int i = 0; i < 100000; i += 100) private[i] = i;
	for (int k = 0; k < 3; k++) {
		if (fork() == 0) {
			for (int i = 0; i < 100000; i += 300) private[i] += k;
			for (int i = 0; i < 200; i++) __sync_fetch_and_add(&shared[0], private[i * 300]);
			_exit(0);
		}
		for (int i = 0; i < 100000; i += 500) private[i] ^= k;
	}
	while (wait(0) > 0);
	int fds[2];
	if (pipe(fds)) return 1;
	char buf[9000], big[9000];
	for (int i = 0; i < 9000; i++) buf[i] = i;
	long sum = 0;
	for (int n = 1; n < 9000; n = n * 3 + 1) {
		if (write(fds[1], buf + n % 7, n) != n || read(fds[0], big + n % 5, n) != n) return 1;
		for (int i = 0; i < n; i++) sum += big[i];
	}
	int zero = open("/proc/self/maps", O_RDONLY);
	while (read(zero, buf, sizeof buf) > 0) sum += buf[5];
	char *moved = mmap(0, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 16384; i += 64) sum += moved[i];
	strcpy(moved + 4090, "across two pages");
	moved = mremap(moved, 16384, 65536, MREMAP_MAYMOVE);
	madvise(moved + 8192, 8192, MADV_DONTNEED);
	for (int i = 0; i < 65536; i += 4) sum += *(int *)(moved + (i < 65532 ? i + 1 : i));
	printf("%ld %d %d\n", sum + shared[0] + shared[1], jit(50), (int)strlen(moved + 4090));
	return 0;
}
`

// With everything recorded under every kind of machine the run is the same, and
// the memory trace is right.
func TestMemoryTraceWithEverythingElse(t *testing.T) {
	programs := map[string]string{"racy": machinetest.Compile(t, machinetest.Racy), "memory": machinetest.Compile(t, memoryUser)}
	for name, bin := range programs {
		for how, set := range machinetest.Machines() {
			t.Run(name+"/"+how, func(t *testing.T) {
				c, _ := machinetest.Config(t, bin)
				set(&c)
				if dmt.Isolates(c.Sched.Policy) {
					t.Skip("loads and stores cannot be recorded")
				}
				_, path := recordMemory(t, c, func(r *machine.Record) {
					all := everything(r.To)
					all.Memory = r.Memory
					*r = *all
				})
				replayMemory(t, path, memtrace.Select{})
			})
		}
	}
}

// After a return to a snapshot the trace has the last timeline.
func TestMemoryTraceOfTimelines(t *testing.T) {
	c, _ := machinetest.Config(t, machinetest.Compile(t, machinetest.Racy))
	whole, path := recordMemory(t, c, nil)
	want := replayMemory(t, path, memtrace.Select{})
	again := filepath.Join(t.TempDir(), "again")
	f, err := os.Create(again)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.Record = &machine.Record{To: f, Memory: &recorder.MemoryConfig{}}
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	steps := func(n int) {
		for range n {
			m.Step()
			if m.Done() {
				t.Fatal("the run is over too early")
			}
		}
	}
	steps(60)
	first := m.Snapshot()
	steps(50)
	second := m.Snapshot()
	steps(30)
	m.Restore(first)
	steps(40)
	m.Restore(second)
	result, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CloseTrace(); err != nil {
		t.Fatal(err)
	}
	first.Release()
	second.Release()
	if result.Digest != whole.Digest {
		t.Errorf("digest %s, want %s", result.Digest, whole.Digest)
	}
	got := replayMemory(t, again, memtrace.Select{})
	if got.loads != want.loads || got.stores != want.stores || got.atomics != want.atomics {
		t.Errorf("%d loads, %d stores, %d atomic, want %d, %d, %d", got.loads, got.stores, got.atomics, want.loads, want.stores, want.atomics)
	}
}

// Selection while recording and selection while reading give the same accesses. With a selection of addresses,
// be it of all, the engine direct makes an entry of each access; otherwise the encoder gets the records of blocks.
func TestMemoryTraceSelection(t *testing.T) {
	c, _ := machinetest.Config(t, machinetest.Compile(t, machinetest.Racy))
	_, full := recordMemory(t, c, nil)
	stack := memlog.Range{Start: 0x7f0000000000, End: 1 << 47}
	libraries := memlog.Range{Start: 0x7ff000000000, End: 1 << 47}
	for _, s := range []recorder.MemoryConfig{
		{Threads: []arch.ThreadID{1001, 1003}},
		{Data: []memlog.Range{stack}},
		{Data: []memlog.Range{{End: 1 << 47}}},
		{Code: []memlog.Range{libraries}},
		{Threads: []arch.ThreadID{1002}, Data: []memlog.Range{stack}, Code: []memlog.Range{libraries}},
	} {
		_, part := recordMemory(t, c, func(r *machine.Record) { r.Memory = &s })
		want := accesses(t, full, memtrace.Select{Threads: s.Threads, Data: s.Data, Code: s.Code})
		got := accesses(t, part, memtrace.Select{})
		if got != want || got == 0 {
			t.Errorf("%+v: the trace's accesses have hash %x, want %x", s, got, want)
		}
		if len(s.Threads)+len(s.Code) == 0 {
			replayMemory(t, part, memtrace.Select{})
		}
	}
}

// accesses is a hash of the loads and stores that are selected.
func accesses(t *testing.T, path string, s memtrace.Select) uint64 {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := fnv.New64()
	n := 0
	for e, err := range memtrace.Read(r, s) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == event.Load || e.Kind == event.Store {
			n++
			fmt.Fprintln(h, e.Thread, e.Kind, e.PC, e.Addr, e.Size, e.Value, e.Branches, e.Atomic)
		}
	}
	if n == 0 {
		return 0
	}
	return h.Sum64()
}

// The programs that exercise instructions and system calls, with every load
// checked. Programs that take long are left to other tests, and so are some of the programs for
// system calls.
func TestMemoryTraceOfConformancePrograms(t *testing.T) {
	for i, p := range conformance.Programs() {
		if p.NativeOnly != "" || p.DynamicOnly != "" || p.Plugin {
			continue
		}
		onInstructions := strings.HasPrefix(p.Name, "x86_") && !testing.Short()
		if i%testsize.Pick(24, 6, 1) != 0 && !onInstructions {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			if problem := engines.Check(engines.Auto, p.CPU); problem != nil {
				t.Skipf("%s: %s", problem.Found, problem.Allowed)
			}
			bin, err := p.Build(true)
			if err != nil {
				t.Fatal(err)
			}
			c, _ := machinetest.Config(t, bin)
			if c.CPU = p.CPU; p.CPU > arch.V2 {
				c.Engine = engines.Auto
			}
			c.Dir = t.TempDir()
			c.Mounts = []machine.Mount{{Host: c.Dir, Guest: c.Dir}}
			c.MaxInstructions = 3_000_000
			_, path := recordMemory(t, c, nil)
			replayMemory(t, path, memtrace.Select{})
		})
	}
}

// Under TSO and PSO loads see the contents of store buffers.
func TestMemoryTraceUnderStoreBuffers(t *testing.T) {
	for name, bin := range map[string]string{"racy": machinetest.Compile(t, machinetest.Racy), "memory": machinetest.Compile(t, memoryUser)} {
		for _, o := range []storebuffer.Options{{Model: "tso"}, {Model: "pso", Commit: "lazy"}, {Model: "pso", Commit: "timed"}} {
			t.Run(fmt.Sprintf("%s/%+v", name, o), func(t *testing.T) {
				c, _ := machinetest.Config(t, bin)
				c.Memory, c.Sched = o, sched.Options{Policy: sched.Random, Granularity: sched.Block}
				_, path := recordMemory(t, c, nil)
				replayMemory(t, path, memtrace.Select{})
			})
		}
	}
}

// The blocks do not depend on how fast the encoder is.
func TestMemoryTraceRepeats(t *testing.T) {
	c, _ := machinetest.Config(t, machinetest.Compile(t, memoryUser))
	blocks := func(processors int) (all [][]byte) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		_, path := recordMemory(t, c, nil)
		r, err := trace.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for record, err := range r.Records(memtrace.Key, trace.Where{}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, bytes.Clone(record))
		}
		return all
	}
	one, four := blocks(1), blocks(4)
	if len(one) == 0 || !slices.EqualFunc(one, four, bytes.Equal) {
		t.Errorf("%d blocks with one processor differ from %d with four", len(one), len(four))
	}
}
