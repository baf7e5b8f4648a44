package symtrace

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/oscalls"
	"github.com/heddle-dmt/heddle/analyses/h3/symtrace/symmem"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/guest/linux"
)

// File is a file that the program can read: an input, as it is where the image is.
type File struct {
	Content []byte
	// Stat is the struct that stat(2) returns for it.
	Stat []byte
}

// openFile is a file that is open for reading, with its offset.
type openFile struct {
	*File
	at uint64
}

// firstDescriptor and descriptors are the numbers that a thread's files get: which
// they have in a run depends on the schedule.
const firstDescriptor, descriptors = 1 << 10, 1 << 10

// syscallArgumentRegisters are the registers with a system call's arguments (System V ABI,
// section A.2.1).
var syscallArgumentRegisters = [...]int{7, 6, 2, 10, 8, 9}

// argument is an argument of the system call that the thread makes, from 0.
func (w *threadExec) syscallArgument(n int) (uint64, error) {
	e := w.substituteFixed(w.readRegister(vex.OffsetRAX+8*syscallArgumentRegisters[n], 8))
	if e.IsConst() {
		return e.Value.Lo, nil
	}
	return 0, w.needsValue(e)
}

// runSyscall stands for a system call between functions that are followed. It is made
// again if it needs the value of a symbol.
func (w *threadExec) runSyscall() error {
	w.inSyscall = true
	var args [6]uint64
	number := w.machine.State.Word(vex.OffsetRAX)
	if _, is := w.nextCancelHandler(); is && interruptible[number] {
		w.inSyscall, w.syscallInterrupted = false, true
		return nil
	}
	for i := range oscalls.Arguments[number] {
		var err error
		if args[i], err = w.syscallArgument(i); err != nil {
			return err
		}
	}
	if w.decisions.firstChoiceState == nil {
		w.beforeSyscall = w.clone()
	}
	err := w.dispatchSyscall(number, &args)
	w.beforeSyscall = nil
	return err
}

// dispatchSyscall carries out a system call and sets its result.
func (w *threadExec) dispatchSyscall(number uint64, args *[6]uint64) error {
	switch number {
	case unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_PIPE, unix.SYS_PIPE2, unix.SYS_ACCEPT, unix.SYS_ACCEPT4:
		return w.socketCall(number, args)
	case unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_RT_SIGTIMEDWAIT:
		return w.signalCall(number, args)
	case unix.SYS_TIME, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY:
		return w.timeCall(number, args)
	case unix.SYS_POLL, unix.SYS_PPOLL, unix.SYS_SELECT, unix.SYS_PSELECT6:
		return w.pollCall(number, args)
	case unix.SYS_RT_SIGRETURN:
		return w.returnFromSignal()
	case unix.SYS_FUTEX: // whether it waited is not known
		way := func(result uint64) func(*threadExec) {
			return func(w *threadExec) { w.deferredErr = w.completeSyscall(result) }
		}
		w.otherOutcomes++
		return w.tryAlternatives([]func(*threadExec){way(0), way(errno(unix.EAGAIN))})
	}
	if d, ok := w.pass.descriptors[args[0]]; ok && oscalls.Arguments[number] > 0 {
		return w.descriptorCall(number, d, args)
	}
	result, err := w.syscallResult(number, args)
	if err != nil {
		return err
	}
	return w.completeSyscall(result)
}

func (w *threadExec) syscallResult(number uint64, args *[6]uint64) (uint64, error) {
	switch number {
	case unix.SYS_WRITE:
		return args[2], nil
	case unix.SYS_EXIT, unix.SYS_EXIT_GROUP:
		w.endPath(Returned)
		return 0, nil
	case unix.SYS_OPEN:
		return w.openReadOnly(args[0], args[1])
	case unix.SYS_OPENAT:
		return w.openReadOnly(args[1], args[2])
	case unix.SYS_STAT:
		return w.statFile(args[0], args[1])
	case unix.SYS_NEWFSTATAT:
		if args[3]&unix.AT_EMPTY_PATH == 0 {
			return w.statFile(args[1], args[2])
		}
		args[1] = args[2]
		return w.fileCall(unix.SYS_FSTAT, args)
	case unix.SYS_MMAP:
		return w.mapMemory(args)
	case unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_LSEEK, unix.SYS_FSTAT, unix.SYS_CLOSE:
		return w.fileCall(number, args)
	}
	if result, is, err := w.kernelThread().Result(number, args); is {
		return result, err
	}
	return 0, errNoMeaning(number)
}

// kernelThread is what the kernel knows of the thread.
func (w *threadExec) kernelThread() *oscalls.Thread {
	return &oscalls.Thread{
		Process: uint64(w.pass.threads[0].ID), ID: uint64(w.ID), Affinity: w.pass.image.Affinity, Signals: &w.signalStack,
		Write: w.kernelWrite, Read: w.memory.Read,
	}
}

// errno is the kernel's return value for an error.
func errno(e unix.Errno) uint64 { return -uint64(e) }

// lookUpFile finds the file with the name at an address.
func (w *threadExec) lookUpFile(at uint64) (*File, unix.Errno, error) {
	if w.pass.image.File == nil {
		return nil, unix.ENOENT, nil
	}
	name, ok := w.stringAt(at)
	if !ok {
		return nil, 0, errors.New("the name of a file depends on the schedule")
	}
	f, no := w.pass.image.File(name)
	return f, no, nil
}

func (w *threadExec) openReadOnly(name, flags uint64) (uint64, error) {
	if flags&unix.O_TMPFILE == unix.O_TMPFILE {
		return w.newDescriptor(descriptor{kind: scratch, flags: flags}), nil
	}
	if flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_CREAT != 0 {
		return 0, errors.New("a file is opened for writing, which is not supported")
	}
	f, no, err := w.lookUpFile(name)
	if err != nil || no != 0 {
		return errno(no), err
	}
	n := firstDescriptor + descriptors*uint64(w.number) + w.openedCount
	w.openedCount++
	w.files[n] = openFile{File: f}
	return n, nil
}

func (w *threadExec) statFile(name, to uint64) (uint64, error) {
	f, no, err := w.lookUpFile(name)
	if err != nil || no != 0 {
		return errno(no), err
	}
	w.kernelWrite(to, f.Stat)
	return 0, nil
}

// fileCall is a call about a descriptor.
func (w *threadExec) fileCall(number uint64, args *[6]uint64) (uint64, error) {
	f, ok := w.files[args[0]]
	if !ok {
		return 0, fmt.Errorf("%s is called on descriptor %d, which this thread did not open after the second thread was created", linux.NameOrNumber(number), int32(args[0]))
	}
	switch number {
	case unix.SYS_CLOSE:
		delete(w.files, args[0])
	case unix.SYS_FSTAT:
		w.kernelWrite(args[1], f.Stat)
	case unix.SYS_PREAD64:
		return w.readFileInto(f.File, args[3], args[1], args[2]), nil
	case unix.SYS_READ:
		n := w.readFileInto(f.File, f.at, args[1], args[2])
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

// readFileInto fills a buffer from a file, and returns how much there was.
func (w *threadExec) readFileInto(f *File, from, to, size uint64) uint64 {
	from = min(from, uint64(len(f.Content)))
	n := min(size, uint64(len(f.Content))-from)
	w.kernelWrite(to, f.Content[from:from+n])
	return n
}

// mapMemory allocates memory, with the content of a file if there is one.
func (w *threadExec) mapMemory(args *[6]uint64) (uint64, error) {
	const anonymous, shared, fixed = unix.MAP_ANONYMOUS, unix.MAP_SHARED, unix.MAP_FIXED
	f, ok := w.files[args[4]]
	if args[3]&fixed != 0 || args[3]&anonymous == 0 && (!ok || args[3]&shared != 0 && args[2]&unix.PROT_WRITE != 0) {
		return 0, errors.New("memory is mapped at a fixed address, or a file for writing, which is not supported")
	}
	w.heap = (w.heap + symmem.PageSize - 1) &^ (symmem.PageSize - 1)
	at := w.allocateMemory(args[1])
	if args[3]&anonymous == 0 {
		w.readFileInto(f.File, args[5], at, args[1])
	}
	return at, nil
}

// kernelWrite writes bytes on behalf of the kernel.
func (w *threadExec) kernelWrite(addr uint64, b []byte) {
	for len(b) > 0 {
		n := symmem.Granule - int(addr%symmem.Granule)
		if o, ok := w.pass.arrayAt(addr); ok {
			n = w.pass.arrays[o].elem
		}
		n = min(n, len(b))
		w.memory.Write(addr, b[:n])
		w.noteAccess(addr, n, true)
		if to := w.pass.targetOf(addr, n); to.index != nil || w.pass.sharing.IsShared(addr, n) {
			w.addEvent(model.Event{
				Kind: model.Write, Addr: to.addr, Size: n, Index: to.index, Value: w.pass.pool.Const(symmem.ValueOf(b[:n]), 8*n),
			}, false)
		}
		addr, b = addr+uint64(n), b[n:]
	}
}

// stringAt is the string at an address; false: it is not known.
func (w *threadExec) stringAt(at uint64) (string, bool) {
	const longest = 4096
	var s []byte
	var b [1]byte
	for len(s) < longest {
		if !w.memory.Read(at, b[:]) {
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
