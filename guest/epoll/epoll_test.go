package epoll_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/guest/epoll"
	"github.com/heddle-dmt/heddle/guest/eventfd"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

type tester interface {
	Helper()
	Fatalf(string, ...any)
}

func errnoOf(err error) unix.Errno {
	var e unix.Errno
	errors.As(err, &e)
	return e
}

// world is a set of descriptors that exist on the host and in the guest, under
// the same numbers.
type world struct {
	t     tester
	fs    *vfs.FS
	files map[int]*vfs.File
	order []int // open descriptors, oldest first
}

func newWorld(t tester) *world {
	fs, err := vfs.New(vfs.Config{MaxInodes: 1000})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &world{t: t, fs: fs, files: map[int]*vfs.File{}}
}

func (w *world) add(fd int, f *vfs.File) int {
	w.files[fd] = f
	w.order = append(w.order, fd)
	return fd
}

func (w *world) open(fd int, err error, impl vfs.FileImpl) int {
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return w.add(fd, w.fs.NewFile(w.fs.Anon(), "anon_inode:[test]", unix.O_RDWR, impl))
}

func (w *world) eventfd() int {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	return w.open(fd, err, eventfd.NewCounter(0, false))
}

func (w *world) epoll() int {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return w.open(fd, err, epoll.New(nil))
}

func (w *world) dup(fd int) int {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	w.files[fd].Ref()
	return w.add(n, w.files[fd])
}

func (w *world) close(fd int) {
	_ = unix.Close(fd)
	w.files[fd].Unref()
	delete(w.files, fd)
	for i, have := range w.order {
		if have == fd {
			w.order = append(w.order[:i:i], w.order[i+1:]...)
			break
		}
	}
}

func (w *world) closeAll() {
	for len(w.order) > 0 {
		w.close(w.order[0])
	}
	if err := w.fs.Close(); err != nil {
		w.t.Fatalf("%v", err)
	}
}

func (w *world) same(what string, native, guest any) {
	w.t.Helper()
	if n, g := fmt.Sprint(native), fmt.Sprint(guest); n != g {
		w.t.Fatalf("%s: native %s, guest %s", what, n, g)
	}
}

func (w *world) instance(fd int) *epoll.Instance { return w.files[fd].Impl.(*epoll.Instance) }

func (w *world) ctl(ep, op, fd int, ev epoll.Event) unix.Errno {
	w.t.Helper()
	raw := unix.EpollEvent{Events: ev.Events, Fd: int32(ev.Data), Pad: int32(ev.Data >> 32)}
	native := errnoOf(unix.EpollCtl(ep, op, fd, &raw))
	i, f := w.instance(ep), w.files[fd]
	var guest unix.Errno
	switch {
	case f == w.files[ep]:
		guest = unix.EINVAL // checked by the system call
	case op == unix.EPOLL_CTL_ADD:
		guest = i.Add(f, int32(fd), ev)
	case op == unix.EPOLL_CTL_MOD:
		guest = i.Modify(f, int32(fd), ev)
	default:
		guest = i.Delete(f, int32(fd))
	}
	w.same(fmt.Sprintf("epoll_ctl(%d, %d, %d, %#x)", ep, op, fd, ev.Events), native, guest)
	return guest
}

func (w *world) wait(ep, limit int) {
	w.t.Helper()
	raw := make([]unix.EpollEvent, limit)
	n, err := unix.EpollWait(ep, raw, 0)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	var native, guest []string
	for _, e := range raw[:n] {
		native = append(native, fmt.Sprintf("%#x:%d", e.Events, e.Fd))
	}
	w.instance(ep).Take(limit, func(e epoll.Event) bool {
		guest = append(guest, fmt.Sprintf("%#x:%d", e.Events, int32(e.Data)))
		return true
	})
	w.same(fmt.Sprintf("epoll_wait(%d, %d)", ep, limit), native, guest)
}

func (w *world) poll(fd int) {
	w.t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: 0x7fff &^ unix.POLLNVAL}}
	if _, err := unix.Poll(fds, 0); err != nil {
		w.t.Fatalf("%v", err)
	}
	w.same(fmt.Sprintf("poll(%d)", fd), fds[0].Revents, w.files[fd].Ready())
}

func (w *world) write(fd int, value uint64) {
	b := binary.LittleEndian.AppendUint64(nil, value)
	n, err := unix.Write(fd, b)
	g, errno := w.files[fd].Write(nil, b)
	w.same("write", fmt.Sprint(max(n, 0), errnoOf(err)), fmt.Sprint(g, errno))
}

func (w *world) read(fd int) {
	b := make([]byte, 8)
	n, err := unix.Read(fd, b)
	g, errno := w.files[fd].Read(nil, b)
	w.same("read", fmt.Sprint(max(n, 0), errnoOf(err)), fmt.Sprint(g, errno))
}

func TestRandomOperationsAreAsOnTheHost(t *testing.T) {
	masks := []uint32{
		0, unix.EPOLLIN, unix.EPOLLOUT, unix.EPOLLIN | unix.EPOLLOUT, unix.EPOLLIN | unix.EPOLLET,
		unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLET, unix.EPOLLIN | unix.EPOLLONESHOT, unix.EPOLLOUT | unix.EPOLLONESHOT | unix.EPOLLET,
		unix.EPOLLEXCLUSIVE | unix.EPOLLIN, unix.EPOLLEXCLUSIVE | unix.EPOLLONESHOT, unix.EPOLLRDHUP | unix.EPOLLET, unix.EPOLLPRI,
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.closeAll()
		epolls := []int{w.epoll(), w.epoll(), w.epoll()}
		counters := []int{w.eventfd(), w.eventfd(), w.eventfd(), w.eventfd()}
		pick := func(t *rapid.T, from []int) int {
			fd := rapid.SampledFrom(from).Draw(t, "fd")
			if w.files[fd] == nil {
				t.Skip("closed")
			}
			return fd
		}
		pickEpoll := func(t *rapid.T) int {
			fd := pick(t, epolls)
			if _, ok := w.files[fd].Impl.(*epoll.Instance); !ok {
				t.Skip("closed, and the number used again")
			}
			return fd
		}
		any := func(t *rapid.T) int {
			if rapid.IntRange(0, 5).Draw(t, "nest") == 0 {
				return pickEpoll(t)
			}
			return pick(t, counters)
		}
		t.Repeat(map[string]func(*rapid.T){
			"ctl": func(t *rapid.T) {
				op := rapid.SampledFrom([]int{
					unix.EPOLL_CTL_ADD, unix.EPOLL_CTL_ADD, unix.EPOLL_CTL_ADD, unix.EPOLL_CTL_MOD, unix.EPOLL_CTL_DEL,
				}).Draw(t, "op")
				fd := any(t)
				w.ctl(pickEpoll(t), op, fd, epoll.Event{Events: rapid.SampledFrom(masks).Draw(t, "events"), Data: uint64(fd)})
			},
			"wait": func(t *rapid.T) { w.wait(pickEpoll(t), rapid.IntRange(1, 4).Draw(t, "limit")) },
			"poll": func(t *rapid.T) { w.poll(any(t)) },
			"write": func(t *rapid.T) {
				w.write(pick(t, counters), rapid.SampledFrom([]uint64{0, 1, 1<<64 - 2}).Draw(t, "value"))
			},
			"read": func(t *rapid.T) { w.read(pick(t, counters)) },
			"dup": func(t *rapid.T) {
				if len(counters) < 8 {
					counters = append(counters, w.dup(any(t)))
				}
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					w.close(any(t))
				}
			},
		})
	})
}

func TestLevelTriggeredEntriesTakeTurns(t *testing.T) {
	w := newWorld(t)
	defer w.closeAll()
	ep := w.epoll()
	for range 5 {
		fd := w.eventfd()
		w.ctl(ep, unix.EPOLL_CTL_ADD, fd, epoll.Event{Events: unix.EPOLLIN, Data: uint64(fd)})
		w.write(fd, 1)
	}
	for range 6 {
		w.wait(ep, 2)
	}
	w.read(w.order[3])
	for range 4 {
		w.wait(ep, 3)
	}
}

func TestChainsOfInstances(t *testing.T) {
	for _, upward := range []bool{false, true} {
		w := newWorld(t)
		chain := []int{w.epoll()}
		leaf := w.eventfd()
		w.ctl(chain[0], unix.EPOLL_CTL_ADD, leaf, epoll.Event{Events: unix.EPOLLIN, Data: 7})
		for range 7 {
			next := w.epoll()
			last := chain[len(chain)-1]
			if upward {
				w.ctl(next, unix.EPOLL_CTL_ADD, last, epoll.Event{Events: unix.EPOLLIN, Data: uint64(last)})
			} else {
				w.ctl(last, unix.EPOLL_CTL_ADD, next, epoll.Event{Events: unix.EPOLLIN, Data: uint64(next)})
			}
			chain = append(chain, next)
		}
		w.write(leaf, 1)
		for _, ep := range chain {
			w.poll(ep)
			w.wait(ep, 3)
		}
		w.read(leaf)
		for _, ep := range chain {
			w.poll(ep)
			w.wait(ep, 3)
		}
		w.ctl(chain[0], unix.EPOLL_CTL_ADD, chain[0], epoll.Event{})
		w.ctl(chain[3], unix.EPOLL_CTL_ADD, chain[1], epoll.Event{})
		w.ctl(chain[1], unix.EPOLL_CTL_ADD, chain[3], epoll.Event{})
		w.closeAll()
	}
}

func TestTwoNestedOnTwoChains(t *testing.T) {
	w := newWorld(t)
	defer w.closeAll()
	var e []int
	for range 8 {
		e = append(e, w.epoll())
	}
	ev := epoll.Event{Events: unix.EPOLLIN}
	for _, pair := range [][2]int{{0, 1}, {1, 2}, {3, 4}, {4, 5}, {2, 3}, {6, 0}, {1, 4}, {5, 7}, {2, 6}, {6, 7}} {
		w.ctl(e[pair[0]], unix.EPOLL_CTL_ADD, e[pair[1]], ev)
	}
}

func TestFilesThatCannotBePolled(t *testing.T) {
	w := newWorld(t)
	defer w.closeAll()
	ep := w.epoll()
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.add(fd, w.fs.NewFile(w.fs.Anon(), "x", 0, nil))
	for _, op := range []int{unix.EPOLL_CTL_ADD, unix.EPOLL_CTL_MOD, unix.EPOLL_CTL_DEL} {
		w.ctl(ep, op, fd, epoll.Event{Events: unix.EPOLLIN})
	}
}

// task is a waiter like a thread in epoll_wait.
type task struct{ woken int }

func (w *task) Wake(uint32) { w.woken++ }

// One event wakes one of several instances that ask for it exclusively, see
// EPOLLEXCLUSIVE in epoll_ctl(2).
func TestExclusiveEntriesShareAnEvent(t *testing.T) {
	w := newWorld(t)
	defer w.closeAll()
	fd := w.eventfd()
	f := w.files[fd]
	var tasks []*task
	for range 4 {
		i := epoll.New(nil)
		if errno := i.Add(f, int32(fd), epoll.Event{Events: unix.EPOLLIN | unix.EPOLLEXCLUSIVE}); errno != 0 {
			t.Fatal(errno)
		}
		tasks = append(tasks, &task{})
		if len(tasks) > 1 { // no thread waits for the first
			i.Takers().Add(tasks[len(tasks)-1])
		}
	}
	_, _ = f.Write(nil, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	for n, want := range []int{0, 1, 0, 0} {
		if tasks[n].woken != want {
			t.Errorf("instance %d was woken %d times, want %d", n, tasks[n].woken, want)
		}
	}
}

func TestRefusedEventsStay(t *testing.T) {
	w := newWorld(t)
	defer w.closeAll()
	i := epoll.New(nil)
	for n := range 3 {
		fd := w.eventfd()
		i.Add(w.files[fd], int32(fd), epoll.Event{Events: unix.EPOLLIN | unix.EPOLLET, Data: uint64(n)})
		w.write(fd, 1)
	}
	if n := i.Take(10, func(e epoll.Event) bool { return e.Data == 0 }); n != 1 {
		t.Fatalf("took %d, want 1", n)
	}
	var got []uint64
	i.Take(10, func(e epoll.Event) bool {
		got = append(got, e.Data)
		return true
	})
	if fmt.Sprint(got) != "[1 2]" {
		t.Errorf("then got %v, want [1 2]", got)
	}
}

// Events can be passed on in 1000 ways at most, so that instances above
// instances do not take forever.
func TestWaysUpAreBounded(t *testing.T) {
	w := newWorld(t)
	level := make([][]int, 4)
	for n := range level {
		for range 12 {
			level[n] = append(level[n], w.epoll())
		}
	}
	refused := 0
	for n := range 3 {
		for _, above := range level[n+1] {
			for _, below := range level[n] {
				if w.instance(above).Add(w.files[below], int32(below), epoll.Event{Events: unix.EPOLLIN}) == unix.EINVAL {
					refused++
				}
			}
		}
	}
	if refused == 0 {
		t.Error("1728 ways up were allowed")
	}
	w.closeAll()
}

func TestCopiesAreIndependent(t *testing.T) {
	w := newWorld(t)
	defer w.closeAll()
	type state struct {
		Instance *epoll.Instance
		File     *vfs.File
		Task     *task
		Queue    *wait.Queue
	}
	i, fd := epoll.New(nil), w.eventfd()
	s := state{i, w.files[fd], &task{}, i.Takers()}
	i.Add(s.File, int32(fd), epoll.Event{Events: unix.EPOLLIN, Data: 5})
	s.Queue.Add(s.Task)
	c := deepcopy.Copy(deepcopy.New(), s)
	_, _ = c.File.Write(nil, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	if c.Task.woken != 1 || s.Task.woken != 0 || c.Instance.Ready() == 0 || i.Ready() != 0 {
		t.Error("an event of the copy is not the copy's alone")
	}
	c.File.Unref()
	if len(c.Instance.Entries()) != 0 || len(i.Entries()) != 1 {
		t.Error("closing the copy's file does not end the copy's entry alone")
	}
}
