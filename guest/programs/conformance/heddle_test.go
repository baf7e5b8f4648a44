package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// heddleBinary is the command under test: $HEDDLE_BIN, or one that is built
// once for the test process.
var heddleBinary = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("HEDDLE_BIN"); bin != "" {
		return bin, nil
	}
	dir, err := os.MkdirTemp("", "heddle-conformance-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "heddle")
	out, err := exec.Command("go", "build", "-o", bin, "github.com/heddle-dmt/heddle/cmd/heddle").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build heddle: %w\n%s", err, out)
	}
	return bin, nil
})

// machine is one way to run a program.
type machine struct {
	cores, seed int
	policy      string
}

// machines lists the ways that every program is run. In short mode there is
// one.
func machines(short bool) []machine {
	if short {
		return []machine{{4, 1, "timed"}}
	}
	var list []machine
	for _, cores := range []int{1, 4, 8} {
		for seed := 1; seed <= 3; seed++ {
			list = append(list, machine{cores, seed, "timed"})
		}
	}
	return append(list, machine{4, 4, "random"}, machine{4, 5, "pct"}, machine{4, 1, "rr"})
}

// TestUnderHeddle runs every program natively and under heddle: output and
// status must be the same on all machines.
func TestUnderHeddle(t *testing.T) {
	bin, err := heddleBinary()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if os.Getenv("HEDDLE_BIN") == "" {
			os.RemoveAll(filepath.Dir(bin))
		}
	})
	t.Run("programs", func(t *testing.T) {
		forms(t, func(t *testing.T, p Program, program string) {
			if p.NativeOnly != "" {
				t.Skipf("the engine: %s", p.NativeOnly)
			}
			natively := []outcome{run(t, folder(t, p), program)}
			for _, m := range machines(testing.Short()) {
				got := run(t, folder(t, p), bin, "run", "--quiet", "--cores", fmt.Sprint(m.cores), "--seed", fmt.Sprint(m.seed),
					"--sched", m.policy, "--", program)
				// Rarely Linux itself answers in two ways: a thread that is woken for
				// no reason queues again on the word that it was moved away from.
				for !agrees(got, natively) && len(natively) < 4 {
					natively = append(natively, run(t, folder(t, p), program))
				}
				if !agrees(got, natively) {
					t.Errorf("%d cores, seed %d, %s: %v\nnatively: %v", m.cores, m.seed, m.policy, got, natively[0])
				}
			}
		})
	})
}

// agrees tells whether one of the native runs ended like got.
func agrees(got outcome, natively []outcome) bool {
	return slices.ContainsFunc(natively, func(o outcome) bool { return o.stdout == got.stdout && o.status == got.status })
}
