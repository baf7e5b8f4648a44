package recorder

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// requests follows the connections that servers have accepted.
type requests struct {
	connections map[*vfs.File]*connection
	// calls are the connections of system calls that are under way: the descriptor may be closed when they return.
	calls map[arch.ThreadID]*connection
}

// connection is the server's end of a connection.
type connection struct {
	port    uint16
	reading bool // a request: the server has not written since
}

func newRequests() requests {
	return requests{connections: map[*vfs.File]*connection{}, calls: map[arch.ThreadID]*connection{}}
}

// issue notes a system call on a connection.
func (q *requests) issue(r *Recorder, t *kernel.Task, e *event.Syscall) {
	delete(q.calls, e.Thread)
	if len(q.connections) == 0 {
		return
	}
	if call := linux.Lookup(e.Number); call != nil && call.Descriptor() >= 0 {
		if c := q.connections[fileOf(r, t, e.Args[call.Descriptor()])]; c != nil {
			q.calls[e.Thread] = c
		}
	}
}

func fileOf(r *Recorder, t *kernel.Task, fd uint64) *vfs.File {
	f, _ := r.Kernel().Proc().Process(t.Process().PID()).File(int32(fd))
	return f
}

// forget notes that a call of the thread failed.
func (q *requests) forget(t arch.ThreadID) { delete(q.calls, t) }

// complete acts on a call that has succeeded, and returns whether a connection or a request begins, and the port.
func (q *requests) complete(r *Recorder, t *kernel.Task, e *event.Syscall) (PlaceKind, uint16) {
	c := q.calls[e.Thread]
	delete(q.calls, e.Thread)
	switch e.Number {
	case unix.SYS_ACCEPT, unix.SYS_ACCEPT4:
		f := fileOf(r, t, e.Result)
		if f == nil {
			return NoPlace, 0
		}
		port, ok := kernel.ListeningPort(f)
		if !ok {
			return NoPlace, 0
		}
		q.connections[f] = &connection{port: port}
		return AtConnection, port
	case unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG, unix.SYS_SENDFILE:
		if c != nil && e.Result > 0 {
			c.reading = false
		}
	case unix.SYS_READ, unix.SYS_READV, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG:
		if c != nil && e.Result > 0 && !c.reading {
			c.reading = true
			return AtRequest, c.port
		}
	}
	return NoPlace, 0
}
