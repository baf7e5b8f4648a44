package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
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

// machineSetup is one way to run a program.
type machineSetup struct {
	cores  int
	seed   uint64
	policy string
}

func (m machineSetup) String() string {
	return fmt.Sprintf("%d cores, seed %d, %s", m.cores, m.seed, m.policy)
}

// machines lists the ways to run a form of a program: with 1, 4 and 8 cores and under another policy, with seeds
// and policies in rotation. In the small test size it has 4 cores alone, in the large one all seeds and policies.
func machines(turn int) []machineSetup {
	var list []machineSetup
	for _, cores := range testsize.Pick([]int{4}, []int{1, 4, 8}, []int{1, 4, 8}) {
		for _, seed := range testsize.Sample([]uint64{1, 2, 3}, 1, turn) {
			list = append(list, machineSetup{cores, seed, sched.Timed})
		}
	}
	others := []machineSetup{{4, 4, sched.Random}, {4, 5, sched.PCT}, {4, 1, sched.RR}}
	return append(list, testsize.Sample(others, testsize.Pick(0, 1, 3), turn/2)...)
}

// command runs a program by the command heddle, and counts its calls.
func (c *callCount) command(t *testing.T, bin string, m machineSetup, p Program, program string) outcome {
	t.Helper()
	summary := filepath.Join(t.TempDir(), "summary.json")
	args := []string{"run", "--quiet", "--cores", fmt.Sprint(m.cores), "--seed", fmt.Sprint(m.seed), "--sched", m.policy}
	if p.Root {
		args = append(args, "--uid", "0", "--gid", "0")
	}
	if p.CPU > arch.V2 {
		args = append(args, "--engine", engines.Auto, "--cpu", p.CPU.String())
	}
	o := run(t, folder(t, p), bin, append(args, "--summary", summary, "--", program)...)
	text, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	var r machine.Result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	c.add(&r)
	return o
}

// here runs a program as the command would, but in this process, which takes a third less
// time.
func (c *callCount) here(t *testing.T, m machineSetup, p Program, program string) outcome {
	t.Helper()
	slots <- struct{}{}
	defer func() { <-slots }()
	var stdout, stderr bytes.Buffer
	config := machine.DefaultConfig()
	config.Args, config.Dir, config.Stdout, config.Stderr = []string{program}, folder(t, p), &stdout, &stderr
	setLevel(&config, p)
	config.Cores, config.Seed, config.Sched = m.cores, m.seed, sched.Options{Policy: m.policy}
	if p.Root {
		config.UID, config.GID = 0, 0
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	r, err := machine.Run(ctx, config)
	if err != nil {
		t.Fatalf("%v: %v", m, err)
	}
	c.add(r)
	return outcome{stdout: stdout.String(), stderr: stderr.String() + r.Message, status: r.ExitCode}
}

// setLevel gives the machine the processor that the program needs.
func setLevel(c *machine.Config, p Program) {
	if c.CPU = p.CPU; p.CPU > arch.V2 {
		c.Engine = engines.Auto
	}
}

// TestUnderHeddle runs every program natively and under heddle: output and
// status must be the same on all machines. One of them is the command's, with four cores;
// the others are made in this process.
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
		forms(t, func(t *testing.T, turn int, p Program, program string) {
			if p.NativeOnly != "" {
				t.Skipf("the engine: %s", p.NativeOnly)
			}
			var natively []outcome
			again := func() { natively = append(natively, run(t, folder(t, p), program)) }
			isNative := p.notNative(t) == ""
			switch {
			case isNative:
				again()
			case p.Breakpoints:
				natively = append(natively, outcome{stdout: p.Recorded(), status: p.expected()})
			}
			for _, m := range machines(turn) {
				var got outcome
				if m.cores == 4 && m.policy == sched.Timed {
					got = calls.command(t, bin, m, p, program)
				} else {
					got = calls.here(t, m, p, program)
				}
				if len(natively) == 0 {
					if got.status != p.expected() || got.stdout == "" {
						t.Errorf("%v: want status %d, got %v", m, p.expected(), got)
					}
					natively = append(natively, got) // which other machines must agree with
					continue
				}
				// Rarely Linux itself has two results: a thread that wakes spuriously
				// queues again on the word from which it was requeued.
				for !agrees(got, natively) && len(natively) < 4 && isNative {
					again()
				}
				if !agrees(got, natively) {
					t.Errorf("%v: %v\nnatively: %v", m, got, natively[0])
				}
			}
		})
	})
	selected := flag.Lookup("test.run").Value.String() + flag.Lookup("test.skip").Value.String()
	if testsize.Pick(false, true, true) && !strings.Contains(selected, "/") {
		calls.check(t)
	}
}

// agrees reports whether one of the native runs ended like got.
func agrees(got outcome, natively []outcome) bool {
	return slices.ContainsFunc(natively, func(o outcome) bool { return o.stdout == got.stdout && o.status == got.status })
}

// callCount counts the system calls of all runs.
type callCount struct {
	mu   sync.Mutex
	made map[string]uint64
}

// add adds the counts of a run.
func (c *callCount) add(r *machine.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range r.Syscalls {
		c.made[name] += n
	}
}

// unmade are calls of the table that no program makes, because natively they
// would change or reveal something of the host.
var unmade = map[string]string{
	"ioprio_get": "what Linux answers depends on its version",
	"ioprio_set": "it is accepted without effect",
	"syslog":     "natively it may show the kernel's log",
	"vhangup":    "natively it may take away the terminal that the tests run on",
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
