package kernel

import (
	"github.com/heddle-dmt/heddle/guest/ipc"
	"github.com/heddle-dmt/heddle/guest/ipc/mqueue"
	"github.com/heddle-dmt/heddle/guest/ipc/msg"
	"github.com/heddle-dmt/heddle/guest/ipc/sem"
	"github.com/heddle-dmt/heddle/guest/ipc/shm"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// ipcObjects are the System V objects and the message queues of the machine.
type ipcObjects struct {
	segments   *shm.System
	semaphores *sem.System
	messages   *msg.System
	queues     *mqueue.System // of POSIX
}

func (k *Kernel) newIPC() ipcObjects {
	host := &ipcHost{k}
	return ipcObjects{
		segments: shm.New(k.ram, k.memory, host), semaphores: sem.New(k.memory), messages: msg.New(k.memory),
		queues: mqueue.New(k.memory, host),
	}
}

// ipcHost reports to System V objects and message queues which process acts.
type ipcHost struct{ k *Kernel }

func (h *ipcHost) Caller() *ipc.Caller { return h.k.current.ipcCaller() }

// ipcCaller is the task as the caller of operations on System V objects.
func (t *Task) ipcCaller() *ipc.Caller {
	c := &t.cred
	return &ipc.Caller{
		PID: t.proc.pid, EUID: c.EUID, EGID: c.EGID, FSGID: c.FSGID, Groups: c.Groups, Now: t.k.RealtimeNS() / second,
		Admin: c.Can(vfs.CapSysAdmin), Owner: c.Can(vfs.CapIPCOwner), Lock: c.Can(vfs.CapIPCLock), Resource: c.Can(vfs.CapSysResource),
	}
}

// SystemV implements procfs.Kernel.
func (v *procView) SystemV() (*shm.System, *sem.System, *msg.System) {
	o := &v.k.ipc
	return o.segments, o.semaphores, o.messages
}
