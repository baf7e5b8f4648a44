package epoch_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/frost/epoch"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/sched"
)

// epochs executes a program epoch by epoch, each thread-parallel and in two
// complementary orders, as long as all three are alike, and returns the output and
// the number of epochs.
func epochs(t *testing.T, c machine.Config, o epoch.EpochOptions) (string, int) {
	t.Helper()
	ctx := context.Background()
	r, err := epoch.NewRunner(context.Background(), c, epoch.Options{Followers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := r.NewFollower()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out strings.Builder
	at := r.Start()
	n := 0
	for ; !at.Done(); n++ {
		first, err := r.RunThreadParallel(ctx, at, o)
		if err != nil {
			t.Fatal(err)
		}
		if first.Failed != "" {
			t.Fatalf("epoch %d: %s", n, first.Failed)
		}
		var order []arch.ThreadID
		for i := range first.Order.Threads {
			order = append(order, first.Order.Threads[i].ID)
		}
		for i := range 2 {
			x, err := f.RunEpochParallel(ctx, at, first, order, 10*first.Instructions+1e6)
			if err != nil {
				t.Fatal(err)
			}
			if same, why := r.CompareStates(at, first, x); !same || x.Failed != "" || x.Diverged != "" {
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
	if _, err := r.Finish(context.Background(), at); err != nil {
		t.Fatal(err)
	}
	at.Release()
	return out.String(), n
}

// TestReplicasOfProgramWithoutRaces: all replicas of all epochs of a program in
// which everything is ordered are alike, whatever the length of epochs.
func TestReplicasOfProgramWithoutRaces(t *testing.T) {
	bin := gcctest.File(t, "../../peregrine/testdata/sync.c")
	for _, length := range []float64{1000, 0.05, 0.01} {
		c, _ := machinetest.Config(t, bin)
		out, n := epochs(t, c, epoch.EpochOptions{Length: length, Grace: 0.05, Hang: 1e9})
		if out != "210 1\n" {
			t.Errorf("epochs of %v ms: %q", length, out)
		}
		t.Log(length, n)
	}
}

// atomics is a program in which threads are ordered by atomic instructions alone: a
// lock that spins, a counter that gives each thread its place, and a count of
// references whose last holder writes the sum.
const atomics = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int lock, place, refs = 4, order[12], sum;
static void *work(void *u) {
	long me = (long)u;
	for (int i = 0; i < 3; i++) {
		order[__atomic_fetch_add(&place, 1, __ATOMIC_SEQ_CST)] = me;
		while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
		sum = 3 * sum + me;
		__atomic_exchange_n(&lock, 0, __ATOMIC_RELEASE);
		free(malloc(100 << me));
		for (volatile int k = 0; k < 2000; k++) ; // the others have begun
	}
	if (__atomic_sub_fetch(&refs, 1, __ATOMIC_ACQ_REL) == 0) {
		for (int i = 0; i < 12; i++) printf("%d", order[i]);
		printf(" %d\n", sum);
	}
	return 0;
}
int main(void) {
	pthread_t t[4];
	for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, work, (void *)i);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	return 0;
}`

// TestReplicasOfProgramWithAtomics: atomic instructions have a place in the order.
// The resulting order, which differs from seed to seed, is the same in all
// replicas.
func TestReplicasOfProgramWithAtomics(t *testing.T) {
	bin := machinetest.Compile(t, atomics)
	different := map[string]bool{}
	for seed := range uint64(6) {
		var outs []string
		for _, length := range []float64{1000, 0.01} {
			c, _ := machinetest.Config(t, bin)
			c.Seed, c.Sched = seed, sched.Options{Policy: sched.Random, Quantum: 50}
			out, _ := epochs(t, c, epoch.EpochOptions{Length: length, Grace: 0.05, Hang: 1e9})
			outs = append(outs, out)
		}
		different[outs[0]] = true
	}
	if len(different) < 2 {
		t.Errorf("all seeds give %v: they show nothing", different)
	}
}
