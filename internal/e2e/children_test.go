package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/sched"
)

// TestGoProgramThatStartsProcesses: goroutines start processes under each policy, and when the run is replayed, enforced,
// and executed by Frost, which ends with status 121 if it has survived races (of Go's run-time system). Natively
// the program prints 39: three times "child N\n" and "<nil>".
func TestGoProgramThatStartsProcesses(t *testing.T) {
	testsize.SkipQuick(t)
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "children")
	if out, err := exec.Command(tool, "build", "-o", program, "testdata/children/children.go").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const want = "39\n"
	expect := func(what string, o outcome, statuses ...int) {
		t.Helper()
		for _, status := range statuses {
			if o.status == status && o.stdout == want {
				return
			}
		}
		t.Errorf("%s: %s", what, o)
	}
	expect("natively", execute(t, dir, nil, program), 0)
	for _, policy := range sched.PolicyNames() {
		expect(policy, run(t, dir, []string{"--sched", policy, "--seed", "3"}, program), 0)
	}
	heddle := func(words ...string) outcome { return execute(t, dir, nil, append([]string{bin}, words...)...) }
	expect("record", heddle("record", "-o", "run.trace", "--", program), 0)
	expect("replay", heddle("replay", "run.trace"), 0)
	expect("schedule record", heddle("schedule", "record", "-o", "order.trace", "--", program), 0)
	if o := heddle("schedule", "compute", "-o", "order", "order.trace"); o.status != 0 {
		t.Errorf("schedule compute: %s", o)
	}
	expect("enforced", heddle("run", "--enforce", "order", "--cores", "7", "--seed", "9", "--", program), 0)
	expect("frost", heddle("frost", "run", "--", program), 0, 121)
}
