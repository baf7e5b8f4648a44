package sock

import (
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

func ctx() *vfs.Ctx { return &vfs.Ctx{Cred: vfs.NewCred(1000, 1000), PID: 7} }

// TestCapacity sends messages until none fits. The numbers are those of Linux
// 6.18 with the default buffers.
func TestCapacity(t *testing.T) {
	for _, c := range []struct{ kind, size, want int }{
		{unix.SOCK_STREAM, 1, 278},
		{unix.SOCK_STREAM, 193, 167},
		{unix.SOCK_STREAM, 2000, 49},
		{unix.SOCK_STREAM, 4000, 44},
		{unix.SOCK_STREAM, 10000, 17},
		{unix.SOCK_DGRAM, 192, 278},
		{unix.SOCK_DGRAM, 4000, 26},
		{unix.SOCK_DGRAM, 30000, 7},
		{unix.SOCK_SEQPACKET, 70000, 3},
	} {
		a, _, errno := New(nil, nil).Pair(ctx(), unix.AF_UNIX, c.kind, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		n := 0
		for {
			if _, errno := a.Write(ctx(), make([]byte, c.size), 0); errno == unix.EAGAIN {
				break
			}
			n++
		}
		if n != c.want {
			t.Errorf("type %d, %d bytes: %d messages, want %d", c.kind, c.size, n, c.want)
		}
	}
}

// TestAgainstHost does the same random calls on a pair here and on one of the
// host, without blocking, and compares results and poll events.
func TestAgainstHost(t *testing.T) {
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
		rapid.Check(t, func(t *rapid.T) { differ(t, kind) })
	}
}

func differ(t *rapid.T, kind int) {
	host, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b, _ := New(nil, nil).Pair(ctx(), unix.AF_UNIX, kind, 0)
	pair := [2]*Socket{a, b}
	open := [2]bool{true, true}
	defer func() {
		for i := range host {
			if open[i] {
				_ = unix.Close(host[i])
			}
		}
	}()
	for range rapid.IntRange(1, 40).Draw(t, "calls") {
		i := rapid.IntRange(0, 1).Draw(t, "side")
		if !open[i] {
			continue
		}
		var n, want int
		var errno unix.Errno
		var wantErr error
		op := rapid.SampledFrom([]string{"send", "recv", "peek", "send", "recv", "shutdown", "close", "error"}).Draw(t, "op")
		size := rapid.SampledFrom([]int{1, 10, 3000, 20000, 60000}).Draw(t, "size")
		switch op {
		case "send":
			n, _, errno = pair[i].Send(ctx(), &Outgoing{Data: make([]byte, size)})
			if n > 0 {
				errno = 0
			}
			want, wantErr = unix.SendmsgN(host[i], make([]byte, size), nil, nil, unix.MSG_NOSIGNAL)
		case "recv", "peek":
			in := &Incoming{Data: make([]byte, size), Peek: op == "peek", Nonblock: true}
			errno = pair[i].Recv(in)
			n = in.N
			flags := 0
			if in.Peek {
				flags = unix.MSG_PEEK
			}
			want, _, wantErr = unix.Recvfrom(host[i], make([]byte, size), flags)
		case "shutdown":
			how := rapid.IntRange(-1, 3).Draw(t, "how")
			errno, wantErr = pair[i].Shutdown(how), unix.Shutdown(host[i], how)
		case "close":
			pair[i].Close()
			if err := unix.Close(host[i]); err != nil {
				t.Fatal(err)
			}
			open[i] = false
			continue
		case "error":
			raw, _ := pair[i].Option(unix.SOL_SOCKET, unix.SO_ERROR)
			n = int(raw[0])
			want, wantErr = unix.GetsockoptInt(host[i], unix.SOL_SOCKET, unix.SO_ERROR)
		}
		wantErrno, _ := wantErr.(unix.Errno)
		if errno != wantErrno || errno == 0 && n != want {
			t.Fatalf("type %d: %s of %d: %d %v, host %d %v", kind, op, size, n, errno, want, wantErr)
		}
		for i := range host {
			if open[i] {
				compareReady(t, pair[i], host[i])
			}
		}
	}
}

func compareReady(t *rapid.T, s *Socket, fd int) {
	poll := []unix.PollFd{{Fd: int32(fd), Events: 0x3fff}}
	_, err := unix.Poll(poll, 0)
	for err == unix.EINTR {
		_, err = unix.Poll(poll, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, want := uint16(s.Ready()), uint16(poll[0].Revents); got != want {
		t.Fatalf("poll events %#x, host %#x", got, want)
	}
}

func local(port uint16) Addr { return Addr{Family: unix.AF_INET, IP: loopback4, Port: port} }

// tcpPair connects two TCP sockets.
func tcpPair(t *testing.T, st *Stack) (client, server, listener *Socket) {
	t.Helper()
	listener, _ = st.Socket(ctx(), unix.AF_INET, unix.SOCK_STREAM, 0)
	client, _ = st.Socket(ctx(), unix.AF_INET, unix.SOCK_STREAM, 0)
	if errno := listener.Bind(ctx(), local(0)); errno != 0 {
		t.Fatal(errno)
	}
	if errno := listener.Listen(ctx(), 1); errno != 0 {
		t.Fatal(errno)
	}
	if _, errno := client.Connect(ctx(), listener.local, false); errno != 0 {
		t.Fatal(errno)
	}
	server, errno := listener.Accept(true)
	if errno != 0 {
		t.Fatal(errno)
	}
	return client, server, listener
}

// TestCopy continues with a copy of a stack whose original continues differently.
func TestCopy(t *testing.T) {
	type world struct {
		st   *Stack
		c, s *Socket
	}
	w := &world{st: New(nil, nil)}
	w.c, w.s, _ = tcpPair(t, w.st)
	if n, errno := w.c.Write(ctx(), []byte("before"), 0); n != 6 || errno != 0 {
		t.Fatal(n, errno)
	}
	x := deepcopy.Copy(deepcopy.New(), w)
	w.c.Close()
	if n, errno := x.c.Write(ctx(), []byte(" and after"), 0); n != 10 || errno != 0 {
		t.Fatal(n, errno)
	}
	for i, want := range []string{"before", "before and after"} {
		b := make([]byte, 100)
		n, errno := []*world{w, x}[i].s.Read(ctx(), b, 0)
		if errno != 0 || string(b[:n]) != want {
			t.Errorf("read %q %v, want %q", b[:n], errno, want)
		}
	}
	if s, _ := x.st.Socket(ctx(), unix.AF_INET, unix.SOCK_STREAM, 0); s.Bind(ctx(), local(firstPort)) != unix.EADDRINUSE {
		t.Error("the copy does not know the listener's port")
	}
}
