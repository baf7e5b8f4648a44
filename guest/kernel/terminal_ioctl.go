package kernel

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/tty"
	"github.com/heddle-dmt/heddle/guest/vfs"
)

// Requests of ioctl_tty(2) that package unix does not define for x86-64.
const (
	tcgeta      = 0x5405
	tcseta      = 0x5406
	tcsetaw     = 0x5407
	tcsetaf     = 0x5408
	tcflsh      = 0x540b
	tcxonc      = 0x540a
	tcgets2     = 0x802c542a
	tcsets2     = 0x402c542b
	tcsetsw2    = 0x402c542c
	tcsetsf2    = 0x402c542d
	tiocgdev    = 0x80045432
	tiocsig     = 0x40045436
	tiocgpkt    = 0x80045438
	tiocgptlck  = 0x80045439
	tiocgexcl   = 0x80045440
	tiocgptpeer = 0x5441
)

// GuestIoctl answers the requests of ioctl_tty(2).
func (x *terminalFile) GuestIoctl(t *Task, cmd uint32, arg arch.Addr) (uint64, unix.Errno) {
	if x.isHungUp() {
		if cmd == unix.TIOCSPGRP {
			return 0, unix.ENOTTY
		}
		return 0, unix.EIO
	}
	switch cmd {
	case unix.TCGETS, tcgets2, tcgeta:
		return 0, t.getTermios(x.t, cmd, arg)
	case unix.TCSETS, unix.TCSETSW, unix.TCSETSF, tcsets2, tcsetsw2, tcsetsf2, tcseta, tcsetaw, tcsetaf:
		return 0, t.setTermios(x.t, cmd, arg)
	case unix.TIOCGWINSZ:
		size := x.t.Size()
		return 0, writeStruct(t, arg, &size)
	case unix.TIOCSWINSZ:
		var size tty.WindowSize
		if errno := readStruct(t, arg, &size); errno != 0 {
			return 0, errno
		}
		x.t.SetSize(size)
		return 0, 0
	case unix.TIOCGPGRP, unix.TIOCSPGRP, unix.TIOCGSID, unix.TIOCSCTTY, unix.TIOCNOTTY:
		return t.sessionIoctl(x, cmd, arg)
	case unix.TIOCINQ:
		return 0, t.proc.space.WriteU32(arg, uint32(x.t.Waiting()))
	case unix.TIOCOUTQ:
		return 0, t.proc.space.WriteU32(arg, 0)
	case tcflsh:
		return 0, t.flushTerminal(x.t, uint32(arg))
	case tcxonc:
		return 0, t.flowTerminal(x.t, uint32(arg))
	case unix.TCSBRK, unix.TCSBRKP, unix.TIOCSBRK, unix.TIOCCBRK:
		return 0, t.checkForeground(x.t, unix.SIGTTOU) // there is no line for a break, and all output is sent
	case unix.TIOCSTI:
		return 0, t.simulateInput(x.t, arg)
	case unix.TIOCGETD:
		return 0, t.proc.space.WriteU32(arg, 0)
	case unix.TIOCSETD:
		discipline, errno := t.proc.space.ReadU32(arg)
		if errno == 0 && discipline != 0 {
			errno = unix.EINVAL // N_TTY is the only one
		}
		return 0, errno
	case unix.TIOCEXCL, unix.TIOCNXCL:
		x.t.SetExclusive(cmd == unix.TIOCEXCL)
		return 0, 0
	case tiocgexcl:
		return 0, t.proc.space.WriteU32(arg, boolToUint32(x.t.IsExclusive()))
	case tiocgdev:
		return 0, t.proc.space.WriteU32(arg, terminalDevice(x.t))
	case unix.TIOCGSOFTCAR:
		return 0, t.proc.space.WriteU32(arg, 0)
	case unix.TIOCSSOFTCAR:
		_, errno := t.proc.space.ReadU32(arg)
		return 0, errno
	case unix.TIOCVHANGUP:
		if !t.cred.Can(vfs.CapSysAdmin) {
			return 0, unix.EPERM
		}
		t.k.hangUpTerminal(x.t)
		return 0, 0
	}
	return t.pairIoctl(x, cmd, arg)
}

// terminalDevice is the number of a slave as user programs see it.
func terminalDevice(x *tty.Terminal) uint32 { return uint32(unix.Mkdev(136, x.Number())) }

// pairIoctl answers the requests that concern both ends of a pseudo-terminal.
func (t *Task) pairIoctl(x *terminalFile, cmd uint32, arg arch.Addr) (uint64, unix.Errno) {
	if cmd == tiocgptpeer {
		if !x.t.IsMaster() {
			return 0, unix.EIO
		}
		return t.openPeer(x, int(uint32(arg)))
	}
	if !x.t.IsMaster() {
		return 0, unix.ENOTTY
	}
	switch cmd {
	case unix.TIOCGPTN:
		return 0, t.proc.space.WriteU32(arg, x.t.Number())
	case unix.TIOCSPTLCK, unix.TIOCPKT:
		on, errno := t.proc.space.ReadU32(arg)
		switch {
		case errno != 0:
		case cmd == unix.TIOCPKT:
			x.t.SetPacket(on != 0)
		default:
			x.t.Lock(on != 0)
		}
		return 0, errno
	case tiocgptlck:
		return 0, t.proc.space.WriteU32(arg, boolToUint32(x.t.IsLocked()))
	case tiocgpkt:
		return 0, t.proc.space.WriteU32(arg, boolToUint32(x.t.IsPacket()))
	case tiocsig:
		switch n := unix.Signal(uint32(arg)); n {
		case unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP:
			if group := x.t.Slave().Group; group != 0 {
				t.k.SignalGroup(group, n)
			}
			return 0, 0
		}
		return 0, unix.EINVAL
	}
	return 0, unix.ENOTTY
}

// openPeer opens the slave of a master, independent of mounts.
func (t *Task) openPeer(x *terminalFile, flags int) (uint64, unix.Errno) {
	if _, errno := t.proc.lowestFree(0); errno != 0 {
		return 0, errno
	}
	f, errno := t.k.fs.OpenDentry(t.vfsContext(), x.name, flags&^unix.O_CLOEXEC)
	if errno != 0 {
		return 0, errno
	}
	if errno := t.openTerminal(f); errno != 0 {
		f.Unref()
		return 0, errno
	}
	t.adoptTerminal(f, flags)
	f.Opened()
	return t.installFile(f, flags&unix.O_CLOEXEC != 0)
}

func (t *Task) getTermios(x *tty.Terminal, cmd uint32, arg arch.Addr) unix.Errno {
	state := x.Termios()
	switch cmd {
	case tcgeta:
		old := state.Old()
		return writeStruct(t, arg, &old)
	case unix.TCGETS:
		return t.copyOut(arg, bytesOf(&state)[:tty.OldSize])
	}
	return writeStruct(t, arg, &state)
}

func (t *Task) setTermios(x *tty.Terminal, cmd uint32, arg arch.Addr) unix.Errno {
	if errno := t.checkForeground(x.Slave(), unix.SIGTTOU); errno != 0 {
		return errno
	}
	state := x.Termios()
	switch cmd {
	case tcseta, tcsetaw, tcsetaf:
		old := state.Old()
		if errno := readStruct(t, arg, &old); errno != 0 {
			return errno
		}
		state.SetOld(&old)
	case tcsets2, tcsetsw2, tcsetsf2:
		if errno := readStruct(t, arg, &state); errno != 0 {
			return errno
		}
	default:
		if errno := t.copyIn(arg, bytesOf(&state)[:tty.OldSize]); errno != 0 {
			return errno
		}
	}
	state.FillSpeeds()
	if cmd == unix.TCSETSF || cmd == tcsetsf2 || cmd == tcsetaf {
		x.Slave().FlushInput(false)
	}
	x.SetTermios(state)
	return 0
}

func (t *Task) flushTerminal(x *tty.Terminal, which uint32) unix.Errno {
	if errno := t.checkForeground(x, unix.SIGTTOU); errno != 0 {
		return errno
	}
	switch which {
	case unix.TCIFLUSH, unix.TCOFLUSH, unix.TCIOFLUSH:
	default:
		return unix.EINVAL
	}
	if which != unix.TCOFLUSH {
		x.FlushInput(true)
	}
	if which != unix.TCIFLUSH {
		x.FlushOutput()
	}
	return 0
}

// flowTerminal is tcflow(3).
func (t *Task) flowTerminal(x *tty.Terminal, action uint32) unix.Errno {
	if errno := t.checkForeground(x, unix.SIGTTOU); errno != 0 {
		return errno
	}
	switch action {
	case unix.TCOOFF, unix.TCOON:
		x.HoldOutput(action == unix.TCOOFF)
	case unix.TCIOFF, unix.TCION:
		x.SendFlow(action == unix.TCIOFF)
	default:
		return unix.EINVAL
	}
	return 0
}

func (t *Task) simulateInput(x *tty.Terminal, arg arch.Addr) unix.Errno {
	if t.proc.terminal != x && !t.cred.Can(vfs.CapSysAdmin) {
		return unix.EPERM
	}
	c, errno := t.proc.space.ReadU8(arg)
	if errno == 0 {
		x.Simulate(c)
	}
	return errno
}

// sessionIoctl answers the requests about the session and the groups of a terminal.
func (t *Task) sessionIoctl(x *terminalFile, cmd uint32, arg arch.Addr) (uint64, unix.Errno) {
	p, s := t.proc, x.t.Slave()
	mine := p.terminal == s
	switch cmd {
	case unix.TIOCGPGRP:
		if !x.t.IsMaster() && !mine {
			return 0, unix.ENOTTY
		}
		return 0, t.proc.space.WriteU32(arg, uint32(s.Group))
	case unix.TIOCGSID:
		if !x.t.IsMaster() && !mine || s.Session == 0 {
			return 0, unix.ENOTTY
		}
		return 0, t.proc.space.WriteU32(arg, uint32(s.Session))
	case unix.TIOCNOTTY:
		if p.terminal != x.t {
			return 0, unix.ENOTTY
		}
		t.k.leaveTerminal(p, false)
		p.terminal = nil
		return 0, 0
	case unix.TIOCSCTTY:
		return 0, t.controlSession(x, arg == 1)
	}
	return 0, t.setForeground(s, arg)
}

// setForeground is tcsetpgrp(3).
func (t *Task) setForeground(s *tty.Terminal, arg arch.Addr) unix.Errno {
	switch errno := t.checkForeground(s, unix.SIGTTOU); errno {
	case 0:
	case unix.EIO:
		return unix.ENOTTY
	default:
		return errno
	}
	p := t.proc
	group, errno := t.proc.space.ReadU32(arg)
	switch {
	case errno != 0:
		return errno
	case p.terminal != s || s.Session != p.session:
		return unix.ENOTTY
	case int32(group) < 0:
		return unix.EINVAL
	case !t.k.isGroup(int32(group)):
		return unix.ESRCH
	case !t.k.groupExists(int32(group), p.session):
		return unix.EPERM
	}
	s.Group = int32(group)
	return 0
}

// isGroup reports whether an id is that of a process group or, at least, of a process.
func (k *Kernel) isGroup(id int32) bool {
	for _, p := range k.processes {
		if p.group == id || p.pid == id || p.session == id {
			return true
		}
	}
	return false
}

// controlSession is TIOCSCTTY; steal takes the terminal away from another session.
func (t *Task) controlSession(x *terminalFile, steal bool) unix.Errno {
	p, s := t.proc, x.t.Slave()
	admin := t.cred.Can(vfs.CapSysAdmin)
	switch {
	case p.isLeader() && s.Session == p.session:
		return 0
	case !p.isLeader() || p.terminal != nil:
		return unix.EPERM
	case s.Session != 0 && !(steal && admin):
		return unix.EPERM
	}
	if s.Session != 0 {
		t.k.forgetTerminal(s.Session)
	}
	p.setTerminal(s)
	return 0
}
