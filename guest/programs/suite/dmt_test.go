package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// dmtMachines are machines on which a deterministic schedule must be the same:
// other seeds, noise, injected delays, slices and numbers of cores. The programs
// do not ask for the number of cores.
func dmtMachines(policy string) []machineSetup {
	none, most := 0.0, 1.0
	quantum := uint64(0)
	if policy == sched.CoreDet {
		quantum = 5000 // which is a part of the algorithm
	}
	of := func(o sched.Options) sched.Options {
		if o.Policy = policy; quantum > 0 {
			o.Quantum = quantum
		}
		return o
	}
	return []machineSetup{
		{cores: 4, seed: 1, sched: of(sched.Options{Jitter: &none, Quantum: 1000})},
		{cores: 4, seed: 2, sched: of(sched.Options{DelayRate: 0.1, DelayCycles: 1_000_000})},
		{cores: 16, seed: 3, sched: of(sched.Options{Jitter: &most, Quantum: 20_000})},
		{cores: 2, seed: 4, sched: of(sched.Options{Jitter: &most, TimeSlice: 3000, Quantum: 300})},
		{cores: 1, seed: 5, sched: of(sched.Options{DelayRate: 0.5, TimeSlice: 20_000})},
	}
}

// firstAndSome is the first machine and a sample of the others.
func firstAndSome(all []machineSetup, turn int) []machineSetup {
	return append(all[:1:1], testsize.Sample(all[1:], testsize.Pick(1, 1, 4), turn)...)
}

// syncOrder runs a program and returns its output and a digest of the order
// in which its synchronization operations ended, with their threads, objects and
// results.
func syncOrder(t *testing.T, m machineSetup, command ...string) (r result, order string, h *machine.Result) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, h = emulateRecorded(t, m, &machine.Record{To: f, Sync: &machine.SyncRecord{}}, command...)
	return r, readOrder(t, path), h
}

// readOrder is the digest of the order of operations in a trace. Operations that
// end no wait of another thread (starts, ends, inner operations) are left out.
func readOrder(t *testing.T, path string) string {
	t.Helper()
	tr, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	names := map[arch.ThreadID]string{}
	for e, err := range trace.Get[event.Start](tr, trace.Key{Kind: trace.Threads}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		names[e.Thread] = e.Name
	}
	digest := sha256.New()
	for e, err := range trace.Get[event.Sync](tr, trace.Key{Kind: trace.Sync}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Phase == event.Return && e.Effects&event.Inner == 0 {
			fmt.Fprintln(digest, names[e.Thread], e.Op, e.Object, e.Result)
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// TestDeterministicOrders: under Kendo, round-robin and PARROT the order of operations of
// every fixed program, and under CoreDet's quantum, DThreads and Consequence the whole outcome,
// is the same on all machines, and the output is that of a native run.
func TestDeterministicOrders(t *testing.T) {
	each(t, Fixed, func(t *testing.T, p Program) {
		if p.Kind == Memory {
			t.Skip("orders threads by loads and stores, not by operations")
		}
		threads := max(p.Threads.Least, min(4, p.Threads.Greatest))
		command := append([]string{build(t, p, Variant{Form: Fixed, Optimize: 2})}, p.CommandLine(p.Arguments.Test, threads)...)
		want := run(t, timeLimit, nil, command...)
		policies := []string{sched.RRSync, sched.Kendo, sched.CoreDet, sched.Parrot, sched.DThreads, sched.Consequence}
		for n, policy := range testsize.Sample(policies, testsize.Pick(3, 3, 6), turn(p)) {
			machines := firstAndSome(dmtMachines(policy), turn(p)+n)
			first := ""
			for _, m := range machines {
				r, order, h := syncOrder(t, m, command...)
				if got := emulated(r, h, ""); got != Correct {
					t.Errorf("%s on %v: %s, %v", policy, m, got, r)
				}
				if p.Output != Varies && r.stdout != want.stdout {
					t.Errorf("%s on %v prints %q, natively %q", policy, m, r.stdout, want.stdout)
				}
				if order += r.stdout; first == "" {
					first = order
				}
				if order != first {
					t.Errorf("%s on %v: the order of operations differs from that on %v", policy, m, machines[0])
				}
			}
		}
	})
}

// TestHints: with hints, too, PARROT's order of operations is the same on all machines, unless a program has
// performance-critical sections. Those programs have the right output, which does not depend on the order.
func TestHints(t *testing.T) {
	each(t, Fixed, func(t *testing.T, p Program) {
		if p.Kind != Kernel {
			t.Skip("has no hints of its own")
		}
		text, err := sources.ReadFile(path.Join(p.Folder, p.Name+".c"))
		if err != nil {
			t.Fatal(err)
		}
		command := append([]string{build(t, p, Variant{Form: Fixed, Optimize: 2, Hints: true})}, p.CommandLine(p.Arguments.Test, 4)...)
		want := run(t, timeLimit, nil, command...)
		first := ""
		for _, m := range firstAndSome(dmtMachines(sched.Parrot), turn(p)) {
			r, order, h := syncOrder(t, m, command...)
			if got := emulated(r, h, ""); got != Correct || p.Output != Varies && r.stdout != want.stdout {
				t.Errorf("on %v: %s, %v", m, got, r)
			}
			if strings.Contains(string(text), "pcs_enter") {
				continue
			}
			if first == "" {
				first = order
			}
			if order != first {
				t.Errorf("the order of operations on %v differs", m)
			}
		}
	})
}

// printsTimes are the programs that print times on standard error.
var printsTimes = map[string]bool{"lu-non-contig": true}

// namesFolder are the programs that have mkdtemp name a folder. It draws another name for
// one of 22 seeds or so, which takes instructions.
var namesFolder = map[string]bool{"scanner": true}

// TestRacesHaveOneOutcome: under CoreDet's quantum, DThreads and Consequence the buggy forms,
// whose races give them many outcomes, have one each, to the byte and the last instruction.
func TestRacesHaveOneOutcome(t *testing.T) {
	each(t, Buggy, func(t *testing.T, p Program) {
		threads := max(p.Threads.Least, min(4, p.Threads.Greatest))
		command := append([]string{build(t, p, Variant{Form: Buggy, Optimize: 2})}, p.CommandLine(p.Trigger(), threads)...)
		policies := []string{sched.CoreDet, sched.DThreads, sched.Consequence}
		for _, policy := range testsize.Sample(policies, testsize.Pick(1, 1, 3), turn(p)) {
			checkOneOutcome(t, p, policy, command)
		}
	})
}

// checkOneOutcome runs a program under a policy on several machines.
func checkOneOutcome(t *testing.T, p Program, policy string, command []string) {
	t.Helper()
	machines := firstAndSome(dmtMachines(policy), turn(p))
	first := ""
	for _, m := range machines {
		m.limit = 50_000_000
		m.sched.Fairness = 5_000_000 // a program that spins under dthreads ends soon
		r, h := emulate(t, m, command...)
		got := fmt.Sprint(r, h.Outcome, h.Instructions)
		if policy == sched.CoreDet {
			got += h.ScheduleDigest // of quanta
		}
		if printsTimes[p.Name] {
			got = fmt.Sprint(r.status, h.Outcome)
		}
		if namesFolder[p.Name] {
			got = fmt.Sprint(r, h.Outcome)
		}
		if first == "" {
			first = got
		}
		if got != first {
			t.Errorf("%s on %v: %s, on %v: %s", policy, m, got, machines[0], first)
		}
	}
}
