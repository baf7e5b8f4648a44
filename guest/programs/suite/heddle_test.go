package suite

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched"
)

// instructionLimit ends runs under heddle that do not end by themselves. It is
// ten times the length of the longest run at test size.
const instructionLimit = 1_000_000_000

// machineSetup is one way to run a program under heddle.
type machineSetup struct {
	cores int
	seed  uint64
	sched sched.Options
	// memory is the memory model; the zero value is SC.
	memory storebuffer.Options
	limit  uint64 // instructions; 0 means instructionLimit
}

func (m machineSetup) String() string {
	return fmt.Sprintf("%d cores, seed %d, %+v, %+v", m.cores, m.seed, m.sched, m.memory)
}

// emulate runs a command under heddle, in this process.
func emulate(t testing.TB, m machineSetup, command ...string) (result, *machine.Result) {
	t.Helper()
	return emulateRecorded(t, m, nil, command...)
}

// emulateRecorded also writes the recordings that the options name.
func emulateRecorded(t testing.TB, m machineSetup, record *machine.Record, command ...string) (result, *machine.Result) {
	t.Helper()
	slots <- struct{}{}
	defer func() { <-slots }()
	var stdout, stderr bytes.Buffer
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.MaxMemory = command, "/", 1<<30
	c.Cores, c.Seed, c.Sched, c.Memory = m.cores, m.seed, m.sched, m.memory
	c.Stdout, c.Stderr, c.Record = &stdout, &stderr, record
	if c.MaxInstructions = m.limit; m.limit == 0 {
		c.MaxInstructions = instructionLimit
	}
	r, err := machine.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	return result{
		stdout: stdout.String(), stderr: stderr.String() + r.Message, status: r.ExitCode,
		timedOut: r.Outcome == "instruction limit",
	}, r
}

// emulated is the class of a run's outcome under heddle, which distinguishes a deadlock
// and an endless loop.
func emulated(r result, h *machine.Result, want string) Outcome {
	switch {
	case h.Outcome == "deadlock":
		return Deadlock
	case h.Signal == int(syscall.SIGKILL), h.Outcome == "stopped":
		return Outcome(h.Outcome.String() + ": " + h.Message)
	}
	return r.outcome(want)
}

// kernelMachines are the schedules that every kernel is run under, with as many
// cores as threads, with more threads than cores, and with one core.
func kernelMachines(threads int) []machineSetup {
	cores := max(threads, 2)
	return []machineSetup{
		{cores: cores, seed: 1, sched: sched.Options{Policy: sched.Timed}},
		{cores: 4, seed: 2, sched: sched.Options{Policy: sched.Random, Quantum: 500}},
		{cores: 3, seed: 3, sched: sched.Options{Policy: sched.Timed, DelayRate: 0.02}},
		{cores: 1, seed: 4, sched: sched.Options{Policy: sched.Timed}},
		{cores: cores, seed: 5, sched: sched.Options{Policy: sched.Random, Granularity: sched.Sync}},
		{cores: cores, seed: 6, sched: sched.Options{Policy: sched.PCT, Length: 10_000_000}},
		{cores: cores, seed: 1, sched: sched.Options{Policy: sched.RR}},
	}
}

// TestThreadCountsUnderHeddle runs the fixed forms with 1 to 16 threads under
// several policies and seeds in turn, and with four threads in several variants. Each
// checks its own result, and those whose output the interleaving does not change
// must have the native output.
func TestThreadCountsUnderHeddle(t *testing.T) {
	each(t, Fixed, func(t *testing.T, p Program) {
		usual := Variant{Form: Fixed, Optimize: 2}
		variants := testsize.Sample(Variants(Fixed), variantsOf, turn(p))
		for n, threads := range threadCounts {
			words := p.CommandLine(p.Arguments.Test, threads)
			want := run(t, timeLimit, nil, append([]string{build(t, p, usual)}, words...)...)
			for i, m := range testsize.Sample(kernelMachines(threads), testsize.Pick(1, 1, 7), turn(p)+n) {
				v := usual
				if threads == 4 {
					v = variants[i%len(variants)]
				}
				r, h := emulate(t, m, append([]string{build(t, p, v)}, words...)...)
				if got := emulated(r, h, ""); got != Correct || r.stderr != "" {
					t.Errorf("%s with %d threads on %v: %s, %v", v.label(), threads, m, got, r)
				}
				if p.Output != Varies && r.stdout != want.stdout {
					t.Errorf("%s with %d threads on %v prints %q, natively %q", v.label(), threads, m, r.stdout, want.stdout)
				}
			}
		}
	})
}

// parseSchedule makes options of the words of a schedule in program.yaml.
func parseSchedule(t testing.TB, words []string) sched.Options {
	t.Helper()
	o, err := sched.ParseFlagWords(words)
	if err != nil {
		t.Fatalf("program.yaml: %v", err)
	}
	return o
}
