package find_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/experiments/find"
	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/memmodel"
)

// options are the defaults of the command, with 1,000 schedules.
func options(t *testing.T, workers int) find.Options {
	return find.Options{
		Schedules: 1000, Models: []memmodel.Model{memmodel.SC, memmodel.TSO}, Workers: workers,
		Trace: filepath.Join(t.TempDir(), "failure.trace"),
	}
}

// search searches for a failure of a program.
func search(t *testing.T, program string, o find.Options) *find.Report {
	t.Helper()
	r, err := find.Find(context.Background(), config(program), nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// searchSome is search with 300 schedules.
func searchSome(t *testing.T, program string, workers int) *find.Report {
	t.Helper()
	o := options(t, workers)
	o.Schedules = 300
	return search(t, program, o)
}

func config(program string) machine.Config {
	c := machine.DefaultConfig()
	c.Args = []string{program}
	return c
}

// TestFindsTextbookBugs: five programs with a bug of one kind each, none of which the undisturbed run
// shows, fail within 1,000 schedules.
func TestFindsTextbookBugs(t *testing.T) {
	for _, x := range []struct{ file, class string }{
		{"deadlock.c", machine.FailureDeadlock},
		{"atomicity.c", machine.FailureAssertion},
		{"publication.cpp", machine.FailureAssertion},
		{"increment.c", machine.FailureAssertion},
		{"buffering.c", machine.FailureAssertion},
	} {
		t.Run(x.file, func(t *testing.T) {
			var flags []string
			if filepath.Ext(x.file) == ".cpp" {
				flags = append(flags, "-lstdc++")
			}
			r := search(t, gcctest.File(t, filepath.Join("testdata", x.file), flags...), options(t, 2))
			f := r.Failures
			if len(f) != 1 || f[0].Number == 0 || f[0].Failure.Class != x.class {
				t.Fatalf("%+v", *r)
			}
			if x.file == "buffering.c" && f[0].Kind.Model != memmodel.TSO {
				t.Errorf("found under %v", f[0].Kind.Model)
			}
		})
	}
}

// TestProgramsOfTheSuite: buggy forms fail as their descriptions in guest/programs say, within 200
// schedules, and fixed forms do not fail in 60.
func TestProgramsOfTheSuite(t *testing.T) {
	for _, x := range []struct{ name, args, class string }{
		{"aba", "-p 2 -r 50", machine.FailureAssertion},
		{"apache-45605", "-p 2 -n 60", machine.FailureAssertion},
		{"frost-figure-1b", "-r 20", machine.FailureCrash},
		{"lost-wakeup", "-r 10", machine.FailureDeadlock},
		{"peterson", "-r 20", machine.FailureAssertion},
	} {
		for form, schedules := range map[suite.Form]int{suite.Buggy: 200, suite.Fixed: 60} {
			p, err := suite.Find(x.name)
			if err != nil {
				t.Fatal(err)
			}
			bin, err := p.Build(suite.Variant{Form: form, Optimize: 2, Static: true})
			if err != nil {
				t.Fatal(err)
			}
			c, o := config(bin), options(t, 2)
			c.Args, o.Schedules = append(c.Args, strings.Fields(x.args)...), schedules
			r, err := find.Find(t.Context(), c, nil, o)
			if err != nil {
				t.Fatal(err)
			}
			if found := len(r.Failures) == 1; found != (form == suite.Buggy) || found && r.Failures[0].Failure.Class != x.class {
				t.Errorf("%s, form %v: %+v", x.name, form, *r)
			}
		}
	}
}

// A program that prints what it has read has the outcome of store buffering as a wrong output, which only TSO has.
func TestOutputOfWeakModelIsWrong(t *testing.T) {
	r := searchSome(t, gcctest.File(t, "testdata/buffering.c", "-DPRINT"), 2)
	if f := r.Failures; len(f) != 1 || f[0].Output != `"00\n"` || f[0].Kind.Model != memmodel.TSO {
		t.Fatalf("%+v", *r)
	}
	for _, under := range []string{`"01\n"`, `"10\n"`, `"11\n"`} {
		if !strings.Contains(r.Failures[0].Reason, under) {
			t.Errorf("%s lacks %s", r.Failures[0].Reason, under)
		}
	}
}

// An output that no schedule without preemption prints is wrong if these agree; with AnyOutput none is.
func TestOutputOfPreemptionIsWrong(t *testing.T) {
	program := gcctest.File(t, "testdata/increment.c", "-DPRINT")
	r := searchSome(t, program, 2)
	if f := r.Failures; len(f) != 1 || f[0].Failure.Class != machine.FailureWrong || !strings.Contains(f[0].Reason, `"6\n"`) {
		t.Fatalf("%+v", *r)
	}
	o := options(t, 2)
	o.Schedules, o.AnyOutput = 100, true
	if r := search(t, program, o); len(r.Failures) > 0 || len(r.Outputs) < 2 {
		t.Errorf("%+v", *r)
	}
}

// Outputs that depend on the order of threads alone are not wrong.
func TestOutputOfOrderIsNotWrong(t *testing.T) {
	o := options(t, 2)
	o.Schedules = 80
	if r := search(t, gcctest.File(t, "testdata/order.c"), o); len(r.Failures) > 0 || len(r.Outputs) < 2 {
		t.Errorf("%+v", *r)
	}
}

// A search that does not end at a failure has both of a program that fails in two places, each once.
func TestAllFailures(t *testing.T) {
	o := options(t, 2)
	o.Schedules, o.All, o.Minimize = 150, true, 50
	r := search(t, gcctest.File(t, "testdata/twobugs.c"), o)
	classes := map[string]int{}
	for _, f := range r.Failures {
		classes[f.Failure.Class]++
		if _, err := os.Stat(f.Trace); err != nil || f.Schedules == 0 || f.Shortest == nil {
			t.Errorf("%v: %v", f, err)
		}
	}
	if want := map[string]int{machine.FailureDeadlock: 1, machine.FailureAssertion: 1}; !maps.Equal(classes, want) || r.Tried != o.Schedules {
		t.Errorf("%+v", *r)
	}
}

// A thread that ends without releasing a lock is a failure, which the mutex is named for.
func TestLeakedLock(t *testing.T) {
	r := searchSome(t, gcctest.File(t, "testdata/leak.c"), 2)
	if f := r.Failures; len(f) != 1 || f[0].Failure.Class != find.FailureLeak || f[0].Where != "guard" {
		t.Errorf("%+v", *r)
	}
}

// A sleep of 50 microseconds may end before another thread has executed a few instructions, and so may one of a second.
func TestSleepIsNoOrder(t *testing.T) {
	for _, time := range []string{"50", "1000000"} {
		r := searchSome(t, gcctest.File(t, "testdata/sleep.c", "-DTIME="+time), 2)
		if f := r.Failures; len(f) != 1 || f[0].Failure.Class != machine.FailureAssertion {
			t.Errorf("%s: %+v", time, *r)
		}
	}
}

// A wait with a time limit of a second does not end by it while others run for less.
func TestTimeLimitHolds(t *testing.T) {
	if r := searchSome(t, gcctest.C(t, watchdog, "-pthread"), 2); len(r.Failures) > 0 {
		t.Errorf("%+v", *r)
	}
}

const watchdog = `
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int done;
static void *watch(void *a) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  pthread_mutex_lock(&m);
  while (!done)
    if (pthread_cond_timedwait(&c, &m, &until)) abort();
  pthread_mutex_unlock(&m);
  return a;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, watch, 0);
  usleep(1000);
  pthread_mutex_lock(&m);
  done = 1;
  pthread_cond_signal(&c);
  pthread_mutex_unlock(&m);
  pthread_join(t, 0);
}`

// A handler of a signal that waits for a lock of the thread that it interrupts is a deadlock.
func TestDeadlockOfHandler(t *testing.T) {
	r := searchSome(t, gcctest.File(t, "testdata/handler.c"), 2)
	if f := r.Failures; len(f) != 1 || f[0].Failure.Class != machine.FailureDeadlock || !strings.Contains(f[0].Where, "handle") {
		t.Errorf("%+v", *r)
	}
}

// Two goroutines of a Go program, which one thread carries in most schedules, both see that there is enough.
func TestGoroutines(t *testing.T) {
	testsize.SkipQuick(t)
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	program := filepath.Join(t.TempDir(), "balance")
	if out, err := exec.Command(tool, "build", "-o", program, "testdata/balance/balance.go").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := searchSome(t, program, 2)
	if f := r.Failures; len(f) != 1 || f[0].Failure.String() != "wrong output: panic: too much was taken at balance.go:24" {
		t.Errorf("%+v", *r)
	}
}

// With HeapCheck a second free, and the use of a block that is freed, fail where they are.
func TestHeapCheck(t *testing.T) {
	program := gcctest.File(t, "testdata/freed.c")
	o := options(t, 2)
	o.Schedules, o.HeapCheck, o.All, o.Minimize = 150, true, true, 0
	r := search(t, program, o)
	got := map[string]bool{}
	for _, f := range r.Failures {
		got[f.Failure.String()] = true
	}
	if !got["crash: SIGSEGV"] || !got["assertion: heapcheck.c:0: free: Assertion `the block is freed once' failed."] {
		t.Errorf("%v", got)
	}
	o = options(t, 2)
	o.HeapCheck = true
	if _, err := find.Find(t.Context(), config(gcctest.File(t, "testdata/freed.c", "-static")), nil, o); err == nil || !strings.Contains(err.Error(), "linked statically") {
		t.Errorf("a static program: %v", err)
	}
}

// With HeapCheck a byte after a block is no memory, and its write fails at the instruction; without it nothing fails.
func TestHeapOverflow(t *testing.T) {
	program := gcctest.File(t, "testdata/overflow.c", "-g")
	for _, check := range []bool{true, false} {
		o := options(t, 2)
		o.Schedules, o.HeapCheck, o.Minimize = 150, check, 0
		r := search(t, program, o)
		if found := len(r.Failures) == 1; found != check || found && (r.Failures[0].Failure.String() != "crash: SIGSEGV" || r.Failures[0].Where != "overflow.c:7 (append)") {
			t.Errorf("heap check %v: %+v", check, *r)
		}
	}
}

// TestCampaign: a campaign with two strategies has a line in its table for each, and continues from its results.
func TestCampaign(t *testing.T) {
	file := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(file, []byte("programs: [{bug: stack}]\nstrategies: [walk, rff]\ntrials: 2\nschedules: 200\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var first, again, progress strings.Builder
	if err := find.Campaign(t.Context(), file, "", &first, &progress); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(progress.String(), "stack, "); got != 4 {
		t.Errorf("%d searches:\n%s", got, &progress)
	}
	progress.Reset()
	if err := find.Campaign(t.Context(), file, "", &again, &progress); err != nil || again.String() != first.String() || progress.Len() > 0 {
		t.Errorf("%v: first\n%s\nagain\n%s%s", err, &first, &again, &progress)
	}
	for _, line := range []string{"walk", "rff"} {
		if !regexp.MustCompile(`(?m)^stack +sc +` + line + ` +[0-9.]+ +[0-9.]+ +2 +2$`).MatchString(first.String()) {
			t.Errorf("no line of %s:\n%s", line, &first)
		}
	}
}

// forgetTraces removes the names of files from reports.
func forgetTraces(list ...*find.Report) {
	for _, r := range list {
		for i := range r.Failures {
			r.Failures[i].Trace = ""
		}
	}
}

// TestReportDoesNotDependOnWorkers: one worker and three have equal reports, of a search that finds a
// failure and of one that finds none.
func TestReportDoesNotDependOnWorkers(t *testing.T) {
	for _, source := range []string{"publication.cpp", "correct.c"} {
		var flags []string
		if filepath.Ext(source) == ".cpp" {
			flags = append(flags, "-lstdc++")
		}
		program := gcctest.File(t, filepath.Join("testdata", source), flags...)
		one, three := searchSome(t, program, 1), searchSome(t, program, 3)
		forgetTraces(one, three)
		if !reflect.DeepEqual(one, three) {
			t.Errorf("%s:\n%+v\n%+v", source, *one, *three)
		}
		if (len(one.Failures) > 0) != (source != "correct.c") {
			t.Errorf("%s: %+v", source, *one)
		}
	}
}

// TestEnginesAgree: the engines have equal reports. The program has repeated string instructions at
// points, before whose iterations they stop differently.
func TestEnginesAgree(t *testing.T) {
	if p := engines.Check(engines.Direct, arch.V2); p != nil {
		t.Skipf("%s: %s", p.Found, p.Allowed)
	}
	program := gcctest.File(t, "testdata/publication.cpp", "-lstdc++")
	var reports []*find.Report
	for _, engine := range []string{engines.Direct, engines.Unicorn} {
		c, o := config(program), options(t, 2)
		c.Engine, o.Schedules = engine, 72
		r, err := find.Find(t.Context(), c, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		forgetTraces(r)
		reports = append(reports, r)
	}
	if !reflect.DeepEqual(reports[0], reports[1]) {
		t.Errorf("direct: %+v\nunicorn: %+v", *reports[0], *reports[1])
	}
}

// TestBoundOfPCT compares the report's sentence with the theorem's number: 1-(1-1/(n k))^schedules.
func TestBoundOfPCT(t *testing.T) {
	r := find.Report{
		Tried: 100, Threads: 3, Points: 50,
		Guarantees: []find.Guarantee{{Depth: 2, Points: 50, Schedules: 100}},
	}
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("PCT of depth 2, in 100 schedules: a failure of that depth is found with a probability of at least %.2g, if there is one\n", 1-math.Pow(1-1./150, 100))
	if !strings.HasSuffix(text.String(), want) {
		t.Errorf("report\n%s\ndoes not end with %s", &text, want)
	}
}

// TestCancelledSearch: a search whose context is done reports that it was cut short.
func TestCancelledSearch(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := options(t, 1)
	o.Progress = func(int, int) { cancel() }
	r, err := find.Find(ctx, config(gcctest.File(t, "testdata/correct.c")), nil, o)
	if err != nil || len(r.Failures) > 0 || r.Ended != find.EndedByCaller || r.Tried == 0 || r.Tried == o.Schedules {
		t.Errorf("%+v, %v", r, err)
	}
}
