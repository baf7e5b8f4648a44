package syncops_test

import (
	"io"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
)

// BenchmarkRecording compares runs of a program that does little but lock, with
// its operations recorded and not.
func BenchmarkRecording(b *testing.B) {
	bin := build(b, "locks.c")
	for name, what := range map[string]*machine.SyncRecord{
		"off": nil, "functions": {}, "atomics": {Atomics: true},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				c := config(bin)
				if what != nil {
					c.Record = &machine.Record{To: io.Discard, Sync: what}
				}
				plain(b, c)
			}
		})
	}
}
