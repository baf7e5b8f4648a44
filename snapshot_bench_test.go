package heddle_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle"
)

// rounds touches argv[1] MiB, then for ever writes a word to each of argv[2]
// pages, argv[3] times over, and prints a dot.
const rounds = `
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
	size_t size = (size_t)atoi(argv[1]) << 20, pages = atoi(argv[2]);
	int times = atoi(argv[3]);
	volatile char *p = malloc(size + 4096);
	memset((char *)p, 1, size);
	for (;;) {
		write(1, ".", 1);
		for (int t = 0; t < times; t++)
			for (size_t i = 0; i < pages; i++) p[i * 4096] += t;
	}
}`

// looper is a machine that runs rounds.
type looper struct {
	*heddle.Machine
	out *bytes.Buffer
}

func newLooper(b *testing.B, program string, args ...string) looper {
	b.Helper()
	c := heddle.DefaultConfig()
	out := &bytes.Buffer{}
	c.Args, c.Stdout, c.Cores = append([]string{program}, args...), out, 1
	m, err := heddle.New(c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.Close)
	l := looper{m, out}
	l.round() // what comes before the first
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

// shortest is the least of several times: noise only adds.
func shortest(times int, f func() time.Duration) time.Duration {
	least := f()
	for range times {
		least = min(least, f())
	}
	return least
}

// BenchmarkSnapshotBySize compares a guest of 1 GiB with one of 64 MiB.
func BenchmarkSnapshotBySize(b *testing.B) {
	program := compile(b, rounds)
	cost := func(mib string) time.Duration {
		l := newLooper(b, program, mib, "1", "1")
		return shortest(200, func() time.Duration {
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
// snapshot and the return to it: the copy and what the return has to undo.
func BenchmarkSnapshotWritten(b *testing.B) {
	const pages = 4096
	program := compile(b, rounds)
	l := newLooper(b, program, "64", "4096", "1")
	without := shortest(30, l.round)
	with := shortest(30, func() time.Duration {
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
	program := compile(b, rounds)
	l := newLooper(b, program, "64", "2048", "2000")
	// The engine's cache of translations grows when it is flushed, which a
	// snapshot does: let it have its final size on both sides.
	for range 8 {
		l.Snapshot().Release()
		l.round()
	}
	without := shortest(8, l.round)
	s := l.Snapshot()
	defer s.Release()
	l.round()
	with := shortest(8, l.round)
	for b.Loop() {
	}
	b.ReportMetric(float64(without)/float64(with), "speed-ratio")
}
