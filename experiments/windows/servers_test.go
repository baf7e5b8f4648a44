package windows_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/servers"
	"github.com/heddle-dmt/heddle/experiments/windows"
	"github.com/heddle-dmt/heddle/guest/requests"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
	schedwindows "github.com/heddle-dmt/heddle/sched/windows"
)

type server struct {
	rules, needs, script, out string
	// compared are the windows that are equal.
	compared func(*windows.Report) []schedwindows.Window
}

// equalServers are servers of Debian whose windows must be equal on all machines.
var equalServers = []server{
	{"memcached", "/usr/bin/memcached", memcachedScript, "answers 160\nserver 0\n", allWindows},
	{"apache2", "/usr/sbin/apache2", apacheScript, "Complete requests:      160\nFailed requests:        0\nserver 0\n", allWindows},
}

// otherServers are further ones, in which no race is injected.
var otherServers = []server{
	{"redis", "/usr/bin/redis-server", redisScript, "right 160\nserver 0\n", allWindows},
	{"lighttpd", "/usr/sbin/lighttpd", lighttpdScript, "Complete requests:      160\nFailed requests:        0\nserver 0\n", fullWindows},
}

// startRedis starts redis-server in the scripts of its clients, and endServer ends a server that these have started.
const (
	startRedis = `redis-server --dir /tmp --save '' --logfile /tmp/log &
server=$!
sleep 0.1
`
	endServer = `kill $server
wait $server
echo server $?
`
)

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
` + startRedis + `perl /tmp/load.pl ROUNDS
` + endServer

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
` + endServer

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
	for _, s := range equalServers {
		t.Run(s.rules, func(t *testing.T) {
			rules := rulesOf(t, s.rules, s.needs)
			rounds := testsize.Pick(20, 20, 202)
			script := preloaded(s.rules, strings.NewReplacer("ROUNDS", fmt.Sprint(rounds), "REQUESTS", fmt.Sprint(8*rounds)).Replace(s.script))
			p := windows.Parameters{Rules: rules, Size: 8, Atomics: true}
			var plain []*windows.Report
			for store, at := schedwindows.NewStore(), 0; at < 3; at++ {
				_, report, _ := runWindows(t, t.Context(), script, p, store, at)
				plain = append(plain, report)
			}
			if otherStates(plain) == 0 {
				t.Error("without constraints the race does not show")
			}
			p.Hybrid = true
			reports, _ := expectEqualReports(t, script, p, testsize.Pick(2, 3, len(machines)), s.compared)
			first, last := reports[0], reports[len(reports)-1]
			if first.Full < rounds-2 || first.Constraints == 0 {
				t.Errorf("%d full windows, %d constraints", first.Full, first.Constraints)
			}
			t.Logf("| races | %s | %d | %d | %d | %d | %d | %d of %d | %d of %d | %.3f |", s.rules, first.Windows, first.Full, first.Races, first.Constraints,
				last.Missed, otherStates(reports), first.Windows, otherStates(plain), plain[0].Windows, reports[1].Throughput/plain[1].Throughput)
		})
	}
}

// otherStates is the number of windows that differ from the first run's in the run with the most of them.
func otherStates(reports []*windows.Report) (most int) {
	want := comparable(reports[0].List)
	for _, r := range reports[1:] {
		got, n := comparable(r.List), 0
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				n++
			}
		}
		most = max(most, n)
	}
	return most
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
` + endServer

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
	return report
}

// TestPreconditionsAreSound has requests with new bytes: the admitted ones follow the schedules to the replies of a server that runs
// natively, and so have the others, which are counted. In the large size 10,000 requests are admitted by preconditions that were computed
// meanwhile, and in a second run, for keys that were never set, 10,000 are refused.
func TestPreconditionsAreSound(t *testing.T) {
	testsize.SkipQuick(t)
	rules := rulesOf(t, "memcached", "/usr/bin/memcached")
	const all, enough = 1500, 10_000
	rounds, least := testsize.Runs(10, 10, all), 1
	if rounds >= all {
		least = enough
	}
	for _, options := range []string{"", "-o no_lru_maintainer,no_lru_crawler"} {
		t.Run("memcached "+options, func(t *testing.T) {
			store := schedwindows.NewStore()
			first := freshRun(t, rules, options, rounds, 16, true, store, 0)
			logPreconditions(t, strings.TrimSpace("memcached "+options), first)
			if first.Admitted < least || first.Refused == 0 || first.Preconditions.Computed == 0 || first.Preconditions.Unknown > 0 {
				t.Errorf("%d windows were admitted and %d refused, preconditions: %+v", first.Admitted, first.Refused, first.Preconditions)
			}
			second := freshRun(t, rules, options, rounds, 1, false, store, 2)
			logPreconditions(t, strings.TrimSpace("memcached "+options)+", keys never set", second)
			if second.Refused < least {
				t.Errorf("%d windows were refused", second.Refused)
			}
		})
	}
}

// runPreconditions runs a script with preconditions in windows of one request, and logs what became of them.
func runPreconditions(t *testing.T, name string, rules windows.Rules, script string) (*windows.Report, string) {
	t.Helper()
	p := windows.Parameters{Rules: rules, Size: 1, Atomics: true, Preconditions: true, NoStates: true}
	_, r, out := runWindows(t, t.Context(), script, p, schedwindows.NewStore(), 0)
	logPreconditions(t, name, r)
	return r, out
}

// logPreconditions logs what became of the windows of a run with preconditions, as a row of a table.
func logPreconditions(t *testing.T, name string, r *windows.Report) {
	t.Helper()
	hides := "-"
	if len(r.Hidden) > 0 {
		hides = fmt.Sprintf("%s: %d", cmp.Or(r.Hidden[0].Place, "unknown"), r.Hidden[0].Windows)
	}
	q := r.Preconditions
	t.Logf("| preconditions | %s | %d | %d | %d | %d | %.1f %% | %d | %s |", name, r.Requests, r.Admitted, r.Followed, r.Refused,
		100*float64(r.Admitted)/float64(max(r.Requests, 1)), q.Terms/max(q.Computed-q.Unknown, 1), hides)
}

// pagesScript has clients of apache2, one after the other, with requests for twenty pages and random values of a header. It
// prints how many replies are right, and a digest of all replies without what differs on another host.
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
		$b =~ s/^(Date|ETag): .*\r\n//mg; # the latter has the number of the file's inode
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
cat > FOLDER/lighttpd.conf << END
server.port = 18080
server.bind = "127.0.0.1"
server.document-root = "FOLDER/web"
server.errorlog = "FOLDER/error.log"
server.pid-file = "FOLDER/lighttpd.pid"
server.max-keep-alive-requests = 100000
mimetype.assign = (".html" => "text/html")
END
SERVER &
server=$!
sleep 0.1
while [ ! -s FOLDER/NAME.pid ]; do sleep 0.1; done
perl FOLDER/load.pl ROUNDS CLIENTS
kill -STOP $server
wait $server
echo server $?
`

// pageLoads are servers of pages.
var pageLoads = []struct {
	name, needs, command, stop string
	admits                     bool
}{
	{"apache2", "/usr/sbin/apache2", "apache2 -f FOLDER/apache2.conf -DFOREGROUND", "TERM", true},
	{"lighttpd", "/usr/sbin/lighttpd", "lighttpd -D -f FOLDER/lighttpd.conf", "INT", false},
}

// TestPreconditionsOfPages has requests to servers with other paths and headers: those that are admitted follow the
// schedules, and all replies are those of a server that runs natively. In the large size 10,000 requests to apache2 are admitted.
// lighttpd rearranges a tree with each request, so that nothing is admitted.
func TestPreconditionsOfPages(t *testing.T) {
	testsize.SkipQuick(t)
	threads, clients := testsize.Pick(2, 2, 8), testsize.Pick(1, 1, 4)
	for _, x := range pageLoads[:testsize.Pick(1, 1, len(pageLoads))] {
		t.Run(x.name, func(t *testing.T) {
			rules := rulesOf(t, x.name, x.needs)
			rounds := testsize.Runs(24, 24, 2800)
			if !x.admits {
				rounds = min(rounds, 100)
			}
			script := strings.ReplaceAll(pagesScript, "SERVER", x.command)
			script = strings.NewReplacer("STOP", x.stop, "NAME", x.name, "THREADS", fmt.Sprint(threads), "CLIENTS", fmt.Sprint(clients), "ROUNDS", fmt.Sprint(rounds)).Replace(script)
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
			report, out := runPreconditions(t, x.name, rules, strings.ReplaceAll(script, "FOLDER", "/tmp/pages"))
			if out != string(want) {
				t.Errorf("output %q, natively %q", out, want)
			}
			if report.Requests != clients*rounds || report.Followed != report.Admitted || report.Preconditions.Unknown > 0 && x.admits {
				t.Errorf("%d requests, %d windows were admitted, %d have followed their schedules, preconditions: %+v", report.Requests, report.Admitted, report.Followed, report.Preconditions)
			}
			if x.admits && report.Admitted == 0 {
				t.Errorf("no window was admitted, %d were refused", report.Refused)
			}
		})
	}
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
` + startRedis + `perl /tmp/load.pl ROUNDS
` + endServer

// TestPreconditionsOfOtherServers: windows of lighttpd and redis are admitted and follow the schedules to right replies, although
// both have counters that each request changes.
func TestPreconditionsOfOtherServers(t *testing.T) {
	testsize.SkipQuick(t)
	rounds := min(testsize.Runs(12, 12, 100), 100)
	for _, x := range []struct {
		name, rules, needs, script string
		admitted                   float64 // at least this part, in the large size
	}{
		{"lighttpd, 3 pages", "lighttpd", "/usr/sbin/lighttpd", threePagesScript, 0.85},
		{"redis", "redis", "/usr/bin/redis-server", valuesScript, 0.6},
	} {
		t.Run(x.name, func(t *testing.T) {
			script := strings.ReplaceAll(x.script, "ROUNDS", fmt.Sprint(rounds))
			report, out := runPreconditions(t, x.name, rulesOf(t, x.rules, x.needs), script)
			if want := fmt.Sprintf("right %d\nserver 0\n", 4*rounds); out != want {
				t.Errorf("output %q, want %q", out, want)
			}
			if report.Admitted == 0 || report.Followed != report.Admitted || testsize.Long() && float64(report.Admitted) < x.admitted*float64(report.Requests) {
				t.Errorf("%d requests, %d windows were admitted, %d have followed their schedules", report.Requests, report.Admitted, report.Followed)
			}
		})
	}
}

// TestServers has at least 200 full windows of each server in the large size.
func TestServers(t *testing.T) {
	testsize.SkipQuick(t)
	for _, s := range slices.Concat(equalServers, otherServers) {
		t.Run(s.rules, func(t *testing.T) {
			rules := rulesOf(t, s.rules, s.needs)
			rounds := testsize.Pick(20, 20, 202)
			answers := fmt.Sprint(8 * rounds)
			script := strings.NewReplacer("ROUNDS", fmt.Sprint(rounds), "REQUESTS", answers).Replace(s.script)
			p := windows.Parameters{Rules: rules, Size: 8, Atomics: true}
			reports, out := expectEqualReports(t, script, p, testsize.Pick(2, 3, len(machines)), s.compared)
			first := reports[0]
			if want := strings.ReplaceAll(s.out, "160", answers); out != want {
				t.Errorf("output %q, want %q", out, want)
			}
			if first.Full < rounds-2 || first.Requests != 8*rounds {
				t.Errorf("%d full windows of %d requests, want about %d", first.Full, first.Requests, rounds)
			}
			t.Logf("| windows | %s | %d | %d | %d | %d | %d | %d of %d |", s.rules, first.Requests, first.Windows, first.Full, first.Stored, len(reports), otherStates(reports), first.Windows)
		})
	}
}

// TestCostOfWindows compares the virtual times of requests without windows, and in windows of several kinds: all requests have
// right replies, and only in windows do they wait for these.
func TestCostOfWindows(t *testing.T) {
	testsize.SkipQuick(t)
	list := []struct {
		name string
		p    windows.Parameters
	}{
		{"without windows", windows.Parameters{}},
		{"8 requests", windows.Parameters{Size: 8, Atomics: true}},
		{"8 requests, `--time-bubbles 50`", windows.Parameters{Size: 8, Atomics: true, Bubble: 50}},
		{"2 requests", windows.Parameters{Size: 2, Atomics: true}},
		{"8 requests, `--window-sync-only`", windows.Parameters{Size: 8}},
	}
	list = list[:testsize.Pick(3, 3, len(list))]
	for _, s := range equalServers[:testsize.Pick(1, 1, len(equalServers))] {
		rules := rulesOf(t, s.rules, s.needs)
		rounds := testsize.Pick(20, 20, 60)
		answers := fmt.Sprint(8 * rounds)
		script := strings.NewReplacer("ROUNDS", fmt.Sprint(rounds), "REQUESTS", answers).Replace(s.script)
		for _, x := range list {
			t.Run(s.rules+", "+x.name, func(t *testing.T) {
				sum, report := runCalm(t, script, rules, x.p, strings.ReplaceAll(s.out, "160", answers))
				if sum.Requests != 8*rounds || sum.Response.P50 <= 0 || (report.Waited == 0) != (x.p.Size == 0) {
					t.Errorf("%+v, waited %d", sum, report.Waited)
				}
				mhz := machine.DefaultConfig().Costs.MHz
				t.Logf("| cost | %s | %s | %d | %.0f | %.0f | %.0f | %.0f |", s.rules, x.name, report.Windows, float64(report.Waited)/float64(mhz), sum.Response.P50, sum.Response.P90, sum.PerSecond)
			})
		}
	}
}

// runCalm runs a script without jitter, in windows if their size is not 0, and returns the requests that its servers had.
func runCalm(t *testing.T, script string, rules windows.Rules, p windows.Parameters, want string) (requests.Summary, *windows.Report) {
	t.Helper()
	c := configOf(t, script, 0)
	calm := 0.0
	c.Sched.Jitter, c.Requests = &calm, []uint16{8080, 11211}
	report, out := &windows.Report{}, ""
	var r *machine.Result
	if p.Rules = rules; p.Size > 0 {
		r, report, out = runConfig(t, t.Context(), &c, p, schedwindows.NewStore())
	} else {
		var text bytes.Buffer
		c.Stdout, c.Stderr = &text, &text
		var err error
		if r, err = machine.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		out = text.String()
	}
	if out != want {
		t.Errorf("output %q, want %q", out, want)
	}
	i := slices.IndexFunc(r.Requests, func(s requests.Summary) bool { return s.Requests > 0 })
	if i < 0 {
		t.Fatalf("no request was answered: %+v", r.Requests)
	}
	return r.Requests[i], report
}

// TestWindowsOfProcesses has a server with several processes, on a machine and on another one with the schedules of the first: all
// replies are right, as the client finds, and windows have equal ones. At its end the client makes one connection more, or not.
func TestWindowsOfProcesses(t *testing.T) {
	testsize.SkipQuick(t)
	s, err := servers.Load("../../configs/servers/nginx.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := rulesOf(t, "nginx", "/usr/sbin/nginx")
	if missing := s.Missing(); missing != "" {
		t.Skipf("this host has no %s; internal/setup/packages.sh servers installs it", missing)
	}
	values := testsize.Pick(map[string]string{"requests": "160"}, map[string]string{"requests": "160"}, nil)
	s.ClientCores, s.Ready = 0, []string{"sleep", "1"} // how often a client would have to try depends on timing
	var reports []*windows.Report
	for store, i := schedwindows.NewStore(), 0; i < 2; i++ {
		c := configOf(t, "", []int{0, 5}[i])
		c.Args, c.Dir, c.UID, c.GID = s.Args(machines[0].cores, values), "/tmp", 0, 0
		r, report, out := runConfig(t, t.Context(), &c, windows.Parameters{Rules: rules, Size: 4, Atomics: true}, store)
		if r.Outcome != machine.OutcomeExit || r.ExitCode != 0 {
			t.Fatalf("machine %d: %s\n%s", i, s.Failure(r, []byte(out)), out)
		}
		reports = append(reports, report)
	}
	exchanges, states, all := compareWindows(reports[0], reports[1])
	if reports[0].Full == 0 || exchanges > 3 || states > 3 {
		t.Errorf("%d full windows; of %d with requests %d have other inputs or outputs and %d other states", reports[0].Full, all, exchanges, states)
	}
}

// compareWindows counts the windows with requests of a run, those without one of another run with the same input and output, and
// those without one that has the same state, too.
func compareWindows(a, b *windows.Report) (exchanges, states, all int) {
	exchange := func(w *schedwindows.Window) string { return w.Input + " " + w.Output }
	state := func(w *schedwindows.Window) string { return exchange(w) + " " + w.State }
	others := map[string]int{}
	for i := range b.List {
		others[exchange(&b.List[i])]++
		others[state(&b.List[i])]++
	}
	missing := func(key string) int {
		if others[key]--; others[key] < 0 {
			return 1
		}
		return 0
	}
	for i := range a.List {
		if w := &a.List[i]; w.Requests > 0 {
			all++
			exchanges += missing(exchange(w))
			states += missing(state(w))
		}
	}
	return exchanges, states, all
}
