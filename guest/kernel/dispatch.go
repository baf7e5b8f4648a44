package kernel

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// dispatchCall calls the handler of the current system call.
func (t *Task) dispatchCall() (uint64, unix.Errno) {
	info := lookupSyscall(t.call.number)
	if t.call.attempt == 0 {
		t.k.countCall(info, t.call.number)
	}
	switch {
	case info == nil:
		return 0, unix.ENOSYS
	case info.Support == Missing:
		return t.refuseMissing(info)
	case info.handler == nil:
		return 0, unix.ENOSYS
	}
	if t.call.number != unix.SYS_FUTEX { // a futex word is a synchronization operation, not data
		t.k.ram.LogReads(true)
		defer t.k.ram.LogReads(false)
	}
	if c := t.restartedCall(); c != nil {
		return lookupSyscall(c.number).handler(t, c.args)
	}
	return info.handler(t, t.call.args)
}

func (k *Kernel) countCall(info *SyscallInfo, number uint64) {
	name := "syscall " + strconv.FormatUint(number, 10)
	if info != nil {
		name = info.Name
	}
	k.stats.Syscalls[name]++
	if info == nil || info.handler == nil {
		k.stats.Unsupported[name]++
	}
}

// refuseMissing ends the run at an unimplemented system call, because the program's reaction to
// ENOSYS is unknown.
func (t *Task) refuseMissing(info *SyscallInfo) (uint64, unix.Errno) {
	if !t.k.config.UnknownENOSYS {
		t.k.stopRun(fmt.Sprintf("%s (process %d) made system call %s (number %d), which the machine does not have; --unknown-syscalls=enosys answers such calls with ENOSYS",
			t.proc.path, t.proc.pid, info.Name, info.Number))
	}
	return 0, unix.ENOSYS
}

// sysNotPermitted is the handler of calls that administer the machine.
func sysNotPermitted(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.EPERM }
