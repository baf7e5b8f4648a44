package tty

import "golang.org/x/sys/unix"

// outputBlock collects bytes for the other end.
type outputBlock struct {
	t     *Terminal
	room  int
	bytes []byte
}

func (o *outputBlock) begin(t *Terminal) { o.t, o.room, o.bytes = t, t.writeRoom(), nil }

// put adds bytes, all or none of them.
func (o *outputBlock) put(b ...byte) bool {
	if len(o.bytes)+len(b) > o.room {
		return false
	}
	o.bytes = append(o.bytes, b...)
	return true
}

// end gives the bytes to the other end.
func (o *outputBlock) end() {
	if len(o.bytes) > 0 {
		o.t.send(o.bytes)
	}
}

// outputCharacter processes a character of output (OPOST). It reports whether
// there was room for the result.
func (t *Terminal) outputCharacter(out *outputBlock, c byte) bool {
	if len(out.bytes) >= out.room {
		return false
	}
	s := &t.termios
	column, lineColumn := t.column, t.lineColumn
	var b []byte
	switch {
	case c == '\n' && s.output(unix.ONLCR):
		b, column, lineColumn = []byte("\r\n"), 0, 0
	case c == '\n':
		if s.output(unix.ONLRET) {
			column = 0
		}
		b, lineColumn = []byte{c}, column
	case c == '\r' && s.output(unix.ONOCR) && column == 0:
	case c == '\r' && s.output(unix.OCRNL):
		if s.output(unix.ONLRET) {
			column, lineColumn = 0, 0
		}
		b = []byte{'\n'}
	case c == '\r':
		b, column, lineColumn = []byte{c}, 0, 0
	case c == '\t':
		spaces := 8 - column&7
		b = []byte{c}
		if s.Output&unix.TABDLY == unix.XTABS {
			b = []byte("        ")[:spaces]
		}
		column += spaces
	case c == '\b':
		b, column = []byte{c}, column-min(1, column)
	default:
		if s.output(unix.OLCUC) && isLower(c) {
			c -= 'a' - 'A'
		}
		if !isControl(c) && !t.isContinuation(c) {
			column++
		}
		b = []byte{c}
	}
	if !out.put(b...) {
		return false
	}
	t.column, t.lineColumn = column, lineColumn
	return true
}

// Write writes as much as the other end takes now, and returns how much that is.
func (t *Terminal) Write(p []byte) int {
	t.flushEcho()
	if !t.termios.output(unix.OPOST) {
		return t.send(p)
	}
	done := 0
	for done < len(p) {
		var out outputBlock
		out.begin(t)
		before := done
		for done < len(p) && t.outputCharacter(&out, p[done]) {
			done++
		}
		out.end()
		if done == before {
			break
		}
	}
	return done
}
