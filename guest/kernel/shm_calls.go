package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/ipc/shm"
)

func sysShmget(t *Task, a [6]uint64) (uint64, unix.Errno) {
	id, errno := t.k.ipc.segments.Get(t.ipcCaller(), int32(a[0]), a[1], uint32(a[2]))
	return uint64(id), errno
}

func sysShmat(t *Task, a [6]uint64) (uint64, unix.Errno) {
	at, errno := t.k.ipc.segments.Attach(t.ipcCaller(), t.proc.space, int32(a[0]), arch.Addr(a[1]), uint32(a[2]))
	return uint64(at), errno
}

func sysShmdt(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, shm.Detach(t.proc.space, arch.Addr(a[0]))
}

// shmLimits is struct shminfo64.
type shmLimits struct {
	Max, Min, Segments, PerProcess, Pages uint64
	_                                     [4]uint64
}

func sysShmctl(t *Task, a [6]uint64) (uint64, unix.Errno) {
	c, y := t.ipcCaller(), t.k.ipc.segments
	id, cmd := int32(a[0]), int32(a[1])
	if id < 0 || cmd < 0 {
		return 0, unix.EINVAL
	}
	switch cmd {
	case ipc.Info:
		limits := shmLimits{Max: shm.MaxSize, Min: shm.MinSize, Segments: shm.MaxSegments, PerProcess: shm.MaxSegments, Pages: shm.MaxPages}
		return uint64(y.HighestIndex()), writeValue(t, a[2], limits)
	case shm.UsageInfo:
		return uint64(y.HighestIndex()), writeValue(t, a[2], y.Usage())
	case ipc.Stat:
		s, errno := y.Readable(c, id)
		if errno != 0 {
			return 0, errno
		}
		return 0, writeValue(t, a[2], s.Status())
	case shm.StatIndex, shm.StatAny:
		s, errno := y.ReadableAt(c, id, cmd == shm.StatAny)
		if errno != 0 {
			return 0, errno
		}
		return uint64(s.Common().ID), writeValue(t, a[2], s.Status())
	case ipc.SetPerm:
		var in shm.Status
		if errno := readStruct(t, arch.Addr(a[2]), &in); errno != 0 {
			return 0, errno
		}
		s, errno := y.Own(c, id)
		if errno != 0 {
			return 0, errno
		}
		return 0, s.Common().Update(c, &in.Perm)
	case ipc.Remove:
		s, errno := y.Own(c, id)
		if errno == 0 {
			y.Remove(s)
		}
		return 0, errno
	case shm.LockMemory, shm.UnlockMemory:
		s, errno := y.Find(id)
		if errno != 0 {
			return 0, errno
		}
		return 0, s.LockMemory(c, cmd == shm.LockMemory, t.proc.limits[unix.RLIMIT_MEMLOCK].Cur > 0)
	}
	return 0, unix.EINVAL
}
