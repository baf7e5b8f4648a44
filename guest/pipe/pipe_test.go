package pipe_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/guest/pipe"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// native is a pipe of the host, with the methods that the guest's has here.
type native struct{ r, w int }

func errnoOf(err error) unix.Errno {
	var e unix.Errno
	if errors.As(err, &e) {
		return e
	}
	return 0
}

func result(n int, err error) (int, unix.Errno) { return max(n, 0), errnoOf(err) }

func (p *native) write(b []byte) (int, unix.Errno) { return result(unix.Write(p.w, b)) }
func (p *native) read(b []byte) (int, unix.Errno)  { return result(unix.Read(p.r, b)) }

func (p *native) fd(write bool) int {
	if write {
		return p.w
	}
	return p.r
}

func pollNative(fd int) uint32 {
	fds := []unix.PollFd{{Fd: int32(fd), Events: 0x7fff &^ unix.POLLNVAL}}
	if _, err := unix.Poll(fds, 0); err != nil {
		panic(err)
	}
	return uint32(fds[0].Revents)
}

func (p *native) ready(write bool) uint32 { return pollNative(p.fd(write)) }

func (p *native) queued() int {
	n, _ := unix.IoctlGetInt(p.r, unix.TIOCINQ)
	return n
}

func (p *native) capacity() int {
	n, _ := unix.FcntlInt(uintptr(p.r), unix.F_GETPIPE_SZ, 0)
	return n
}

func (p *native) setCapacity(n int) (int, unix.Errno) {
	return result(unix.FcntlInt(uintptr(p.r), unix.F_SETPIPE_SZ, n))
}

func (p *native) close(write bool) { _ = unix.Close(p.fd(write)) }

type guest struct{ r, w *pipe.End }

func (p *guest) write(b []byte) (int, unix.Errno) { return p.w.Write(nil, b, 0) }
func (p *guest) read(b []byte) (int, unix.Errno)  { return p.r.Read(nil, b, 0) }

func (p *guest) end(write bool) *pipe.End {
	if write {
		return p.w
	}
	return p.r
}

func (p *guest) ready(write bool) uint32 { return p.end(write).Ready() }
func (p *guest) queued() int             { return p.r.Pipe().Len() }
func (p *guest) capacity() int           { return p.r.Capacity() }
func (p *guest) close(write bool)        { p.end(write).Close() }

func (p *guest) setCapacity(n int) (int, unix.Errno) {
	if errno := p.r.SetCapacity(n, false); errno != 0 {
		return 0, errno
	}
	return p.r.Capacity(), 0
}

// both does each operation on a pipe of the host and one of the guest.
type both struct {
	native *native
	guest  *guest
	closed [2]bool
	next   byte
}

func newBoth(flags int) *both {
	fds := make([]int, 2)
	if err := unix.Pipe2(fds, unix.O_NONBLOCK|unix.O_CLOEXEC|flags); err != nil {
		panic(err)
	}
	b := &both{native: &native{fds[0], fds[1]}}
	r, w := pipe.Pair(&pipe.Account{}, flags&unix.O_DIRECT != 0)
	b.guest = &guest{r, w}
	return b
}

func (b *both) end(write bool) {
	i := 0
	if write {
		i = 1
	}
	if !b.closed[i] {
		b.closed[i] = true
		b.native.close(write)
		b.guest.close(write)
	}
}

func (b *both) cleanup() {
	b.end(false)
	b.end(true)
}

type tester interface {
	Helper()
	Fatalf(string, ...any)
}

func same(t tester, what string, native, guest string) {
	t.Helper()
	if native != guest {
		t.Fatalf("%s: native %s, guest %s", what, native, guest)
	}
}

func (b *both) write(t tester, n int) unix.Errno {
	t.Helper()
	data := make([]byte, n)
	for i := range data {
		b.next++
		data[i] = b.next
	}
	nn, ne := b.native.write(data)
	gn, ge := b.guest.write(data)
	same(t, fmt.Sprintf("write %d", n), fmt.Sprint(nn, ne), fmt.Sprint(gn, ge))
	return ge
}

func (b *both) read(t tester, n int) {
	t.Helper()
	nb, gb := make([]byte, n), make([]byte, n)
	nn, ne := b.native.read(nb)
	gn, ge := b.guest.read(gb)
	same(t, fmt.Sprintf("read %d", n), fmt.Sprint(nn, ne), fmt.Sprint(gn, ge))
	if !bytes.Equal(nb, gb) {
		t.Fatalf("read %d: different data", n)
	}
}

func (b *both) check(t tester) {
	t.Helper()
	for i, write := range []bool{false, true} {
		if !b.closed[i] {
			same(t, fmt.Sprintf("poll %v", write), fmt.Sprintf("%#x", b.native.ready(write)), fmt.Sprintf("%#x", b.guest.ready(write)))
		}
	}
	if !b.closed[0] {
		same(t, "FIONREAD", fmt.Sprint(b.native.queued()), fmt.Sprint(b.guest.queued()))
		same(t, "F_GETPIPE_SZ", fmt.Sprint(b.native.capacity()), fmt.Sprint(b.guest.capacity()))
	}
}

var sizes = []int{0, 1, 2, 100, 1000, 3000, 4000, 4095, 4096, 4097, 5000, 8192, 10000, 65535, 65536, 65537, 100000}

func testRandomOperations(t *testing.T, flags int) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBoth(flags)
		defer b.cleanup()
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { b.check(t) },
			"write": func(t *rapid.T) {
				if !b.closed[1] {
					b.write(t, rapid.SampledFrom(sizes).Draw(t, "n"))
				}
			},
			"read": func(t *rapid.T) {
				if !b.closed[0] {
					b.read(t, rapid.SampledFrom(sizes).Draw(t, "n"))
				}
			},
			"resize": func(t *rapid.T) {
				if b.closed[0] {
					return
				}
				n := rapid.SampledFrom([]int{-1, 0, 1, 4096, 4097, 8192, 20000, 65536, 131072, 1 << 20}).Draw(t, "n")
				nn, ne := b.native.setCapacity(n)
				gn, ge := b.guest.setCapacity(n)
				same(t, fmt.Sprintf("F_SETPIPE_SZ %d", n), fmt.Sprint(nn, ne), fmt.Sprint(gn, ge))
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					b.end(rapid.Bool().Draw(t, "write"))
				}
			},
		})
	})
}

func TestRandomOperationsAreAsOnTheHost(t *testing.T) { testRandomOperations(t, 0) }
func TestRandomPacketsAreAsOnTheHost(t *testing.T)    { testRandomOperations(t, unix.O_DIRECT) }

func TestFillingIsAsOnTheHost(t *testing.T) {
	for _, n := range sizes[1:] {
		b := newBoth(0)
		for b.write(t, n) != unix.EAGAIN {
		}
		b.check(t)
		b.read(t, 5000)
		b.check(t)
		b.cleanup()
	}
}

// fifo opens a FIFO of the host without blocking.
func fifo(t *testing.T) (path string) {
	path = filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpeningAFIFOWithoutBlocking(t *testing.T) {
	path := fifo(t)
	p := pipe.New(&pipe.Account{})
	open := func(flags int) (int, *pipe.End) {
		fd, err := unix.Open(path, flags|unix.O_NONBLOCK, 0)
		mode := flags & unix.O_ACCMODE
		e, errno := p.Open(mode != unix.O_WRONLY, mode != unix.O_RDONLY, true)
		if errnoOf(err) != errno {
			t.Fatalf("open %#o: native %v, guest %v", flags, err, errno)
		}
		return fd, e
	}
	poll := func(when string, fd int, e *pipe.End) {
		t.Helper()
		same(t, when, fmt.Sprintf("%#x", pollNative(fd)), fmt.Sprintf("%#x", e.Ready()))
	}
	closeBoth := func(fd int, e *pipe.End) {
		_ = unix.Close(fd)
		e.Close()
	}
	open(unix.O_WRONLY) // ENXIO
	rfd, r := open(unix.O_RDONLY)
	poll("reader alone", rfd, r)
	wfd, w := open(unix.O_WRONLY)
	poll("reader with writer", rfd, r)
	poll("writer", wfd, w)
	closeBoth(wfd, w)
	poll("writer gone", rfd, r)
	late, l := open(unix.O_RDONLY)
	poll("reader after the writer", late, l)
	bfd, b := open(unix.O_RDWR)
	poll("both ways", bfd, b)
	poll("reader with both ways", rfd, r)
	closeBoth(rfd, r)
	closeBoth(late, l)
	closeBoth(bfd, b)
	if p.HasReaders() || p.HasWriters() {
		t.Error("ends are left")
	}
}

func TestBlockingOpenWaitsForThePartner(t *testing.T) {
	p := pipe.New(&pipe.Account{})
	r, _ := p.Open(true, false, false)
	if r.Complete() {
		t.Fatal("reader does not wait for a writer")
	}
	w, _ := p.Open(false, true, false)
	if !r.Complete() || !w.Complete() {
		t.Fatal("the two do not see each other")
	}
	// A partner that has come and gone again completes the open too.
	w.Close()
	r.Close()
	r, _ = p.Open(true, false, false)
	w, _ = p.Open(false, true, true)
	w.Close()
	if !r.Complete() {
		t.Fatal("a writer that is gone does not count")
	}
	if both, _ := p.Open(true, true, false); !both.Complete() {
		t.Error("read and write waits")
	}
}

// TestOpeningAnUnnamedPipeAgain opens a pipe as /proc/self/fd/N does,
// which on Linux never waits, also when the partner is gone.
func TestOpeningAnUnnamedPipeAgain(t *testing.T) {
	r, w := pipe.Pair(&pipe.Account{}, false)
	w.Close()
	for _, nonblock := range []bool{false, true} {
		if e, errno := r.Pipe().Open(true, false, nonblock); errno != 0 || !e.Complete() {
			t.Errorf("read end, nonblock %v: %v", nonblock, errno)
		}
	}
	again, errno := r.Pipe().Open(false, true, true)
	if errno != 0 {
		t.Fatal(errno)
	}
	if _, errno := again.Write(nil, []byte("x"), 0); errno != 0 {
		t.Error(errno)
	}
	if n, errno := r.Read(nil, make([]byte, 2), 0); n != 1 || errno != 0 {
		t.Errorf("read: %d, %v", n, errno)
	}
}

func TestTeeIsAsOnTheHost(t *testing.T) {
	for _, limit := range []int{0, 10, 4096, 5000, 1 << 20} {
		for _, have := range []int{0, 5, 4096, 9000, 70000} {
			from, to := newBoth(0), newBoth(0)
			from.write(t, have)
			to.write(t, 40000)
			nn, err := unix.Tee(from.native.r, to.native.w, limit, unix.SPLICE_F_NONBLOCK)
			if errnoOf(err) == unix.EAGAIN {
				nn = 0
			}
			gn := from.guest.r.Pipe().Tee(to.guest.r.Pipe(), limit)
			same(t, fmt.Sprintf("tee %d of %d", limit, have), fmt.Sprint(nn), fmt.Sprint(gn))
			from.check(t)
			to.check(t)
			to.write(t, 10)
			for range 3 {
				from.read(t, 50000)
				to.read(t, 50000)
			}
			from.cleanup()
			to.cleanup()
		}
	}
}

func TestPeekLeavesTheData(t *testing.T) {
	r, w := pipe.Pair(&pipe.Account{}, false)
	data := bytes.Repeat([]byte("0123456789"), 1000)
	_, _ = w.Write(nil, data, 0)
	got := make([]byte, len(data))
	for range 2 {
		if n := r.Pipe().Peek(got[:7000]); n != 7000 || !bytes.Equal(got[:n], data[:n]) {
			t.Fatalf("peek %d", n)
		}
	}
	if r.Pipe().Len() != len(data) {
		t.Error("data is gone")
	}
}

func TestPagesAreBounded(t *testing.T) {
	a := &pipe.Account{}
	var all []*pipe.End
	for range 5000 {
		r, w := pipe.Pair(a, false)
		all = append(all, r, w)
	}
	last := all[len(all)-1]
	if got := last.Capacity(); got != 2*pipe.PageSize {
		t.Errorf("the 5000th pipe has %d bytes", got)
	}
	if errno := last.SetCapacity(1<<16, false); errno != unix.EPERM {
		t.Errorf("growing it: %v", errno)
	}
	for _, e := range all {
		e.Close()
	}
	if r, _ := pipe.Pair(a, false); r.Capacity() != 1<<16 {
		t.Error("pages were not given back")
	}
}

func TestCopiesAreIndependent(t *testing.T) {
	type world struct{ R, W *pipe.End }
	r, w := pipe.Pair(&pipe.Account{}, false)
	_, _ = w.Write(nil, []byte("before"), 0)
	c := deepcopy.Copy(deepcopy.New(), world{r, w})
	_, _ = w.Write(nil, []byte("original"), 0)
	_, _ = c.W.Write(nil, []byte("copy"), 0)
	b := make([]byte, 100)
	n, _ := c.R.Read(nil, b, 0)
	if got := string(b[:n]); got != "beforecopy" {
		t.Errorf("the copy has %q", got)
	}
	n, _ = r.Read(nil, b, 0)
	if got := string(b[:n]); got != "beforeoriginal" {
		t.Errorf("the original has %q", got)
	}
}

func TestMain(m *testing.M) {
	// Writing to a pipe without readers must answer EPIPE.
	signal.Ignore(unix.SIGPIPE)
	os.Exit(m.Run())
}
