package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/kmem"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/guest/tty"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/guest/wait"
)

// maxTerminals bounds the pseudo-terminals (kernel.pty.max).
const maxTerminals = 4096

// Devices of terminals besides the slaves of pseudo-terminals.
var (
	deviceTTY  = unix.Mkdev(5, 0) // the caller's controlling terminal
	devicePtmx = unix.Mkdev(5, 2) // a new pseudo-terminal's master
)

// terminalFile is an open terminal.
type terminalFile struct {
	k       *Kernel
	t       *tty.Terminal
	hangups uint32      // of the terminal, when it was opened
	name    *vfs.Dentry // of a master: the file of its slave
}

func (x *terminalFile) isHungUp() bool { return x.hangups != x.t.Hangups() }

// Read implements vfs.FileImpl, for calls that do not wait.
func (x *terminalFile) Read(_ *vfs.Ctx, p []byte, _ int64) (int, unix.Errno) {
	if x.isHungUp() {
		return 0, 0
	}
	r := x.t.Begin(len(p), x.k.clock.now)
	done, errno := x.t.Read(r, false, x.k.clock.now)
	if n := copy(p, r.Data); n > 0 {
		return n, 0
	}
	if !done {
		errno = unix.EAGAIN
	}
	return 0, errno
}

// Write implements vfs.FileImpl, for calls that do not wait.
func (x *terminalFile) Write(_ *vfs.Ctx, p []byte, _ int64) (int, unix.Errno) {
	if x.isHungUp() {
		return 0, unix.EIO
	}
	n := x.t.Write(p)
	if n == 0 && len(p) > 0 {
		return 0, unix.EAGAIN
	}
	return n, 0
}

// Ready implements vfs.Poller.
func (x *terminalFile) Ready() uint32 { return x.t.Ready(x.hangups) }

// Waiters implements vfs.Poller.
func (x *terminalFile) Waiters() *wait.Queue { return x.t.Waiters() }

// Close implements vfs.Closer. When the last description of a master is closed, its slave is hung
// up.
func (x *terminalFile) Close() {
	if !x.t.Closed() {
		return
	}
	x.k.hangUpTerminal(x.t.Slave())
	x.k.fs.RemoveTerminal(x.name)
	x.k.terminals--
	x.k.freeTerminal = min(x.k.freeTerminal, x.t.Number())
	x.k.memory.Release(kmem.Terminal)
}

// openTerminal connects a description of a terminal that has just been opened.
func (t *Task) openTerminal(f *vfs.File) unix.Errno {
	device, ok := f.Inode().TerminalDevice()
	if !ok || f.IsPath() {
		return 0
	}
	switch device {
	case devicePtmx:
		return t.openMaster(f)
	case deviceTTY:
		if t.proc.terminal == nil {
			return unix.ENXIO
		}
		return t.connectTerminal(f, t.proc.terminal)
	}
	slave, _ := f.Inode().Object.(*tty.Terminal)
	return t.connectTerminal(f, slave)
}

func (t *Task) connectTerminal(f *vfs.File, x *tty.Terminal) unix.Errno {
	if errno := x.Opened(t.cred.Can(vfs.CapSysAdmin)); errno != 0 {
		return errno
	}
	f.Impl = &terminalFile{k: t.k, t: x, hangups: x.Hangups()}
	return 0
}

// openMaster makes a pseudo-terminal, and connects a description to its master.
func (t *Task) openMaster(f *vfs.File) unix.Errno {
	k := t.k
	if k.terminals >= maxTerminals {
		return unix.ENOSPC
	}
	if !k.memory.Charge(kmem.Terminal) {
		return unix.ENOMEM
	}
	k.terminals++
	number := k.newTerminal()
	master, slave := tty.NewPair(k, number)
	if errno := master.Opened(true); errno != 0 {
		panic("bug: a new terminal cannot be opened")
	}
	f.Impl = &terminalFile{k: k, t: master, name: k.fs.AddTerminal(t.vfsContext(), number, slave)}
	return 0
}

// newTerminal is the lowest unused terminal number.
func (k *Kernel) newTerminal() uint32 {
	for k.fs.HasTerminal(k.freeTerminal) {
		k.freeTerminal++
	}
	return k.freeTerminal
}

// adoptTerminal makes a terminal that the leader of a session has opened the session's controlling
// terminal, if the session has none and the terminal is free.
func (t *Task) adoptTerminal(f *vfs.File, flags int) {
	x, ok := f.Impl.(*terminalFile)
	device, _ := f.Inode().TerminalDevice()
	if !ok || flags&unix.O_NOCTTY != 0 || x.t.IsMaster() || device == deviceTTY {
		return
	}
	if p := t.proc; p.isLeader() && p.terminal == nil && x.t.Session == 0 && f.Readable() {
		p.setTerminal(x.t)
	}
}

// readTerminal reads from a terminal, and waits as termios(3) says.
func (t *Task) readTerminal(f *vfs.File, x *terminalFile, ranges []mm.Range) (uint64, unix.Errno) {
	r, waiting := t.call.data.(*tty.Reading)
	if !waiting {
		switch {
		case !f.Readable():
			return 0, unix.EBADF
		case x.isHungUp():
			return 0, 0
		}
		if errno := t.checkForeground(x.t, unix.SIGTTIN); errno != 0 {
			return 0, errno
		}
		r = x.t.Begin(int(min(mm.TotalLen(ranges), maxTransfer)), t.k.clock.now)
		t.call.data = r
	}
	done, errno := x.t.Read(r, x.isHungUp(), t.k.clock.now)
	if !done {
		errno = unix.EAGAIN
		if !f.Nonblock() {
			errno = t.waitInterruptibly(errRestart, r.Deadline(), x.t.Waiters())
		}
		switch {
		case errno == errBlocked:
			return 0, errno
		case errno == unix.ETIMEDOUT:
			errno = 0
		}
	}
	t.call.data = nil
	if len(r.Data) == 0 {
		return 0, errno
	}
	f.Inode().TouchTerminal(false)
	n, errno := t.proc.space.CopyOutRanges(ranges, r.Data)
	return partialResult(uint64(n), errno)
}

// writeTerminal writes to a terminal, and waits until all is written.
func (t *Task) writeTerminal(f *vfs.File, x *terminalFile, ranges []mm.Range) (uint64, unix.Errno) {
	if !f.Writable() {
		return 0, unix.EBADF
	}
	if x.isHungUp() {
		return partialResult(uint64(t.call.progress), unix.EIO)
	}
	if t.call.progress == 0 && x.t.Stops() {
		if errno := t.checkForeground(x.t, unix.SIGTTOU); errno != 0 {
			return 0, errno
		}
	}
	done, total := uint64(t.call.progress), min(mm.TotalLen(ranges), maxTransfer)
	for done < total {
		buf := t.k.scratch.buffer(min(total-done, chunkSize))
		n, errno := t.proc.space.CopyInRanges(mm.SkipRanges(ranges, done), buf)
		if n == 0 && errno != 0 {
			return partialResult(done, errno)
		}
		n = x.t.Write(buf[:n])
		if n > 0 {
			f.Inode().TouchTerminal(true)
			done += uint64(n)
			continue
		}
		t.call.progress = int(done)
		if f.Nonblock() {
			return partialResult(done, unix.EAGAIN)
		}
		if errno := t.waitInterruptibly(errRestart, forever, x.t.Waiters()); errno != 0 {
			if errno == errBlocked {
				return 0, errno
			}
			return partialResult(done, errno)
		}
	}
	return done, 0
}
