package find_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/experiments/find"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/memmodel"
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

// BenchmarkSchedules: schedules for each second of processor time, with the profiles, of a program that has 20,000 instructions
// from its second thread on.
func BenchmarkSchedules(b *testing.B) {
	program := gcctest.File(b, "testdata/short.c")
	o := find.Options{Schedules: 3000, Models: []memmodel.Model{memmodel.SC, memmodel.TSO}, Workers: 1, Trace: b.TempDir() + "/trace"}
	for _, x := range []struct {
		name   string
		models []memmodel.Model
		only   []string
	}{
		{"default", o.Models, nil},
		{"sc-turns", []memmodel.Model{memmodel.SC}, []string{points.Delay}},
		{"sc-walk", []memmodel.Model{memmodel.SC}, []string{points.Walk}},
	} {
		b.Run(x.name, func(b *testing.B) {
			o.Models, o.Strategies = x.models, x.only
			before, schedules := processorTime(b), 0
			for b.Loop() {
				r, err := find.Find(b.Context(), config(program), nil, o)
				if err != nil || len(r.Failures) > 0 {
					b.Fatalf("%+v, %v", r, err)
				}
				schedules += r.Tried
			}
			spent := processorTime(b) - before
			b.ReportMetric(float64(schedules)/spent.Seconds(), "schedules/s")
		})
	}
}
