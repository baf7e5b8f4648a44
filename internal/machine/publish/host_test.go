package publish

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// fakeGuest is a guest that listens if it is said to, and whose ends are fake.
type fakeGuest struct {
	listens bool
	ends    map[uint64]*fakeEnd
}

func (g *fakeGuest) ListensFor(uint16) bool { return g.listens }
func (g *fakeGuest) End(n uint64) End       { return g.ends[n] }

func (g *fakeGuest) Act(e event.Client) {
	if e.Op == event.ClientConnects {
		g.ends[e.Connection] = &fakeEnd{room: 100}
		return
	}
	g.ends[e.Connection].act(e)
}

// newTestHost makes a host with one free port, and returns the address of it.
func newTestHost(t *testing.T) (*Host, string) {
	t.Helper()
	p := Port{Guest: 80}
	h, err := NewHost([]Port{p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h, h.Addresses(p)[0].String()
}

func (h *Host) mustPoll(t *testing.T, g Guest) {
	t.Helper()
	if err := h.Poll(g); err != nil {
		t.Fatal(err)
	}
}

// TestHost takes a connection of the host to a guest, which replies and ends.
func TestHost(t *testing.T) {
	h, address := newTestHost(t)
	g := &fakeGuest{ends: map[uint64]*fakeEnd{}}
	for range 2 { // it ceases to listen, and begins again
		h.mustPoll(t, g)
		if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a guest that does not listen: %v", err)
		}
		g.listens = true
		h.mustPoll(t, g)
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "request")
		for len(g.ends) == 0 || len(g.ends[h.accepted].log) == 0 {
			h.Wait(Forever)
			h.mustPoll(t, g)
		}
		if got := strings.Join(g.ends[h.accepted].log, ""); got != "sends 7 request" {
			t.Errorf("the guest is given %q", got)
		}
		g.ends[h.accepted].pending, g.ends[h.accepted].ended = []byte("reply"), true
		h.mustPoll(t, g)
		if got, err := io.ReadAll(c); string(got) != "reply" || err != nil {
			t.Errorf("the client is given %q, %v", got, err)
		}
		c.Close()
		for len(h.links) > 0 {
			h.Wait(Forever)
			h.mustPoll(t, g)
		}
		g.listens, g.ends = false, map[uint64]*fakeEnd{}
	}
}

// TestWaitEnds: waiting ends with a time or an interruption, also one from before.
func TestWaitEnds(t *testing.T) {
	h, _ := newTestHost(t)
	if waited := h.Wait(time.Millisecond); waited < time.Millisecond {
		t.Errorf("waited %v", waited)
	}
	h.Interrupt()
	h.Wait(Forever)
	h.Close()
	h.Interrupt()
}

// TestPortInUse: a port that another program listens on, and one that is published twice.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := Port{Host: uint16(l.Addr().(*net.TCPAddr).Port), Guest: 80}
	if _, err := NewHost([]Port{p}); !errors.Is(err, unix.EADDRINUSE) || !strings.HasPrefix(err.Error(), "port 80 of the guest cannot be published on 127.0.0.1:") {
		t.Errorf("a port in use: %v", err)
	}
	h, address := newTestHost(t)
	g := &fakeGuest{ends: map[uint64]*fakeEnd{}, listens: true}
	if other, err := net.Listen("tcp", address); err == nil {
		defer other.Close()
		if err := h.Poll(g); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("a port that another program listens on meanwhile: %v", err)
		}
	}
}
