package accesses_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/accesses"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// user uses memory in all ways: system calls that read and write, pages of files and of zeros, a fork whose pages
// are copied, accesses of 16 bytes and in two pages, atomic ones.
const user = `
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static int n;
static char big[1 << 16];
static void *add(void *at) {
	for (int i = 0; i < 300; i++) { __atomic_add_fetch(&n, 1, __ATOMIC_SEQ_CST); ++*(volatile int *)at; }
	return 0;
}
int main(int argc, char **argv) {
	pthread_t t[3];
	volatile int shared = 0;
	for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, add, (void *)&shared);
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	int fd = open(argv[1], O_RDONLY);
	char *file = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	file[1] = file[4097];
	if (read(fd, big + 1, 3 * 4096) != 3 * 4096) return 1;
	memcpy(big + 40000, big, 5000);
	unsigned long across;
	memcpy(&across, big + 4093, 8);
	int status = 0;
	if (!fork()) { big[0] = 7; _exit(file[1] == 0); }
	wait(&status);
	big[1]++;
	printf("%d %d %lu\n", n, status, across);
	return 0;
}`

func record(t *testing.T, c machine.Config, r machine.Record) (string, *machine.Result) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r.To = f
	c.Record = &r
	return f.Name(), machinetest.Run(t, c)
}

// lines are the accesses of a trace as text.
func lines(t *testing.T, path string, s memtrace.Select) (list []string) {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for m, err := range accesses.Read(context.Background(), path, r, s) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%d %d %s", m.Time, m.Instructions, memtrace.Format(m)))
	}
	return list
}

// rows are the other events of a trace.
func rows(t *testing.T, path string) (list []string) {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var text bytes.Buffer
	if err := errors.Join(trace.Dump(&text, r, trace.DumpOptions{Events: true})...); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if kind, _, _ := strings.Cut(line, " "); kind != "memory" && kind != "manifest" && kind != "summary" {
			list = append(list, line)
		}
	}
	return list
}

func setUp(t *testing.T) (machine.Config, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "input")
	if err := os.WriteFile(file, bytes.Repeat([]byte("abcdefgh 12345\n"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := machinetest.Config(t, machinetest.Compile(t, user, "-pthread"))
	c.Args = append(c.Args, file)
	c.Mounts = append(c.Mounts, machine.Mount{Host: dir, Guest: dir})
	c.Sched = sched.Options{Policy: sched.Random, Granularity: sched.Block}
	return c, file
}

// A trace whose accesses are those of a replay has the events of one that stores them, and the same accesses.
func TestReplayHasTheStoredAccesses(t *testing.T) {
	for name, change := range map[string]func(*machine.Config, *machine.Record){
		"accesses": func(*machine.Config, *machine.Record) {},
		"everything": func(_ *machine.Config, r *machine.Record) {
			r.Inputs, r.PT, r.Sync = true, &pt.Config{PSBPeriod: 4096}, &machine.SyncRecord{Atomics: true, Heap: true}
		},
		"operations": func(_ *machine.Config, r *machine.Record) { r.Sync = &machine.SyncRecord{Heap: true} },
		"threads":    func(_ *machine.Config, r *machine.Record) { r.Memory.Threads = []arch.ThreadID{1001, 1003} },
		"addresses": func(_ *machine.Config, r *machine.Record) {
			r.Memory.Data = []memlog.Range{{Start: 0x7ffff0000000, End: 0x7ffffffff000}}
		},
		"stretch": func(_ *machine.Config, r *machine.Record) {
			r.Stretch = recorder.Stretch{From: recorder.Place{Kind: recorder.AtInstruction, N: 60_000}}
		},
		"tso": func(c *machine.Config, _ *machine.Record) { c.Memory = storebuffer.Options{Model: "tso"} },
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := setUp(t)
			var stored, repeated machine.Record
			stored.Memory, repeated.Memory = &recorder.MemoryConfig{}, &recorder.MemoryConfig{}
			change(&c, &stored)
			change(&c, &repeated)
			repeated.Memory.Repeated = true
			one, first := record(t, c, stored)
			two, second := record(t, c, repeated)
			if first.Digest != second.Digest {
				t.Fatal("the runs differ")
			}
			compare(t, rows(t, two), rows(t, one))
			compare(t, lines(t, two, memtrace.Select{}), lines(t, one, memtrace.Select{}))
			some := memtrace.Select{Threads: []arch.ThreadID{1001}}
			compare(t, lines(t, two, some), lines(t, one, some))
			big, _ := os.Stat(one)
			small, _ := os.Stat(two)
			if name == "accesses" && small.Size() > big.Size()/3 {
				t.Errorf("%d bytes without the accesses, %d with them", small.Size(), big.Size())
			}
		})
	}
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if len(want) == 0 {
		t.Error("nothing to compare")
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%d of %d is\n%s\nwant\n%s", i, len(want), got[i], want[i])
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d, want %d", len(got), len(want))
	}
}

// Whoever has seen enough ends the replay. A context that is over, and a file that the run read and that has changed,
// are errors.
func TestAccessesEndEarly(t *testing.T) {
	c, input := setUp(t)
	path, _ := record(t, c, machine.Record{Memory: &recorder.MemoryConfig{Repeated: true}})
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if are, err := accesses.Are(r); err != nil || !are || !accesses.AreRepeated(r) {
		t.Fatalf("the trace has no accesses: %v", err)
	}
	n := 0
	for _, err := range accesses.Read(context.Background(), path, r, memtrace.Select{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 10 {
			break
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	last := error(nil)
	for _, err := range accesses.Read(ctx, path, r, memtrace.Select{}) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("after the end of the context: %v", last)
	}
	if err := os.WriteFile(input, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	n = 0
	for _, err := range accesses.Read(context.Background(), path, r, memtrace.Select{}) {
		var e *errs.Error
		if n++; !errors.As(err, &e) || e.Kind().ID() != "replay-input-changed" {
			t.Errorf("the input has changed: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("%d errors", n)
	}
}

// A trace that has the files that the run read needs none of the host: they may be others or gone, the program, too.
func TestFilesOfTheTraceTakeThePlaceOfTheHosts(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"another": func(path string) error { return os.WriteFile(path, []byte("other"), 0o755) },
		"gone":    os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			c, input := setUp(t)
			path, first := record(t, c, machine.Record{Files: true, Memory: &recorder.MemoryConfig{Repeated: true}})
			want := lines(t, path, memtrace.Select{})
			if err := errors.Join(change(input), change(c.Args[0])); err != nil {
				t.Fatal(err)
			}
			compare(t, lines(t, path, memtrace.Select{}), want)
			again, err := machine.RepeatTrace(context.Background(), path, nil)
			if err != nil || again.Digest != first.Digest || again.Message != "" {
				t.Errorf("%v, %+v", err, again)
			}
		})
	}
}

// Standard input that was a file is in the trace, too, with all its bytes and the position that it had.
func TestStandardInputOfTheTrace(t *testing.T) {
	const text, at = "the quick brown fox", 4
	c, out := machinetest.Config(t, "/bin/cat")
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.Seek(at, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	c.Stdin = in
	recorded, first := record(t, c, machine.Record{Files: true, Memory: &recorder.MemoryConfig{Repeated: true}})
	if out.String() != text[at:] {
		t.Fatalf("%q", out)
	}
	want := lines(t, recorded, memtrace.Select{})
	for _, change := range []func() error{
		func() error { return os.WriteFile(path, []byte("another"), 0o600) },
		func() error { return os.Remove(path) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		compare(t, lines(t, recorded, memtrace.Select{}), want)
		again, err := machine.RepeatTrace(context.Background(), recorded, nil)
		if err != nil || again.Digest != first.Digest || again.Message != "" {
			t.Errorf("%v, %+v", err, again)
		}
	}
}

// A folder that is gone is named, for the files of the trace have no folders.
func TestFolderThatIsGone(t *testing.T) {
	c, input := setUp(t)
	folder := filepath.Join(filepath.Dir(input), "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(folder, "input")
	if err := os.Rename(input, inside); err != nil {
		t.Fatal(err)
	}
	c.Args[len(c.Args)-1] = inside
	path, _ := record(t, c, machine.Record{Files: true, Memory: &recorder.MemoryConfig{Repeated: true}})
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	_, err := machine.RepeatTrace(context.Background(), path, nil)
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind().ID() != "replay-input-changed" || !strings.Contains(err.Error(), ": "+folder+" is not what it was") {
		t.Error(err)
	}
}
