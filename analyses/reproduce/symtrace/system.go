package symtrace

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
	"github.com/heddle-dmt/heddle/analyses/vex"
)

// File is a file that the program can read: an input, as it is where the image is.
type File struct {
	Content []byte
	// Stat is what stat(2) says of it, as in memory.
	Stat []byte
}

// openFile is what a descriptor stands for, and how far it was read.
type openFile struct {
	*File
	at uint64
}

// firstDescriptor and descriptors are the numbers that a thread's files get: which
// they have in a run depends on the schedule.
const firstDescriptor, descriptors = 1 << 10, 1 << 10

// systemArguments are the registers with a system call's arguments (System V ABI,
// section A.2.1).
var systemArguments = [...]int{7, 6, 2, 10, 8, 9}

// argument is an argument of the system call that the thread makes, from 0.
func (w *walker) systemArgument(n int) (uint64, error) {
	e := w.settled(w.register(vex.OffsetRAX+8*systemArguments[n], 8))
	if e.IsConst() {
		return e.Value.Lo, nil
	}
	return 0, w.chooses(e)
}

// system stands for a system call between functions that are followed. It is made
// again if it needs the value of a symbol.
func (w *walker) system() error {
	w.calling = true
	var args [6]uint64
	number := w.machine.State.Word(vex.OffsetRAX)
	if _, is := w.cancelled(); is && interruptible[number] {
		w.calling, w.restarts = false, true
		return nil
	}
	for i := range systemCalls[number] {
		var err error
		if args[i], err = w.systemArgument(i); err != nil {
			return err
		}
	}
	if w.decisions.origin == nil {
		w.atCall = w.save()
	}
	err := w.systemCall(number, &args)
	w.atCall = nil
	return err
}

// systemCalls has how many arguments matter of the calls that have a meaning.
var systemCalls = map[uint64]int{
	unix.SYS_WRITE: 3, unix.SYS_OPEN: 2, unix.SYS_OPENAT: 3, unix.SYS_CLOSE: 1, unix.SYS_READ: 3, unix.SYS_PREAD64: 4,
	unix.SYS_LSEEK: 3, unix.SYS_FSTAT: 2, unix.SYS_STAT: 2, unix.SYS_NEWFSTATAT: 4, unix.SYS_MMAP: 6, unix.SYS_PWRITE64: 4,
	unix.SYS_FCNTL: 3, unix.SYS_SOCKET: 3, unix.SYS_SOCKETPAIR: 4, unix.SYS_PIPE: 1, unix.SYS_PIPE2: 2, unix.SYS_CONNECT: 1,
	unix.SYS_ACCEPT: 1, unix.SYS_ACCEPT4: 1, unix.SYS_RECVFROM: 5, unix.SYS_SENDTO: 4, unix.SYS_SHUTDOWN: 2, unix.SYS_SETSOCKOPT: 1,
	unix.SYS_CLOCK_GETTIME: 2, unix.SYS_GETTIMEOFDAY: 1, unix.SYS_KILL: 2, unix.SYS_TGKILL: 3, unix.SYS_RT_SIGTIMEDWAIT: 3,
}

// systemCall does what a system call does, and has its result.
func (w *walker) systemCall(number uint64, args *[6]uint64) error {
	switch number {
	case unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_PIPE, unix.SYS_PIPE2, unix.SYS_ACCEPT, unix.SYS_ACCEPT4:
		return w.socketCall(number, args)
	case unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_RT_SIGTIMEDWAIT:
		return w.signalCall(number, args)
	}
	switch number {
	case unix.SYS_RT_SIGRETURN:
		return w.goesBack()
	case unix.SYS_FUTEX: // whether it waited is not known
		way := func(result uint64) func(*walker) {
			return func(w *walker) { w.late = w.over(result) }
		}
		return w.choosesWay([]func(*walker){way(0), way(errno(unix.EAGAIN))})
	}
	if d, ok := w.b.descriptors[args[0]]; ok && systemCalls[number] > 0 {
		return w.describedCall(number, d, args)
	}
	result, err := w.systemResult(number, args)
	if err != nil {
		return err
	}
	return w.over(result)
}

func (w *walker) systemResult(number uint64, args *[6]uint64) (uint64, error) {
	switch number {
	case unix.SYS_SCHED_YIELD, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_MUNMAP, unix.SYS_MPROTECT,
		unix.SYS_MADVISE, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGACTION, unix.SYS_RSEQ, unix.SYS_SET_ROBUST_LIST:
		return 0, nil
	case unix.SYS_GETPID:
		return uint64(w.b.walkers[0].ID), nil
	case unix.SYS_GETTID:
		return uint64(w.ID), nil
	case unix.SYS_WRITE:
		return args[2], nil
	case unix.SYS_CLOCK_GETTIME:
		w.clockShows(args[1], 1)
		return 0, nil
	case unix.SYS_GETTIMEOFDAY:
		w.clockShows(args[0], 1000)
		return 0, nil
	case unix.SYS_EXIT, unix.SYS_EXIT_GROUP:
		w.finish(Returned)
		return 0, nil
	case unix.SYS_OPEN:
		return w.open(args[0], args[1])
	case unix.SYS_OPENAT:
		return w.open(args[1], args[2])
	case unix.SYS_STAT:
		return w.stat(args[0], args[1])
	case unix.SYS_NEWFSTATAT:
		if args[3]&unix.AT_EMPTY_PATH == 0 {
			return w.stat(args[1], args[2])
		}
		args[1] = args[2]
		return w.fileCall(unix.SYS_FSTAT, args)
	case unix.SYS_MMAP:
		return w.mmap(args)
	case unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_LSEEK, unix.SYS_FSTAT, unix.SYS_CLOSE:
		return w.fileCall(number, args)
	}
	return 0, meaningless(number)
}

// clockShows writes the time: seconds, and units of so many nanoseconds. What clocks show
// depends on the schedule, and no path tells: a thread's goes on by a nanosecond with each of
// its instructions, from some time on.
func (w *walker) clockShows(to, unit uint64) {
	const some, second = 1000, 1_000_000_000
	w.outcomes++ // it may have been another time
	w.fill(to, wordBytes(some+w.Instructions/second))
	w.fill(to+8, wordBytes(w.Instructions%second/unit))
}

// errno is what the kernel returns for an error.
func errno(e unix.Errno) uint64 { return -uint64(e) }

// file finds the file with the name at an address.
func (w *walker) file(at uint64) (*File, unix.Errno, error) {
	if w.b.image.File == nil {
		return nil, unix.ENOENT, nil
	}
	name, ok := w.textAt(at)
	if !ok {
		return nil, 0, fmt.Errorf("the name of a file is not known")
	}
	f, no := w.b.image.File(name)
	return f, no, nil
}

func (w *walker) open(name, flags uint64) (uint64, error) {
	if flags&unix.O_TMPFILE == unix.O_TMPFILE {
		return w.describe(descriptor{kind: scratch, flags: flags}), nil
	}
	if flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_CREAT != 0 {
		return 0, fmt.Errorf("a thread opens a file to write")
	}
	f, no, err := w.file(name)
	if err != nil || no != 0 {
		return errno(no), err
	}
	n := firstDescriptor + descriptors*uint64(w.number) + w.opened
	w.opened++
	w.files[n] = openFile{File: f}
	return n, nil
}

func (w *walker) stat(name, to uint64) (uint64, error) {
	f, no, err := w.file(name)
	if err != nil || no != 0 {
		return errno(no), err
	}
	w.fill(to, f.Stat)
	return 0, nil
}

// fileCall is a call about a descriptor.
func (w *walker) fileCall(number uint64, args *[6]uint64) (uint64, error) {
	f, ok := w.files[args[0]]
	if !ok {
		return 0, fmt.Errorf("system call %d is about descriptor %d, which the thread did not open as a file", number, int32(args[0]))
	}
	switch number {
	case unix.SYS_CLOSE:
		delete(w.files, args[0])
	case unix.SYS_FSTAT:
		w.fill(args[1], f.Stat)
	case unix.SYS_PREAD64:
		return w.transfer(f.File, args[3], args[1], args[2]), nil
	case unix.SYS_READ:
		n := w.transfer(f.File, f.at, args[1], args[2])
		f.at += n
		w.files[args[0]] = f
		return n, nil
	case unix.SYS_LSEEK:
		base := map[uint64]uint64{unix.SEEK_CUR: f.at, unix.SEEK_END: uint64(len(f.Content))}[args[2]]
		f.at = base + args[1]
		w.files[args[0]] = f
		return f.at, nil
	}
	return 0, nil
}

// transfer fills a buffer from a file, and returns how much there was.
func (w *walker) transfer(f *File, from, to, size uint64) uint64 {
	from = min(from, uint64(len(f.Content)))
	n := min(size, uint64(len(f.Content))-from)
	w.fill(to, f.Content[from:from+n])
	return n
}

// mmap gives out memory, with what a file has if there is one.
func (w *walker) mmap(args *[6]uint64) (uint64, error) {
	const anonymous, shared, fixed = unix.MAP_ANONYMOUS, unix.MAP_SHARED, unix.MAP_FIXED
	f, ok := w.files[args[4]]
	if args[3]&fixed != 0 || args[3]&anonymous == 0 && (!ok || args[3]&shared != 0 && args[2]&unix.PROT_WRITE != 0) {
		return 0, fmt.Errorf("a thread maps memory at a place of its own, or a file to write")
	}
	w.heap = (w.heap + pageSize - 1) &^ (pageSize - 1)
	at := w.allocate(args[1])
	if args[3]&anonymous == 0 {
		w.transfer(f.File, args[5], at, args[1])
	}
	return at, nil
}

// fill writes what the kernel does.
func (w *walker) fill(addr uint64, b []byte) {
	for len(b) > 0 {
		n := granule - int(addr%granule)
		if o, ok := w.b.inArray(addr); ok {
			n = w.b.arrays[o].elem
		}
		n = min(n, len(b))
		w.mem.write(addr, b[:n])
		w.touched(addr, n, true)
		if to := w.b.element(addr, n); to.index != nil || w.b.sharing.shared(addr, n) {
			w.add(model.Event{
				Kind: model.Write, Addr: to.addr, Size: n, Index: to.index, Value: w.b.pool.Const(valueOf(b[:n]), 8*n),
			}, false)
		}
		addr, b = addr+uint64(n), b[n:]
	}
}

// textAt is the string at an address; false: it is not known.
func (w *walker) textAt(at uint64) (string, bool) {
	const longest = 4096
	var s []byte
	var b [1]byte
	for len(s) < longest {
		if !w.mem.read(at, b[:]) {
			return string(s), false
		}
		if b[0] == 0 {
			return string(s), true
		}
		s = append(s, b[0])
		at++
	}
	return string(s), false
}
