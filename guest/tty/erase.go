package tty

import "golang.org/x/sys/unix"

// isContinuation reports whether a byte continues a character (IUTF8).
func (t *Terminal) isContinuation(c byte) bool { return t.termios.input(unix.IUTF8) && c&0xc0 == 0x80 }

// isControl reports whether a character has no width of its own.
func isControl(c byte) bool { return c < ' ' || c == 0x7f }

// isLower and isUpper take bytes for characters of ISO 8859-1, as the kernel does.
func isLower(c byte) bool { return c >= 'a' && c <= 'z' || c >= 0xdf && c != 0xf7 }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 0xc0 && c <= 0xde && c != 0xd7 }

// isWord reports whether a character is part of a word that VWERASE erases.
func isWord(c byte) bool { return c >= '0' && c <= '9' || c == '_' || isLower(c) || isUpper(c) }

// erase takes characters back of the line that is not complete: one, a word or
// all of them, as c says.
func (t *Terminal) erase(c byte) {
	s, d := &t.termios, &t.input
	if len(d.cells) == d.lines {
		return
	}
	kills := !s.is(c, unix.VERASE) && !s.extended(c, unix.VWERASE)
	if kills && !s.local(unix.ECHO) {
		d.cells = d.cells[:d.lines]
		return
	}
	if kills && !(s.local(unix.ECHOK) && s.local(unix.ECHOKE) && s.local(unix.ECHOE)) {
		d.cells = d.cells[:d.lines]
		t.finishErasing()
		t.echoCharacter(s.Chars[unix.VKILL])
		if s.local(unix.ECHOK) {
			t.echo.raw('\n')
		}
		return
	}
	one, word := s.is(c, unix.VERASE), !kills && !s.is(c, unix.VERASE)
	t.eraseCharacters(one, word)
	if len(d.cells) == d.lines && s.local(unix.ECHO) {
		t.finishErasing()
	}
}

// eraseCharacters erases one character, a word, or all.
func (t *Terminal) eraseCharacters(one, word bool) {
	d := &t.input
	inWord := false
	for len(d.cells) > d.lines {
		head := len(d.cells) - 1
		for t.isContinuation(d.cells[head].c) && head > d.lines {
			head--
		}
		c := d.cells[head].c
		if t.isContinuation(c) {
			return // no part of a character is erased alone
		}
		if word {
			if isWord(c) {
				inWord = true
			} else if inWord {
				return
			}
		}
		erased := d.cells[head:]
		d.cells = d.cells[:head]
		if t.termios.local(unix.ECHO) {
			t.echoErased(erased, one)
		}
		if one {
			return
		}
	}
}

// echoErased shows that a character was erased.
func (t *Terminal) echoErased(erased []cell, one bool) {
	s, c := &t.termios, erased[0].c
	switch {
	case s.local(unix.ECHOPRT):
		if !t.input.erasing {
			t.echo.raw('\\')
			t.input.erasing = true
		}
		t.echoCharacter(c)
		for _, x := range erased[1:] {
			t.echo.raw(x.c)
			t.echo.add(echoOp{kind: echoMoveBack})
		}
	case one && !s.local(unix.ECHOE):
		t.echoCharacter(s.Chars[unix.VERASE])
	case c == '\t':
		t.echoErasedTab()
	default:
		width := 0
		if !isControl(c) || s.local(unix.ECHOCTL) {
			width++
		}
		if isControl(c) && s.local(unix.ECHOCTL) {
			width++
		}
		for range width {
			t.echo.raw('\b')
			t.echo.raw(' ')
			t.echo.raw('\b')
		}
	}
}

// echoErasedTab has the echo go back to where the tab began: the columns
// before it, since another tab or the beginning of the line, are counted.
func (t *Terminal) echoErasedTab() {
	s := &t.termios
	columns, afterTab := uint8(0), false
	for i := len(t.input.cells) - 1; i >= t.input.lines && !afterTab; i-- {
		switch c := t.input.cells[i].c; {
		case c == '\t':
			afterTab = true
		case isControl(c):
			if s.local(unix.ECHOCTL) {
				columns += 2
			}
		case !t.isContinuation(c):
			columns++
		}
	}
	t.echo.add(echoOp{kind: echoEraseTab, columns: columns & 7, afterTab: afterTab})
}

// finishErasing ends the echo of erased characters (ECHOPRT).
func (t *Terminal) finishErasing() {
	if t.input.erasing {
		t.echo.raw('/')
		t.input.erasing = false
	}
}
