package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// lineServer answers each line of a connection in a thread of its own. "sleep" as its argument
// has it listen after a second; "never" has it wait without a listener.
const lineServer = `
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int served, ended;
static void *serve(void *arg) {
	FILE *in = fdopen((int)(long)arg, "r"), *out = fdopen(dup((int)(long)arg), "w");
	char line[256];
	while (fgets(line, sizeof line, in)) {
		long n;
		pthread_mutex_lock(&lock);
		int number = ++served;
		pthread_mutex_unlock(&lock);
		if (sscanf(line, "put %ld", &n) == 1) {
			unsigned sum = 0;
			for (long i = 0; i < n; i++) {
				int c = getc_unlocked(in);
				if (c == EOF)
					goto end;
				sum = sum * 31 + c;
			}
			fprintf(out, "%u\n", sum);
		} else if (sscanf(line, "get %ld", &n) == 1) {
			static char zeros[1 << 16];
			for (; n > 0; n -= sizeof zeros)
				if (fwrite(zeros, n < (long)sizeof zeros ? n : sizeof zeros, 1, out) != 1)
					goto end;
		} else if (strcmp(line, "crash\n") == 0) {
			abort();
		} else if (strcmp(line, "quit\n") == 0) {
			fprintf(out, "bye\n");
			fflush(out);
			pthread_mutex_lock(&lock);
			printf("served %d\n", served);
			fflush(stdout);
			exit(7);
		} else {
			fprintf(out, "%d %s", number, line);
			printf("%d %s", number, line);
			fflush(stdout);
		}
		fflush(out);
	}
end:
	fclose(in);
	fclose(out);
	__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
	return 0;
}
int main(int c, char **v) {
	int l = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(7000), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(l, (void *)&a, sizeof a) < 0)
		return 1;
	if (c > 1 && strcmp(v[1], "sleep") == 0)
		sleep(1);
	if (c > 1 && strcmp(v[1], "never") == 0) {
		sleep(3);
		return 3;
	}
	if (listen(l, 4096) < 0)
		return 1;
	printf("ready\n");
	fflush(stdout);
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (;;) {
		int s = accept(l, 0, 0);
		pthread_t t;
		if (s >= 0 && pthread_create(&t, &attr, serve, (void *)(long)s) != 0)
			return 2;
	}
}`

// publishedRun is a run of heddle with a published port.
type publishedRun struct {
	t              *testing.T
	cmd            *exec.Cmd
	address        string
	stdout, stderr *watcher
	out            bytes.Buffer
	ended          chan error
	summary        string
}

// startPublished starts a program with port 7000 published, under heddle with flags, and waits for
// a word of its output, unless that is empty.
func startPublished(t *testing.T, word string, env []string, command string, flags []string, program ...string) *publishedRun {
	t.Helper()
	path, err := exec.LookPath("heddle")
	if err != nil {
		t.Fatal(err)
	}
	r := &publishedRun{t: t, stdout: &watcher{}, stderr: &watcher{}, ended: make(chan error, 1), summary: filepath.Join(t.TempDir(), "summary")}
	args := append([]string{command, "--publish", "0:7000", "--summary", r.summary}, flags...)
	r.cmd = exec.Command(path, append(append(args, "--"), program...)...)
	r.cmd.Env = append(os.Environ(), env...)
	published, ready := make(chan struct{}), make(chan struct{})
	r.stderr.until("is published on 127.0.0.1:", published)
	if r.stdout.until(word, ready); word == "" {
		close(ready)
		r.stdout.until("", nil)
	}
	r.cmd.Stdout, r.cmd.Stderr = io.MultiWriter(r.stdout, &r.out), r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	go func() { r.ended <- r.cmd.Wait() }()
	for _, c := range []chan struct{}{published, ready} {
		select {
		case <-c:
		case err := <-r.ended:
			t.Fatalf("heddle ended: %v\n%s", err, r.stderr.content())
		case <-time.After(hangs):
			t.Fatal("heddle hangs")
		}
	}
	r.address = regexp.MustCompile(`published on (127\.0\.0\.1:\d+)`).FindStringSubmatch(r.stderr.content())[1]
	return r
}

func (r *publishedRun) dial() net.Conn {
	r.t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a line and returns the line that answers it.
func (r *publishedRun) ask(line string) string {
	r.t.Helper()
	return exchange(r.t, r.dial(), line)
}

func exchange(t *testing.T, c net.Conn, line string) string {
	t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		t.Error(err)
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Errorf("%s: %q, %v", line, answer, err)
	}
	return strings.TrimSuffix(answer, "\n")
}

// wait waits for the end of heddle, with a status, and returns its result.
func (r *publishedRun) wait(status int) *machine.Result {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(hangs):
		r.t.Fatal("heddle hangs")
	}
	if got := r.cmd.ProcessState.ExitCode(); got != status {
		r.t.Fatalf("status %d, want %d\n%s", got, status, r.stderr.content())
	}
	return readResult(r.t, r.summary)
}

func readResult(t *testing.T, path string) *machine.Result {
	t.Helper()
	text, err := os.ReadFile(path)
	result := &machine.Result{}
	if err == nil {
		err = json.Unmarshal(text, result)
	}
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// withAndWithoutWindows runs a test for a server that runs freely, and for one that runs in windows of requests.
func withAndWithoutWindows(t *testing.T, server string, test func(t *testing.T, flags []string)) {
	t.Helper()
	t.Run("free", func(t *testing.T) { test(t, nil) })
	t.Run("windows", func(t *testing.T) {
		rules := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(rules, []byte("programs: ["+filepath.Base(server)+"]\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		test(t, []string{"--windows", "4", "--tasks", rules})
	})
}

// replayTwice replays a trace with one and with two processors for Go, and demands the output
// and the digest of the recorded run.
func replayTwice(t *testing.T, trace string, recorded *machine.Result, out []byte) {
	t.Helper()
	for _, processors := range []string{"1", "2"} {
		summary := filepath.Join(t.TempDir(), "summary")
		replay := exec.Command("heddle", "replay", "--summary", summary, trace)
		replay.Env = append(os.Environ(), "GOMAXPROCS="+processors)
		var problems bytes.Buffer
		replay.Stderr = &problems
		got, err := replay.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		again := readResult(t, summary)
		if again.Digest != recorded.Digest || again.Outcome != recorded.Outcome || !bytes.Equal(got, out) {
			t.Errorf("GOMAXPROCS=%s: %s with digest %s, recorded %s with %s\n%s", processors, again.Outcome, again.Digest, recorded.Outcome, recorded.Digest, problems.Bytes())
		}
		if a, b := again.Clients, recorded.Clients; a == nil || a.Connections != b.Connections || a.Received != b.Received || a.Sent != b.Sent {
			t.Errorf("clients %+v, recorded %+v", a, b)
		}
	}
}

// TestPublishedServer records 200 requests over many connections to a server with threads, and
// replays them.
func TestPublishedServer(t *testing.T) {
	server := gcctest.C(t, lineServer, "-pthread", "-static")
	withAndWithoutWindows(t, server, func(t *testing.T, windows []string) {
		list := [][]string{{"--cores", "4"}, {"--cores", "2", "--sched", "random"}, {"--cores", "2", "--sched", "rr-sync"}}[:testsize.Pick(1, 3, 3)]
		if windows != nil {
			list = [][]string{append(windows, "--cores", "4")}
		}
		for _, flags := range list {
			testPublishedServer(t, server, flags)
		}
	})
}

func testPublishedServer(t *testing.T, server string, flags []string) {
	for _, processors := range []string{"1", "2"}[:testsize.Pick(1, 2, 2)] {
		trace := filepath.Join(t.TempDir(), "trace")
		r := startPublished(t, "ready", []string{"GOMAXPROCS=" + processors}, "record", append([]string{"-o", trace}, flags...), server)
		var clients sync.WaitGroup
		for n := range 40 {
			clients.Add(1)
			go func() {
				defer clients.Done()
				c := r.dial()
				defer c.Close()
				for i := range 5 {
					line := fmt.Sprintf("request %d of %d", i, n)
					if answer := exchange(t, c, line); !strings.HasSuffix(answer, " "+line) {
						t.Errorf("%q is answered %q", line, answer)
					}
				}
			}()
		}
		clients.Wait()
		if got := r.ask("quit"); got != "bye" {
			t.Errorf("quit is answered %q", got)
		}
		result := r.wait(7)
		if result.Clients.Connections != 41 || result.Clients.Note != "" || !strings.Contains(r.out.String(), "served 201\n") {
			t.Errorf("%v: %+v, %s", flags, result.Clients, r.out.String())
		}
		replayTwice(t, trace, result, r.out.Bytes())
		if !slices.Contains(flags, "--windows") {
			replayFromSnapshot(t, trace, result)
		}
	}
}

// replayFromSnapshot replays a trace, returns to a snapshot in its middle and continues again, as
// a debugger does.
func replayFromSnapshot(t *testing.T, trace string, recorded *machine.Result) {
	t.Helper()
	r, err := machine.OpenReplay(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := r.Config()
	if err != nil {
		t.Fatal(err)
	}
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for n := recorded.Instructions / 2; m.Instructions() < n && !m.Done(); {
		m.Step()
	}
	middle := m.Snapshot()
	defer middle.Release()
	for range 2 {
		again, err := m.Run(t.Context())
		if err != nil || again.Digest != recorded.Digest {
			t.Errorf("from a snapshot: %+v, %v", again, err)
		}
		m.Restore(middle)
	}
}

// TestClientsThatStop: a client that is killed in the middle of a request, one that resets, one that
// does not read, and half of a connection that ends.
func TestClientsThatStop(t *testing.T) {
	server := gcctest.C(t, lineServer, "-pthread", "-static")
	withAndWithoutWindows(t, server, func(t *testing.T, flags []string) { testClientsThatStop(t, server, flags) })
}

func testClientsThatStop(t *testing.T, server string, flags []string) {
	trace := filepath.Join(t.TempDir(), "trace")
	r := startPublished(t, "ready", nil, "record", append([]string{"-o", trace}, flags...), server)
	stops := r.dial()
	fmt.Fprint(stops, "put 1000\nonly a part")
	resets := r.dial()
	fmt.Fprint(resets, "put 1000\nonly a part")
	neverReads := r.dial()
	fmt.Fprint(neverReads, "get 50000000\n")
	if got := r.ask("first"); !strings.HasSuffix(got, " first") {
		t.Errorf("first is answered %q", got)
	}
	stops.Close()
	_ = resets.(*net.TCPConn).SetLinger(0)
	resets.Close()
	half := r.dial()
	fmt.Fprint(half, "get 100000\n")
	_ = half.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(half); len(got) != 100_000 || err != nil {
		t.Errorf("%d bytes after the client's end, %v", len(got), err)
	}
	if got := r.ask("quit"); got != "bye" {
		t.Errorf("quit is answered %q", got)
	}
	result := r.wait(7)
	if result.Clients.Sent > 45_000_000 { // of 50 million bytes
		t.Errorf("a client that does not read has not bounded the guest's output: %+v", result.Clients)
	}
	replayTwice(t, trace, result, r.out.Bytes())
}

// TestManyConnectionsAndBytes: connections at the same time, and a large request.
func TestManyConnectionsAndBytes(t *testing.T) {
	server := gcctest.C(t, lineServer, "-pthread", "-static", "-O2")
	withAndWithoutWindows(t, server, func(t *testing.T, flags []string) { testManyConnectionsAndBytes(t, server, flags) })
}

func testManyConnectionsAndBytes(t *testing.T, server string, flags []string) {
	trace := filepath.Join(t.TempDir(), "trace")
	r := startPublished(t, "ready", nil, "record", append([]string{"-o", trace, "--cores", "2"}, flags...), server)
	var open []net.Conn
	for range testsize.Pick(100, 1000, 1000) {
		open = append(open, r.dial())
	}
	for i, c := range open {
		if i%10 == 0 || i == len(open)-1 {
			if line := fmt.Sprint("connection ", i); !strings.HasSuffix(exchange(t, c, line), " "+line) {
				t.Errorf("%s is not answered", line)
			}
		}
	}
	size := testsize.Pick(1_000_000, 10_000_000, 100_000_000)
	large := r.dial()
	fmt.Fprintf(large, "put %d\n", size)
	sum := uint32(0)
	data := bytes.Repeat([]byte("a large request "), 4096)
	for left := size; left > 0; left -= len(data) {
		data = data[:min(len(data), left)]
		for _, b := range data {
			sum = sum*31 + uint32(b)
		}
		if _, err := large.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := bufio.NewReader(large).ReadString('\n')
	if answer != fmt.Sprintln(sum) || err != nil {
		t.Errorf("the sum is %q, %v, want %d", answer, err, sum)
	}
	if got := r.ask("quit"); got != "bye" {
		t.Errorf("quit is answered %q", got)
	}
	replayTwice(t, trace, r.wait(7), r.out.Bytes())
}

// TestServersThatEnd: a crash, Ctrl-C while the machine waits, a deadlock without a listener, and
// clients before the server listens.
func TestServersThatEnd(t *testing.T) {
	server := gcctest.C(t, lineServer, "-pthread", "-static")
	withAndWithoutWindows(t, server, func(t *testing.T, flags []string) { testServersThatEnd(t, server, flags) })
}

func testServersThatEnd(t *testing.T, server string, flags []string) {
	trace := filepath.Join(t.TempDir(), "trace")
	record := append([]string{"-o", trace}, flags...)
	t.Run("crash", func(t *testing.T) {
		r := startPublished(t, "ready", nil, "record", record, server)
		c := r.dial()
		fmt.Fprint(c, "one\ncrash\n")
		if got, err := io.ReadAll(c); string(got) != "1 one\n" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		replayTwice(t, trace, r.wait(128+int(syscall.SIGABRT)), r.out.Bytes())
	})
	t.Run("interrupt", func(t *testing.T) {
		r := startPublished(t, "ready", nil, "record", record, server)
		c := r.dial()
		exchange(t, c, "one")
		fmt.Fprint(c, "put 10\nabc")
		time.Sleep(100 * time.Millisecond)
		before := processTime(t, r.cmd.Process.Pid)
		time.Sleep(time.Second)
		if used := processTime(t, r.cmd.Process.Pid) - before; used > 500*time.Millisecond {
			t.Errorf("waiting for clients takes %v of processor time in a second", used)
		}
		_ = r.cmd.Process.Signal(syscall.SIGINT)
		if got, err := io.ReadAll(c); len(got) > 0 || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		replayTwice(t, trace, r.wait(130), r.out.Bytes())
	})
	t.Run("run", func(t *testing.T) {
		r := startPublished(t, "ready", nil, "run", flags, server)
		r.ask("quit")
		note := r.wait(7).Clients.Note
		if !strings.Contains(note, "(connections: 1)") || !strings.Contains(r.stderr.content(), "heddle: "+note+"\n") {
			t.Errorf("the note is %q, standard error is %s", note, r.stderr.content())
		}
	})
	t.Run("never", func(t *testing.T) {
		r := startPublished(t, "", nil, "run", flags, server, "never")
		if c, err := net.Dial("tcp", r.address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a guest that does not listen is reached: %v, %v", c, err)
		}
		r.wait(3)
	})
	t.Run("early", func(t *testing.T) {
		r := startPublished(t, "", nil, "run", flags, server, "sleep")
		for {
			c, err := net.Dial("tcp", r.address)
			if err == nil {
				if got := exchange(t, c, "quit"); got != "bye" {
					t.Errorf("quit is answered %q", got)
				}
				break
			}
			if !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatal(err)
			}
		}
		r.wait(7)
	})
}

// processTime is the processor time that a process has used.
func processTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		t.Skip(err)
	}
	var ns int64
	if _, err := fmt.Sscan(string(text), &ns); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ns)
}
