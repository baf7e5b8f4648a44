package machine_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
)

// looper is a machine that runs rounds.
type looper struct {
	*machine.Machine
	out *bytes.Buffer
}

func newLooper(b *testing.B, program string, args ...string) looper {
	b.Helper()
	c := machine.DefaultConfig()
	out := &bytes.Buffer{}
	c.Args, c.Stdout, c.Cores = append([]string{program}, args...), out, 1
	m, err := machine.New(c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.Close)
	l := looper{m, out}
	l.round() // the start of the program
	l.round()
	return l
}

// round runs to the next dot and returns the host's time for it.
func (l looper) round() time.Duration {
	start := time.Now()
	for n := l.out.Len(); l.out.Len() == n; {
		l.Step()
	}
	return time.Since(start)
}

// BenchmarkSnapshotBySize compares a guest of 1 GiB with one of 64 MiB.
func BenchmarkSnapshotBySize(b *testing.B) {
	program := machinetest.Compile(b, machinetest.Rounds)
	cost := func(mib string) time.Duration {
		l := newLooper(b, program, mib, "1", "1")
		return machinetest.Shortest(200, func() time.Duration {
			start := time.Now()
			s := l.Snapshot()
			l.Restore(s)
			s.Release()
			return time.Since(start)
		})
	}
	small, large := cost("64"), cost("1024")
	for b.Loop() {
	}
	b.ReportMetric(float64(large)/float64(small), "large/small")
	b.ReportMetric(float64(small.Nanoseconds())/1e3, "us/small")
}

// BenchmarkSnapshotWritten is the price of a page that is written between a
// snapshot and the return to it: the copy, and its removal by the return.
func BenchmarkSnapshotWritten(b *testing.B) {
	const pages = 4096
	program := machinetest.Compile(b, machinetest.Rounds)
	l := newLooper(b, program, "64", "4096", "1")
	without := machinetest.Shortest(30, l.round)
	with := machinetest.Shortest(30, func() time.Duration {
		start := time.Now()
		s := l.Snapshot()
		l.round()
		l.Restore(s)
		s.Release()
		return time.Since(start)
	})
	for b.Loop() {
	}
	b.ReportMetric(float64((with-without).Nanoseconds())/1e3/pages, "us/page")
}

// BenchmarkSnapshotAlive compares the speed with a snapshot alive, after the
// pages that the guest writes have been copied, with that without one.
func BenchmarkSnapshotAlive(b *testing.B) {
	program := machinetest.Compile(b, machinetest.Rounds)
	l := newLooper(b, program, "64", "2048", "2000")
	// The engine's cache of translations grows when it is flushed, which a
	// snapshot does: let it have its final size on both sides.
	for range 8 {
		l.Snapshot().Release()
		l.round()
	}
	without := machinetest.Shortest(8, l.round)
	s := l.Snapshot()
	defer s.Release()
	l.round()
	with := machinetest.Shortest(8, l.round)
	for b.Loop() {
	}
	b.ReportMetric(float64(without)/float64(with), "speed-ratio")
}
