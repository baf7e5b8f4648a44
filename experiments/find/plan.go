package find

import (
	"math/bits"

	"github.com/heddle-dmt/heddle/internal/rand"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched/points"
)

// planBatch returns the schedules that are tried next. They depend on the results of earlier batches
// alone, so that the number of workers changes nothing.
func (s *search) planBatch() (list []*schedule) {
	first := s.report.Tried
	size := min(max(firstBatch, first/4), mostBatch)
	if first < s.outputs.serialRuns {
		size = s.outputs.serialRuns - first
	}
	for n := first; n < min(first+size, s.options.Schedules); n++ {
		list = append(list, s.numberedSchedule(n))
	}
	return list
}

// Sizes of batches: small ones at first, so that what a schedule finds is soon used.
const (
	firstBatch = 8
	mostBatch  = 256
)

// numberedSchedule is the schedule with a number, from 0 on. The first ones are without preemption. Then
// models take turns, then strategies. In one of two rounds of these a schedule decides only at accesses to
// one line, which the seed draws, and so do all schedules of SURW, which select that line.
func (s *search) numberedSchedule(n int) *schedule {
	seed := rand.Mix(s.seedBase() ^ uint64(n))
	if n < s.outputs.serialRuns {
		return &schedule{number: n, kind: Kind{Strategy: points.Serial}, seed: seed, limits: s.limits, mutexes: s.mutexes}
	}
	return s.scheduleOf(n, s.kindOf(n-s.outputs.serialRuns, s.options.Models), seed)
}

// scheduleOf makes a schedule of a kind.
func (s *search) scheduleOf(n int, kind Kind, seed uint64) *schedule {
	x := &schedule{
		number: n, kind: kind, seed: seed, limits: s.limits, mutexes: s.mutexes,
		at: s.points.at, stops: s.points.stops, estimate: points.Estimate{Points: s.most},
	}
	if kind.Focused && len(s.points.focuses) > 0 {
		l := s.drawFocus(rand.SplitMix(x.seed))
		x.at, x.estimate = l.at, points.Estimate{Points: l.total, Left: l.operations}
	}
	return x
}

// seedBase sets the seeds of schedules apart from those of a search with another seed.
func (s *search) seedBase() uint64 { return bits.RotateLeft64(s.config.Seed, 32) }

// drawFocus draws the line at which a schedule decides: in three of four cases one that the program's own
// file accesses, since most failures are its own and not of libraries.
func (s *search) drawFocus(draw rand.SplitMix) *line {
	among := s.points.focuses
	if len(s.points.ownFocuses) > 0 && draw.Below(4) > 0 {
		among = s.points.ownFocuses
	}
	return among[draw.Below(uint64(len(among)))]
}

// kindOf is the kind of the n-th schedule that may preempt.
func (s *search) kindOf(n int, models []memmodel.Model) Kind {
	names := points.Names()
	kind := Kind{Model: models[n%len(models)], Strategy: names[n/len(models)%len(names)]}
	kind.Focused = kind.Strategy == points.SURW || n/len(models)/len(names)%2 == 1
	return kind
}
