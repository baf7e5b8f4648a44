package windows_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
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

// runWindows runs a shell script with windows.
func runWindows(t *testing.T, ctx context.Context, script string, p windows.Parameters, store *schedwindows.Store, at int) (*machine.Result, *windows.Report, string) {
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
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	d := windows.New(&c, p, store)
	r, err := machine.Run(ctx, c, d.Options()...)
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

// comparable has the values that must be equal in runs that have the same windows.
func comparable(r *windows.Report) (list []string) {
	for i := range r.List {
		w := &r.List[i]
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
	store := schedwindows.NewStore()
	for at := range runs {
		r, report, text := runWindows(t, t.Context(), script, p, store, at)
		if r.Outcome != machine.OutcomeExit || r.ExitCode != 0 {
			t.Fatalf("machine %d: %v, status %d, %s\n%s", at, r.Outcome, r.ExitCode, r.Message, text)
		}
		if first == nil {
			first, out = report, text
			p.Hybrid = false
			continue
		}
		if text != out {
			t.Errorf("machine %d: output %q, want %q", at, text, out)
		}
		if a, b := comparable(first), comparable(report); !slices.Equal(a, b) {
			i := firstDifference(a, b)
			t.Errorf("machine %d: window %d of %d differs:\n%v%v", at, i, len(b), a[min(i, len(a)-1)], b[min(i, len(b)-1)])
		}
		if report.Recorded > 0 {
			i := slices.IndexFunc(report.List, func(w schedwindows.Window) bool { return !w.Reused })
			t.Errorf("machine %d: %d windows had no stored order, the first is %+v, before %+v", at, report.Recorded, report.List[i], first.List[i])
		}
	}
	return first, out
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
		states[strings.Join(comparable(report), "")] = true
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
kill $server
wait $server
echo server $?
`

// largeScript sets a value of many bytes in redis.
const largeScript = `
redis-server --dir /tmp --save '' --logfile /tmp/log &
server=$!
sleep 0.1
head -c COUNT /dev/zero | tr '\0' x > /tmp/big
redis-cli -x set big < /tmp/big
redis-cli strlen big
redis-cli --raw get big | cmp -n COUNT - /tmp/big && echo same
kill $server
wait $server
echo server $?
`

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

type server struct{ rules, needs, script, out string }

// servers are servers of Debian whose windows must be equal on all machines.
var servers = []server{
	{"memcached", "/usr/bin/memcached", memcachedScript, "answers 160\nserver 0\n"},
	{"apache2", "/usr/sbin/apache2", apacheScript, "Complete requests:      160\nFailed requests:        0\nserver 0\n"},
}

// otherServers are further ones, in which no race is injected.
var otherServers = []server{
	{"redis", "/usr/bin/redis-server", redisScript, "right 160\nserver 0\n"},
	{"lighttpd", "/usr/sbin/lighttpd", lighttpdScript, "Complete requests:      160\nFailed requests:        0\nserver 0\n"},
}

const redisScript = `
cat > /tmp/load.pl << 'END'
use IO::Socket::INET;
my @s = map { IO::Socket::INET->new("127.0.0.1:6379") or die } 1 .. 8;
my $right = 0;
for my $r (1 .. $ARGV[0]) {
	for my $i (0 .. 7) { syswrite($s[$i], $r % 2 ? "set k$i v$r\r\n" : "get k$i\r\n") }
	my $value = "v" . ($r - 1);
	my $want = $r % 2 ? "+OK\r\n" : "\$" . length($value) . "\r\n$value\r\n";
	for my $s (@s) {
		my $b = "";
		while (length $b < length $want) { sysread($s, my $c, 4096) or last; $b .= $c }
		$right++ if $b eq $want;
	}
}
print "right $right\n";
END
redis-server --dir /tmp --save '' --logfile /tmp/log &
server=$!
sleep 0.1
perl /tmp/load.pl ROUNDS
kill $server
wait $server
echo server $?
`

const lighttpdScript = `
mkdir /tmp/web
head -c 1000 /dev/zero | tr '\0' x > /tmp/web/index.html
cat > /tmp/lighttpd.conf << END
server.port = 8080
server.bind = "127.0.0.1"
server.document-root = "/tmp/web"
server.errorlog = "/tmp/error.log"
index-file.names = ("index.html")
END
lighttpd -D -f /tmp/lighttpd.conf &
server=$!
sleep 0.1
ab -q -n REQUESTS -c 8 http://127.0.0.1:8080/ | grep -E '^(Complete|Failed)'
kill -INT $server
wait $server
echo server $?
`

const memcachedScript = `
cat > /tmp/load.pl << 'END'
use IO::Socket::INET;
my @s = map { IO::Socket::INET->new("127.0.0.1:11211") or die } 1 .. 8;
my $answers = 0;
for my $r (1 .. $ARGV[0]) {
	for my $i (0 .. 7) {
		my $k = "k" . (($r * 8 + $i) % 50);
		syswrite($s[$i], $r % 2 ? "set $k 0 0 5\r\nv" . sprintf("%04d", $r) . "\r\n" : "get $k\r\n");
	}
	for my $s (@s) {
		my $b = "";
		while ($b !~ /(STORED|END)\r\n$/) { sysread($s, my $c, 4096) or last; $b .= $c }
		$answers++ if $b =~ /(STORED|END)\r\n$/;
	}
}
print "answers $answers\n";
END
memcached -u nobody -l 127.0.0.1 -t 4 &
server=$!
sleep 0.1
perl /tmp/load.pl ROUNDS
kill $server
wait $server
echo server $?
`

const apacheScript = `
mkdir /tmp/web
head -c 1000 /dev/zero | tr '\0' x > /tmp/web/index.html
cat > /tmp/apache2.conf << END
ServerRoot /tmp
ServerName localhost
Listen 127.0.0.1:8080
User www-data
Group www-data
PidFile /tmp/apache2.pid
ErrorLog /tmp/error.log
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
StartServers 1
ServerLimit 1
ThreadsPerChild 8
MaxRequestWorkers 8
MinSpareThreads 1
MaxSpareThreads 8
ThreadLimit 8
DocumentRoot /tmp/web
DirectoryIndex index.html
END
apache2 -f /tmp/apache2.conf -DFOREGROUND &
server=$!
sleep 0.1
ab -q -n REQUESTS -c 8 http://127.0.0.1:8080/ | grep -E '^(Complete|Failed)'
kill -TERM $server
wait $server
echo server $?
`

// preloaded is the script of a server with testdata/racy.c preloaded.
func preloaded(rules, script string) string {
	return strings.Replace(script, "\n"+rules+" -", "\nLD_PRELOAD=/pool/racy.so "+rules+" -", 1)
}

// rulesOf returns the rules of a server, and skips a test on a host without its program.
func rulesOf(t *testing.T, name, program string) windows.Rules {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Skipf("%s is not installed: internal/setup/packages.sh servers installs it", filepath.Base(program))
	}
	rules, err := windows.LoadRules(name)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestRacesInServers has an injected race in each server: the results differ with the orders of turns and atomic
// instructions alone, and with constraints on the races of the first run they do not. In the large size there are at least
// 200 full windows of each server.
func TestRacesInServers(t *testing.T) {
	testsize.SkipQuick(t)
	for _, s := range servers {
		t.Run(s.rules, func(t *testing.T) {
			rules := rulesOf(t, s.rules, s.needs)
			rounds := testsize.Pick(20, 20, 202)
			script := preloaded(s.rules, strings.NewReplacer("ROUNDS", fmt.Sprint(rounds), "REQUESTS", fmt.Sprint(8*rounds)).Replace(s.script))
			p := windows.Parameters{Rules: rules, Size: 8, Atomics: true}
			states, store := map[string]bool{}, schedwindows.NewStore()
			for at := range 3 {
				_, report, _ := runWindows(t, t.Context(), script, p, store, at)
				states[strings.Join(comparable(report), "")] = true
			}
			if len(states) < 2 {
				t.Error("without constraints the race does not show")
			}
			p.Hybrid = true
			first, _ := expectEqualWindows(t, script, p, testsize.Pick(2, 3, len(machines)))
			if first.Full < rounds-2 || first.Constraints == 0 {
				t.Errorf("%d full windows, %d constraints", first.Full, first.Constraints)
			}
		})
	}
}

// freshScript has eight clients of memcached, one after the other: they set their keys to random values, get them and look
// whether these are the values, and ask for something else in every KNOWNth round. The script prints how many replies are right, and
// a digest of all.
const freshScript = `
cat > FOLDER/load.pl << 'END'
use IO::Socket::INET;
use Digest::MD5 "md5_hex";
my @s = map { IO::Socket::INET->new("127.0.0.1:18211") or die } 1 .. 8;
my ($rounds, $known, $right, %v, $x, $all) = (@ARGV, 0, (), 1, "");
for my $r (1 .. $rounds) {
	my @want;
	for my $i (0 .. 7) {
		my $ask;
		$x = ($x * 1103515245 + 12345) % 2147483648;
		if ($r % $known == 3 % $known) {
			($ask, $want[$i]) = ("get none$x\r\n", "END\r\n");
		} elsif ($r % 4 == 1) {
			$v{$i} = "value of some bytes " . sprintf("%08d", $x % 100000000);
			($ask, $want[$i]) = ("set key$i 0 0 28\r\n$v{$i}\r\n", "STORED\r\n");
		} else {
			($ask, $want[$i]) = ("get key$i\r\n", "VALUE key$i 0 28\r\n$v{$i}\r\nEND\r\n");
		}
		syswrite($s[$i], $ask);
		my $b = "";
		while (length($b) < length($want[$i])) { sysread($s[$i], my $c, 4096) or last; $b .= $c }
		$right++ if $b eq $want[$i];
		$all .= $b;
	}
}
print "right $right ", md5_hex($all), "\n";
END
memcached -u nobody -l 127.0.0.1 -p 18211 -t 4 OPTIONS &
server=$!
sleep 0.5
perl FOLDER/load.pl ROUNDS KNOWN
kill $server
wait $server
echo server $?
`

// freshRun runs freshScript in windows, and demands the output that it has natively.
func freshRun(t *testing.T, rules windows.Rules, options string, rounds, known int, preconditions bool, store *schedwindows.Store, at int) *windows.Report {
	t.Helper()
	script := strings.NewReplacer("ROUNDS", fmt.Sprint(rounds), "KNOWN", fmt.Sprint(known), "OPTIONS", options).Replace(freshScript)
	want, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(script, "FOLDER", t.TempDir())).Output()
	if err != nil || !strings.HasPrefix(string(want), fmt.Sprintf("right %d ", 8*rounds)) {
		t.Fatalf("natively: %v, %q", err, want)
	}
	p := windows.Parameters{Rules: rules, Size: 1, Atomics: true, Preconditions: preconditions, NoStates: true}
	_, report, out := runWindows(t, t.Context(), strings.ReplaceAll(script, "FOLDER", "/tmp"), p, store, at)
	if out != string(want) {
		t.Errorf("output %q, natively %q", out, want)
	}
	if report.Followed != report.Admitted {
		i := slices.IndexFunc(report.List, func(w schedwindows.Window) bool { return w.Admitted > 0 && !w.Reused })
		t.Errorf("%d windows were admitted, %d have followed their schedules; the first that has not: %+v", report.Admitted, report.Followed, report.List[i])
	}
	t.Logf("%d requests, %d admitted, %d with the recorded input, %d refused", report.Requests, report.Admitted, report.Exact, report.Refused)
	return report
}

// TestPreconditionsAreSound has requests with new bytes: the admitted ones follow the schedules to the replies of a server that runs
// natively, and so have the others, which are counted. In the large size 10,000 requests are admitted by preconditions that were computed
// meanwhile, and in a second run, for keys that were never set, 10,000 are refused.
func TestPreconditionsAreSound(t *testing.T) {
	testsize.SkipQuick(t)
	rules := rulesOf(t, "memcached", "/usr/bin/memcached")
	rounds, least := testsize.Pick(10, 10, 1500), testsize.Pick(1, 1, 10_000)
	for name, options := range map[string]string{"memcached": "", "without maintenance": "-o no_lru_maintainer,no_lru_crawler"} {
		t.Run(name, func(t *testing.T) {
			store := schedwindows.NewStore()
			first := freshRun(t, rules, options, rounds, 16, true, store, 0)
			if first.Admitted < least || first.Refused == 0 || first.Preconditions.Computed == 0 || first.Preconditions.Unknown > 0 {
				t.Errorf("%d windows were admitted and %d refused, preconditions: %+v", first.Admitted, first.Refused, first.Preconditions)
			}
			if second := freshRun(t, rules, options, rounds, 1, false, store, 2); second.Refused < least {
				t.Errorf("%d windows were refused", second.Refused)
			}
		})
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

// pagesScript has clients of apache2, one after the other, with requests for twenty pages and random values of a header. It
// prints how many replies are right, and a digest of all replies without the time.
const pagesScript = `
mkdir -p FOLDER/web
i=10
while [ $i -lt 30 ]; do
	head -c 1000 /dev/zero | tr '\0' x > FOLDER/web/page$i.html
	touch -d '2020-01-01 00:00:00 UTC' FOLDER/web/page$i.html
	i=$((i + 1))
done
cat > FOLDER/load.pl << 'END'
use IO::Socket::INET;
use Digest::MD5 "md5_hex";
my ($rounds, $clients) = @ARGV;
my @s = map { IO::Socket::INET->new("127.0.0.1:18080") or die } 1 .. $clients;
my ($right, $x, $all) = (0, 1, "");
for (1 .. $rounds) {
	for my $s (@s) {
		$x = ($x * 1103515245 + 12345) % 2147483648;
		my $page = 10 + int($x / 65536) % 20;
		syswrite($s, "GET /page$page.html HTTP/1.1\r\nHost: localhost\r\nX-Value: " . sprintf("%08d", $x % 100000000) . "\r\n\r\n");
		my $b = "";
		while ($b !~ /\r\n\r\nx{1000}$/) { sysread($s, my $c, 4096) or last; $b .= $c }
		$right++ if $b =~ /^HTTP\/1.1 200 OK\r\n/ && $b =~ /\r\n\r\nx{1000}$/;
		$b =~ s/^Date: .*\r\n//m;
		$all .= $b;
	}
}
print "right $right ", md5_hex($all), "\n";
END
cat > FOLDER/apache2.conf << END
ServerRoot FOLDER
ServerName localhost
Listen 127.0.0.1:18080
User www-data
Group www-data
PidFile FOLDER/apache2.pid
ErrorLog FOLDER/error.log
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
StartServers 1
ServerLimit 1
ThreadsPerChild THREADS
MaxRequestWorkers THREADS
MinSpareThreads 1
MaxSpareThreads THREADS
ThreadLimit THREADS
DocumentRoot FOLDER/web
MaxKeepAliveRequests 0
END
apache2 -f FOLDER/apache2.conf -DFOREGROUND &
server=$!
sleep 0.1
while [ ! -s FOLDER/apache2.pid ]; do sleep 0.1; done
perl FOLDER/load.pl ROUNDS CLIENTS
kill -TERM $server
wait $server
echo server $?
`

// TestPreconditionsOfPages has requests to apache2 with other paths and headers: those that are admitted follow the
// schedules, and all replies are those of a server that runs natively. In the large size 10,000 requests are admitted.
func TestPreconditionsOfPages(t *testing.T) {
	testsize.SkipQuick(t)
	rules := rulesOf(t, "apache2", "/usr/sbin/apache2")
	threads, clients, rounds := testsize.Pick(2, 2, 8), testsize.Pick(1, 1, 4), testsize.Pick(24, 24, 2800)
	script := strings.NewReplacer("THREADS", fmt.Sprint(threads), "CLIENTS", fmt.Sprint(clients), "ROUNDS", fmt.Sprint(rounds)).Replace(pagesScript)
	native := t.TempDir()
	for _, folder := range []string{native, filepath.Dir(native)} { // the server reads it as another user
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(script, "FOLDER", native)).Output()
	if err != nil || !strings.HasPrefix(string(want), fmt.Sprintf("right %d ", clients*rounds)) {
		t.Fatalf("natively: %v, %q", err, want)
	}
	p := windows.Parameters{Rules: rules, Size: 1, Atomics: true, Preconditions: true, NoStates: true}
	_, report, out := runWindows(t, t.Context(), strings.ReplaceAll(script, "FOLDER", "/tmp/pages"), p, schedwindows.NewStore(), 0)
	if out != string(want) {
		t.Errorf("output %q, natively %q", out, want)
	}
	if report.Requests != clients*rounds || report.Admitted == 0 || report.Followed != report.Admitted || report.Preconditions.Unknown > 0 {
		t.Errorf("%d requests, %d windows were admitted, %d have followed their schedules, %d were refused, preconditions: %+v", report.Requests, report.Admitted, report.Followed, report.Refused, report.Preconditions)
	}
	t.Logf("%d requests, %d admitted, %d refused", report.Requests, report.Admitted, report.Refused)
}

// threePagesScript has four clients of lighttpd, one after the other, with requests for three pages and random values of a header.
const threePagesScript = `
mkdir /tmp/web
for i in 1 2 3; do head -c 1000 /dev/zero | tr '\0' x > /tmp/web/page$i.html; done
cat > /tmp/lighttpd.conf << END
server.port = 8080
server.bind = "127.0.0.1"
server.document-root = "/tmp/web"
server.errorlog = "/tmp/error.log"
server.max-keep-alive-requests = 10000
END
cat > /tmp/load.pl << 'END'
use IO::Socket::INET;
my @s = map { IO::Socket::INET->new("127.0.0.1:8080") or die } 1 .. 4;
my ($right, $x) = (0, 1);
for (1 .. $ARGV[0]) {
	for my $s (@s) {
		$x = ($x * 1103515245 + 12345) % 2147483648;
		my $page = 1 + int($x / 65536) % $ARGV[1];
		syswrite($s, "GET /page$page.html HTTP/1.1\r\nHost: localhost\r\nX-Value: " . sprintf("%08d", $x % 100000000) . "\r\n\r\n");
		my $b = "";
		while ($b !~ /\r\n\r\nx{1000}$/) { sysread($s, my $c, 4096) or last; $b .= $c }
		$right++ if $b =~ /^HTTP\/1.1 200 OK\r\n/ && $b =~ /\r\n\r\nx{1000}$/;
	}
}
print "right $right\n";
END
lighttpd -D -f /tmp/lighttpd.conf &
server=$!
sleep 0.1
perl /tmp/load.pl ROUNDS 3
kill -INT $server
wait $server
echo server $?
`

// valuesScript has four clients of redis, one after the other, that set keys to random values and get them.
const valuesScript = `
cat > /tmp/load.pl << 'END'
use IO::Socket::INET;
my @s = map { IO::Socket::INET->new("127.0.0.1:6379") or die } 1 .. 4;
my ($right, %v, $x) = (0, (), 1);
for my $r (1 .. $ARGV[0]) {
	for my $i (0 .. 3) {
		$x = ($x * 1103515245 + 12345) % 2147483648;
		my ($ask, $want);
		if ($r % 4 == 1) {
			$v{$i} = sprintf("value%08d", $x % 100000000);
			($ask, $want) = ("set key$i $v{$i}\r\n", "+OK\r\n");
		} else { ($ask, $want) = ("get key$i\r\n", "\$13\r\n$v{$i}\r\n"); }
		syswrite($s[$i], $ask);
		my $b = "";
		while (length($b) < length($want)) { sysread($s[$i], my $c, 4096) or last; $b .= $c }
		$right++ if $b eq $want;
	}
}
print "right $right\n";
END
redis-server --dir /tmp --save '' --logfile /tmp/log &
server=$!
sleep 0.1
perl /tmp/load.pl ROUNDS
kill $server
wait $server
echo server $?
`

// TestPreconditionsOfOtherServers: windows of lighttpd and redis are admitted and follow the schedules to right replies, although
// both have counters that each request changes.
func TestPreconditionsOfOtherServers(t *testing.T) {
	testsize.SkipQuick(t)
	rounds := testsize.Pick(12, 12, 100)
	for _, x := range []struct {
		rules, needs, script string
		admitted             float64 // at least this part, in the large size
	}{
		{"lighttpd", "/usr/sbin/lighttpd", threePagesScript, 0.85},
		{"redis", "/usr/bin/redis-server", valuesScript, 0.6},
	} {
		t.Run(x.rules, func(t *testing.T) {
			p := windows.Parameters{Rules: rulesOf(t, x.rules, x.needs), Size: 1, Atomics: true, Preconditions: true, NoStates: true}
			script := strings.ReplaceAll(x.script, "ROUNDS", fmt.Sprint(rounds))
			_, report, out := runWindows(t, t.Context(), script, p, schedwindows.NewStore(), 0)
			if want := fmt.Sprintf("right %d\nserver 0\n", 4*rounds); out != want {
				t.Errorf("output %q, want %q", out, want)
			}
			if report.Admitted == 0 || report.Followed != report.Admitted || testsize.Long() && float64(report.Admitted) < x.admitted*float64(report.Requests) {
				t.Errorf("%d requests, %d windows were admitted, %d have followed their schedules", report.Requests, report.Admitted, report.Followed)
			}
			t.Logf("%d requests, %d admitted, %d refused", report.Requests, report.Admitted, report.Refused)
		})
	}
}

// TestServers has at least 200 full windows of each server in the large size.
func TestServers(t *testing.T) {
	testsize.SkipQuick(t)
	for _, s := range slices.Concat(servers, otherServers) {
		t.Run(s.rules, func(t *testing.T) {
			rules := rulesOf(t, s.rules, s.needs)
			rounds := testsize.Pick(20, 20, 202)
			answers := fmt.Sprint(8 * rounds)
			script := strings.NewReplacer("ROUNDS", fmt.Sprint(rounds), "REQUESTS", answers).Replace(s.script)
			p := windows.Parameters{Rules: rules, Size: 8, Atomics: true}
			first, out := expectEqualWindows(t, script, p, testsize.Pick(2, 3, len(machines)))
			if want := strings.ReplaceAll(s.out, "160", answers); out != want {
				t.Errorf("output %q, want %q", out, want)
			}
			if first.Full < rounds-2 || first.Requests != 8*rounds {
				t.Errorf("%d full windows of %d requests, want about %d", first.Full, first.Requests, rounds)
			}
		})
	}
}
