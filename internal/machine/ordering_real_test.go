package machine_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// operationOrder is a digest of the order in which the operations in a trace
// ended.
func operationOrder(t *testing.T, path string) string {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	digest := sha256.New()
	n := 0
	for e, err := range trace.Get[event.Sync](r, trace.Key{Kind: trace.Sync}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Phase == event.Return && e.Effects&event.Inner == 0 {
			fmt.Fprintln(digest, e.Thread, e.Op, e.Object, e.Result)
			n++
		}
	}
	return fmt.Sprintf("%d operations, %x", n, digest.Sum(nil))
}

// syncs asks for a recording of the operations.
func syncs(to io.Writer) *machine.Record {
	return &machine.Record{To: to, Sync: &machine.SyncRecord{}}
}

// TestRealProgramsHaveOneOrder: a program as Debian has it does its operations in
// one order under rr-sync and kendo, on any number of cores, with any seed and
// with delays, prints the same, and its recording can be repeated.
func TestRealProgramsHaveOneOrder(t *testing.T) {
	testsize.SkipQuick(t)
	dir := t.TempDir()
	args := realPrograms(t, dir)["pbzip2"]
	for _, policy := range testsize.Sample([]string{sched.RRSync, sched.Kendo}, testsize.Pick(1, 2, 2), 0) {
		t.Run(policy, func(t *testing.T) {
			var want, text string
			for i, cores := range []int{1, 4, 9} {
				c, out := machinetest.Config(t, args...)
				c.Dir, c.Cores, c.Seed = dir, cores, uint64(i)
				c.Sched = sched.Options{Policy: policy, DelayRate: 0.1 * float64(i)}
				recorded, path := record(t, c, syncs)
				if recorded.Outcome != "exit" {
					t.Fatalf("%s: %s", recorded.Outcome, recorded.Message)
				}
				if order := operationOrder(t, path); want == "" {
					want, text = order, out.String()
				} else if order != want || out.String() != text {
					t.Errorf("%d cores: %s, on one: %s", cores, order, want)
				}
				again, _ := replayed(t, path, nil)
				machinetest.CompareResults(t, again, recorded)
			}
		})
	}
}
