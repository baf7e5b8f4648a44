package tty

import (
	"math"

	"golang.org/x/sys/unix"
)

// chunkSize is how much one step of a read takes (iterate_tty_read of Linux): a
// read of less than VMIN bytes ends with it.
const chunkSize = 64

// tenth is the unit of VTIME, in nanoseconds.
const tenth = int64(100_000_000)

// hasInput reports whether a read would find something; poll asks for VMIN bytes
// if there is no time-out.
func (t *Terminal) hasInput(poll bool) bool {
	if t.termios.isCanonical() && !t.termios.isExternal() {
		return t.input.lines > 0
	}
	least := 1
	if poll && t.termios.Chars[unix.VTIME] == 0 && t.termios.Chars[unix.VMIN] > 0 {
		least = int(t.termios.Chars[unix.VMIN])
	}
	return len(t.input.cells) >= least
}

// Reading is a read that is under way.
type Reading struct {
	Data []byte // that it has taken

	room     int
	least    int
	between  int64 // time-out after each byte, in nanoseconds; 0: no time-out
	deadline int64
}

// Forever is a deadline that never comes.
const Forever = math.MaxInt64

// Begin begins a read of at most n bytes at a time, in nanoseconds.
func (t *Terminal) Begin(n int, now int64) *Reading {
	r := &Reading{room: n, deadline: Forever}
	if t.termios.isCanonical() {
		return r
	}
	wait := tenth * int64(t.termios.Chars[unix.VTIME])
	if r.least = int(t.termios.Chars[unix.VMIN]); r.least > 0 {
		r.between = wait
	} else {
		r.least, r.deadline = 1, now+wait
	}
	return r
}

// Deadline is when the read ends without more input.
func (r *Reading) Deadline() int64 { return r.deadline }

// Read takes the input that the read may have. It returns false if the read has to wait for
// input; EIO: the other end is closed. hungUp means that the description is of no
// use any more.
func (t *Terminal) Read(r *Reading, hungUp bool, now int64) (done bool, errno unix.Errno) {
	for len(r.Data) < min(r.room, chunkSize) {
		if t.packet && t.link.status != 0 {
			if len(r.Data) == 0 {
				r.Data = append(r.Data, t.link.status)
				t.link.status = 0
			}
			break
		}
		if !t.hasInput(false) {
			switch {
			case t.otherClosed:
				return true, unix.EIO
			case hungUp || r.deadline <= now:
				return true, 0
			}
			return false, 0
		}
		if t.take(r) {
			break
		}
		if r.between > 0 {
			r.deadline = now + r.between
		}
	}
	t.process()
	return true, 0
}

// take moves input to the read, and reports whether that completes it.
func (t *Terminal) take(r *Reading) bool {
	if t.termios.isCanonical() && !t.termios.isExternal() {
		if t.takeLine(r) {
			t.skipEnd()
		}
		return true
	}
	if t.packet && len(r.Data) == 0 {
		r.Data = append(r.Data, unix.TIOCPKT_DATA)
	}
	more := t.takeBytes(r, min(r.room, chunkSize))
	if len(r.Data) < r.least {
		return false
	}
	for more && len(r.Data) < r.room {
		more = t.takeBytes(r, min(r.room, len(r.Data)+chunkSize))
	}
	return true
}

// takeLine moves the rest of a line to the read, and reports whether the line goes
// beyond it.
func (t *Terminal) takeLine(r *Reading) bool {
	d := &t.input
	for len(r.Data) < r.room && d.lines > 0 {
		c := d.cells[0]
		d.cells, d.lines = d.cells[1:], d.lines-1
		if !c.last || c.c != disabled {
			r.Data = append(r.Data, c.c)
		}
		if c.last {
			return false
		}
	}
	return d.lines > 0
}

// skipEnd drops the end of a line that is no character, when the rest of the line
// has filled the read: otherwise the next read would take it for the end of input.
func (t *Terminal) skipEnd() {
	d := &t.input
	if d.cells[0].last && d.cells[0].c == disabled {
		d.cells, d.lines = d.cells[1:], d.lines-1
	}
}

// takeBytes moves bytes to the read, up to a length, and reports whether there are
// more.
func (t *Terminal) takeBytes(r *Reading, limit int) bool {
	d := &t.input
	n := min(len(d.cells), limit-len(r.Data))
	for _, c := range d.cells[:n] {
		r.Data = append(r.Data, c.c)
	}
	d.cells = append([]cell(nil), d.cells[n:]...)
	d.lines = max(0, d.lines-n)
	return len(d.cells) > 0
}

// Waiting is the number of bytes that can be read now (FIONREAD).
func (t *Terminal) Waiting() int {
	if !t.termios.isCanonical() || t.termios.isExternal() {
		return len(t.input.cells)
	}
	n := t.input.lines
	for _, c := range t.input.cells[:t.input.lines] {
		if c.last && c.c == disabled {
			n--
		}
	}
	return n
}

// Simulate takes a byte as if it had been typed (TIOCSTI).
func (t *Terminal) Simulate(c byte) {
	t.backlog = append(t.backlog, c)
	t.process()
}
