package publish

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// TestClientsOfADamagedRecording: operations that are not possible are errors.
func TestClientsOfADamagedRecording(t *testing.T) {
	net := sock.New(nil, nil)
	ctx := &vfs.Ctx{Cred: vfs.NewCred(0, 0)}
	l, _ := net.Socket(ctx, unix.AF_INET, unix.SOCK_STREAM, 0)
	if errno := l.Bind(ctx, sock.Addr{Family: unix.AF_INET, IP: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}, Port: 80}); errno != 0 {
		t.Fatal(errno)
	}
	if errno := l.Listen(ctx, 1); errno != 0 {
		t.Fatal(errno)
	}
	c, ports := NewClients(), []Port{{Guest: 81}}
	if c.MayAct(net, ports) || !c.MayAct(net, []Port{{Guest: 80}}) {
		t.Error("clients can connect where the guest listens, and there alone")
	}
	for _, x := range []struct {
		e    event.Client
		fail bool
	}{
		{event.Client{Op: event.ClientSends, Connection: 1, Size: 1, Data: []byte("x")}, false}, // to nothing
		{event.Client{Op: event.ClientConnects, Connection: 1, Port: 80}, false},
		{event.Client{Op: event.ClientSends, Connection: 1, Size: 1, Data: []byte("x")}, false},
		{event.Client{Op: event.ClientSends, Connection: 1, Size: 1 << 24, Data: make([]byte, 1<<24)}, true},
		{event.Client{Op: event.ClientTakes, Connection: 1, Size: 1}, true},
		{event.Client{Op: event.ClientEnds, Connection: 1}, false},
		{event.Client{Op: event.ClientSends, Connection: 1, Size: 1, Data: []byte("x")}, true},
		{event.Client{Op: event.ClientEnds, Connection: 1}, false},
	} {
		if _, err := c.CarryOut(&x.e, net); (err != nil) != x.fail {
			t.Errorf("%v of %d bytes: %v", x.e.Op, x.e.Size, err)
		}
	}
	if !c.MayAct(net, ports) || c.Stats.Received != 1 || c.Operations != 8 {
		t.Errorf("a client is connected: %+v", c)
	}
	if _, err := c.CarryOut(&event.Client{Op: event.ClientResets, Connection: 1}, net); err != nil || c.MayAct(net, ports) {
		t.Errorf("no client is connected after a reset, %v", err)
	}
}
