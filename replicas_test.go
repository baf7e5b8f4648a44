package heddle_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// epochs executes a program epoch by epoch, each thread-parallel and in two
// complementary orders, as long as all three are alike, and returns the output and
// the number of epochs.
func epochs(t *testing.T, c heddle.Config, o heddle.EpochOptions) (string, int) {
	t.Helper()
	ctx := context.Background()
	r, err := heddle.NewReplicas(c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out strings.Builder
	at := r.Start()
	n := 0
	for ; !at.Done(); n++ {
		first, err := r.Parallel(ctx, at, o)
		if err != nil {
			t.Fatal(err)
		}
		if first.Failed != "" {
			t.Fatalf("epoch %d: %s", n, first.Failed)
		}
		var order []event.ThreadID
		for i := range first.Order.Threads {
			order = append(order, first.Order.Threads[i].ID)
		}
		for i := range 2 {
			x, err := r.Follow(ctx, at, first.Order, order, 10*first.Instructions+1e6)
			if err != nil {
				t.Fatal(err)
			}
			if same, why := r.Same(at, first, x); !same || x.Failed != "" || x.Diverged != "" {
				t.Fatalf("epoch %d, replica %d: differs in %q; failed %q; diverged %q", n, i, why, x.Failed, x.Diverged)
			}
			x.End.Release()
			slices.Reverse(order)
		}
		for _, w := range first.Output {
			out.Write(w.Data)
		}
		at.Release()
		at = first.End
	}
	if _, err := r.Finish(at); err != nil {
		t.Fatal(err)
	}
	at.Release()
	return out.String(), n
}

// TestReplicasOfProgramWithoutRaces: all replicas of all epochs of a program in
// which everything is ordered are alike, whatever the length of epochs.
func TestReplicasOfProgramWithoutRaces(t *testing.T) {
	bin := compile(t, controlled)
	for _, length := range []float64{1000, 0.05, 0.01} {
		c, _ := config(t, bin)
		out, n := epochs(t, c, heddle.EpochOptions{Length: length, AtOutput: true, Hang: 1e9})
		if out != "210 1\n" {
			t.Errorf("epochs of %v ms: %q", length, out)
		}
		t.Log(length, n)
	}
}
