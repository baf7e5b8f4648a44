package tty

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/guest/wait"
)

const (
	// bufferSize is how much input can wait to be read, one byte less than the
	// kernel's buffer; a line may take that byte for its end.
	bufferSize = 4095
	// backlogSize is how much of the other's output one end takes besides.
	backlogSize = 16384
)

// Events of poll.
const (
	readEvents  = unix.EPOLLIN | unix.EPOLLRDNORM
	writeEvents = unix.EPOLLOUT | unix.EPOLLWRNORM
)

// Host is the kernel.
type Host interface {
	// SignalGroup sends a signal of the kernel's own to a process group.
	SignalGroup(group int32, signal unix.Signal)
}

// WindowSize is struct winsize.
type WindowSize struct{ Rows, Columns, Width, Height uint16 }

// Terminal is one end of a pseudo-terminal.
type Terminal struct {
	// Group is the foreground process group and Session the session that the
	// terminal controls; 0 without one. Both are the kernel's.
	Group, Session int32

	host     Host
	link     *Terminal // the other end
	isMaster bool
	number   uint32
	termios  Termios
	size     WindowSize
	waiters  *wait.Queue

	opens       int    // descriptions
	locked      bool   // the slave cannot be opened: TIOCSPTLCK
	exclusive   bool   // TIOCEXCL
	otherClosed bool   // no description of the other end is left
	dead        bool   // the master is gone
	hangups     uint32 // how often it was hung up

	backlog []byte
	input   discipline
	echo    echo

	column, lineColumn uint // of output; of the first character of a line

	stopped     bool // output is: by a key or TCXONC
	stoppedByIO bool // by TCXONC

	packet bool  // of a master: reads begin with a byte of status
	status uint8 // of a slave: changes that its master has not read
}

// NewPair makes a pseudo-terminal. The slave is locked, and nothing is open.
func NewPair(host Host, number uint32) (master, slave *Terminal) {
	master = &Terminal{host: host, isMaster: true, number: number, termios: raw(), waiters: &wait.Queue{}}
	slave = &Terminal{host: host, number: number, termios: standard(), locked: true, waiters: &wait.Queue{}}
	master.link, slave.link = slave, master
	return master, slave
}

// IsMaster reports which end the terminal is.
func (t *Terminal) IsMaster() bool { return t.isMaster }

// Number is the number of the pair, N of /dev/pts/N.
func (t *Terminal) Number() uint32 { return t.number }

// Slave is the end that programs take for a terminal.
func (t *Terminal) Slave() *Terminal {
	if t.isMaster {
		return t.link
	}
	return t
}

// Opened counts a description. EIO: the slave is locked, or its master is gone.
// EBUSY: it was opened exclusively, which privileged callers ignore.
func (t *Terminal) Opened(privileged bool) unix.Errno {
	if !t.isMaster {
		switch {
		case t.locked || t.dead:
			return unix.EIO
		case t.exclusive && !privileged:
			return unix.EBUSY
		}
		t.link.otherClosed = false
	}
	t.opens++
	return 0
}

// Closed takes a description away. It reports whether it was the last of a
// master, after which the kernel hangs the slave up.
func (t *Terminal) Closed() bool {
	if t.opens--; t.opens > 0 {
		return false
	}
	t.packet = false
	t.link.otherClosed = true
	t.wakeAll()
	t.link.wakeAll()
	t.link.dead = t.isMaster
	return t.isMaster
}

func (t *Terminal) wakeAll() { t.waiters.Wake(wait.AnyEvent) }

// HangUp makes all open descriptions useless, and the terminal as it was at first.
func (t *Terminal) HangUp() {
	t.hangups++
	t.Session, t.Group, t.status = 0, 0, 0
	t.stopped, t.stoppedByIO = false, false
	t.termios = standard()
	t.backlog, t.input, t.echo = nil, discipline{}, echo{}
	t.wakeAll()
}

// Lock sets and clears the lock of the pair's slave.
func (t *Terminal) Lock(on bool) { t.Slave().locked = on }

// IsLocked reports whether the pair's slave is locked.
func (t *Terminal) IsLocked() bool { return t.Slave().locked }

// SetExclusive is TIOCEXCL and TIOCNXCL.
func (t *Terminal) SetExclusive(on bool) { t.exclusive = on }

// IsExclusive is TIOCGEXCL.
func (t *Terminal) IsExclusive() bool { return t.exclusive }

// Size is the size of the window.
func (t *Terminal) Size() WindowSize { return t.Slave().size }

// SetSize changes the size of the window, and sends SIGWINCH if it is another.
func (t *Terminal) SetSize(size WindowSize) {
	s := t.Slave()
	if s.size == size {
		return
	}
	s.size = size
	if s.Group != 0 {
		s.host.SignalGroup(s.Group, unix.SIGWINCH)
	}
}

// Termios is the state of the slave, which both ends ask for.
func (t *Terminal) Termios() Termios { return t.Slave().termios }

// SetTermios changes the state of the slave.
func (t *Terminal) SetTermios(n Termios) {
	s := t.Slave()
	old := s.termios
	n.Control = n.Control&^(unix.CSIZE|unix.PARENB) | unix.CS8 | unix.CREAD
	s.termios = n
	if s.link.packet {
		s.reportTermios(&old)
	}
	s.input.changed(&old, &n)
	if old.input(unix.IXON) && !n.input(unix.IXON) && !s.stoppedByIO {
		s.start()
		s.flushEcho()
	}
	s.process()
	s.wakeAll()
}

// reportTermios notes changes for a master in packet mode.
func (t *Terminal) reportTermios(old *Termios) {
	flow := func(x *Termios) bool {
		return x.input(unix.IXON) && x.Chars[unix.VSTOP] == 'S'&0x1f && x.Chars[unix.VSTART] == 'Q'&0x1f
	}
	external := old.isExternal() || t.termios.isExternal()
	before, now := flow(old), flow(&t.termios)
	if before == now && !external {
		return
	}
	if before != now {
		t.status &^= unix.TIOCPKT_DOSTOP | unix.TIOCPKT_NOSTOP
		if now {
			t.status |= unix.TIOCPKT_DOSTOP
		} else {
			t.status |= unix.TIOCPKT_NOSTOP
		}
	}
	if external {
		t.status |= unix.TIOCPKT_IOCTL
	}
	t.link.waiters.Wake(readEvents | unix.EPOLLPRI)
}

// report notes something for a master in packet mode.
func (t *Terminal) report(clear, set uint8) {
	if t.isMaster || !t.link.packet {
		return
	}
	t.status = t.status&^clear | set
	t.link.waiters.Wake(readEvents | unix.EPOLLPRI)
}

// SetPacket switches packet mode of a master.
func (t *Terminal) SetPacket(on bool) {
	if on && !t.packet {
		t.link.status = 0
	}
	t.packet = on
}

// IsPacket reports whether a master is in packet mode.
func (t *Terminal) IsPacket() bool { return t.packet }

// stop holds output back.
func (t *Terminal) stop() {
	if !t.stopped {
		t.stopped = true
		t.report(unix.TIOCPKT_START, unix.TIOCPKT_STOP)
	}
}

// start undoes stop, unless TCXONC has stopped output, too.
func (t *Terminal) start() {
	if t.stopped && !t.stoppedByIO {
		t.stopped = false
		t.report(unix.TIOCPKT_STOP, unix.TIOCPKT_START)
		t.waiters.Wake(writeEvents)
	}
}

// HoldOutput is TCXONC with TCOOFF and TCOON.
func (t *Terminal) HoldOutput(on bool) {
	if on {
		t.stoppedByIO = true
		t.stop()
		return
	}
	if t.stoppedByIO {
		t.stoppedByIO = false
		t.start()
		t.flushEcho()
	}
}

// SendFlow is TCXONC with TCIOFF and TCION: it writes the character that stops
// the output of the other end, or the one that starts it.
func (t *Terminal) SendFlow(stop bool) {
	c := t.termios.Chars[unix.VSTART]
	if stop {
		c = t.termios.Chars[unix.VSTOP]
	}
	if c != disabled { // even if output is held back
		t.link.backlog = append(t.link.backlog, c)
		t.link.process()
	}
}

// FlushInput drops the input that was not read; with backlog also the bytes that
// the line discipline has not taken.
func (t *Terminal) FlushInput(backlog bool) {
	if backlog {
		t.backlog = nil
	}
	t.input.reset()
	t.report(0, unix.TIOCPKT_FLUSHREAD)
	t.process()
	t.link.waiters.Wake(writeEvents)
}

// FlushOutput drops the output that the line discipline of the other end has not
// taken.
func (t *Terminal) FlushOutput() {
	t.link.backlog = nil
	t.report(0, unix.TIOCPKT_FLUSHWRITE)
	t.waiters.Wake(writeEvents)
}

// Ready is the set of poll events for a description, which was open at the given
// number of hang-ups.
func (t *Terminal) Ready(hangups uint32) uint32 {
	if hangups != t.hangups {
		return readEvents | writeEvents | unix.EPOLLERR | unix.EPOLLHUP
	}
	var mask uint32
	if t.hasInput(true) {
		mask |= readEvents
	}
	if t.packet && t.link.status != 0 {
		mask |= unix.EPOLLPRI | readEvents
	}
	if t.otherClosed {
		mask |= unix.EPOLLHUP
	}
	if t.writeRoom() > 0 {
		mask |= writeEvents
	}
	return mask
}

// Stops reports whether a process in the background that writes is stopped (TOSTOP).
func (t *Terminal) Stops() bool { return t.termios.local(unix.TOSTOP) }

// Hangups is how often the terminal was hung up.
func (t *Terminal) Hangups() uint32 { return t.hangups }

// Waiters is woken when poll events may have come.
func (t *Terminal) Waiters() *wait.Queue { return t.waiters }

// writeRoom is how many bytes can be written to the other end now.
func (t *Terminal) writeRoom() int {
	if t.stopped {
		return 0
	}
	return max(0, backlogSize-len(t.link.backlog))
}

// send gives bytes to the other end, as far as there is room.
func (t *Terminal) send(b []byte) int {
	n := min(len(b), t.writeRoom())
	t.link.backlog = append(t.link.backlog, b[:n]...)
	t.link.process()
	return n
}
