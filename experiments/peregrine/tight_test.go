package peregrine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

// TestTightLoops: four threads with nothing to do but to wait for each other or to race take at most 5 times as much
// virtual time under a schedule as without, if wake-ups have no noise. Its rows are a table of docs/schedules.md.
func TestTightLoops(t *testing.T) {
	all := []struct {
		name, flag string
		rounds     int
	}{
		{"a barrier that spins with PAUSE", "-DBARRIER=__builtin_ia32_pause()", 500},
		{"the same without PAUSE", "-DBARRIER=", 500},
		{"`pthread_spin_lock` around `n++`", "-DSPIN_LOCK", 8000},
		{"`n++` on a volatile counter", "-DCOUNTER", 80_000},
	}
	for _, p := range testsize.Sample(all, testsize.Pick(1, len(all), len(all)), 0) {
		t.Run(p.name, func(t *testing.T) {
			rounds := p.rounds / testsize.Pick(25, 25, 1)
			bin := gcctest.File(t, "testdata/tight.c", "-O2", "-g", "-pthread", p.flag, fmt.Sprintf("-DROUNDS=%d", rounds))
			c := machine.DefaultConfig()
			c.Args = []string{bin}
			path, start := record(t, c, true), processorTime(t)
			m, err := peregrine.Make(t.Context(), path, peregrine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			took := processorTime(t) - start
			instructions := uint64(0)
			times := func(operations bool, jitter float64) string {
				c := c
				c.Sched.Jitter = &jitter
				plain, err := machine.Run(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				instructions = plain.Instructions
				var list []string
				for _, seed := range []uint64{5, 6} {
					c.Seed = seed
					r, _ := enforced(t, c, m, enforce.Options{Runs: !operations})
					if !r.Schedule.Followed {
						t.Errorf("seed %d: %s", seed, r.Schedule.Reason)
					}
					times := float64(r.Cycles) / float64(plain.Cycles)
					if !operations && jitter == 0 && times > 5 {
						t.Errorf("seed %d: %.1f times the plain run", seed, times)
					}
					list = append(list, fmt.Sprintf("%.1f", times))
				}
				return strings.Join(list, " and ")
			}
			without, noisy, operations := times(false, 0), times(false, 0.1), times(true, 0)
			t.Logf("| %s, %d rounds, %d instructions | %d, %d | %.1f s | %s | %s | %s |", p.name, rounds, instructions,
				m.Counts.Races, m.Counts.Reduced, took.Seconds(), without, noisy, operations)
		})
	}
}

// processorTime is that of this process, of the user and of the system.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
