package explore_test

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/experiments/explore"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// BenchmarkExecutions: executions for each second of processor time, of a program without a C library, and of a
// litmus test with the GNU one. Garbage is collected as seldom as in the command, which has such a ballast, too.
func BenchmarkExecutions(b *testing.B) {
	ballast := make([]byte, 16<<20)
	defer runtime.KeepAlive(ballast)
	for name, program := range map[string]string{
		"own":  freestanding(b, "fib.c", "-DN=3"),
		"libc": gcctest.File(b, filepath.Join("..", "find", "testdata", "buffering.c")),
	} {
		b.Run(name, func(b *testing.B) {
			before, executions := processorTime(b), 0
			for b.Loop() {
				executions += exploreProgram(b, program, explore.Options{Workers: 1}).Executions
			}
			b.ReportMetric(float64(executions)/(processorTime(b)-before).Seconds(), "executions/s")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
