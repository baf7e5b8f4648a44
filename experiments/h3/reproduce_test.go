package h3

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// bug is a program of the suite, and how its buggy form is made to fail.
type bug struct {
	program, args, model string
	sched                sched.Options
	class                string
	// strong are models under which the failure cannot happen.
	strong []string
	// right is how the right output is made, if another one is the failure.
	right bool
	long  bool // left out unless everything is tried
	slow  bool // takes seconds
}

var (
	wild = sched.Options{Policy: sched.Random, Quantum: 20}
	fine = sched.Options{Policy: sched.Random, Granularity: sched.Instruction, Quantum: 40}
	held = sched.Options{Policy: sched.Timed, Quantum: 200, DelayRate: 0.02, DelayCycles: 20000}
	// finest has every twelfth run of aba fail.
	finest = sched.Options{Policy: sched.Random, Granularity: sched.Instruction, Quantum: 10}
)

var bugs = []bug{
	{program: "bounded-buffer", args: "-p 5 -n 20", class: machine.FailureAssertion},
	{program: "string-buffer", args: "-p 2 -r 30", sched: sched.Options{Policy: sched.Random, Quantum: 200}, class: machine.FailureAssertion},
	{program: "deadlock", args: "-p 2 -r 20", sched: sched.Options{Policy: sched.Random, Granularity: sched.Sync}, class: machine.FailureDeadlock},
	{program: "racey", args: "-p 4 -i 500", class: machine.FailureWrong, right: true},
	{program: "compressor", args: "-p 2 -n 1 -b 1", sched: sched.Options{Policy: sched.PCT, Depth: 3, Length: 1_400_000}, class: machine.FailureCrash, slow: true},
	{program: "lost-wakeup", args: "-r 10", sched: fine, class: machine.FailureDeadlock},
	{program: "downloader", args: "-p 1 -n 16 -x 6", sched: sched.Options{Policy: sched.Random, Granularity: sched.Sync}, class: machine.FailureDeadlock, slow: true},
	{program: "glibc-12486", args: "-p 2 -r 60", sched: fine, class: machine.FailureAssertion, long: true},
	{program: "scanner", args: "-p 2 -n 2 -k 1", sched: sched.Options{Policy: sched.PCT, Depth: 3, Length: 560_000}, class: machine.FailureHang, slow: true},
	{program: "mysql-12848", args: "-r 30", sched: fine, class: machine.FailureCrash},
	{program: "mysql-644", args: "-r 60", sched: sched.Options{Policy: sched.Random, Quantum: 200}, class: machine.FailureAssertion},
	{program: "mysql-791", args: "-p 2 -n 60", sched: sched.Options{Policy: sched.Random, Quantum: 200}, class: machine.FailureWrong},
	{program: "apache-25520", args: "-p 2 -n 1", sched: sched.Options{Policy: sched.Random, Granularity: sched.Instruction, Quantum: 5}, class: machine.FailureWrong},
	{program: "apache-21287", args: "-p 2 -n 40", sched: held, class: machine.FailureAssertion},
	{program: "fft", args: "-p 4 -m 4", sched: held, class: machine.FailureWrong},
	{program: "lu-non-contig", args: "-p 4 -n 16", sched: held, class: machine.FailureWrong},
	{program: "mysql-3596", args: "-r 100", sched: fine, class: machine.FailureCrash, long: true},
	{program: "mysql-2011", args: "-r 20", sched: fine, class: machine.FailureWrong},
	{program: "frost-figure-1a", class: machine.FailureCrash},
	{program: "frost-figure-3", sched: sched.Options{Policy: sched.Random, Granularity: sched.Sync}, class: machine.FailureAssertion},
	{program: "dekker", args: "-r 10", model: "tso", sched: wild, class: machine.FailureAssertion, strong: []string{"sc"}},
	{program: "peterson", args: "-r 10", model: "tso", sched: wild, class: machine.FailureAssertion, strong: []string{"sc"}},
	{program: "chase-lev", args: "-p 2 -n 30", model: "tso", sched: wild, class: machine.FailureAssertion, strong: []string{"sc"}},
	{program: "h3-figure-2", args: "-r 10", model: "pso", sched: wild, class: machine.FailureAssertion, strong: []string{"sc", "tso"}},
	{program: "ring", args: "-n 10", model: "pso", sched: wild, class: machine.FailureAssertion, strong: []string{"sc", "tso"}},
	{program: "rcu", args: "-p 2 -r 10", model: "pso", sched: wild, class: machine.FailureAssertion, strong: []string{"sc", "tso"}},
	{program: "seqlock", args: "-p 2 -r 10", model: "pso", sched: wild, class: machine.FailureAssertion, strong: []string{"sc", "tso"}},
	{program: "double-checked", args: "-p 2 -r 10", model: "pso", sched: wild, class: machine.FailureAssertion, strong: []string{"sc", "tso"}},
	{program: "ticket-lock", args: "-p 2 -r 10", model: "pso", sched: wild, class: machine.FailureAssertion, strong: []string{"sc", "tso"}},
	{program: "aba", args: "-p 2 -r 20", sched: finest, class: machine.FailureAssertion, long: true},
	{program: "frost-figure-1b", args: "-r 20", sched: fine, class: machine.FailureCrash},
	{program: "message", args: "-r 3", model: "pso", sched: wild, class: machine.FailureAssertion, strong: []string{"sc", "tso"}},
}

// build is the buggy form of a program.
func build(t *testing.T, name string) string { return buildVariant(t, name, true) }

func buildVariant(t *testing.T, name string, static bool) string {
	t.Helper()
	p, err := suite.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := p.Build(suite.Variant{Form: suite.Buggy, Optimize: 2, Static: static, Debug: true})
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// maxInstructions bounds a program that does not end by itself.
const maxInstructions = 5_000_000

// config is that of a program's runs.
func config(b *bug, bin string) machine.Config {
	c := machine.DefaultConfig()
	c.Args, c.Dir = append([]string{bin}, strings.Fields(b.args)...), "/"
	c.Memory, c.MaxInstructions = storebuffer.Options{Model: b.model}, maxInstructions
	return c
}

// rightOutput is the output of the program when its threads run one after the other; nil if that
// does not matter.
func rightOutput(t *testing.T, b *bug, bin string) []byte {
	t.Helper()
	if !b.right {
		return nil
	}
	var stdout bytes.Buffer
	c := config(b, bin)
	c.Cores, c.Sched, c.Stdout = 1, sched.Options{Policy: sched.RR}, &stdout
	if _, err := machine.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return stdout.Bytes()
}

// record runs a program under a seed, and returns the trace and the failure.
func record(t *testing.T, b *bug, bin string, seed uint64, right []byte) (string, machine.Failure, bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "failing.trace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var stdout, stderr bytes.Buffer
	c := config(b, bin)
	c.Seed, c.Sched, c.Stdout, c.Stderr = seed, b.sched, &stdout, &stderr
	c.Record = &machine.Record{To: f, PT: &pt.Config{PSBPeriod: 4096, RetCompression: true}}
	r, err := machine.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	failure, failed := r.Failure(stderr.Bytes())
	if right != nil && !failed && !bytes.Equal(right, stdout.Bytes()) {
		failure, failed = machine.Failure{Class: machine.FailureWrong, Text: "standard output"}, true
	}
	return path, failure, failed && failure.Class == b.class
}

// stripped copies the part of a recording that H3 has, with the program and its end; without bytes
// at the end of each branch trace are left out.
func stripped(t *testing.T, path string, without int) string {
	t.Helper()
	return changed(t, path, 0, func(b []byte) []byte { return b[:len(b)-min(len(b), without)] })
}

// lost is a recording without size bytes of each branch trace, after a part of it.
func lost(t *testing.T, path string, part, parts, size int) string {
	t.Helper()
	return changed(t, path, 0, func(b []byte) []byte {
		at := len(b) * part / parts
		return slices.Delete(b, at, min(at+size, len(b)))
	})
}

// changed copies the part of a recording that H3 has, with the program and its end, and changes
// each branch trace. Of the decisions it copies the first ones, as many as decisions says.
func changed(t *testing.T, path string, decisions int, change func([]byte) []byte) string {
	t.Helper()
	from, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(path + ".stripped")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	w := trace.NewWriter(to)
	manifest, err := from.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Manifest(raw(manifest)); err != nil {
		t.Fatal(err)
	}
	for s, err := range trace.Get[event.Switch](from, trace.Key{Kind: trace.Sideband}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		trace.Put(w.Stream(trace.Sideband, 0), &s)
	}
	for c, err := range trace.Get[event.Code](from, trace.Key{Kind: trace.Code}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		trace.Put(w.Stream(trace.Code, 0), &c)
	}
	for d, err := range trace.Get[event.Decision](from, trace.Key{Kind: trace.Decisions}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		if decisions == 0 {
			break
		}
		decisions--
		trace.PutAt(w.Stream(trace.Decisions, 0), &d, event.Stamp{Thread: arch.NoThread})
	}
	for _, id := range from.IDs(trace.PT) {
		b, err := io.ReadAll(from.Bytes(trace.Key{Kind: trace.PT, ID: id}))
		if err != nil {
			t.Fatal(err)
		}
		w.ByteStream(trace.PT, id).Append(change(b), event.Stamp{Thread: arch.NoThread})
	}
	summary, err := from.Summary()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Summary(raw(summary)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Name()
}

// raw is JSON that is written as it is.
type raw []byte

func (r raw) MarshalJSON() ([]byte, error) { return r, nil }

// TestReproduces cites invariants 1 and 2: from the part of a failing run that H3 has, a schedule
// is computed under which the program fails in the same way, and none under models that forbid it.
func TestReproduces(t *testing.T) {
	for i := range bugs {
		b := &bugs[i]
		if b.long && !testsize.Long() || testing.Short() && (b.slow || i%4 != 0) {
			continue
		}
		t.Run(b.program, func(t *testing.T) {
			reproduceSeeds(t, b, build(t, b.program))
		})
	}
}

// reproduceSeeds reproduces failing runs of a program.
func reproduceSeeds(t *testing.T, b *bug, bin string) {
	t.Helper()
	reproduceCount(t, b, bin, seeds(b))
}

// reproduceCount reproduces a number of failing runs.
func reproduceCount(t *testing.T, b *bug, bin string, count int) {
	t.Helper()
	found := 0
	right := rightOutput(t, b, bin)
	for seed := uint64(1); seed <= 400 && found < count; seed++ {
		path, failure, failed := record(t, b, bin, seed, right)
		if !failed {
			continue
		}
		found++
		check(t, b, stripped(t, path, 0), seed, failure, right)
	}
	if found < count {
		t.Errorf("%d of 400 seeds fail by %s", found, b.class)
	}
}

// seeds is how many failing seeds are tried.
func seeds(b *bug) int {
	if b.slow {
		return testsize.Runs(1, 1, 20)
	}
	return testsize.Runs(1, 2, 20)
}

func check(t *testing.T, b *bug, path string, seed uint64, want machine.Failure, right []byte) {
	t.Helper()
	r, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, err := r.Reproduce(t.Context(), Options{Now: time.Now, Stdout: right})
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return
	}
	if out.Answer != smt.Satisfiable || !out.Verified || out.Divergence != "" || out.Failure != want {
		t.Errorf("seed %d: %v, verified %v: %s, %s; want %v; %s", seed, out.Answer, out.Verified, out.Ending, out.Divergence, want, out.describeAnswer())
		return
	}
	for _, model := range b.strong {
		other, err := r.Reproduce(t.Context(), Options{Now: time.Now, Model: model})
		if err != nil || other.Answer != smt.Unsatisfiable {
			t.Errorf("seed %d under %s: %v, %s, %v", seed, model, other.Answer, other.Limit, err)
		}
	}
	followed(t, r, out, want, right)
}

// followed demands that a schedule that was written is followed to the failure.
func followed(t *testing.T, r *Recording, out *Outcome, want machine.Failure, right []byte) {
	t.Helper()
	s, err := r.Schedule(out)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "schedule")
	if err := s.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	if s, err = ReadFile(file); err != nil {
		t.Fatal(err)
	}
	c, options, g, err := s.Config(r.replay, file)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	result, err := machine.Run(t.Context(), c, options...)
	if err != nil {
		t.Fatal(err)
	}
	got, failed := result.Failure(stderr.Bytes())
	if right != nil && !failed && !bytes.Equal(right, stdout.Bytes()) {
		got, failed = want, true
	}
	if !failed || got != want || g.Why() != "" {
		t.Errorf("the schedule in the file ends with %v, %s; want %v", got, g.Why(), want)
	}
}

// TestDamage wants a sentence for a trace that is cut, of another program, or not of
// branches, and for a schedule that was changed.
func TestDamage(t *testing.T) {
	b := &bugs[0]
	bin := build(t, b.program)
	path, _, failed := record(t, b, bin, 1, nil)
	if !failed {
		t.Fatal("seed 1 does not fail")
	}
	for _, without := range []int{1, 40, 400} {
		r, err := Open(t.Context(), stripped(t, path, without))
		if err == nil {
			_, err = r.Reproduce(t.Context(), Options{Now: time.Now})
			r.Close()
		}
		if err == nil {
			t.Errorf("branch traces without their last %d bytes give no error", without)
		}
		t.Log(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := path + ".cut"
	if err := os.WriteFile(cut, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), cut); err == nil || !strings.Contains(err.Error(), "end of the run") && !strings.Contains(err.Error(), "manifest") {
		t.Errorf("half of a file: %v", err)
	}
	if err := os.WriteFile(cut, []byte(firstLine+"{}\nend 0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(cut); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("a schedule that was changed: %v", err)
	}
}
