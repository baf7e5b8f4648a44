package eventfd_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/guest/eventfd"
	"github.com/heddle-dmt/heddle/guest/wait"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

func show(n int, err error) string {
	var e unix.Errno
	errors.As(err, &e)
	return fmt.Sprint(max(n, 0), e)
}

func poll(t *rapid.T, fd int) uint32 {
	fds := []unix.PollFd{{Fd: int32(fd), Events: 0x7fff &^ unix.POLLNVAL}}
	if _, err := unix.Poll(fds, 0); err != nil {
		t.Fatal(err)
	}
	return uint32(fds[0].Revents)
}

func TestCountersAreAsOnTheHost(t *testing.T) {
	values := []uint64{0, 1, 2, 3, 1000, math.MaxUint64 - 3, math.MaxUint64 - 2, math.MaxUint64 - 1, math.MaxUint64}
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint32Range(0, 3).Draw(t, "start")
		semaphore := rapid.Bool().Draw(t, "semaphore")
		flags := unix.EFD_NONBLOCK | unix.EFD_CLOEXEC
		if semaphore {
			flags |= unix.EFD_SEMAPHORE
		}
		fd, err := unix.Eventfd(uint(start), flags)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		c := eventfd.NewCounter(uint64(start), semaphore)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if native := poll(t, fd); native != c.Ready() {
					t.Fatalf("poll: native %#x, guest %#x", native, c.Ready())
				}
			},
			"read": func(t *rapid.T) {
				nb := make([]byte, rapid.SampledFrom([]int{0, 7, 8, 16}).Draw(t, "size"))
				gb := make([]byte, len(nb))
				native := show(unix.Read(fd, nb))
				n, errno := c.Read(nil, gb, 0)
				if guest := show(n, errno); native != guest || string(nb) != string(gb) {
					t.Fatalf("read: native %s %x, guest %s %x", native, nb, guest, gb)
				}
			},
			"write": func(t *rapid.T) {
				b := binary.LittleEndian.AppendUint64(nil, rapid.SampledFrom(values).Draw(t, "value"))
				b = b[:rapid.SampledFrom([]int{7, 8, 8, 8}).Draw(t, "size")]
				native := show(unix.Write(fd, b))
				n, errno := c.Write(nil, b, 0)
				if guest := show(n, errno); native != guest {
					t.Fatalf("write: native %s, guest %s", native, guest)
				}
			},
		})
	})
}

// clock is a clock that stands still until it is moved.
type clock struct {
	now    int64
	alarms []*alarm
}

type alarm struct {
	at int64
	t  *eventfd.Timer
}

func (c *clock) Now() int64 { return c.now }

func (c *clock) Start(deadline int64, t *eventfd.Timer) any {
	a := &alarm{deadline, t}
	c.alarms = append(c.alarms, a)
	return a
}

func (c *clock) Stop(handle any) { handle.(*alarm).t = nil }

// to moves the clock, with every alarm on the way.
func (c *clock) to(now int64) {
	for {
		var first *alarm
		for _, a := range c.alarms {
			if a.t != nil && a.at <= now && (first == nil || a.at < first.at) {
				first = a
			}
		}
		if first == nil {
			c.now = now
			return
		}
		c.now = max(c.now, first.at)
		t := first.t
		first.t = nil
		t.Expire()
	}
}

// counted counts wake-ups.
type counted struct{ n int }

func (c *counted) Wake(uint32) { c.n++ }

func readTicks(t *testing.T, x *eventfd.Timer) (uint64, unix.Errno) {
	t.Helper()
	b := make([]byte, 8)
	_, errno := x.Read(nil, b, 0)
	return binary.LittleEndian.Uint64(b), errno
}

// The expectations are those of timerfd_create(2).
func TestTimersCountExpirations(t *testing.T) {
	type step struct {
		at             int64
		ticks          uint64 // 0: EAGAIN
		left, interval int64
	}
	for _, test := range []struct {
		name               string
		deadline, interval int64
		steps              []step
	}{
		{"once", 100, 0, []step{{99, 0, 1, 0}, {100, 1, 0, 0}, {1000, 0, 0, 0}}},
		{"in the past", -5, 0, []step{{0, 1, 0, 0}}},
		{"repeating", 100, 50, []step{{100, 1, 50, 50}, {149, 0, 1, 50}, {150, 1, 50, 50}, {420, 5, 30, 50}}},
		{"missed from the start", 100, 50, []step{{1000, 19, 50, 50}}},
		{"very often", 1, 1, []step{{1_000_000, 1_000_000, 1, 1}}},
	} {
		c := &clock{}
		x := eventfd.NewTimer(c)
		x.Set(test.deadline, test.interval, eventfd.KeepOnSet)
		for _, s := range test.steps {
			c.to(s.at)
			c.to(s.at) // a deadline that has passed already fires at once
			ready := x.Ready() == unix.EPOLLIN
			ticks, errno := readTicks(t, x)
			if ticks != s.ticks || (errno == unix.EAGAIN) != (s.ticks == 0) || ready != (s.ticks > 0) {
				t.Errorf("%s at %d: %d ticks, %v, ready %v; want %d", test.name, s.at, ticks, errno, ready, s.ticks)
			}
			if left, interval := x.Left(); left != s.left || interval != s.interval {
				t.Errorf("%s at %d: left %d every %d, want %d every %d", test.name, s.at, left, interval, s.left, s.interval)
			}
		}
	}
}

func TestSettingATimerForgetsWhatWas(t *testing.T) {
	c := &clock{}
	x := eventfd.NewTimer(c)
	w := &counted{}
	x.Waiters().Add(w)
	x.Set(10, 10, eventfd.KeepOnSet)
	c.to(35)
	x.Set(100, 0, eventfd.KeepOnSet)
	if _, errno := readTicks(t, x); errno != unix.EAGAIN {
		t.Errorf("old expirations: %v", errno)
	}
	c.to(99)
	if w.n != 1 {
		t.Errorf("woken %d times before the new deadline, want 1", w.n)
	}
	x.Disarm()
	c.to(200)
	if left, interval := x.Left(); w.n != 1 || left != 0 || interval != 0 {
		t.Errorf("disarmed: woken %d times, left %d, every %d", w.n, left, interval)
	}
	x.Set(300, 0, eventfd.KeepOnSet)
	x.Close()
	c.to(400)
	if w.n != 1 {
		t.Error("a closed timer fires")
	}
	if _, errno := x.Read(nil, make([]byte, 7), 0); errno != unix.EINVAL {
		t.Errorf("short read: %v", errno)
	}
}

func TestCopiesOfTimersAreIndependent(t *testing.T) {
	type world struct {
		Clock *clock
		Timer *eventfd.Timer
	}
	c := &clock{}
	w := world{c, eventfd.NewTimer(c)}
	w.Timer.Set(10, 0, eventfd.KeepOnSet)
	n := deepcopy.Copy(deepcopy.New(), w)
	n.Clock.to(10)
	if w.Timer.Ready() != 0 || n.Timer.Ready() == 0 {
		t.Error("the copy's clock does not act on the copy alone")
	}
}

// source is a queue of signals.
type source struct {
	list    []eventfd.Siginfo
	waiters wait.Queue
}

func bit(i *eventfd.Siginfo) uint64 { return 1 << (i[0] - 1) }

func (s *source) PendingSignals() (set uint64) {
	for i := range s.list {
		set |= bit(&s.list[i])
	}
	return set
}

func (s *source) TakeSignal(set uint64) (eventfd.Siginfo, bool) {
	for i, x := range s.list {
		if bit(&x)&set != 0 {
			s.list = append(s.list[:i:i], s.list[i+1:]...)
			return x, true
		}
	}
	return eventfd.Siginfo{}, false
}

func (s *source) SignalQueue() *wait.Queue { return &s.waiters }

// TestSignalsReadAsOnTheHost queues signals with many codes for this thread
// itself and reads them through a signalfd of the host.
func TestSignalsReadAsOnTheHost(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := []unix.Signal{unix.SIGUSR1, unix.SIGCHLD, unix.SIGPOLL, unix.SIGILL, unix.SIGBUS, unix.SIGALRM, 40}
	codes := []int32{0, -1, -2, -3, -6, 0x80, 1, 2}
	var set, old unix.Sigset_t
	for _, s := range signals {
		set.Val[0] |= 1 << (s - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }()
	fd, err := unix.Signalfd(-1, &set, unix.SFD_NONBLOCK|unix.SFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, s := range signals {
		for _, code := range codes {
			var info eventfd.Siginfo
			for i := range info {
				info[i] = byte(i + 1)
			}
			binary.LittleEndian.PutUint32(info[0:], uint32(s))
			binary.LittleEndian.PutUint32(info[8:], uint32(code))
			_, _, e := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(unix.Getpid()), uintptr(unix.Gettid()),
				uintptr(s), uintptr(unsafe.Pointer(&info)), 0, 0)
			if e != 0 {
				t.Fatal(e)
			}
			native := make([]byte, 300)
			n, err := unix.Read(fd, native)
			if err != nil {
				t.Fatal(err)
			}
			guest := make([]byte, 300)
			g, errno := eventfd.NewSignals(&source{list: []eventfd.Siginfo{info}}, ^uint64(0)).Read(nil, guest, 0)
			if errno != 0 || g != n {
				t.Fatalf("%v code %d: native %d bytes, guest %d %v", s, code, n, g, errno)
			}
			if string(native) != string(guest) {
				t.Errorf("%v code %d:\nnative %x\nguest  %x", s, code, native[:128], guest[:128])
			}
		}
	}
}

func TestSignalsTakesWhatTheMaskNames(t *testing.T) {
	src := &source{}
	for _, n := range []byte{10, 12, 10, 34} {
		src.list = append(src.list, eventfd.Siginfo{0: n})
	}
	s := eventfd.NewSignals(src, 1<<9|1<<33)
	b := make([]byte, 1000)
	if n, errno := s.Read(nil, b, 0); n != 384 || errno != 0 || b[0] != 10 || b[128] != 10 || b[256] != 34 {
		t.Errorf("read %d %v", n, errno)
	}
	if _, errno := s.Read(nil, b, 0); errno != unix.EAGAIN || s.Ready() != 0 {
		t.Errorf("nothing left: %v", errno)
	}
	w := &counted{}
	s.Waiters().Add(w)
	if s.SetMask(1 << 11); w.n != 1 || s.Ready() != unix.EPOLLIN {
		t.Error("waiters are not told of a new mask")
	}
	if _, errno := s.Read(nil, b[:127], 0); errno != unix.EINVAL {
		t.Errorf("short read: %v", errno)
	}
}
