package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// syncThreads are the numbers of threads at which synchronization is counted.
var syncThreads = []int{1, 2, 4, 8, 16}

// counts are the mean numbers of operations of a thread.
type counts struct {
	Barriers float64 `json:"barriers"`
	Locks    float64 `json:"locks"`
	Waits    float64 `json:"waits"`
}

func (c counts) String() string {
	return fmt.Sprintf("%.1f barriers, %.1f locks, %.1f waits", c.Barriers, c.Locks, c.Waits)
}

// readCounts reads the counts that a build with Count prints on standard error.
func readCounts(t testing.TB, r result, threads int) counts {
	t.Helper()
	var barriers, locks, waits float64
	if _, err := fmt.Sscanf(r.stderr, "counted: %f barriers, %f locks, %f waits", &barriers, &locks, &waits); err != nil || r.status != 0 {
		t.Fatalf("no counts: %v", r)
	}
	n := float64(threads)
	return counts{barriers / n, locks / n, waits / n}
}

// expected is the value of the formulas of program.yaml.
func (s *Synchronization) expected(t testing.TB, c Case, threads int) counts {
	t.Helper()
	value := func(formula string) float64 {
		v, err := c.Evaluate(formula, threads)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return counts{value(s.Barriers), value(s.Locks), value(s.Waits)}
}

// agrees reports whether a measured number agrees with a formula.
func agrees(got, want, tolerance float64) bool {
	const rounding = 1e-6
	return got <= want*tolerance+rounding && got >= want/tolerance-rounding
}

// TestSynchronizationCounts compares the operations of each kernel's threads,
// natively as a build counts them and under heddle as the recorder sees them in
// an ordinary build, with the formulas that program.yaml derives from
// the published structure of the original. How often a thread finds that it has
// to wait depends on the schedule, so that formula is a bound.
func TestSynchronizationCounts(t *testing.T) {
	each(t, Fixed, func(t *testing.T, p Program) {
		s := p.Synchronization
		if s == nil {
			return
		}
		counting := build(t, p, Variant{Form: Fixed, Optimize: 2, Count: true})
		plain := build(t, p, Variant{Form: Fixed, Optimize: 2})
		var all []syncCounts
		for _, c := range s.Cases {
			all = nil
			number := testsize.Pick(2, 3, len(syncThreads))
			if *update {
				number = len(syncThreads)
			}
			for _, threads := range testsize.Sample(syncThreads, number, turn(p)) {
				words := p.CommandLine(c.Arguments, threads)
				n := syncCounts{
					threads, s.expected(t, c, threads),
					countNatively(t, threads, append([]string{counting}, words...)),
					countRecorded(t, threads, append([]string{plain}, words...)),
				}
				if !s.allows(n.Native, n.Formula) || !s.allows(n.Heddle, n.Formula) {
					t.Errorf("%s with %d threads: %v natively, %v under heddle, want %v", c.Arguments, threads, n.Native, n.Heddle, n.Formula)
				}
				all = append(all, n)
			}
		}
		if *update {
			updated(t, func(m *measured) { m.Synchronization[p.Name] = all })
		}
	})
}

func countNatively(t *testing.T, threads int, command []string) counts {
	t.Helper()
	return readCounts(t, run(t, timeLimit, nil, command...), threads)
}

// countRecorded counts the operations that heddle's recorder recognises.
func countRecorded(t *testing.T, threads int, command []string) counts {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m := machineSetup{cores: max(threads, 2), seed: 1, sched: sched.Options{Policy: sched.Timed}}
	r, h := emulateRecorded(t, m, &machine.Record{To: file, Sync: &machine.SyncRecord{}}, command...)
	if emulated(r, h, "") != Correct {
		t.Errorf("%q on %v: %v", command, m, r)
	}
	in, err := trace.Open(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	number, n := map[event.SyncOp]float64{}, float64(threads)
	for e, err := range trace.Get[event.Sync](in, trace.Key{Kind: trace.Sync}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Phase <= event.Enter && e.Effects&event.Inner == 0 {
			number[e.Op]++
		}
	}
	return counts{number[event.OpBarrierWait] / n, number[event.OpMutexLock] / n, number[event.OpCondWait] / n}
}

// allows reports whether measured counts agree with the formulas.
func (s *Synchronization) allows(got, want counts) bool {
	return got.Barriers == want.Barriers && agrees(got.Locks, want.Locks, s.Tolerance) && got.Waits <= want.Waits
}
