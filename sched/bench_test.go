package sched_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched"
	. "github.com/heddle-dmt/heddle/sched/schedtest"
)

// loaded makes a cluster with many more threads than cores.
func loaded(tb testing.TB, policy string) *sched.Cluster {
	c := NewCluster(tb, 8, 1, sched.Options{Policy: policy, TimeSlice: 20_000})
	c.SetSwitchCost(100)
	for id := range arch.ThreadID(64) {
		c.Ready(id+1, 0)
	}
	return c
}

func stepOnce(c *sched.Cluster) {
	s, _ := c.Next(1<<60, true)
	n := s.Instructions
	if n == 0 || s.Cycles < arch.Cycles(n) {
		n = uint64(s.Cycles)
	}
	c.Ran(s, n, arch.Cycles(n))
}

// Invariant 6.
func TestNextAndRanAllocateNothing(t *testing.T) {
	for _, policy := range sched.PolicyNames() {
		c := loaded(t, policy)
		for range 1000 {
			stepOnce(c)
		}
		if n := testing.AllocsPerRun(1000, func() { stepOnce(c) }); n != 0 {
			t.Errorf("%s: %v allocations a step", policy, n)
		}
	}
}

func BenchmarkNextRan(b *testing.B) {
	for _, policy := range sched.PolicyNames() {
		b.Run(policy, func(b *testing.B) {
			c := loaded(b, policy)
			for range b.N {
				stepOnce(c)
			}
		})
	}
}

// BenchmarkBlockReady is a thread that blocks and wakes another, as in a
// ping-pong over a pipe.
func BenchmarkBlockReady(b *testing.B) {
	for _, policy := range sched.PolicyNames() {
		b.Run(policy, func(b *testing.B) {
			c := loaded(b, policy)
			asleep := arch.ThreadID(1)
			c.Block(asleep)
			for range b.N {
				s, _ := c.Next(0, false)
				c.Ran(s, 500, 500)
				c.Block(s.Thread)
				c.Ready(asleep, c.Now(s.Core))
				asleep = s.Thread
			}
		})
	}
}
