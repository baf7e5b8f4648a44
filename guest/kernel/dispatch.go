package kernel

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// dispatch carries out the current system call.
func (t *Task) dispatch() (uint64, unix.Errno) {
	info := lookup(t.call.number)
	if t.call.attempt == 0 {
		t.k.count(info, t.call.number)
	}
	switch {
	case info == nil:
		return 0, unix.ENOSYS
	case info.Support == Missing:
		return t.missing(info)
	case info.handler == nil:
		return 0, unix.ENOSYS
	}
	if t.call.number != unix.SYS_FUTEX { // whose word is synchronization
		t.k.ram.LogReads(true)
		defer t.k.ram.LogReads(false)
	}
	if c := t.restartedCall(); c != nil {
		return lookup(c.number).handler(t, c.args)
	}
	return info.handler(t, t.call.args)
}

func (k *Kernel) count(info *SyscallInfo, number uint64) {
	name := "syscall " + strconv.FormatUint(number, 10)
	if info != nil {
		name = info.Name
	}
	k.stats.Syscalls[name]++
	if info == nil || info.handler == nil {
		k.stats.Unsupported[name]++
	}
}

// missing fails closed: there is no telling what the program would make of ENOSYS.
func (t *Task) missing(info *SyscallInfo) (uint64, unix.Errno) {
	if !t.k.config.UnknownENOSYS {
		t.k.stop(fmt.Sprintf("%s (process %d) made system call %s (number %d), which the machine does not have",
			t.proc.path, t.proc.pid, info.Name, info.Number))
	}
	return 0, unix.ENOSYS
}

// sysNotPermitted answers calls that administer the machine.
func sysNotPermitted(*Task, [6]uint64) (uint64, unix.Errno) { return 0, unix.EPERM }
