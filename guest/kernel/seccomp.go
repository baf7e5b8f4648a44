package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/bpf"
	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Operations and flags of seccomp(2) (include/uapi/linux/seccomp.h).
const (
	seccompSetStrict     = 0
	seccompSetFilter     = 1
	seccompActionAvail   = 2
	seccompNotifySizes   = 3
	seccompTsync         = 1
	seccompLog           = 2
	seccompSpecAllow     = 4
	seccompNewListener   = 8
	seccompTsyncESRCH    = 16
	seccompWaitKillable  = 32
	seccompAllFlags      = seccompWaitKillable<<1 - 1
	seccompModeStrict    = 1
	seccompModeFilter    = 2
	sysSeccompCode       = 1 // SYS_SECCOMP
	maxFilterPath        = 32768
	filterPenalty        = 4 // instructions added to the length of each filter
	seccompDataSize      = 64
	filterInstructionFee = 1 // cycles per instruction of a filter
)

// seccompState is the seccomp mode of a thread and its filters.
type seccompState struct {
	mode    uint8 // 0, seccompModeStrict or seccompModeFilter
	filters *seccompFilter
}

// seccompFilter is an installed filter. Except for its number of references, by threads and by
// later filters, it does not change.
type seccompFilter struct {
	program  *bpf.Program
	before   *seccompFilter // the filter installed before it
	flags    uint32
	path     int // instructions of it and of the filters before it, with penalties
	count    int // number of it and of the filters before it
	refs     int
	listener *seccompListener // of SECCOMP_FILTER_FLAG_NEW_LISTENER
}

// memorySize is the size of the filter in the kernel's memory.
func (f *seccompFilter) memorySize() uint64 {
	return kmem.Filter + uint64(len(f.program.Instructions()))*bpf.InstructionSize
}

// addReference adds a reference; f may be nil.
func (f *seccompFilter) addReference() *seccompFilter {
	if f != nil {
		f.refs++
	}
	return f
}

// dropReference removes a reference, and frees the filter with the last one.
func (f *seccompFilter) dropReference(account *kmem.Account) {
	for f != nil {
		if f.refs--; f.refs > 0 {
			return
		}
		account.Release(f.memorySize())
		if f.listener != nil {
			f.listener.noteFilterGone()
		}
		f = f.before
	}
}

// hasAncestor reports whether a is f or was installed before it; nil counts as installed before
// all.
func (f *seccompFilter) hasAncestor(a *seccompFilter) bool {
	if a == nil {
		return true
	}
	for ; f != nil; f = f.before {
		if f == a {
			return true
		}
	}
	return false
}

// callData is struct seccomp_data of the system call that the thread is about to make.
func (t *Task) callData() []byte {
	b := make([]byte, seccompDataSize)
	putU32(b, uint32(t.call.number))
	putU32(b[4:], unix.AUDIT_ARCH_X86_64)
	putU64(b[8:], t.regs.RIP)
	for i, a := range t.call.args {
		putU64(b[16+8*i:], a)
	}
	return b
}

// runFilters runs all filters on the current call. The most restrictive result counts, and of equal
// ones that of the newest filter.
func (t *Task) runFilters() (result uint32, by *seccompFilter) {
	data := t.callData()
	result = unix.SECCOMP_RET_ALLOW
	for f := t.seccomp.filters; f != nil; f = f.before {
		r, steps := f.program.Run(data)
		t.k.extraCost += arch.Cycles(steps * filterInstructionFee)
		if int32(r&unix.SECCOMP_RET_ACTION_FULL) < int32(result&unix.SECCOMP_RET_ACTION_FULL) {
			result, by = r, f
		}
	}
	return result, by
}

// applySeccomp applies strict mode or the filters to the current call; false: the call is not
// carried out now.
func (t *Task) applySeccomp() bool {
	if t.seccomp.mode == seccompModeStrict {
		switch t.call.number {
		case unix.SYS_READ, unix.SYS_WRITE, unix.SYS_EXIT, unix.SYS_RT_SIGRETURN:
			return true
		}
		t.endThread(exitStatus{signal: int(unix.SIGKILL)})
		return false
	}
	if n := t.call.notification; n != nil {
		return t.awaitNotification(n)
	}
	if t.call.asked && t.call.number == noCall {
		t.skipCall(t.regs.GPR[arch.RAX]) // the tracer has cancelled it
		return false
	}
	result, by := t.runFilters()
	data := result & unix.SECCOMP_RET_DATA
	switch result & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_LOG: // there is no kernel log
		return true
	case unix.SECCOMP_RET_ERRNO:
		t.skipCall(linux.Failure(unix.Errno(min(data, linux.MaxErrno))))
	case unix.SECCOMP_RET_TRAP:
		number := t.call.number
		t.skipCall(t.origRAX)
		t.forceSignal(seccompInfo(arch.Addr(t.regs.RIP), number, data))
	case unix.SECCOMP_RET_TRACE:
		switch {
		case t.call.asked:
			return true
		case t.hasEvent(unix.PTRACE_EVENT_SECCOMP):
			t.call.asked = true
			t.stopForEvent(stopAtSeccomp, unix.PTRACE_EVENT_SECCOMP, uint64(data))
		default:
			t.skipCall(linux.Failure(unix.ENOSYS))
		}
	case unix.SECCOMP_RET_USER_NOTIF:
		return t.notifyListener(by)
	case unix.SECCOMP_RET_KILL_THREAD:
		if len(t.proc.threads) > 1 {
			t.endThread(exitStatus{signal: int(unix.SIGSYS)})
			break
		}
		fallthrough
	default:
		t.killBySeccomp(data)
	}
	return false
}

// seccompInfo is the siginfo of a SIGSYS for a system call that returns to an address.
func seccompInfo(at arch.Addr, number uint64, data uint32) sigInfo {
	i := faultInfo(unix.SIGSYS, sysSeccompCode, at)
	putU32(i[4:], data) // si_errno
	putU32(i[24:], uint32(number))
	putU32(i[28:], unix.AUDIT_ARCH_X86_64)
	return i
}

// killBySeccomp ends the process with a SIGSYS for which no handler is called.
func (t *Task) killBySeccomp(data uint32) {
	info := seccompInfo(arch.Addr(t.regs.RIP), t.call.number, data)
	t.reportDelivery(&info, true)
	t.k.killProcess(t.proc, int(unix.SIGSYS))
}

func sysSeccomp(t *Task, a [6]uint64) (uint64, unix.Errno) {
	flags := uint32(a[1])
	switch uint32(a[0]) {
	case seccompSetStrict:
		if flags != 0 || a[2] != 0 {
			return 0, unix.EINVAL
		}
		return 0, t.setStrictMode()
	case seccompSetFilter:
		return t.setFilter(flags, arch.Addr(a[2]))
	case seccompActionAvail:
		if flags != 0 {
			return 0, unix.EINVAL
		}
		return 0, t.checkActionAvailable(arch.Addr(a[2]))
	case seccompNotifySizes:
		if flags != 0 {
			return 0, unix.EINVAL
		}
		sizes := [3]uint16{notificationSize, responseSize, seccompDataSize}
		return 0, writeStruct(t, arch.Addr(a[2]), &sizes)
	}
	return 0, unix.EINVAL
}

// prctlSeccomp is PR_SET_SECCOMP.
func (t *Task) prctlSeccomp(mode, filter uint64) unix.Errno {
	switch mode {
	case seccompModeStrict:
		return t.setStrictMode()
	case seccompModeFilter:
		_, errno := t.setFilter(0, arch.Addr(filter))
		return errno
	}
	return unix.EINVAL
}

// setStrictMode restricts the thread to four system calls.
func (t *Task) setStrictMode() unix.Errno {
	if t.seccomp.mode == seccompModeFilter {
		return unix.EINVAL
	}
	t.seccomp.mode = seccompModeStrict
	return 0
}

func (t *Task) checkActionAvailable(at arch.Addr) unix.Errno {
	action, errno := t.proc.space.ReadU32(at)
	if errno != 0 {
		return errno
	}
	switch action {
	case unix.SECCOMP_RET_KILL_PROCESS, unix.SECCOMP_RET_KILL_THREAD, unix.SECCOMP_RET_TRAP, unix.SECCOMP_RET_ERRNO,
		unix.SECCOMP_RET_USER_NOTIF, unix.SECCOMP_RET_TRACE, unix.SECCOMP_RET_LOG, unix.SECCOMP_RET_ALLOW:
		return 0
	}
	return unix.EOPNOTSUPP
}

// setFilter is SECCOMP_SET_MODE_FILTER. The result is a descriptor if one was requested, or the
// thread that could not be synchronized.
func (t *Task) setFilter(flags uint32, at arch.Addr) (uint64, unix.Errno) {
	switch {
	case flags&^uint32(seccompAllFlags) != 0,
		flags&(seccompTsync|seccompNewListener|seccompTsyncESRCH) == seccompTsync|seccompNewListener,
		flags&(seccompWaitKillable|seccompNewListener) == seccompWaitKillable:
		return 0, unix.EINVAL
	}
	program, errno := t.readFilter(at)
	if errno != 0 {
		return 0, errno
	}
	f := &seccompFilter{program: program, before: t.seccomp.filters, flags: flags, path: len(program.Instructions()), count: 1, refs: 1}
	if f.before != nil {
		f.path += f.before.path + filterPenalty
		f.count += f.before.count
	}
	switch {
	case t.seccomp.mode == seccompModeStrict:
		return 0, unix.EINVAL
	case flags&seccompNewListener != 0 && t.seccomp.filters.isListened():
		return 0, unix.EBUSY
	case f.path > maxFilterPath, !t.k.memory.Charge(f.memorySize()):
		return 0, unix.ENOMEM
	}
	if flags&seccompTsync != 0 {
		if other := t.findOtherFilters(); other != nil {
			t.k.memory.Release(f.memorySize())
			if flags&seccompTsyncESRCH != 0 {
				return 0, unix.ESRCH
			}
			return uint64(other.id), 0
		}
	}
	descriptor := uint64(0)
	if flags&seccompNewListener != 0 {
		if descriptor, errno = t.newListener(f); errno != 0 {
			t.k.memory.Release(f.memorySize())
			return 0, errno
		}
	}
	t.seccomp = seccompState{seccompModeFilter, f} // the thread's reference is transferred to f
	if flags&seccompTsync != 0 {
		t.shareFilters()
	}
	return descriptor, 0
}

// isListened reports whether one of the filters has a listener.
func (f *seccompFilter) isListened() bool {
	for ; f != nil; f = f.before {
		if f.listener != nil {
			return true
		}
	}
	return false
}

// readFilter reads and checks the struct sock_fprog at an address.
func (t *Task) readFilter(at arch.Addr) (*bpf.Program, unix.Errno) {
	var fprog struct {
		Length uint16
		_      [6]byte
		Filter uint64
	}
	if errno := readStruct(t, at, &fprog); errno != 0 {
		return nil, errno
	}
	if fprog.Length == 0 || fprog.Length > bpf.MaxInstructions {
		return nil, unix.EINVAL
	}
	if !t.noNewPrivs && !t.cred.Can(vfs.CapSysAdmin) {
		return nil, unix.EACCES
	}
	if fprog.Filter == 0 {
		return nil, unix.EINVAL
	}
	raw := make([]byte, int(fprog.Length)*bpf.InstructionSize)
	if errno := t.copyIn(arch.Addr(fprog.Filter), raw); errno != 0 {
		return nil, errno
	}
	return bpf.New(bpf.Decode(raw), seccompDataSize)
}

// findOtherFilters finds a thread of the process that cannot get t's filters, because it has
// different ones.
func (t *Task) findOtherFilters() *Task {
	for _, o := range t.proc.threads {
		follows := o.seccomp.mode == 0 || o.seccomp.mode == seccompModeFilter && t.seccomp.filters.hasAncestor(o.seccomp.filters)
		if o != t && !follows {
			return o
		}
	}
	return nil
}

// shareFilters gives all threads of the process t's filters.
func (t *Task) shareFilters() {
	for _, o := range t.proc.threads {
		if o == t {
			continue
		}
		old := o.seccomp.filters
		o.seccomp = seccompState{seccompModeFilter, t.seccomp.filters.addReference()}
		old.dropReference(t.k.memory)
		o.noNewPrivs = o.noNewPrivs || t.noNewPrivs
	}
}

// skipCall completes the current call with a given result and without any other effect.
func (t *Task) skipCall(result uint64) {
	if t.call.attempt == 0 {
		t.k.countCall(lookupSyscall(t.call.number), t.call.number)
	}
	t.leaveCall(result)
}
