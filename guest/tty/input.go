package tty

import (
	"golang.org/x/sys/unix"
)

// cell is a byte of input; last means that a line ends with it.
type cell struct {
	c    byte
	last bool
}

// discipline is the input that the line discipline has taken and no one has read.
type discipline struct {
	cells []cell
	lines int // cells that belong to whole lines: all up to the last end of a line

	literal bool // the next character stands for itself: VLNEXT
	erasing bool // erased characters are being shown between \ and /: ECHOPRT
}

// reset drops the input that waits.
func (d *discipline) reset() { d.cells, d.lines, d.erasing = nil, 0, false }

// changed adapts waiting input to another mode: bytes become a line.
func (d *discipline) changed(old, now *Termios) {
	if (old.Local^now.Local)&(unix.ICANON|unix.EXTPROC) == 0 {
		return
	}
	for i := range d.cells {
		d.cells[i].last = false
	}
	d.lines = 0
	if now.isCanonical() && len(d.cells) > 0 {
		d.cells[len(d.cells)-1].last = true
		d.lines = len(d.cells)
	}
	d.erasing, d.literal = false, false
}

// room is how many characters can be taken. With overflow they replace the last
// one: a line that is too long can still be erased and ended.
func (t *Terminal) room() (n int, overflow bool) {
	n = bufferSize + 1 - len(t.input.cells)
	if t.termios.input(unix.PARMRK) {
		n = (n + 2) / 3
	}
	if n--; n <= 0 {
		return n, t.termios.isCanonical() && t.input.lines == 0
	}
	return n, false
}

// process lets the line discipline take as much of the backlog as it can.
func (t *Terminal) process() {
	taken := 0
	for taken < len(t.backlog) {
		n, overflow := t.room()
		if n <= 0 && !overflow {
			break
		}
		if overflow && n < 0 {
			t.input.cells = t.input.cells[:len(t.input.cells)-1]
		}
		c := t.backlog[taken]
		taken++
		t.receive(c)
	}
	if taken == 0 {
		return
	}
	t.backlog = append([]byte(nil), t.backlog[taken:]...)
	t.flushEcho()
	if t.hasInput(false) {
		t.waiters.Wake(readEvents)
	}
	t.link.waiters.Wake(writeEvents)
}

// isPlain reports whether nothing is done to input.
func (t *Terminal) isPlain() bool {
	s := &t.termios
	return !s.input(unix.ISTRIP|unix.IUCLC|unix.IGNCR|unix.ICRNL|unix.INLCR|unix.IXON|unix.PARMRK) &&
		!s.local(unix.ICANON|unix.ISIG|unix.ECHO)
}

func (t *Terminal) put(c byte, last bool) { t.input.cells = append(t.input.cells, cell{c, last}) }

// putMarked is put, with bytes doubled that begin marks (PARMRK).
func (t *Terminal) putMarked(c byte) {
	if c == 0xff && t.termios.input(unix.PARMRK) {
		t.put(c, false)
	}
	t.put(c, false)
}

// receive takes one character of input, as n_tty.c of Linux does.
func (t *Terminal) receive(c byte) {
	s := &t.termios
	if t.isPlain() {
		t.put(c, false)
		return
	}
	literal := t.input.literal
	t.input.literal = false
	if s.input(unix.ISTRIP) {
		c &= 0x7f
	}
	if s.input(unix.IUCLC) && s.local(unix.IEXTEN) && isUpper(c) {
		c += 'a' - 'A'
	}
	switch {
	case literal:
		t.receivePlain(c)
	case s.isExternal():
		t.put(c, false)
	case t.isSpecial(c):
		t.receiveSpecial(c)
	default:
		t.receivePlain(c)
	}
}

// isSpecial reports whether a character may be more than itself.
func (t *Terminal) isSpecial(c byte) bool {
	s := &t.termios
	if c == '\r' && s.input(unix.IGNCR|unix.ICRNL) || c == '\n' && s.input(unix.INLCR) {
		return true
	}
	if s.isCanonical() && (c == '\n' || s.is(c, unix.VERASE) || s.is(c, unix.VKILL) || s.is(c, unix.VEOF) || s.is(c, unix.VEOL) ||
		s.extended(c, unix.VWERASE) || s.extended(c, unix.VLNEXT) || s.extended(c, unix.VEOL2) ||
		s.extended(c, unix.VREPRINT) && s.local(unix.ECHO)) {
		return true
	}
	if s.input(unix.IXON) && (s.is(c, unix.VSTART) || s.is(c, unix.VSTOP)) {
		return true
	}
	return s.local(unix.ISIG) && (s.is(c, unix.VINTR) || s.is(c, unix.VQUIT) || s.is(c, unix.VSUSP))
}

// restart starts output that was stopped, if any character does (IXANY).
func (t *Terminal) restart() {
	if t.stopped && !t.stoppedByIO && t.termios.input(unix.IXON) && t.termios.input(unix.IXANY) {
		t.start()
		t.flushEcho()
	}
}

// receivePlain takes a character that stands for itself.
func (t *Terminal) receivePlain(c byte) {
	t.restart()
	if t.termios.local(unix.ECHO) {
		t.finishErasing()
		t.echoFirst()
		t.echoCharacter(c)
	}
	t.putMarked(c)
}

func (t *Terminal) receiveSpecial(c byte) {
	s := &t.termios
	switch {
	case s.input(unix.IXON) && s.is(c, unix.VSTART):
		t.start()
		t.flushEcho()
		return
	case s.input(unix.IXON) && s.is(c, unix.VSTOP):
		t.stop()
		return
	case s.local(unix.ISIG) && s.is(c, unix.VINTR):
		t.signal(unix.SIGINT, c)
		return
	case s.local(unix.ISIG) && s.is(c, unix.VQUIT):
		t.signal(unix.SIGQUIT, c)
		return
	case s.local(unix.ISIG) && s.is(c, unix.VSUSP):
		t.signal(unix.SIGTSTP, c)
		return
	}
	t.restart()
	switch {
	case c == '\r' && s.input(unix.IGNCR):
		return
	case c == '\r' && s.input(unix.ICRNL):
		c = '\n'
	case c == '\n' && s.input(unix.INLCR):
		c = '\r'
	}
	if s.isCanonical() && t.receiveEditing(c) {
		return
	}
	if s.local(unix.ECHO) {
		t.finishErasing()
		if c == '\n' {
			t.echo.raw('\n')
		} else {
			t.echoFirst()
			t.echoCharacter(c)
		}
	}
	t.putMarked(c)
}

// signal sends the signal of a key to the foreground, and drops input and output
// unless NOFLSH is set.
func (t *Terminal) signal(n unix.Signal, c byte) {
	if t.Group != 0 {
		t.host.SignalGroup(t.Group, n)
	}
	if !t.termios.local(unix.NOFLSH) {
		t.echo.reset()
		t.FlushOutput()
		t.input.reset()
		t.report(0, unix.TIOCPKT_FLUSHREAD)
	}
	if t.termios.input(unix.IXON) {
		t.start()
	}
	if t.termios.local(unix.ECHO) {
		t.echoCharacter(c)
	}
}

// receiveEditing takes a character of canonical input that edits or ends a line.
// It reports whether c was one.
func (t *Terminal) receiveEditing(c byte) bool {
	s := &t.termios
	echoes := s.local(unix.ECHO)
	switch {
	case s.is(c, unix.VERASE), s.is(c, unix.VKILL), s.extended(c, unix.VWERASE):
		t.erase(c)
	case s.extended(c, unix.VLNEXT):
		t.input.literal = true
		if echoes {
			t.finishErasing()
			if s.local(unix.ECHOCTL) {
				t.echo.raw('^')
				t.echo.raw('\b')
			}
		}
	case s.extended(c, unix.VREPRINT) && echoes:
		t.finishErasing()
		t.echoCharacter(c)
		t.echo.raw('\n')
		for _, x := range t.input.cells[t.input.lines:] {
			t.echoCharacter(x.c)
		}
	case c == '\n':
		if s.local(unix.ECHO | unix.ECHONL) {
			t.echo.raw('\n')
		}
		t.endLine(c)
	case s.is(c, unix.VEOF):
		t.endLine(disabled)
	case s.is(c, unix.VEOL), s.extended(c, unix.VEOL2):
		if echoes {
			t.echoFirst()
			t.echoCharacter(c)
		}
		if c == 0xff && s.input(unix.PARMRK) {
			t.put(c, false)
		}
		t.endLine(c)
	default:
		return false
	}
	return true
}

// endLine completes a line. The end of a line that is VEOF is no character of it.
func (t *Terminal) endLine(c byte) {
	t.put(c, true)
	t.input.lines = len(t.input.cells)
}
