package servers_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/experiments/servers"
	"github.com/heddle-dmt/heddle/guest/requests"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// TestMain makes the test binary a worker, as heddle's own is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == job.WorkerCommand {
		if err := job.ServeWorker(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// everyServer is set by make servers: all servers of the project are tested.
func everyServer() bool { return os.Getenv("HEDDLE_SERVERS") != "" || testsize.Long() }

// needs skips the test if the host lacks programs of the server.
func needs(t *testing.T, s *servers.Server) {
	t.Helper()
	if pattern := s.Missing(); pattern != "" {
		if os.Getenv("HEDDLE_SERVERS") != "" {
			t.Fatalf("this host has no %s", pattern)
		}
		t.Skipf("this host has no %s; `internal/setup/packages.sh servers` installs it", pattern)
	}
}

// jobOf is a run of the server with a number of cores and a seed. It begins in an empty folder, as in an experiment, and sees
// nothing of the host's /tmp.
func jobOf(t *testing.T, s *servers.Server, cores int, seed uint64, values map[string]string) job.Job {
	t.Helper()
	o := job.DefaultOptions()
	o.Seed = seed
	o.Cores, o.Requests = s.MachineCores(cores), []uint16{s.Port}
	o.Dir = "/experiment"
	o.Mounts = []job.Mount{{Host: t.TempDir(), Guest: o.Dir}}
	return job.Job{Options: o, Args: s.Args(cores, values), KeepOutput: true}
}

// spawn carries out a job in a process of its own.
func spawn(t *testing.T, j job.Job, processors int) job.Report {
	t.Helper()
	r, err := j.Spawn(context.Background(), []string{"GOMAXPROCS=" + strconv.Itoa(processors)}, nil)
	if err != nil || r.Failure != "" {
		t.Fatalf("%v %s", err, r.Failure)
	}
	return r
}

// summaryOf is the summary of the requests of the server's clients.
func summaryOf(t *testing.T, s *servers.Server, r job.Report) requests.Summary {
	t.Helper()
	i := slices.IndexFunc(r.Result.Requests, func(x requests.Summary) bool { return x.Client == s.Clients && x.Port == s.Port })
	if i < 0 {
		t.Fatalf("no requests of %s: %v", s.Clients, r.Result.Requests)
	}
	return r.Result.Requests[i]
}

// keepBusy loads the host's processors until the test ends.
func keepBusy(t *testing.T) {
	var done atomic.Bool
	t.Cleanup(func() { done.Store(true) })
	for range runtime.NumCPU() {
		go func() {
			for n := 0; !done.Load(); n++ {
				if n%1_000_000 == 0 {
					runtime.Gosched()
				}
			}
		}()
	}
}

// requestsOf is the number of requests that a server's client makes with the file's values, besides those of its
// connections: names of values whose product it is.
var requestsOf = map[string][]string{
	"apache2-event": {"requests"}, "apache2-log": {"requests"}, "apache2-worker": {"requests"}, "nginx": {"requests"}, "lighttpd": {"requests"}, "redis": {"requests"},
	"memcached": {"each", "clients"}, "mariadb": {"events"}, "postgresql": {"each", "clients"},
}

// TestSubjects: each server answers the 1,000 requests of its client rightly, as the client says (Server.Replies), with one digest
// in repeated runs on a loaded host, and with other digests for other seeds. The measured throughput
// agrees with the client's own.
func TestSubjects(t *testing.T) {
	list := files(t)
	if !everyServer() {
		testsize.SkipQuick(t)
		list = []string{"../../configs/servers/lighttpd.yaml", "../../configs/servers/memcached.yaml"}
	}
	repetitions := 2
	if everyServer() {
		repetitions = 5
	}
	for _, path := range list {
		s := load(t, path)
		t.Run(s.Name, func(t *testing.T) {
			needs(t, s)
			if everyServer() {
				keepBusy(t)
			}
			want := 1
			for _, name := range requestsOf[s.Name] {
				n, _ := strconv.Atoi(s.Values[name])
				want *= n
			}
			if want != 1000 {
				t.Errorf("the client makes %d requests", want)
			}
			var first job.Report
			for i := range repetitions {
				r := spawn(t, jobOf(t, s, 4, 1, nil), 1+i%3)
				if r.Result.ExitCode != 0 {
					t.Fatalf("%s\n%s", s.Failure(r.Result, r.StderrText), r.StdoutText)
				}
				if i == 0 {
					first = r
				} else if r.Result.Digest != first.Result.Digest || fmt.Sprint(r.Result.Requests) != fmt.Sprint(first.Result.Requests) {
					t.Errorf("run %d has the digest %s and not %s", i+1, r.Result.Digest, first.Result.Digest)
				}
			}
			sum := summaryOf(t, s, first)
			// Connections begin with requests of their own: a greeting, a log-in, a question for the server's settings.
			if sum.Requests < want || sum.Requests > want+4*sum.Connections {
				t.Errorf("%d requests were measured on %d connections, and the client made %d", sum.Requests, sum.Connections, want)
			}
			if p := sum.Response; p.P50 > p.P90 || p.P90 > p.P99 || p.P99 > p.Max || p.P50 <= 0 || sum.Service.Max > p.Max {
				t.Errorf("%+v", sum)
			}
			checkThroughput(t, s, string(first.StdoutText), sum)
			seen := map[string]bool{first.Result.Digest: true}
			for seed := uint64(2); seed <= 3; seed++ {
				r := spawn(t, jobOf(t, s, 4, seed, nil), 2)
				if r.Result.ExitCode != 0 {
					t.Fatalf("seed %d: %s", seed, s.Failure(r.Result, r.StderrText))
				}
				if seen[r.Result.Digest] {
					t.Errorf("seed %d has the digest of another seed", seed)
				}
				seen[r.Result.Digest] = true
			}
		})
	}
}

// throughputs are the texts of clients before the number of requests in a second.
var throughputs = map[string]string{"ab": "Requests per second:", "sysbench": "transactions:", "pgbench": "tps = "}

// checkThroughput compares the throughput with the client's own, which counts its start-up as well.
func checkThroughput(t *testing.T, s *servers.Server, text string, sum requests.Summary) {
	t.Helper()
	mark, ok := throughputs[s.Clients]
	if !ok {
		return
	}
	_, rest, found := strings.Cut(text, mark)
	if s.Clients == "sysbench" {
		_, rest, _ = strings.Cut(rest, "(")
	}
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		t.Fatalf("the client says no throughput:\n%s", text)
	}
	says, err := strconv.ParseFloat(fields[0], 64)
	if ratio := sum.PerSecond / says; err != nil || ratio < 0.7 || ratio > 1.3 {
		t.Errorf("%.0f requests a second were measured, and %s says %q", sum.PerSecond, s.Clients, fields[0])
	}
}

// echo is a server in Perl that answers each line with the processors that it may use and the one on which it has run
// last, and a client that sends the words of its command and prints the answers, and the same of itself.
const echo = `
port: 9000
files:
  - name: cores.pl
    content: |
      use Socket;
      sub cores {
          local ($/, @ARGV) = (undef, "/proc/self/status", "/proc/self/stat");
          my $status = <> . <>;
          $status =~ /Cpus_allowed_list:\s*(\S+)/; my $list = $1;
          $status =~ /.*\)(.*)/s;
          return "$list " . (split ' ', $1)[36] . "\n";
      }
      socket($s, PF_INET, SOCK_STREAM, 0) or die;
      $at = sockaddr_in({port}, INADDR_LOOPBACK);
      1;
  - name: server.pl
    content: |
      require "./cores.pl";
      $SIG{TERM} = sub { exit 0 };
      bind($s, $at) && listen($s, 10) or die;
      while (accept(my $c, $s)) {
          while (my $line = <$c>) {
              kill SEGV => $$ if $line eq "crash\n";
              syswrite($c, cores()) if $line ne "silence\n";
          }
      }
  - name: client.pl
    content: |
      require "./cores.pl";
      connect($s, $at) or die;
      for (@ARGV) {
          if ($_ eq "wait") { <$s> }
          elsif ($_ eq "part") { syswrite($s, "half a") }
          elsif ($_ eq "other") { exit 3 }
          else { syswrite($s, "$_\n"); print "server ", scalar <$s> }
      }
      print "client ", cores();
command: [perl, server.pl]
clients: perl
`

// TestCores: the server runs on the first cores alone, and its client on others.
func TestCores(t *testing.T) {
	for _, x := range []struct {
		clientCores, cores int
		server, client     string // the processors that they may use
	}{
		{2, 3, "0-2", "3-4"},
		{1, 1, "0", "1"},
		{0, 2, "0-1", "0-1"},
	} {
		s := load(t, echo+fmt.Sprintf("client_cores: %d\n", x.clientCores), "perl", "client.pl", "a", "b", "c")
		r := spawn(t, jobOf(t, s, x.cores, 1, nil), 2)
		if r.Result.ExitCode != 0 {
			t.Fatalf("%s", r.StderrText)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(r.StdoutText)), "\n") {
			who, rest, _ := strings.Cut(line, " ")
			allowed := map[string]string{"server": x.server, "client": x.client}[who]
			on := rest[strings.LastIndex(rest, " ")+1:]
			if low, high, _ := strings.Cut(allowed, "-"); !strings.HasPrefix(rest, allowed+" ") || on < low || on > max(low, high) {
				t.Errorf("%d cores and %d of the client: %q", x.cores, x.clientCores, line)
			}
		}
		if sum := summaryOf(t, s, r); sum.Requests != 3 {
			t.Errorf("%d requests", sum.Requests)
		}
	}
}

// TestClearEnds: whatever server or client do, the run ends, and a sentence says why.
func TestClearEnds(t *testing.T) {
	for name, x := range map[string]struct {
		more   string // of the file
		client []string
		want   string // end of standard error
	}{
		"the server crashes":                            {"", []string{"a", "crash"}, "test: the server ended with status 139 while the client worked"},
		"the client stops in the middle of a request":   {"limit: 100\n", []string{"a", "part", "wait"}, "test: the client has not ended after 100 s of virtual time"},
		"the client ends in the middle of a request":    {"", []string{"a", "part"}, ""},
		"the server never answers":                      {"limit: 5\n", []string{"silence"}, "test: the client has not ended after 5 s of virtual time"},
		"the server cannot start":                       {"prepare: rm server.pl\n", []string{"a"}, "test: the server ended with status 2 before it was ready"},
		"a script fails":                                {"prepare: \"false\"\n", []string{"a"}, "test: the script prepare failed"},
		"the server listens on another port":            {"ready: [\"false\"]\n", []string{"a"}, "test: the server was not ready after 120 s of virtual time"},
		"the client fails":                              {"", []string{"a", "other"}, "test: the client ended with status 3"},
		"the client's text is not what it should be":    {"replies: [nonsense]\n", []string{"a"}, "test: the client prints no line that matches nonsense"},
		"the server does not end with the right status": {"status: 3\n", []string{"a"}, "test: the stopped server ended with status 0, not 3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := load(t, echo+x.more, append([]string{"perl", "client.pl"}, x.client...)...)
			r := spawn(t, jobOf(t, s, 2, 1, nil), 2)
			if x.want == "" {
				if r.Result.ExitCode != 0 {
					t.Errorf("status %d: %s", r.Result.ExitCode, r.StderrText)
				}
				return
			}
			if got := s.Failure(r.Result, r.StderrText); got != x.want || r.Result.ExitCode == 0 {
				t.Errorf("status %d: %q, not %q", r.Result.ExitCode, got, x.want)
			}
		})
	}
}

// TestInterrupted: a run that is interrupted (Ctrl-C) while a server works ends at once.
func TestInterrupted(t *testing.T) {
	s := load(t, echo, "sh", "-c", "while :; do :; done")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	begin := time.Now()
	r := jobOf(t, s, 2, 1, nil).Run(ctx, nil)
	if r.Failure != "" || r.Result.Outcome != machine.OutcomeInterrupted && r.Result.Outcome != machine.OutcomeTimeLimit {
		t.Fatalf("%s %+v", r.Failure, r.Result)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// many is a client that opens 1,000 connections before it sends a request on each, twice.
const many = `
import socket
all = [socket.create_connection(("127.0.0.1", {port})) for _ in range(1000)]
for s in all * 2: s.sendall(b"GET /index.html HTTP/1.1\r\nHost: x\r\n\r\n")
right = 0
for s in all:
    got = b""
    while got.count(b"x") < 200 and (part := s.recv(65536)): got += part
    right += got.count(b"200 OK") == 2
print("right:", right)
`

// TestManyConnections: a server has 1,000 open connections.
func TestManyConnections(t *testing.T) {
	testsize.SkipQuick(t)
	s := load(t, "../../configs/servers/nginx.yaml", "python3", "many.py")
	needs(t, s)
	s.Files = append(s.Files, servers.File{Name: "many.py", Content: many})
	s.Replies = []string{"^right: 1000$"}
	s.Clients = "python3"
	r := spawn(t, jobOf(t, s, 4, 1, map[string]string{"size": "100", "workers": "1"}), 2)
	if r.Result.ExitCode != 0 {
		t.Fatalf("%s\n%s", r.StdoutText, r.StderrText)
	}
	if sum := summaryOf(t, s, r); sum.Connections != 1000 || sum.Requests < 1000 || sum.Unanswered != 0 {
		t.Errorf("%+v", sum)
	}
}

// TestLargeRequest: a request of 100 MB reaches the server whole.
func TestLargeRequest(t *testing.T) {
	testsize.SkipQuick(t)
	s := load(t, "../../configs/servers/redis.yaml", "sh", "-c", `head -c 104857600 /dev/zero | tr '\0' x > big
redis-cli -p {port} -x set big < big && redis-cli -p {port} strlen big && redis-cli -p {port} --raw get big | cmp -n 104857600 - big && echo same`)
	needs(t, s)
	s.Clients, s.Replies = "redis-cli", []string{"^(\\(integer\\) )?104857600$", "^same$"}
	r := spawn(t, jobOf(t, s, 4, 1, nil), 2)
	if r.Result.ExitCode != 0 {
		t.Fatalf("%s\n%s", r.StdoutText, r.StderrText)
	}
	sum := summaryOf(t, s, r)
	if sum.Received < 100<<20 || sum.Received > 100<<20+10_000 || sum.Sent < 100<<20 || sum.Sent > 100<<20+1_000_000 {
		t.Errorf("%+v", sum)
	}
}

// TestStoppedInTheMiddle: a real server closes the connection of a client that stops in the middle of a request, at its own time
// limit in virtual time.
func TestStoppedInTheMiddle(t *testing.T) {
	testsize.SkipQuick(t)
	s := load(t, "../../configs/servers/nginx.yaml", "python3", "-c", `
import socket
s = socket.create_connection(("127.0.0.1", {port}))
s.sendall(b"GET /ind")
print("got", s.recv(100))`)
	needs(t, s)
	s.Clients, s.Replies = "python3", []string{"^got b''$"}
	r := spawn(t, jobOf(t, s, 2, 1, nil), 2)
	if r.Result.ExitCode != 0 {
		t.Fatalf("%s\n%s", r.StdoutText, r.StderrText)
	}
	if sum := summaryOf(t, s, r); sum.Unanswered != 1 || sum.Requests != 0 {
		t.Errorf("%+v", sum)
	}
}

// TestPackages: the packages of the files are installed by make setup-servers.
func TestPackages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("../../internal/setup/packages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files(t) {
		for _, name := range load(t, path).Packages {
			if !slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
				f := strings.Fields(line)
				return len(f) >= 2 && f[0] == "servers" && f[1] == name
			}) {
				t.Errorf("%s: the package %s is not in internal/setup/packages.txt", path, name)
			}
		}
	}
}
