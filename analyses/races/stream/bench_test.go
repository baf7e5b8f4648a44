package stream_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/analyses/races/stream"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// relaxation is four threads that go over rows of their own of a common grid,
// with a barrier between rounds and a lock for a sum: loads and stores of
// doubles, half of them of neighbours' rows at the edges.
const relaxation = `
#include <pthread.h>
#include <stdlib.h>
#define N 256
static double grid[2][N][N];
static double sum;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static int rounds;
static void *work(void *arg) {
	long id = (long)arg;
	for (int r = 0; r < rounds; r++) {
		double (*from)[N] = grid[r & 1], (*to)[N] = grid[!(r & 1)], part = 0;
		for (int i = id * N / 4; i < (id + 1) * N / 4; i++)
			for (int j = 1; j < N - 1; j++) {
				to[i][j] = (from[i][j - 1] + from[i][j + 1] + from[(i + 1) % N][j] + from[(i + N - 1) % N][j]) / 4 + 1;
				part += to[i][j];
			}
		pthread_mutex_lock(&mu);
		sum += part;
		pthread_mutex_unlock(&mu);
		pthread_barrier_wait(&barrier);
	}
	return arg;
}
int main(int c, char **v) {
	pthread_t t[4];
	rounds = atoi(v[1]);
	pthread_barrier_init(&barrier, 0, 4);
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)i);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	return sum == 0;
}`

func record(b *testing.B, rounds int) []byte {
	b.Helper()
	bin := gcctest.C(b, relaxation, "-O2")
	var to bytes.Buffer
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Cores = []string{bin, fmt.Sprint(rounds)}, filepath.Dir(bin), 4
	c.Record = &machine.Record{To: &to, Sync: &machine.SyncRecord{Heap: true}, Memory: &recorder.MemoryConfig{}}
	if r, err := machine.Run(context.Background(), c); err != nil || r.ExitCode != 0 {
		b.Fatalf("%+v, %v", r, err)
	}
	return to.Bytes()
}

// used is the processor time of this process, on all cores.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// once goes through a trace and returns the processor time of each access.
func once(b *testing.B, text []byte, order races.Order) (each time.Duration, accesses uint64) {
	b.Helper()
	r, err := trace.NewReader("bench", bytes.NewReader(text), int64(len(text)))
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	start := used(b)
	x, err := stream.New(r, stream.Options{Order: order, Race: func(*races.Race) {}})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	if err := x.ReadAll(); err != nil {
		b.Fatal(err)
	}
	c := x.Counts()
	n := c.Accesses + c.Skipped
	return (used(b) - start) * 1000 / time.Duration(n), n
}

// BenchmarkTrace measures accesses per second of processor time, decoding included, and the time
// for each in a trace of four times the length over that of a short one. The best of several
// counts: other work on the host only adds.
func BenchmarkTrace(b *testing.B) {
	const rounds = 20
	short, long := record(b, rounds), record(b, 4*rounds)
	for _, c := range []struct {
		name  string
		order races.Order
	}{{"hb", races.HappensBefore}, {"schedule", races.ScheduleRelative}} {
		b.Run(c.name, func(b *testing.B) {
			best := [2]time.Duration{time.Hour, time.Hour}
			n := [2]uint64{}
			for b.Loop() {
				for range 5 {
					for i, text := range [][]byte{short, long} {
						each, accesses := once(b, text, c.order)
						best[i], n[i] = min(best[i], each), accesses
					}
				}
			}
			b.ReportMetric(1e6/float64(best[1]), "Maccesses/s")
			b.ReportMetric(float64(best[1])/float64(best[0]), "4n/n")
			b.ReportMetric(float64(n[1]), "accesses")
		})
	}
}
