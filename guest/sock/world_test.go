package sock_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/sock"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// The tests of this package run scripts. Each line is an operation on sockets
// of the host and, the same, on sockets of the guest; both are non-blocking.
// The results, errno included, must be equal: the host's kernel is the oracle.
// Ports that the kernel chose are shown as P1, P2 and so on, in the order in
// which they appear.
//
//	socket NAME FAMILY KIND      pair NAME NAME FAMILY KIND
//	bind NAME ADDR               listen NAME BACKLOG
//	connect NAME ADDR            accept NAME NEW
//	send NAME BYTES [to ADDR] [oob] [more] [fds NAME,...] [cred]
//	recv NAME BYTES [peek] [trunc] [oob]
//	shutdown NAME rd|wr|rdwr     close NAME
//	name NAME    peer NAME       poll NAME
//	set NAME OPTION VALUE        get NAME OPTION
//	ioctl NAME inq|outq|atmark
//
// Addresses: 1.2.3.4:80, [::1]:80, @NAME (of a UNIX socket), /NAME (a path),
// unspec. A port of the form =NAME is the port that the socket has or, if it is
// closed, had.
type world struct {
	t       tester
	fs      *vfs.FS
	stack   *sock.Stack
	ctx     *vfs.Ctx
	dir     string // for path names on the host
	prefix  string // of abstract names on the host
	sockets map[string]*both
	had     map[string][2]uint16 // ports of sockets that are closed, native and guest
	ports   [2]map[uint16]string // by number, native and guest
	counter byte                 // makes the bytes that are sent
	history []string
	made    []made // all sockets
	rights  bool   // messages have carried descriptors
}

// made is a socket as it was made. It may live on in messages when its descriptor is
// closed.
type made struct {
	name  string
	inode uint64 // on the host
	file  *vfs.File
}

// both is one socket in both worlds.
type both struct {
	fd   int
	file *vfs.File
}

func (b *both) guest() *sock.Socket { return b.file.Impl.(*sock.Socket) }

type tester interface {
	Helper()
	Fatalf(string, ...any)
	Logf(string, ...any)
}

var worlds int

func newWorld(t tester, dir string) *world {
	fs, err := vfs.New(vfs.Config{MaxInodes: 1000})
	if err != nil {
		t.Fatalf("%v", err)
	}
	worlds++
	return &world{
		t: t, fs: fs, stack: sock.New(fs, nil), dir: dir,
		prefix: fmt.Sprintf("heddle-test-%d-%d-", os.Getpid(), worlds),
		ctx: &vfs.Ctx{
			Cred: vfs.NewCred(uint32(os.Getuid()), uint32(os.Getgid())), Root: fs.Root(), Cwd: fs.Root(), PID: int32(os.Getpid()),
		},
		sockets: map[string]*both{}, had: map[string][2]uint16{}, ports: [2]map[uint16]string{{}, {}},
	}
}

func (w *world) closeAll() {
	for _, s := range w.sockets {
		_ = unix.Close(s.fd)
		s.file.Unref()
	}
	w.sockets = nil
	if err := w.fs.Close(); err != nil {
		w.t.Fatalf("%v", err)
	}
}

func mkdir(path string) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		panic(err)
	}
}

func TestMain(m *testing.M) {
	signal.Ignore(unix.SIGPIPE)
	os.Exit(m.Run())
}

func errnoOf(err error) unix.Errno {
	var e unix.Errno
	errors.As(err, &e)
	return e
}

func show(errno unix.Errno, what ...any) string {
	if errno != 0 {
		return unix.ErrnoName(errno)
	}
	return strings.TrimSpace(fmt.Sprintln(what...))
}

// ownNetwork gives the test's goroutine a network where no other program of the host has
// ports, which would be in use or answer, and no connection is remembered that was closed a
// minute ago. Where that is not allowed it keeps the host's.
func ownNetwork(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // the thread ends with the goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		t.Logf("the network is the host's: %v", err)
		return
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		lo.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// alone runs a script in a network of its own.
func alone(t *testing.T, text string) {
	t.Helper()
	ownNetwork(t)
	script(t, text)
}

// script runs the lines of a script.
func script(t *testing.T, text string) {
	t.Helper()
	w := newWorld(t, t.TempDir())
	defer w.closeAll()
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			w.step(line)
		}
	}
}

// step does one operation in both worlds and compares. It returns the result.
func (w *world) step(line string) string {
	w.t.Helper()
	f := strings.Fields(line)
	native, guest := w.do(f)
	w.notePorts()
	for i := range native {
		native[i] = w.portNames(0, native[i])
	}
	for i := range guest {
		guest[i] = w.portNames(1, guest[i])
	}
	n, g := strings.Join(native, " "), strings.Join(guest, " ")
	if n != g {
		w.t.Fatalf("%s\n%s\n  native: %s\n  guest:  %s", strings.Join(w.history, "\n"), line, n, g)
	}
	w.history = append(w.history, line+" -> "+n)
	if w.rights {
		w.collect()
	}
	return n
}

// collect lets both kernels close the sockets that are only in each other's messages,
// and compares which are left. Linux looks for them at some time after any program of
// the host has closed a UNIX socket: without this the results of the next lines would
// depend on other programs.
func (w *world) collect() {
	w.t.Helper()
	if s, errno := w.stack.Socket(w.ctx, unix.AF_UNIX, unix.SOCK_DGRAM, 0); errno == 0 {
		w.fs.NewFile(w.fs.NewSocket(w.ctx), "socket:", unix.O_RDWR, s).Unref()
	}
	differs := ""
	for range 10_000 {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			w.t.Fatalf("a socket to be closed: %v", err)
		}
		_ = unix.Close(fd)
		if differs = w.otherSocketsLeft(); differs == "" {
			return
		}
		_, _ = unix.Poll(nil, 1)
	}
	w.t.Fatalf("%s\n%s", strings.Join(w.history, "\n"), differs)
}

// otherSocketsLeft names the first socket that is open in one world alone.
func (w *world) otherSocketsLeft() string {
	text, err := os.ReadFile("/proc/thread-self/net/unix")
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	open := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 6 {
			open[f[6]] = true
		}
	}
	for _, m := range w.made {
		if native, guest := open[strconv.FormatUint(m.inode, 10)], m.file.Refs() > 0; native != guest {
			return fmt.Sprintf("open: %s native: %v guest: %v", m.name, native, guest)
		}
	}
	return ""
}

// result is the result of an operation, as words.
type result = []string

func (w *world) do(f []string) (native, guest result) {
	switch f[0] {
	case "socket":
		if w.sockets[f[1]] != nil {
			return one("in use"), one("in use")
		}
		return w.socket(f[1], family(f[2]), kind(f[3]))
	case "pair":
		return w.pair(f[1], f[2], family(f[3]), kind(f[4]))
	}
	s := w.sockets[f[1]]
	if s == nil {
		return one("no socket"), one("no socket")
	}
	g := s.guest()
	switch f[0] {
	case "bind":
		na, ga := w.address(s, f[2])
		errno := rawAddress(unix.SYS_BIND, s.fd, na)
		return one(show(errno, "ok")), one(w.parsed(g, ga, func(a sock.Addr) unix.Errno { return g.Bind(w.ctx, a) }))
	case "listen":
		err := unix.Listen(s.fd, number(f[2]))
		return one(show(errnoOf(err), "ok")), one(show(g.Listen(w.ctx, number(f[2])), "ok"))
	case "connect":
		na, ga := w.address(s, f[2])
		errno := rawAddress(unix.SYS_CONNECT, s.fd, na)
		return one(show(errno, "ok")), one(w.parsed(g, ga, func(a sock.Addr) unix.Errno {
			_, errno := g.Connect(w.ctx, a, true)
			return errno
		}))
	case "accept":
		return w.accept(s, f[2])
	case "send":
		return w.send(s, f[2:])
	case "recv":
		return w.recv(s, f[2:])
	case "shutdown":
		how := map[string]int{"rd": 0, "wr": 1, "rdwr": 2, "bad": 3}[f[2]]
		return one(show(errnoOf(unix.Shutdown(s.fd, how)), "ok")), one(show(g.Shutdown(how), "ok"))
	case "close":
		w.had[f[1]] = [2]uint16{portOf(nativeName(s.fd)), portOf(g.Name())}
		_ = unix.Close(s.fd)
		s.file.Unref()
		delete(w.sockets, f[1])
		return nil, nil
	case "name", "peer":
		return w.names(s, f[0] == "peer")
	case "poll":
		return one(showEvents(pollNative(s.fd))), one(showEvents(g.Ready()))
	case "set":
		level, name := optionNumber(f[2])
		raw := optionValue(f[3])
		return one(show(rawOption(unix.SYS_SETSOCKOPT, s.fd, level, name, raw), "ok")), one(show(g.SetOption(w.ctx, level, name, raw), "ok"))
	case "get":
		return w.get(s, f[2])
	case "ioctl":
		return w.ioctl(s, f[2])
	}
	panic("unknown operation " + f[0])
}

func one(s string) result { return result{s} }

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func family(s string) int {
	return map[string]int{"unix": unix.AF_UNIX, "inet": unix.AF_INET, "inet6": unix.AF_INET6}[s]
}

func kind(s string) int {
	return map[string]int{"stream": unix.SOCK_STREAM, "dgram": unix.SOCK_DGRAM, "seqpacket": unix.SOCK_SEQPACKET}[s]
}

func (w *world) add(name string, fd int, s *sock.Socket) {
	b := &both{fd, w.fs.NewFile(w.fs.NewSocket(w.ctx), "socket:", unix.O_RDWR|unix.O_NONBLOCK, s)}
	w.sockets[name] = b
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		w.t.Fatalf("fstat: %v", err)
	}
	if s.Family() == unix.AF_UNIX {
		w.made = append(w.made, made{name, st.Ino, b.file})
	}
}

func (w *world) socket(name string, family, kind int) (native, guest result) {
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	s, errno := w.stack.Socket(w.ctx, family, kind, 0)
	if err == nil && errno == 0 {
		w.add(name, fd, s)
	}
	return one(show(errnoOf(err), "ok")), one(show(errno, "ok"))
}

func (w *world) pair(a, b string, family, kind int) (native, guest result) {
	fds, err := unix.Socketpair(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	x, y, errno := w.stack.Pair(w.ctx, family, kind, 0)
	if err == nil && errno == 0 {
		w.add(a, fds[0], x)
		w.add(b, fds[1], y)
	}
	return one(show(errnoOf(err), "ok")), one(show(errno, "ok"))
}

func (w *world) accept(s *both, name string) (native, guest result) {
	fd, _, err := unix.Accept4(s.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	n, errno := s.guest().Accept(true)
	if err == nil && errno == 0 {
		w.add(name, fd, n)
	}
	return one(show(errnoOf(err), "ok")), one(show(errno, "ok"))
}

func (w *world) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		w.counter++
		b[i] = w.counter
	}
	return b
}

func has(f []string, word string) bool {
	for _, x := range f {
		if x == word {
			return true
		}
	}
	return false
}

func after(f []string, word string) string {
	for i, x := range f {
		if x == word {
			return f[i+1]
		}
	}
	return ""
}

func (w *world) send(s *both, f []string) (native, guest result) {
	data := w.bytes(number(f[0]))
	out := sock.Outgoing{Data: data}
	var nto []byte
	flags := unix.MSG_NOSIGNAL
	var control []byte
	if to := after(f, "to"); to != "" {
		na, ga := w.address(s, to)
		a, errno := sock.Parse(ga, s.guest().Family())
		if errno != 0 {
			w.t.Fatalf("bad address %s", to)
		}
		out.To, nto = &a, na
	}
	if out.OOB = has(f, "oob"); out.OOB {
		flags |= unix.MSG_OOB
	}
	if out.More = has(f, "more"); out.More {
		flags |= unix.MSG_MORE
	}
	if names := after(f, "fds"); names != "" {
		var fds []int
		for _, n := range strings.Split(names, ",") {
			if o := w.sockets[n]; o != nil {
				fds = append(fds, o.fd)
				out.Rights = append(out.Rights, o.file)
			}
		}
		if len(fds) > 0 {
			control = unix.UnixRights(fds...)
			w.rights = true
		}
	}
	if has(f, "cred") {
		u := &unix.Ucred{Pid: int32(os.Getpid()), Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
		control = append(control, unix.UnixCredentials(u)...)
		out.Cred = &sock.Cred{PID: u.Pid, UID: u.Uid, GID: u.Gid}
	}
	nn, nerrno := rawSend(s.fd, data, nto, control, flags)
	gn, _, gerrno := s.guest().Send(w.ctx, &out)
	if gn > 0 {
		gerrno = 0
	}
	return one(show(nerrno, nn)), one(show(gerrno, gn))
}

func (w *world) recv(s *both, f []string) (native, guest result) {
	size := number(f[0])
	in := sock.Incoming{Data: make([]byte, size), Peek: has(f, "peek"), OOB: has(f, "oob"), Nonblock: true}
	flags := 0
	if in.Peek {
		flags |= unix.MSG_PEEK
	}
	if in.OOB {
		flags |= unix.MSG_OOB
	}
	nb := make([]byte, size)
	m, nerrno := rawRecv(s.fd, nb, flags)
	gerrno := s.guest().Recv(&in)
	if nerrno == unix.EAGAIN && gerrno == 0 {
		// Loopback may take its time on a busy host.
		for range 1000 {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}, 1); err == nil {
				if m, nerrno = rawRecv(s.fd, nb, flags); nerrno != unix.EAGAIN {
					break
				}
			}
		}
	}
	if nerrno != 0 || gerrno != 0 {
		return one(show(nerrno, m.n)), one(show(gerrno, in.N))
	}
	if m.n == in.N && !bytes.Equal(nb[:m.n], in.Data[:in.N]) {
		w.t.Fatalf("recv: different data")
	}
	from := "-"
	if in.HasFrom {
		from = w.showAddress(1, in.From.Bytes(s.guest().Family()))
	}
	native = result{strconv.Itoa(m.n), w.showAddress(0, m.from)}
	guest = result{strconv.Itoa(in.N), from}
	native = append(native, fmt.Sprint("cut=", m.flags&unix.MSG_TRUNC != 0, " rights=", len(m.rights), " cred=", m.cred))
	cred := ""
	if in.Cred != nil {
		cred = fmt.Sprint(in.Cred.PID, in.Cred.UID, in.Cred.GID)
	}
	guest = append(guest, fmt.Sprint("cut=", in.Size > in.N, " rights=", len(in.Rights), " cred=", cred))
	for i := range min(len(m.rights), len(in.Rights)) {
		if name := fmt.Sprintf("%s%d", after(f, "fds"), i); after(f, "fds") != "" {
			w.sockets[name] = &both{m.rights[i], in.Rights[i]}
			continue
		}
		_ = unix.Close(m.rights[i])
		in.Rights[i].Unref()
	}
	return native, guest
}
