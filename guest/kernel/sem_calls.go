package kernel

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/ipc/sem"
)

func sysSemget(t *Task, a [6]uint64) (uint64, unix.Errno) {
	id, errno := t.k.ipc.semaphores.Get(t.ipcCaller(), int32(a[0]), int(int32(a[1])), uint32(a[2]))
	return uint64(id), errno
}

func sysSemop(t *Task, a [6]uint64) (uint64, unix.Errno) { return 0, t.operateSemaphores(a, 0) }

func sysSemtimedop(t *Task, a [6]uint64) (uint64, unix.Errno) {
	return 0, t.operateSemaphores(a, arch.Addr(a[3]))
}

// operateSemaphores carries out operations on a set of semaphores; timeout is the address of a
// relative time, or 0.
func (t *Task) operateSemaphores(a [6]uint64, timeout arch.Addr) unix.Errno {
	o, waiting := t.call.data.(*sem.Operation)
	if !waiting {
		var errno unix.Errno
		if o, errno = t.beginSemop(a, timeout); o == nil || errno != 0 {
			return errno
		}
		t.call.data = o
	}
	if done, errno := o.Done(); done {
		return errno
	}
	switch t.waitInterruptibly(unix.EINTR, t.call.deadline) {
	case errBlocked:
		return errBlocked
	case unix.ETIMEDOUT:
		o.Abandon()
		return unix.EAGAIN
	default:
		o.Abandon()
		return unix.EINTR // the call is not restarted, even if no handler runs
	}
}

// beginSemop is the first attempt. It returns nil if the call is complete.
func (t *Task) beginSemop(a [6]uint64, timeout arch.Addr) (*sem.Operation, unix.Errno) {
	var limit unix.Timespec
	if timeout != 0 {
		if errno := readStruct(t, timeout, &limit); errno != 0 {
			return nil, errno
		}
	}
	count := uint32(a[2])
	switch {
	case count > sem.MaxOperations:
		return nil, unix.E2BIG
	case count < 1:
		return nil, unix.EINVAL
	}
	ops := make([]sem.Op, count)
	for i := range ops {
		if errno := readStruct(t, arch.Addr(a[1])+arch.Addr(6*i), &ops[i]); errno != 0 {
			return nil, errno
		}
	}
	ns, errno := timespecToNS(limit)
	if errno != 0 {
		return nil, errno
	}
	t.call.deadline = forever
	if timeout != 0 {
		t.call.deadline = saturatingAdd(t.k.clock.now, ns)
	}
	return t.k.ipc.semaphores.Do(t.ipcCaller(), int32(a[0]), ops, t.undoList(), t)
}

// undoList is the thread's list of adjustments to semaphores.
func (t *Task) undoList() *sem.UndoList {
	if t.semUndo == nil {
		t.semUndo = t.k.ipc.semaphores.NewUndoList()
	}
	return t.semUndo
}

// shareUndo is the list of adjustments for a new thread that shares it.
func (t *Task) shareUndo() *sem.UndoList {
	l := t.undoList()
	l.Ref()
	return l
}

func sysSemctl(t *Task, a [6]uint64) (uint64, unix.Errno) {
	c, y := t.ipcCaller(), t.k.ipc.semaphores
	id, n, cmd := int32(a[0]), int32(a[1]), int32(a[2])
	if id < 0 {
		return 0, unix.EINVAL
	}
	switch cmd {
	case ipc.Info, sem.UsageInfo:
		return uint64(y.HighestIndex()), writeValue(t, a[3], y.Limits(cmd == sem.UsageInfo))
	case ipc.Stat:
		s, errno := y.Readable(c, id)
		if errno != 0 {
			return 0, errno
		}
		return 0, writeValue(t, a[3], s.Status())
	case sem.StatIndex, sem.StatAny:
		s, errno := y.ReadableAt(c, id, cmd == sem.StatAny)
		if errno != 0 {
			return 0, errno
		}
		return uint64(s.Common().ID), writeValue(t, a[3], s.Status())
	case ipc.SetPerm:
		var in sem.Status
		if errno := readStruct(t, arch.Addr(a[3]), &in); errno != 0 {
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
	case sem.SetValue:
		return 0, t.setSemaphore(id, n, int32(a[3]))
	case sem.SetAll:
		return 0, t.setSemaphores(id, arch.Addr(a[3]))
	case sem.GetAll, sem.GetValue, sem.GetPID, sem.CountLess, sem.CountZero:
		return t.getSemaphore(id, n, cmd, arch.Addr(a[3]))
	}
	return 0, unix.EINVAL
}

// setSemaphore is SETVAL.
func (t *Task) setSemaphore(id, n, value int32) unix.Errno {
	if value < 0 || value > sem.MaxValue {
		return unix.ERANGE
	}
	s, errno := t.k.ipc.semaphores.Find(id)
	switch {
	case errno != 0:
		return errno
	case n < 0 || int(n) >= s.Len():
		return unix.EINVAL
	}
	c := t.ipcCaller()
	if errno := s.Common().Allows(c, ipc.MayWrite); errno != 0 {
		return errno
	}
	s.SetValue(c, int(n), value)
	return 0
}

// setSemaphores is SETALL.
func (t *Task) setSemaphores(id int32, addr arch.Addr) unix.Errno {
	c := t.ipcCaller()
	s, errno := t.k.ipc.semaphores.Find(id)
	if errno == 0 {
		errno = s.Common().Allows(c, ipc.MayWrite)
	}
	if errno != 0 {
		return errno
	}
	raw := make([]byte, 2*s.Len())
	if errno := t.copyIn(addr, raw); errno != 0 {
		return errno
	}
	values := make([]uint16, s.Len())
	for i := range values {
		if values[i] = binary.LittleEndian.Uint16(raw[2*i:]); values[i] > sem.MaxValue {
			return unix.ERANGE
		}
	}
	s.SetAll(c, values)
	return 0
}

// getSemaphore carries out the commands of semctl that read a set.
func (t *Task) getSemaphore(id, n, cmd int32, addr arch.Addr) (uint64, unix.Errno) {
	s, errno := t.k.ipc.semaphores.Readable(t.ipcCaller(), id)
	switch {
	case errno != 0:
		return 0, errno
	case cmd == sem.GetAll:
		var raw []byte
		for _, v := range s.Values() {
			raw = binary.LittleEndian.AppendUint16(raw, v)
		}
		return 0, t.copyOut(addr, raw)
	case n < 0 || int(n) >= s.Len():
		return 0, unix.EINVAL
	case cmd == sem.GetValue:
		return uint64(s.Value(int(n))), 0
	case cmd == sem.GetPID:
		return uint64(s.LastPID(int(n))), 0
	}
	return uint64(s.Waiting(int(n), cmd == sem.CountZero)), 0
}
