package frost_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/heddle-dmt/heddle/experiments/frost"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
	"github.com/heddle-dmt/heddle/sched"
)

// served is the configuration of a server whose port 7000 is published, and the function that gets its address.
func served(command ...string) (machine.Config, func(publish.Port, []netip.AddrPort), chan netip.AddrPort) {
	c := configuration(sched.Options{}, 1, command...)
	c.Cores, c.Publish = 4, []publish.Port{{Guest: 7000}}
	address := make(chan netip.AddrPort, 1)
	return c, func(_ publish.Port, list []netip.AddrPort) { address <- list[0] }, address
}

// ask sends lines to a server, one after the other and the last on a connection of its own, and returns the answers.
func ask(address chan netip.AddrPort, lines ...string) (answers []string, err error) {
	to := (<-address).String()
	var c net.Conn
	for range 1000 { // until the guest listens
		if c, err = net.Dial("tcp", to); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for i, line := range lines {
		if err == nil && i == len(lines)-1 {
			c.Close()
			c, err = net.Dial("tcp", to)
		}
		if err != nil {
			return answers, err
		}
		fmt.Fprintln(c, line)
		answer, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			return answers, err
		}
		answers = append(answers, answer)
	}
	return answers, c.Close()
}

// TestClientsOfServer: clients on the host get right replies of a server under Frost, also if it has a data race that makes
// its replies wrong without Frost.
func TestClientsOfServer(t *testing.T) {
	bin := gcctest.File(t, "testdata/counter.c", "-pthread", "-static")
	lines := []string{"one", "two", "three", "four", "quit"}
	var want []string
	for i, line := range lines {
		want = append(want, fmt.Sprintf("%d %s\n", 2*(i+1), line))
	}
	type reply struct {
		answers []string
		err     error
	}
	start := func(address chan netip.AddrPort) chan reply {
		done := make(chan reply, 1)
		go func() {
			answers, err := ask(address, lines...)
			done <- reply{answers, err}
		}()
		return done
	}
	c, bound, address := served(bin, "race")
	got := start(address)
	if _, err := machine.Run(t.Context(), c, machine.WithClients(bound)); err != nil {
		t.Fatal(err)
	}
	if x := <-got; x.err != nil || slices.Equal(x.answers, want) {
		t.Errorf("without Frost: %q, %v", x.answers, x.err)
	}
	for argument, verdict := range map[string]string{"lock": frost.Clean, "race": frost.Survived} {
		c, bound, address := served(bin, argument)
		o := options()
		o.Bound = bound
		got := start(address)
		r, err := frost.Run(t.Context(), c, o)
		if err != nil {
			t.Fatal(err)
		}
		if x := <-got; x.err != nil || !slices.Equal(x.answers, want) {
			t.Errorf("%s: %q, %v", argument, x.answers, x.err)
		}
		if s := r.Result.Clients; r.Verdict != verdict || r.Result.ExitCode != 7 || s.Connections != 2 || s.Undelivered != 0 || s.Note == "" {
			t.Errorf("%s: %s, status %d, %+v\n%s", argument, r.Verdict, r.Result.ExitCode, s, trial{Report: r}.text())
		}
	}
}

// TestInterruptedServer: a run that is interrupted while it waits for clients ends, and they get the end of their connections.
func TestInterruptedServer(t *testing.T) {
	c, bound, address := served(gcctest.File(t, "testdata/counter.c", "-pthread", "-static"))
	o := options()
	o.Bound = bound
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := frost.Run(ctx, c, o)
		ended <- err
	}()
	to := <-address
	again := make(chan netip.AddrPort, 1)
	again <- to
	if got, err := ask(again, "one", "two"); err != nil || !slices.Equal(got, []string{"2 one\n", "4 two\n"}) {
		t.Errorf("%q, %v", got, err)
	}
	half, err := net.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	fmt.Fprint(half, "a part of a line")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n, err := half.Read(make([]byte, 10)); n > 0 || err == nil {
		t.Errorf("%d bytes after the end, %v", n, err)
	}
}
