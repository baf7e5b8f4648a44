package windows_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/experiments/windows"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	schedwindows "github.com/heddle-dmt/heddle/sched/windows"
)

// machines are other seeds, numbers of cores and delays.
var machines = []struct {
	seed  uint64
	cores int
	delay float64
}{{1, 4, 0}, {2, 1, 0}, {3, 8, 0.1}, {4, 2, 0.3}, {5, 6, 0.05}, {6, 3, 0.2}, {7, 5, 0}, {8, 7, 0.1}}

// configOf is the configuration of a shell script's run on a machine.
func configOf(t *testing.T, script string, at int) machine.Config {
	t.Helper()
	x := machines[at]
	c := machine.DefaultConfig()
	c.Args = []string{"/bin/sh", "-c", script}
	c.Env = machine.DefaultEnv()
	c.Dir = "/"
	if strings.Contains(script, "/pool/") {
		c.Mounts = []machine.Mount{{Host: poolFolder(t), Guest: "/pool"}}
	}
	c.Seed, c.Cores, c.Sched.DelayRate = x.seed, x.cores, x.delay
	return c
}

// runWindows runs a shell script with windows.
func runWindows(t *testing.T, ctx context.Context, script string, p windows.Parameters, store *schedwindows.Store, at int) (*machine.Result, *windows.Report, string) {
	t.Helper()
	c := configOf(t, script, at)
	return runConfig(t, ctx, &c, p, store)
}

func runConfig(t *testing.T, ctx context.Context, c *machine.Config, p windows.Parameters, store *schedwindows.Store) (*machine.Result, *windows.Report, string) {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	d := windows.New(c, p, store)
	r, err := machine.Run(ctx, *c, d.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	return r, d.Report(), out.String()
}

func poolParameters() windows.Parameters {
	return windows.Parameters{Rules: windows.Rules{Programs: []string{"poold"}}, Size: 4, Timeout: 20 * time.Millisecond, Atomics: true}
}

// withPool is a script in which the server of testdata/pool.c serves with a number of threads, as the
// program poold, and something else happens meanwhile, in which ASK is the same as another program.
func withPool(threads int, act string) string {
	text := fmt.Sprintf("cp ASK /tmp/poold; /tmp/poold serve 7000 %d & server=$!; sleep 0.1; %s; kill $server; wait $server; echo server $?", threads, act)
	return strings.ReplaceAll(text, "ASK", "/pool/pool")
}

var compiled struct {
	once   sync.Once
	folder string
}

// poolFolder is a folder with testdata/pool.c and the library testdata/racy.c, compiled once.
func poolFolder(t *testing.T) string {
	t.Helper()
	compiled.once.Do(func() {
		var err error
		compiled.folder, err = os.MkdirTemp("", "heddle-windows-")
		for name, file := range map[string]string{
			"pool":    gcctest.File(t, "testdata/pool.c", "-O2", "-I../../guest/programs/suite/common"),
			"racy.so": gcctest.File(t, "testdata/racy.c", "-O2", "-shared", "-fPIC"),
		} {
			var text []byte
			if err == nil {
				text, err = os.ReadFile(file)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(compiled.folder, name), text, 0o755)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return compiled.folder
}

func TestMain(m *testing.M) {
	status := m.Run()
	_ = os.RemoveAll(compiled.folder)
	os.Exit(status)
}

// allWindows are those of a run.
func allWindows(r *windows.Report) []schedwindows.Window { return r.List }

// fullWindows are the windows up to the last full one. Which of a client's connections has its last requests may depend on when
// the client has seen the replies before.
func fullWindows(r *windows.Report) []schedwindows.Window {
	n := len(r.List)
	for n > 0 && r.List[n-1].Cause != schedwindows.Full {
		n--
	}
	return r.List[:n]
}

// comparable has the values that must be equal in runs that have the same windows.
func comparable(of []schedwindows.Window) (list []string) {
	for i := range of {
		w := &of[i]
		list = append(list, fmt.Sprintln(w.Cause, w.Requests, w.Input, w.Output, w.State))
	}
	return list
}

func firstDifference(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// expectEqualWindows runs a script on several machines with one store. From the second run on,
// all windows must follow stored orders, to the same inputs, outputs and states. Races are looked for in the first run alone.
func expectEqualWindows(t *testing.T, script string, p windows.Parameters, runs int) (first *windows.Report, out string) {
	t.Helper()
	reports, out := expectEqualReports(t, script, p, runs, allWindows)
	return reports[0], out
}

// expectEqualReports is expectEqualWindows with the reports of all runs, for a part of their windows.
func expectEqualReports(t *testing.T, script string, p windows.Parameters, runs int, of func(*windows.Report) []schedwindows.Window) (reports []*windows.Report, out string) {
	t.Helper()
	store := schedwindows.NewStore()
	for at := range runs {
		r, report, text := runWindows(t, t.Context(), script, p, store, at)
		if r.Outcome != machine.OutcomeExit || r.ExitCode != 0 {
			t.Fatalf("machine %d: %v, status %d, %s\n%s", at, r.Outcome, r.ExitCode, r.Message, text)
		}
		reports = append(reports, report)
		if at == 0 {
			out = text
			p.Hybrid = false
			continue
		}
		first := reports[0]
		if text != out {
			t.Errorf("machine %d: output %q, want %q", at, text, out)
		}
		if a, b := comparable(of(first)), comparable(of(report)); !slices.Equal(a, b) {
			i := firstDifference(a, b)
			t.Errorf("machine %d: window %d of %d differs:\n%v%v", at, i, len(b), a[min(i, len(a)-1)], b[min(i, len(b)-1)])
		}
		if i := slices.IndexFunc(of(report), func(w schedwindows.Window) bool { return !w.Reused }); i >= 0 {
			t.Errorf("machine %d: %d windows had no stored order, the first is %+v, before %+v", at, report.Recorded, report.List[i], first.List[i])
		}
	}
	return reports, out
}

func TestWindowsOfAPool(t *testing.T) {
	script := withPool(3, "ASK ask 7000 4 12")
	first, out := expectEqualWindows(t, script, poolParameters(), testsize.Pick(2, 4, len(machines)))
	if out != "48 answers\nserver 0\n" {
		t.Errorf("output %q", out)
	}
	if first.Full != 12 || first.Requests != 48 || first.Carried != 0 {
		t.Errorf("%d full windows, %d requests, %d carried; want 12, 48, 0", first.Full, first.Requests, first.Carried)
	}
	if first.Response.P50 == 0 || first.Response.Max < first.Response.P99 || first.Throughput <= 0 {
		t.Errorf("response %+v, throughput %v", first.Response, first.Throughput)
	}
}

// A race on plain memory is not ordered by the orders of windows, and shows.
func TestRaceShows(t *testing.T) {
	script := withPool(-3, "ASK ask 7000 4 12")
	store := schedwindows.NewStore()
	states := map[string]bool{}
	for at := range testsize.Pick(3, 5, len(machines)) {
		_, report, _ := runWindows(t, t.Context(), script, poolParameters(), store, at)
		states[strings.Join(comparable(report.List), "")] = true
	}
	if len(states) < 2 {
		t.Error("the race has had the same result on all machines")
	}
}

// With constraints on the races of the first run, all runs have its results.
func TestHybridSchedulesOrderRaces(t *testing.T) {
	p := poolParameters()
	p.Hybrid = true
	first, out := expectEqualWindows(t, withPool(-3, "ASK ask 7000 4 12"), p, testsize.Pick(3, 5, len(machines)))
	if out != "48 answers\nserver 0\n" {
		t.Errorf("output %q", out)
	}
	if first.Races == 0 || first.Constraints == 0 {
		t.Errorf("%d races, %d constraints", first.Races, first.Constraints)
	}
}

func TestStoppedClientAndOtherClients(t *testing.T) {
	script := withPool(2, "ASK slow 7000 & slow=$!; ASK ask 7000 4 3; kill $slow; wait $slow")
	first, out := expectEqualWindows(t, script, poolParameters(), 2)
	if !strings.HasPrefix(out, "12 answers\n") || first.Carried == 0 {
		t.Errorf("output %q, %d tasks were carried", out, first.Carried)
	}
}

// manyScript has 1,000 connections to memcached at once, with two requests on each.
const manyScript = `
cat > /tmp/load.pl << 'END'
use IO::Socket::INET;
my @s = map { IO::Socket::INET->new("127.0.0.1:11211") or die "no connection: $!" } 1 .. $ARGV[0];
my $right = 0;
for my $round (1 .. 2) {
	syswrite($_, "get none\r\n") for @s;
	for my $s (@s) { sysread($s, my $b, 100); $right++ if $b eq "END\r\n" }
}
print "right $right\n";
END
memcached -u nobody -l 127.0.0.1 -t 4 -c 2000 &
server=$!
sleep 0.1
perl /tmp/load.pl COUNT
` + endServer

// largeScript sets a value of many bytes in redis.
const largeScript = `
` + startRedis + `head -c COUNT /dev/zero | tr '\0' x > /tmp/big
redis-cli -x set big < /tmp/big
redis-cli strlen big
redis-cli --raw get big | cmp -n COUNT - /tmp/big && echo same
` + endServer

// TestLargeLoads has 1,000 connections at once, and a request of 10 MB, in the large size of 100 MB.
func TestLargeLoads(t *testing.T) {
	testsize.SkipQuick(t)
	size := testsize.Pick(0, 10, 100) << 20
	for _, x := range []struct {
		rules, needs, script string
		count                int
		out                  string
	}{
		{"memcached", "/usr/bin/memcached", manyScript, 1000, "right 2000\nserver 0\n"},
		{"redis", "/usr/bin/redis-server", largeScript, size, fmt.Sprintf("OK\n%d\nsame\nserver 0\n", size)},
	} {
		t.Run(x.rules, func(t *testing.T) {
			p := windows.Parameters{Rules: rulesOf(t, x.rules, x.needs), Size: 8, Atomics: true}
			script := strings.ReplaceAll(x.script, "COUNT", fmt.Sprint(x.count))
			r, report, out := runWindows(t, t.Context(), script, p, schedwindows.NewStore(), 0)
			if out != x.out || r.Outcome != machine.OutcomeExit || report.Forced > 0 {
				t.Errorf("%v, output %q, want %q; %v", r.Outcome, out, x.out, report)
			}
		})
	}
}

func TestServerCrash(t *testing.T) {
	r, report, out := runWindows(t, t.Context(), withPool(2, "ASK ask 7000 4 2; ASK crash 7000"), poolParameters(), schedwindows.NewStore(), 0)
	if r.Outcome != machine.OutcomeExit || !strings.Contains(out, "server 134") {
		t.Errorf("%v, output %q", r.Outcome, out)
	}
	if last := report.List[len(report.List)-1]; last.End < last.Begin || report.Requests != 9 {
		t.Errorf("last window %+v, %d requests", last, report.Requests)
	}
}

func TestInterruptedRunHasAReport(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, report, _ := runWindows(t, ctx, withPool(2, "while :; do ASK ask 7000 4 100; done"), poolParameters(), schedwindows.NewStore(), 0)
	if r.Outcome != machine.OutcomeInterrupted || report == nil {
		t.Errorf("%v, report %v", r.Outcome, report)
	}
}

// A run that is interrupted within a window has a report, too; the window has no state.
func TestInterruptionWithinAWindow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := poolParameters()
	p.Rules.Programs = []string{"sh"}
	c := machine.DefaultConfig()
	c.Args, c.Env, c.Dir = []string{"/bin/sh", "-c", "echo begun; while :; do :; done"}, machine.DefaultEnv(), "/"
	c.Stdout = writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil })
	d := windows.New(&c, p, schedwindows.NewStore())
	r, err := machine.Run(ctx, c, d.Options()...)
	if err != nil || r.Outcome != machine.OutcomeInterrupted {
		t.Fatalf("%v, %v", r, err)
	}
	if report := d.Report(); report.Windows != 1 || report.List[0].State != "" || report.List[0].End == 0 {
		t.Errorf("%+v", report.List)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// clockPairs reads a clock twice, again and again, until the second reading is in another millisecond than the first.
const clockPairs = `
#include <time.h>
#include <stdio.h>
static long ms(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC_COARSE, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
int main(void) {
	for (int phase = 0; phase < 2; phase++) {
		long n = 0;
		for (long a = ms(), b = a; a == b && n < 100000; n++) { a = ms(); b = ms(); }
		puts(n < 100000 ? "another" : "the same");
	}
	return 0;
}`

// A server that looks for the resolution of a clock finds it, as mariadbd does at its start.
func TestServerSeesClockAdvance(t *testing.T) {
	bin := gcctest.C(t, clockPairs)
	p := poolParameters()
	p.Rules.Programs = []string{filepath.Base(bin)}
	_, out := expectEqualWindows(t, bin, p, 2)
	if out != "another\nanother\n" {
		t.Errorf("output %q", out)
	}
}

// With time bubbles requests are admitted while others are processed.
func TestTimeBubbles(t *testing.T) {
	p := poolParameters()
	p.Bubble = 20
	first, out := expectEqualOutput(t, withPool(3, "ASK ask 7000 4 12"), p)
	if out != "48 answers\nserver 0\n" || first.Requests != 48 {
		t.Errorf("output %q, %d requests", out, first.Requests)
	}
}

func expectEqualOutput(t *testing.T, script string, p windows.Parameters) (*windows.Report, string) {
	t.Helper()
	r, report, out := runWindows(t, t.Context(), script, p, schedwindows.NewStore(), 0)
	if r.Outcome != machine.OutcomeExit {
		t.Fatalf("%v: %s", r.Outcome, r.Message)
	}
	return report, out
}

func TestFunctionsBoundTasks(t *testing.T) {
	p := poolParameters()
	p.Rules.Function = "function:count"
	first, _ := expectEqualWindows(t, withPool(2, "ASK ask 7000 4 2"), p, 2)
	if first.Requests != 8 {
		t.Errorf("%d requests", first.Requests)
	}
}

// A window in which other timers are due follows another schedule, since other threads run.
func TestPreconditionsWithTimers(t *testing.T) {
	p := poolParameters()
	p.Size, p.Preconditions, p.NoStates = 1, true, true
	rounds := testsize.Pick(60, 60, 2000)
	script := strings.Replace(withPool(1, fmt.Sprintf("ASK ask 7000 1 %d", rounds)), "serve 7000 1", "serve 7000 1 3", 1)
	_, report, out := runWindows(t, t.Context(), strings.ReplaceAll(script, "ASK", "/pool/pool"), p, schedwindows.NewStore(), 0)
	if want := fmt.Sprintf("%d answers\nserver 0\n", rounds); out != want {
		t.Errorf("output %q, want %q", out, want)
	}
	if report.Admitted == 0 || report.Followed != report.Admitted {
		i := slices.IndexFunc(report.List, func(w schedwindows.Window) bool { return w.Admitted > 0 && !w.Reused })
		t.Errorf("%d windows were admitted, %d have followed their schedules; the first that has not: %+v", report.Admitted, report.Followed, report.List[max(i, 0)])
	}
}

// The pool's answers depend on the number of lines before, which it declares as state, and its threads on the places in its queue,
// which it does not.
func TestDeclaredState(t *testing.T) {
	p := poolParameters()
	p.Size, p.Preconditions, p.NoStates = 1, true, true
	_, report, _ := runWindows(t, t.Context(), withPool(1, "ASK ask 7000 1 12"), p, schedwindows.NewStore(), 0)
	declared := slices.IndexFunc(report.Hidden, func(h windows.Hidden) bool { return h.Declared })
	if declared < 0 || report.Hidden[declared].Place != "lines so far" || report.Undeclared < 0 || report.Undeclared >= report.Refused {
		t.Errorf("%d windows were refused, %d by memory that is not declared; hidden state %+v", report.Refused, report.Undeclared, report.Hidden)
	}
}

// lastWords is a server with one client at a time. It prints if the client had closed its connection when SIGTERM came.
const lastWords = `
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
static volatile int closed;
static void stop(int n) { puts(closed ? "closed" : "open"); fflush(stdout); _exit(0); }
int main(int argc, char **argv) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(7000), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM, 0);
	char b[16];
	if (argc > 1) {
		connect(s, (void *)&a, sizeof a);
		write(s, "ask", 3);
		return read(s, b, sizeof b) != 3;
	}
	signal(SIGTERM, stop);
	bind(s, (void *)&a, sizeof a);
	listen(s, 5);
	int c = accept(s, 0, 0);
	for (int n; (n = read(c, b, sizeof b)) > 0;) write(c, b, n);
	closed = 1;
	for (;;) pause();
}`

// A signal waits for the input that clients have sent before it.
func TestSignalAfterInput(t *testing.T) {
	bin := gcctest.C(t, lastWords)
	p := poolParameters()
	p.Rules.Programs = []string{filepath.Base(bin)}
	script := fmt.Sprintf("cp %s /tmp/client; %s & server=$!; sleep 0.1; /tmp/client ask; kill $server; wait $server; echo server $?", bin, bin)
	if _, _, out := runWindows(t, t.Context(), script, p, schedwindows.NewStore(), 0); out != "closed\nserver 0\n" {
		t.Errorf("output %q", out)
	}
}

// withoutTCP is a server that a client reaches by a UNIX socket and by UDP.
const withoutTCP = `
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(int argc, char **argv) {
	struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "/tmp/socket"};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7001), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_UNIX, SOCK_STREAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0);
	char b[16];
	if (argc > 1) {
		sendto(u, "one", 3, 0, (void *)&at, sizeof at);
		sendto(u, "two", 3, 0, (void *)&at, sizeof at);
		connect(s, (void *)&path, sizeof path);
		write(s, "ask", 3);
		return read(s, b, sizeof b) != 3;
	}
	bind(s, (void *)&path, sizeof path);
	bind(u, (void *)&at, sizeof at);
	listen(s, 5);
	for (int i = 0; i < 2; i++) read(u, b, sizeof b);
	int c = accept(s, 0, 0);
	return read(c, b, sizeof b) != 3 || write(c, b, 3) != 3;
}`

// Connections by UNIX sockets and datagrams of UDP are not held back, and the report has their number.
func TestWhatIsNotHeldBack(t *testing.T) {
	bin := gcctest.C(t, withoutTCP)
	p := poolParameters()
	p.Rules.Programs = []string{filepath.Base(bin)}
	script := fmt.Sprintf("cp %s /tmp/client; %s & server=$!; sleep 0.1; /tmp/client ask; echo client $?; wait $server; echo server $?", bin, bin)
	_, report, out := runWindows(t, t.Context(), script, p, schedwindows.NewStore(), 0)
	if out != "client 0\nserver 0\n" || report.Unheld != 3 || !strings.Contains(report.String(), "3 connections and datagrams") {
		t.Errorf("%d not held, output %q: %s", report.Unheld, out, report)
	}
}
