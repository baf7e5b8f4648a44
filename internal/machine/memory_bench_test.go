package machine_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// BenchmarkMemoryTrace records every load and store of the loop program to disk.
func BenchmarkMemoryTrace(b *testing.B) {
	source, err := os.ReadFile("../bench/program/guest.c")
	if err != nil {
		b.Fatal(err)
	}
	c, _ := machinetest.Config(b, machinetest.Compile(b, string(source), "-O2", "-static"))
	c.Args, c.Cores = append(c.Args, "cpu", "3"), 1
	path := filepath.Join(b.TempDir(), "trace")
	best := time.Duration(0)
	var instructions uint64
	for b.Loop() {
		f, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		c.Record = &machine.Record{To: f, Memory: &recorder.MemoryConfig{}}
		start := time.Now()
		r, err := machine.Run(context.Background(), c)
		if err != nil {
			b.Fatal(err)
		}
		if took := time.Since(start); best == 0 || took < best {
			best = took
		}
		instructions = r.Instructions
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(instructions)/best.Seconds()/1e6, "Minstr/s")
	b.ReportMetric(bytesAnAccess(b, path), "bytes/access")
}

// discarded is a listener that keeps nothing of the log of accesses.
type discarded struct{}

func (discarded) Event(any)                                    {}
func (discarded) Document(trace.Kind, []byte)                  {}
func (discarded) Memory(*memlog.Buffer, event.Stamp, uint64)   {}
func (discarded) BeginRun(event.Stamp, uint64) memlog.Consumer { return memlog.Discard() }
func (discarded) MemorySaved()                                 {}

// BenchmarkLoggedAccesses is the processor time of runs in which every access is logged, and nothing is kept, in times
// of plain runs: of pbzip2 with integers, and of a Fourier transform with floating point.
func BenchmarkLoggedAccesses(b *testing.B) {
	fft := filepath.Join(b.TempDir(), "fft")
	build := exec.Command("gcc", "-O2", "-D_GNU_SOURCE", "-pthread", "-I../../guest/programs/suite/common", "-o", fft, "../../guest/programs/suite/fft/fft.c", "-lm")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	input := filepath.Join(b.TempDir(), "input")
	var text []byte
	for i := uint64(1); len(text) < 2<<20; i++ {
		text = fmt.Appendf(text, "%x ", i*i*0x9e3779b97f4a7c15>>40)
	}
	if err := os.WriteFile(input, text, 0o600); err != nil {
		b.Fatal(err)
	}
	programs := map[string][]string{
		"integers": {"/usr/bin/pbzip2", "-p2", "-k", "-c", input},
		"reals":    {fft, "-m", "20", "-p", "2"},
	}
	plain, logged := map[string]time.Duration{}, map[string]time.Duration{}
	for b.Loop() {
		for name, args := range programs {
			for range 3 {
				plain[name] = leastTime(plain[name], timeOfRun(b, args, nil))
				logged[name] = leastTime(logged[name], timeOfRun(b, args, &machine.Record{Listener: discarded{}, Memory: &recorder.MemoryConfig{}}))
			}
		}
	}
	b.ReportMetric(logged["integers"].Seconds()/plain["integers"].Seconds(), "integers-times")
	b.ReportMetric(logged["reals"].Seconds()/plain["reals"].Seconds(), "reals-times")
}

func leastTime(least, took time.Duration) time.Duration {
	if least == 0 {
		return took
	}
	return min(least, took)
}

// timeOfRun is the processor time that a run takes.
func timeOfRun(b *testing.B, args []string, record *machine.Record) time.Duration {
	b.Helper()
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Stdout, c.Record = args, "/", io.Discard, record
	c.Mounts = append(c.Mounts, machine.Mount{Host: os.TempDir(), Guest: os.TempDir()})
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := used()
	if _, err := machine.Run(context.Background(), c); err != nil {
		b.Fatal(err)
	}
	return used() - start
}

// bytesAnAccess is the size of a trace by loads and stores.
func bytesAnAccess(b *testing.B, path string) float64 {
	b.Helper()
	r, err := trace.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	n := 0
	for e, err := range memtrace.Read(r, memtrace.Select{}) {
		if err != nil {
			b.Fatal(err)
		}
		if e.Kind == event.Load || e.Kind == event.Store {
			n++
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return float64(info.Size()) / float64(n)
}
