package kernel

import (
	"github.com/heddle-dmt/heddle/guest/linux"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// lockingSpace is the task's address space, for calls that may lock memory; the task's own rights
// decide whether they may.
func (t *Task) lockingSpace() *mm.AddressSpace {
	t.proc.space.Limits.MayLock = t.cred.Can(vfs.CapIPCLock)
	return t.proc.space
}

func sysMmap(t *Task, a [6]uint64) (uint64, unix.Errno) {
	r := mm.MapRequest{
		Addr: arch.Addr(a[0]), Length: a[1], Prot: t.impliedProtection(int(uint32(a[2]))), Flags: int(uint32(a[3])), Offset: a[5],
	}
	if r.Flags&unix.MAP_ANONYMOUS == 0 {
		f, errno := t.openFile(a[4])
		if errno != 0 {
			return 0, errno
		}
		shared := r.Flags&unix.MAP_TYPE != unix.MAP_PRIVATE
		if r.Object, errno = f.Map(shared, r.Prot&unix.PROT_WRITE != 0); errno != 0 {
			return 0, errno
		}
		r.File, r.Readable, r.Writable = f, f.Readable(), f.Writable()
	}
	addr, errno := t.lockingSpace().Mmap(r)
	if r.Flags&unix.MAP_ANONYMOUS == 0 {
		r.Object.Unref()
	}
	return uint64(addr), errno
}

func sysMunmap(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.proc.space.Munmap(arch.Addr(a[0]), a[1])
}

func sysMprotect(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.proc.space.Mprotect(arch.Addr(a[0]), a[1], t.impliedProtection(int(uint32(a[2]))))
}

func sysBrk(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return uint64(t.lockingSpace().Brk(arch.Addr(a[0]), t.impliedProtection(unix.PROT_READ|unix.PROT_WRITE))), 0
}

func sysMremap(t *Task, a [6]uint64) (uint64, unix.Errno) {
	addr, errno := t.lockingSpace().Mremap(arch.Addr(a[0]), a[1], a[2], int(uint32(a[3])), arch.Addr(a[4]))
	return uint64(addr), errno
}

func sysMadvise(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.proc.space.Madvise(arch.Addr(a[0]), a[1], int(int32(a[2])))
}

func sysMsync(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.proc.space.Msync(arch.Addr(a[0]), a[1], int(int32(a[2])))
}

func sysMincore(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.proc.space.Mincore(arch.Addr(a[0]), a[1], arch.Addr(a[2]))
}

func sysMlock(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.lockingSpace().Mlock(arch.Addr(a[0]), a[1], 0)
}

func sysMlock2(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.lockingSpace().Mlock(arch.Addr(a[0]), a[1], int(int32(a[2])))
}

func sysMunlock(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.proc.space.Munlock(arch.Addr(a[0]), a[1])
}

func sysMlockall(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.lockingSpace().Mlockall(int(int32(a[0])))
}

func sysMunlockall(t *Task, _ [6]uint64) (uint64, unix.Errno) {
	return 0, t.proc.space.Munlockall()
}

func sysArchPrctl(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return t.archPrctl(t, a[0], arch.Addr(a[1]))
}

// archPrctl is arch_prctl for thread c, whose registers the kernel holds.
func (t *Task) archPrctl(c *Task, command uint64, arg arch.Addr) (uint64, unix.Errno) {
	switch command {
	case linux.ArchSetFS, linux.ArchSetGS:
		if arg >= mm.TaskSize {
			return 0, unix.EPERM
		}
		if command == linux.ArchSetFS {
			c.regs.FSBase = uint64(arg)
		} else {
			c.regs.GSBase = uint64(arg)
		}
		return 0, 0
	case linux.ArchGetFS:
		return 0, t.proc.space.WriteU64(arg, c.regs.FSBase)
	case linux.ArchGetGS:
		return 0, t.proc.space.WriteU64(arg, c.regs.GSBase)
	}
	// Shadow stacks and other features that this processor does not have.
	return 0, unix.EINVAL
}

// Commands of membarrier(2).
const (
	membarrierExpedited         = 1 << 3
	membarrierRegisterExpedited = 1 << 4
	membarrierSyncCore          = 1 << 5
	membarrierRegisterSyncCore  = 1 << 6
	membarrierAll               = 1<<7 - 1
)

func sysMembarrier(t *Task, a [6]uint64) (uint64, unix.Errno) {
	// Threads never run at the same time, and every store is visible when another thread runs,
	// unless a memory model delays it; a system call drains the caller's stores.
	cmd := uint32(a[0])
	switch {
	case uint32(a[1]) != 0:
		return 0, unix.EINVAL
	case cmd == 0:
		return membarrierAll, 0
	case cmd&(cmd-1) != 0 || cmd&membarrierAll == 0:
		return 0, unix.EINVAL
	}
	switch cmd {
	case membarrierRegisterExpedited, membarrierRegisterSyncCore:
		t.proc.membarrier |= cmd
	case membarrierExpedited, membarrierSyncCore:
		if t.proc.membarrier&(cmd<<1) == 0 {
			return 0, unix.EPERM
		}
	}
	return 0, 0
}

func sysProcessVMReadv(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.processVM(a, false) }

func sysProcessVMWritev(t *Task, a [6]uint64) (uint64, unix.Errno) { return t.processVM(a, true) }

// processVM moves bytes between this process and another one.
func (t *Task) processVM(a [6]uint64, write bool) (uint64, unix.Errno) {
	if a[5] != 0 {
		return 0, unix.EINVAL
	}
	local, errno := t.proc.space.ReadRanges(arch.Addr(a[1]), a[2])
	if errno != 0 || mm.TotalLen(local) == 0 {
		return 0, errno
	}
	remote, errno := t.proc.space.ReadRanges(arch.Addr(a[3]), a[4])
	if errno != 0 {
		return 0, errno
	}
	other := t.k.findTask(int32(a[0])) // any thread of the process
	if other == nil {
		return 0, unix.ESRCH
	}
	p := other.proc
	if !t.mayTrace(p, false) {
		return 0, unix.EPERM
	}
	if p.outside {
		return 0, unix.ESRCH
	}
	from, to := p.space, t.proc.space
	source, target := remote, local
	if write {
		from, to, source, target = to, from, local, remote
	}
	done := uint64(0)
	for left := min(mm.TotalLen(source), mm.TotalLen(target)); left > 0; {
		buf := t.k.scratch.buffer(min(left, chunkSize))
		n, _ := from.CopyInRanges(mm.SkipRanges(source, done), buf)
		n, _ = to.CopyOutRanges(mm.SkipRanges(target, done), buf[:n])
		done += uint64(n)
		left -= uint64(n)
		if n < len(buf) {
			return partialResult(done, unix.EFAULT)
		}
	}
	return done, 0
}
