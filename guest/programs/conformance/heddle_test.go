package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/heddle-dmt/heddle/guest/kernel"
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
	calls := &callCount{made: map[string]uint64{}}
	t.Run("programs", func(t *testing.T) {
		forms(t, func(t *testing.T, p Program, program string) {
			if p.NativeOnly != "" {
				t.Skipf("the engine: %s", p.NativeOnly)
			}
			var natively []outcome
			again := func() { natively = append(natively, run(t, folder(t, p), program)) }
			if p.notNative() == "" {
				again()
			}
			for _, m := range machines(testing.Short()) {
				summary := filepath.Join(t.TempDir(), "summary.json")
				args := []string{"run", "--quiet", "--cores", fmt.Sprint(m.cores), "--seed", fmt.Sprint(m.seed), "--sched", m.policy}
				if p.Root {
					args = append(args, "--uid", "0", "--gid", "0")
				}
				got := run(t, folder(t, p), bin, append(args, "--summary", summary, "--", program)...)
				calls.add(t, summary)
				if len(natively) == 0 {
					if got.status != p.expected() || got.stdout == "" {
						t.Errorf("%d cores, seed %d, %s: want status %d, got %v", m.cores, m.seed, m.policy, p.expected(), got)
					}
					natively = append(natively, got) // which other machines must agree with
					continue
				}
				// Rarely Linux itself answers in two ways: a thread that is woken for
				// no reason queues again on the word that it was moved away from.
				for !agrees(got, natively) && len(natively) < 4 && p.notNative() == "" {
					again()
				}
				if !agrees(got, natively) {
					t.Errorf("%d cores, seed %d, %s: %v\nnatively: %v", m.cores, m.seed, m.policy, got, natively[0])
				}
			}
		})
	})
	calls.check(t)
}

// agrees tells whether one of the native runs ended like got.
func agrees(got outcome, natively []outcome) bool {
	return slices.ContainsFunc(natively, func(o outcome) bool { return o.stdout == got.stdout && o.status == got.status })
}

// callCount counts the system calls of all runs.
type callCount struct {
	mu   sync.Mutex
	made map[string]uint64
}

// add adds those that a run's summary lists.
func (c *callCount) add(t *testing.T, summary string) {
	t.Helper()
	text, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Syscalls map[string]uint64 `json:"syscalls"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range s.Syscalls {
		c.made[name] += n
	}
}

// unmade are calls of the table that no program makes, because natively they
// would do something to the host or tell of it.
var unmade = map[string]string{
	"ioprio_get": "what Linux answers depends on its version",
	"ioprio_set": "it is accepted without effect",
	"syslog":     "natively it may show the kernel's log",
}

// check demands that every call of the table that does something was made.
func (c *callCount) check(t *testing.T) {
	t.Helper()
	for _, s := range kernel.Syscalls() {
		if s.Support >= kernel.Unsupported || s.Note == "always EPERM" || unmade[s.Name] != "" {
			continue
		}
		if c.made[s.Name] == 0 {
			t.Errorf("no program makes the call %s", s.Name)
		}
	}
}
