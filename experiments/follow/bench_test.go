package follow_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/follow"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// BenchmarkFollow follows gawk with one symbol, and with none for comparison.
// Instructions of the run per second include the machine's.
func BenchmarkFollow(b *testing.B) {
	for name, choose := range map[string]func(*event.Input) bool{
		"none": func(*event.Input) bool { return false },
		"args": arguments,
	} {
		b.Run(name, func(b *testing.B) {
			instructions := uint64(0)
			for b.Loop() {
				c := heddle.DefaultConfig()
				c.Args = []string{"gawk", "BEGIN { for (i = 0; i < 300; i++) s += i * ARGV[1]; print s }", "12"}
				c.Dir, c.Stdout, c.Stderr, c.Stdin = b.TempDir(), io.Discard, io.Discard, bytes.NewReader(nil)
				r := follow.New(follow.Options{Args: c.Args, Env: c.Env, Choose: choose})
				c.Record = &heddle.Record{To: io.Discard, Watch: []recorder.Recording{r}}
				if _, err := heddle.Run(context.Background(), c); err != nil {
					b.Fatal(err)
				}
				if r.Err() != nil {
					b.Fatal(r.Err())
				}
				instructions += r.Executor.Stats.Instructions
				r.Close()
			}
			b.ReportMetric(float64(instructions)/b.Elapsed().Seconds()/1e6, "Minstr/s")
		})
	}
}
