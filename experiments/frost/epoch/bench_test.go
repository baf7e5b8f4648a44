package epoch_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/experiments/frost/epoch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
)

// framed is a run with replicas of the program Rounds, an epoch a dot.
type framed struct {
	testing.TB
	*epoch.Runner
	at *epoch.Checkpoint // in the rounds
}

// newFramed runs rounds to its second dot.
func newFramed(t testing.TB, followers int, args ...string) *framed {
	t.Helper()
	c := machine.DefaultConfig()
	c.Args, c.Stdout, c.Cores = append([]string{machinetest.Compile(t, machinetest.Rounds)}, args...), io.Discard, 1
	r, err := epoch.NewRunner(context.Background(), c, epoch.Options{Followers: followers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	f := &framed{TB: t, Runner: r, at: r.Start()}
	for range 2 {
		end := f.epoch(f.at).End
		f.at.Release()
		f.at = end
	}
	return f
}

// epoch executes an epoch thread-parallel.
func (f *framed) epoch(at *epoch.Checkpoint) *epoch.Replica {
	f.Helper()
	x, err := f.RunThreadParallel(f.Context(), at, epoch.EpochOptions{Length: 1000, Grace: 0.05, Hang: 1e9})
	if err != nil || x.Failed != "" || len(x.Output) == 0 {
		f.Fatalf("an epoch ends with %v, %+v", err, x)
	}
	return x
}

func (f *framed) follower() *epoch.Follower {
	f.Helper()
	w, err := f.NewFollower()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(w.Close)
	return w
}

// BenchmarkEpochSetUp is the time until the three replicas of an epoch of a
// guest of 200 MiB can begin: the checkpoint, and the copies of two followers, one
// after the other.
func BenchmarkEpochSetUp(b *testing.B) {
	f := newFramed(b, 2, "200", "1024", "1")
	w := []*epoch.Follower{f.follower(), f.follower()}
	cost := machinetest.Shortest(50, func() time.Duration {
		x := f.epoch(f.at)
		start := time.Now()
		f.Checkpoint().Release()
		for _, w := range w {
			w.TakeOver(f.at, x)
		}
		took := time.Since(start)
		x.End.Release()
		return took
	})
	for b.Loop() {
	}
	b.ReportMetric(float64(cost.Nanoseconds())/1e6, "ms")
}

// TestReplicasShareMemory: eight epochs that are under way, with both replicas of
// two of them, take the guest's memory and the pages that each has written, with a few
// of stacks and tables.
func TestReplicasShareMemory(t *testing.T) {
	const guest, written, spare = 64 << 8, 128, 16 // pages
	f := newFramed(t, 2, "64", "128", "1")
	begin := f.UsedPages()
	if begin < guest || begin > guest+guest/8 {
		t.Fatalf("a guest of %d pages uses %d", guest, begin)
	}
	ends := []*epoch.Checkpoint{f.at}
	var first []*epoch.Replica
	for range 8 {
		x := f.epoch(ends[len(ends)-1])
		first = append(first, x)
		ends = append(ends, x.End)
	}
	if n := f.UsedPages() - begin; n < 8*written || n > 8*(written+spare) {
		t.Errorf("eight epochs take %d pages, each writes %d", n, written)
	}
	for i, n := range []int{0, 7} {
		w := f.follower()
		for range 2 {
			x, err := w.RunEpochParallel(t.Context(), ends[n], first[n], nil, 1e9)
			if err != nil {
				t.Fatal(err)
			}
			if same, why := f.CompareStates(ends[n], first[n], x); !same {
				t.Errorf("epoch %d: differs in %s", n, why)
			}
			if x.Pages < written || x.Pages > written+spare {
				t.Errorf("follower %d, epoch %d: %d pages, of which %d are written", i, n, x.Pages, written)
			}
			x.End.Release()
		}
	}
	for _, c := range slices.Backward(ends) {
		c.Release()
	}
}
