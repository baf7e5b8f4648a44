package h3

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// failingTrace records the first failing run of the bounded buffer.
func failingTrace(t *testing.T, bin string) string {
	t.Helper()
	path, _, failed := record(t, &bugs[0], bin, 1, nil)
	if !failed {
		t.Fatal("seed 1 does not fail")
	}
	return path
}

// clock is a clock that stands still until it is made late.
type clock struct{ late bool }

func (c *clock) now() time.Time {
	if c.late {
		return time.Unix(3600, 0)
	}
	return time.Unix(0, 0)
}

// Write makes it late when the formula is written: after the paths, before the search for a
// schedule.
func (c *clock) Write(b []byte) (int, error) {
	c.late = true
	return len(b), nil
}

// TestShareOfTheSymbolicTrace: the search by execution has the other half of the time and of the memory, if it follows.
func TestShareOfTheSymbolicTrace(t *testing.T) {
	l := newLimiter(t.Context(), &Options{Timeout: time.Minute, Memory: 4 << 30, Now: (&clock{}).now})
	if part := l.symbolicShare(false); part.timeLeft() != 30*time.Second || part.memory != 2<<30 {
		t.Errorf("before a search: %v and %d bytes", part.timeLeft(), part.memory)
	}
	if part := l.symbolicShare(true); part.timeLeft() != time.Minute || part.memory != 4<<30 {
		t.Errorf("without one: %v and %d bytes", part.timeLeft(), part.memory)
	}
}

// Limits of time hold at every step, that of memory while the solver works, and the report names
// the limit.
func TestLimitsHold(t *testing.T) {
	path := failingTrace(t, build(t, bugs[0].program))
	past, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if _, err := Open(past, path); err == nil || !strings.Contains(err.Error(), "the time limit was reached while "+readingPaths) {
		t.Errorf("opened without time: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(gone, path); !errors.Is(err, context.Canceled) {
		t.Errorf("opened when it is not wanted: %v", err)
	}
	r, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	calls := 0
	soon := func() time.Time { calls++; return time.Unix(int64(calls), 0) }
	if _, err := r.Reproduce(t.Context(), Options{Now: soon, Timeout: time.Second / 2}); err == nil || !strings.Contains(err.Error(), "the time limit was reached while "+followingPaths) {
		t.Errorf("followed without time: %v", err)
	}
	for _, encoding := range []string{"h3", "heddle"} {
		c := &clock{}
		out, err := r.Reproduce(t.Context(), Options{Now: c.now, Timeout: time.Second, Formula: c, Encoding: encoding})
		if err != nil || out.Answer != smt.Unknown || out.Limit != LimitTime || !strings.Contains(out.describeAnswer(), "the time limit was reached") {
			t.Errorf("%s without time: %+v, %v", encoding, out, err)
		}
	}
	if _, err := r.Reproduce(t.Context(), Options{Now: time.Now, Memory: 1 << 20}); err == nil || !strings.Contains(err.Error(), "the memory limit was reached while "+followingPaths) {
		t.Errorf("followed in a mebibyte: %v", err)
	}
	for _, encoding := range []string{"h3", "heddle"} {
		out := solvedIn(t, r, 1<<20, encoding)
		if out.Answer != smt.Unknown || out.Limit != LimitMemory || !strings.Contains(out.describeAnswer(), "limit of memory") {
			t.Errorf("%s in a mebibyte: %+v", encoding, out)
		}
	}
}

// solvedIn looks for a schedule with so much memory, once threads have been followed.
func solvedIn(t *testing.T, r *Recording, memory uint64, encoding string) *Outcome {
	t.Helper()
	out, o := &Outcome{Failure: r.Failure}, Options{Now: time.Now, Encoding: encoding}
	l := newLimiter(t.Context(), &o)
	r.start = r.begin
	if err := r.buildTrace(l, out, &o, traceOptions{}); err != nil {
		t.Fatal(err)
	}
	l.memory = memory
	interrupts, end := l.watchLimits()
	err := r.solveTrace(l, interrupts, out, &o)
	out.Limit = end()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// expiring is a context whose time is over when it has been asked left times.
type expiring struct {
	context.Context
	left int
}

func (e *expiring) Err() error {
	if e.left--; e.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// The limit of time holds while the program runs up to its second thread.
func TestLimitOfTheStart(t *testing.T) {
	path := failingTrace(t, build(t, bugs[0].program))
	from, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	const plenty = 1 << 30
	c := &expiring{t.Context(), plenty}
	if _, err := LoadPaths(c, from, path); err != nil {
		t.Fatal(err)
	}
	c.left = plenty - c.left // the number that the paths need
	if _, err := Open(c, path); err == nil || !strings.Contains(err.Error(), "the time limit was reached while "+startingAnew) {
		t.Errorf("started without time: %v", err)
	}
}

// The limit of time holds while the program runs under the schedule that was found.
func TestLimitOfTheRun(t *testing.T) {
	r, err := Open(t.Context(), failingTrace(t, build(t, bugs[0].program)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := &clock{}
	out, o := &Outcome{Failure: r.Failure}, Options{Now: c.now, Timeout: time.Second}
	l := newLimiter(t.Context(), &o)
	r.start = r.begin
	if err := r.buildTrace(l, out, &o, traceOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.solveTrace(l, nil, out, &o); err != nil || out.Answer != smt.Satisfiable {
		t.Fatalf("%v, %v", out.Answer, err)
	}
	c.late = true
	if err := l.limitError(r.verifySchedule(l, out, &o), runningPlan); err == nil || !strings.Contains(err.Error(), "the time limit was reached while "+runningPlan) {
		t.Errorf("ran without time: %v", err)
	}
	if out.Verified {
		t.Error("a run that was ended has failed in the same way")
	}
}

// A trace whose program is another one by now is refused.
func TestOtherProgram(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "program")
	install := func(program string) {
		t.Helper()
		b, err := os.ReadFile(build(t, program))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(bin, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	install(bugs[0].program)
	path := failingTrace(t, bin)
	install(bugs[1].program)
	if _, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), bin) {
		t.Errorf("a trace of another program: %v", err)
	} else {
		t.Log(err)
	}
}

// Packets that are lost in the middle of a branch trace are found, wherever that is.
func TestLostPackets(t *testing.T) {
	path := failingTrace(t, build(t, bugs[0].program))
	for n := range 12 {
		for _, size := range []int{1, 16} {
			lossy := lost(t, path, n, 12, size)
			r, err := Open(t.Context(), lossy)
			if err == nil {
				t.Errorf("%d bytes at %d/12 are missing, and nothing is said", size, n)
				r.Close()
			} else if text := err.Error(); !strings.Contains(text, "branch trace of core") {
				t.Errorf("%d bytes at %d/12 are missing: %v", size, n, err)
			}
		}
	}
}

// By the profile of a run that did not fail the failure is reproduced as by escape, and the report
// says how much was left out; a run of another program, and one without its accesses, are refused.
func TestProfile(t *testing.T) {
	b := &bugs[0]
	bin := build(t, b.program)
	var passing string
	for seed := uint64(1); passing == "" && seed < 100; seed++ {
		if path, _, failed := record(t, b, bin, seed, nil); !failed {
			passing = profiled(t, b, bin, seed)
			if _, err := readProfile(path, []string{bin}); err == nil || !strings.Contains(err.Error(), "has no accesses to memory") {
				t.Errorf("a profile without accesses: %v", err)
			}
		}
	}
	r, err := Open(t.Context(), failingTrace(t, bin))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	escaped, err := r.Reproduce(t.Context(), Options{Now: time.Now, Symbolic: true})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Reproduce(t.Context(), Options{Now: time.Now, Profile: passing})
	if err != nil || !out.Verified {
		t.Fatalf("%+v, %v", out, err)
	}
	var report strings.Builder
	if err := r.Report(&report, out, false); err != nil || !strings.Contains(report.String(), "by the profile of "+passing) {
		t.Errorf("%v: %s", err, &report)
	}
	t.Logf("%d pieces by escape, %d by profile: %s", len(escaped.Trace.Shared), len(out.Trace.Shared), out.Sharing)
	if len(out.Trace.Shared) == 0 || len(out.Trace.Shared) > len(escaped.Trace.Shared) {
		t.Errorf("%d pieces are shared by the profile, %d by escape", len(out.Trace.Shared), len(escaped.Trace.Shared))
	}
	if _, err := readProfile(passing, []string{"/bin/true"}); err == nil || !strings.Contains(err.Error(), "is one of "+bin) {
		t.Errorf("a profile of another program: %v", err)
	}
	if _, err := r.Reproduce(t.Context(), Options{Now: time.Now, Shared: []string{"stdout", "nothing"}}); !errors.Is(err, errNoVariable) {
		t.Errorf("a variable that does not exist: %v", err)
	}
	named, err := r.Reproduce(t.Context(), Options{Now: time.Now, Shared: []string{"stdout"}})
	if err == nil && named.Verified {
		t.Errorf("with nothing shared the failure is reproduced: %s", named.Sharing)
	}
}

// profiled records a run with its accesses to memory.
func profiled(t *testing.T, b *bug, bin string, seed uint64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "passing.trace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := config(b, bin)
	c.Seed, c.Sched, c.Record = seed, b.sched, &machine.Record{To: f, Memory: &recorder.MemoryConfig{}}
	if _, err := machine.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return path
}
