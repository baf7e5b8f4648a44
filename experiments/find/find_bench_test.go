package find_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/experiments/find"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/points"
)

// processorTime is the time that the process has used of processors.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSchedules: schedules for each second of processor time, with the profiles, of a program that has 20,000
// instructions from its second thread on, under both models of x86 and all strategies; and of whole runs of
// the program, as a process for each schedule has them.
func BenchmarkSchedules(b *testing.B) {
	program := gcctest.File(b, "testdata/short.c")
	report := func(b *testing.B, run func() int) {
		before, schedules := processorTime(b), 0
		for b.Loop() {
			schedules += run()
		}
		b.ReportMetric(float64(schedules)/(processorTime(b)-before).Seconds(), "schedules/s")
	}
	b.Run("snapshot", func(b *testing.B) {
		o := find.Options{Schedules: 3000, Models: []memmodel.Model{memmodel.SC, memmodel.TSO}, Workers: 1, Trace: b.TempDir() + "/trace"}
		report(b, func() int { return searchFor(b, program, o).Tried })
	})
	b.Run("whole", func(b *testing.B) {
		seed := uint64(0)
		report(b, func() int {
			c := config(program)
			seed++
			c.Seed, c.Sched = seed, sched.Options{Policy: sched.Random, Quantum: 200}
			if r, err := machine.Run(b.Context(), c, machine.Isolated(), machine.WithoutHashes()); err != nil || r.ExitCode != 0 {
				b.Fatalf("%+v, %v", r, err)
			}
			return 1
		})
	})
}

// BenchmarkDecisions: the processor time for each decision of schedules that have many and do little else, with all else of a
// search.
func BenchmarkDecisions(b *testing.B) {
	program := gcctest.File(b, "testdata/increment.c", "-DPRINT", "-DROUNDS=10000")
	o := find.Options{
		Schedules: 200, Models: []memmodel.Model{memmodel.SC}, Strategies: []string{points.Delay}, AnyOutput: true, Workers: 1,
		Trace: b.TempDir() + "/trace",
	}
	before, decisions := processorTime(b), 0.0
	for b.Loop() {
		r := searchFor(b, program, o)
		decisions += float64(r.Decisions)
	}
	b.ReportMetric(float64(processorTime(b)-before)/decisions, "ns/decision")
}

func searchFor(b *testing.B, program string, o find.Options) *find.Report {
	b.Helper()
	r, err := find.Find(b.Context(), config(program), nil, o)
	if err != nil || len(r.Failures) > 0 {
		b.Fatalf("%+v, %v", r, err)
	}
	return r
}
