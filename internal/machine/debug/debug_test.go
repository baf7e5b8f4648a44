package debug_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/debug"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// served is a machine that waits for GDB, and its result.
type served struct {
	addr   string
	result chan *machine.Result
	failed chan error
}

// serve starts a machine that GDB can look at. After GDB has left it runs on to
// its end.
func serve(t *testing.T, c machine.Config) *served {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s := &served{l.Addr().String(), make(chan *machine.Result, 1), make(chan error, 1)}
	go func() {
		defer l.Close()
		defer m.Close()
		if err := debug.Serve(m, l); err != nil {
			s.failed <- err
			return
		}
		r, err := m.Run(context.Background())
		if err != nil {
			s.failed <- err
			return
		}
		s.result <- r
	}()
	return s
}

// end waits for the run's end.
func (s *served) end(t *testing.T) *machine.Result {
	t.Helper()
	select {
	case r := <-s.result:
		return r
	case err := <-s.failed:
		t.Fatal(err)
	}
	return nil
}

// client speaks the remote protocol.
type client struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func connect(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, conn, bufio.NewReader(conn)}
	if got := c.ask("QStartNoAckMode"); got != "OK" {
		t.Fatalf("no-ack mode: %q", got)
	}
	return c
}

// ask sends a packet and returns the answer.
func (c *client) ask(packet string) string {
	c.t.Helper()
	sum := byte(0)
	for i := range len(packet) {
		sum += packet[i]
	}
	if _, err := fmt.Fprintf(c.conn, "$%s#%02x", packet, sum); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.r.ReadString('$'); err != nil {
		c.t.Fatalf("after %s: %v", packet, err)
	}
	answer, err := c.r.ReadString('#')
	if err != nil {
		c.t.Fatalf("after %s: %v", packet, err)
	}
	if _, err := c.r.Discard(2); err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSuffix(answer, "#")
}

// thread is the one of a stop reply.
func thread(stop string) string {
	_, rest, _ := strings.Cut(stop, "thread:")
	id, _, _ := strings.Cut(rest, ";")
	return id
}

// openForGDB is racy with functions and variables to stop at.
func openForGDB(t *testing.T) string {
	t.Helper()
	return machinetest.Compile(t, machinetest.Racy, "-g", "-no-pie", "-fno-inline")
}

// symbol is the address of a name in a program that is not relocated.
func symbol(t *testing.T, program, name string) string {
	t.Helper()
	found, ok := gcctest.Symbols(t, program)[name]
	if !ok {
		t.Fatalf("no symbol %s", name)
	}
	return fmt.Sprintf("%x", found.Value)
}

// refused is that GDB is not served for a configuration.
func refused(t *testing.T, c machine.Config) {
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := debug.Serve(m, nil); err == nil || !strings.Contains(err.Error(), "GDB cannot look at") {
		t.Errorf("served, or %v", err)
	}
}

// However a run is taken back and forth, it is the run without GDB.
func TestRunUnderGDBIsTheSame(t *testing.T) {
	program := openForGDB(t)
	for name, change := range machinetest.Machines() {
		t.Run(name, func(t *testing.T) {
			c, out := machinetest.Config(t, program)
			change(&c)
			if dmt.NewTurnController(c.Sched.WithDefaults(), sched.Costs{}) != nil {
				refused(t, c)
				return
			}
			want := machinetest.Run(t, c)
			wantOut := out.String()
			out.Reset()
			s := serve(t, c)
			g := connect(t, s.addr)
			g.ask("Z0," + symbol(t, program, "work") + ",1")
			g.ask("Z2," + symbol(t, program, "counter") + ",4")
			random := rand.New(rand.NewPCG(1, 2))
			motions := []string{"vCont;c", "vCont;c", "vCont;c", "bc", "bs", "vCont;s:"}
			for range 20 {
				stop := g.ask("?")
				m := motions[random.IntN(len(motions))]
				if strings.HasSuffix(m, ":") {
					m += thread(stop)
				}
				if stop = g.ask(m); stop[0] != 'T' {
					break
				}
			}
			if got := g.ask("D"); got != "OK" {
				t.Errorf("detach: %q", got)
			}
			got := s.end(t)
			got.PeakMemory = want.PeakMemory // snapshots keep pages
			machinetest.CompareResults(t, got, want)
			if out.String() != wantOut {
				t.Errorf("output %q, want %q", out, wantOut)
			}
		})
	}
}

// Steps backwards undo steps forwards, register by register.
func TestStepsBackAreStepsReversed(t *testing.T) {
	program := openForGDB(t)
	c, _ := machinetest.Config(t, program)
	s := serve(t, c)
	g := connect(t, s.addr)
	g.ask("Z0," + symbol(t, program, "work") + ",1")
	stop := g.ask("vCont;c")
	if !strings.Contains(stop, "swbreak") {
		t.Fatalf("no breakpoint: %s", stop)
	}
	g.ask("z0," + symbol(t, program, "work") + ",1")
	id := thread(stop)
	var states []string
	for range 100 {
		states = append(states, g.ask("g"))
		if stop = g.ask("vCont;s:" + id); thread(stop) != id {
			t.Fatalf("another thread stopped: %s", stop)
		}
	}
	for i, want := range slices.Backward(states) {
		g.ask("Hc" + id)
		g.ask("bs")
		g.ask("Hg" + id)
		if got := g.ask("g"); got != want {
			t.Fatalf("after %d steps there was another state than after as many back:\n%s\n%s", i, want, got)
		}
	}
	g.ask("D")
	s.end(t)
}

// GDB stops a run that does not end by itself.
func TestGDBInterrupts(t *testing.T) {
	program := machinetest.Compile(t, `static volatile long n; int main(void) { for (;;) n++; }`, "-no-pie")
	c, _ := machinetest.Config(t, program)
	c.MaxInstructions = 300_000_000
	s := serve(t, c)
	g := connect(t, s.addr)
	if _, err := g.conn.Write([]byte("$vCont;c#a8\x03")); err != nil {
		t.Fatal(err)
	}
	if _, err := g.r.ReadString('#'); err != nil {
		t.Fatal(err)
	}
	_, _ = g.r.Discard(2)
	stop := g.ask("?")
	if !strings.HasPrefix(stop, "T05") || strings.Contains(stop, "replaylog") {
		t.Errorf("after an interrupt: %s", stop)
	}
	n := symbol(t, program, "n")
	before := g.ask("m" + n + ",8")
	g.ask("vCont;s:" + thread(stop))
	g.ask("bs")
	if after := g.ask("m" + n + ",8"); after != before {
		t.Errorf("a step and a step back changed n from %s to %s", before, after)
	}
	_ = g.conn.Close() // without a detach: the run continues
	if r := s.end(t); r.Outcome != "instruction limit" {
		t.Errorf("outcome %q", r.Outcome)
	}
}

// A watchpoint lasts to the end of the program, and GDB's reading beyond it.
func TestGDBWatchesToTheEnd(t *testing.T) {
	program := machinetest.Compile(t, `static volatile int n; int main(void) { n = 1; n = 2; n = 2; return n; }`, "-no-pie")
	c, _ := machinetest.Config(t, program)
	s := serve(t, c)
	g := connect(t, s.addr)
	n := symbol(t, program, "n")
	g.ask("Z2," + n + ",4")
	for _, want := range []string{"watch:", "watch:", "replaylog:end", "W02"} {
		if got := g.ask("vCont;c"); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, p := range []string{"g", "m" + n + ",4", "bc", "?", "qXfer:threads:read::0,1000", "qXfer:auxv:read::0,1000"} {
		g.ask(p)
	}
	_ = g.conn.Close()
	s.end(t)
}

// A program that another takes the place of stops, with the new one's name.
func TestGDBIsToldOfExec(t *testing.T) {
	next := machinetest.Compile(t, `int main(void) { return 7; }`)
	program := machinetest.Compile(t, `#include <unistd.h>
		int main(int n, char **a) { execl(a[1], a[1], (char *)0); return 1; }`)
	c, _ := machinetest.Config(t, program, next)
	c.Mounts = append(c.Mounts, machine.Mount{Host: filepath.Dir(next), Guest: filepath.Dir(next)})
	s := serve(t, c)
	g := connect(t, s.addr)
	if got, want := g.ask("vCont;c"), fmt.Sprintf("exec:%x;", next); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, want := range []string{"replaylog:end", "W07"} {
		if got := g.ask("vCont;c"); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	_ = g.conn.Close()
	s.end(t)
}

// Bytes that are not the protocol do no harm.
func TestGDBServerSurvivesNonsense(t *testing.T) {
	program := machinetest.Compile(t, `int main(void) { return 3; }`)
	c, _ := machinetest.Config(t, program)
	for _, junk := range []string{
		"", "hello", "$", "$#", "$m#00", "+++---", "$}", strings.Repeat("$", 70000), "$" + strings.Repeat("x", 70000),
		"$qXfer:features:read:target.xml:ffffffffffffffff,ffffffffffffffff#b4", "\x03\x03", "GET / HTTP/1.1\r\n\r\n",
	} {
		s := serve(t, c)
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(junk))
		_ = conn.Close()
		select {
		case r := <-s.result:
			if r.ExitCode != 3 {
				t.Errorf("after %.20q: exit status %d", junk, r.ExitCode)
			}
		case <-s.failed:
		}
	}
	s := serve(t, c)
	g := connect(t, s.addr)
	for _, p := range []string{
		"m", "m,", "mzz,4", "m0,ffffffff", "p", "pffff", "Hg", "Hgzz", "Hg7fffffff", "T", "Tffffffffff", "Z", "Z0", "Z0,,", "Z9,1,1", "Z2,0,0",
		"z4,ffffffffffffffff,ffffffffffffffff", "Z2,ffffffffffffffff,ffffffff", "vCont", "vCont;", "vCont;x:1", "b", "bx", "qXfer", "qXfer:auxv:read::,", "qThreadExtraInfo,",
		"G00", "P0=0", "M0,1:00", "v", "q", "Q", "!", "R", "\x00",
	} {
		g.ask(p)
	}
	if got := g.ask("vCont;c"); !strings.Contains(got, "replaylog:end") {
		t.Errorf("the end: %q", got)
	}
	if got := g.ask("c"); got != "W03" {
		t.Errorf("after the end: %q", got)
	}
	_ = g.conn.Close()
	s.end(t)
}

// session is the commands for GDB, with lines that it must print, in this order.
const session = `set pagination off
set sysroot /
set print thread-events off
target remote ADDRESS
break add
continue
backtrace
info threads
info registers rip
print $xmm0
delete
watch counter
continue
continue
stepi
reverse-continue
reverse-continue
delete
hbreak work
continue
rwatch noise[5]
continue
reverse-continue
delete
break main
reverse-continue
next
reverse-next
delete
continue
print counter
continue
`

var answers = []string{
	"hit Breakpoint 1, add (n=1)",
	"#1  0x", "work (p=0x1)",
	`Thread 1000 "p"`, `Thread 1001 "p"`,
	"<add", "uint128",
	"Hardware watchpoint 2: counter", "Old value = 0", "New value = 1",
	"Old value = 1", "New value = 2",
	"Old value = 2", "New value = 1", // backwards
	"Old value = 1", "New value = 0",
	"hit Breakpoint 3", "work (p=0x",
	"Hardware read watchpoint 4: noise[5]", "Value =",
	"Hardware read watchpoint 4: noise[5]", "Value =", // backwards
	"hit Breakpoint 5, main ()",
	"No more reverse-execution history",
	"$2 = 30",
	"exited normally",
}

const debugged = `#include <pthread.h>
#include <stdio.h>
static int counter;
static volatile long noise[100];
static void add(int n) { counter += n; }
static void *work(void *p) {
	for (int i = 0; i < 1000; i++) {
		noise[i % 100] += i;
		if (i % 100 == 0) add((long)p);
	}
	return 0;
}
int main(void) {
	pthread_t t[3];
	for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, work, (void *)1);
	for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
	printf("counter %d\n", counter);
	return 0;
}`

// Debian's own GDB takes a run back and forth.
func TestGDB(t *testing.T) {
	program := machinetest.Compile(t, debugged, "-g", "-O0")
	c, out := machinetest.Config(t, program)
	c.Cores = 1 // one thread after the other, so that the sums are known
	text := talk(t, serve(t, c), program, session)
	rest := text
	for _, want := range answers {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no %q in the rest of what GDB said, which was\n%s", want, text)
		}
		rest = after
	}
	if out.String() != "counter 30\n" {
		t.Errorf("output %q", out)
	}
}

// A crash is seen where it happens, and its cause by going back.
func TestGDBSeesACrash(t *testing.T) {
	program := machinetest.Compile(t, `#include <stdlib.h>
		static int *volatile where;
		static int value;
		static void spoil(void) { where = 0; }
		int main(void) { where = &value; *where = 1; spoil(); *where = 2; return 0; }`, "-g", "-O0")
	c, _ := machinetest.Config(t, program)
	text := talk(t, serve(t, c), program, `set pagination off
set sysroot /
target remote ADDRESS
continue
watch where
reverse-continue
backtrace
delete
continue
continue
continue
continue
`)
	rest := text
	for _, want := range []string{"SIGSEGV", "main ()", "New value = (int * volatile) 0x", "#0", "spoil ()", "#1", "main ()", "terminated with signal SIGSEGV"} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no %q in the rest of what GDB said, which was\n%s", want, text)
		}
		rest = after
	}
}

// talk runs GDB with a script and returns its output.
func talk(t *testing.T, s *served, program, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(script, "ADDRESS", s.addr)), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command("gdb", "-q", "-nx", "-batch", "-x", file, program)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		t.Logf("gdb: %v", err) // a command that fails makes its status
	}
	s.end(t)
	return said.String()
}
