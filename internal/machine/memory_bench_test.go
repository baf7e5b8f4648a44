package machine_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

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
