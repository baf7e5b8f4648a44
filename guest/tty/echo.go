package tty

import "golang.org/x/sys/unix"

// echoKind is a kind of echo.
type echoKind uint8

const (
	echoByte     echoKind = iota // a byte, as if the program had written it
	echoControl                  // a control character as ^X
	echoMoveBack                 // the byte before took no column
	echoMark                     // here a line of input begins
	echoEraseTab                 // go back over a tab
)

// echoOp is something to be shown of input.
type echoOp struct {
	kind     echoKind
	c        byte
	columns  uint8 // before the tab, modulo 8
	afterTab bool  // these are counted from another tab on
}

// maxEcho is how much echo waits while output is held back: beyond it, the oldest
// is dropped.
const maxEcho = 3808

// echo is the echo of input that was not shown yet.
type echo struct{ ops []echoOp }

func (e *echo) reset() { e.ops = nil }

func (e *echo) add(op echoOp) {
	if len(e.ops) >= maxEcho {
		e.ops = append([]echoOp(nil), e.ops[1:]...)
	}
	e.ops = append(e.ops, op)
}

func (e *echo) raw(c byte) { e.add(echoOp{kind: echoByte, c: c}) }

// echoCharacter shows a character, a control character as two if ECHOCTL is set.
func (t *Terminal) echoCharacter(c byte) {
	if t.termios.local(unix.ECHOCTL) && isControl(c) && c != '\t' {
		t.echo.add(echoOp{kind: echoControl, c: c})
	} else {
		t.echo.raw(c)
	}
}

// echoFirst notes the column at the beginning of a line of input.
func (t *Terminal) echoFirst() {
	if len(t.input.cells) == t.input.lines {
		t.echo.add(echoOp{kind: echoMark})
	}
}

// flushEcho shows the echo that waits, as far as output takes it.
func (t *Terminal) flushEcho() {
	done := 0
	var out outputBlock
	out.begin(t)
	for ; done < len(t.echo.ops); done++ {
		if !t.show(&out, &t.echo.ops[done]) {
			break
		}
	}
	out.end()
	t.echo.ops = append([]echoOp(nil), t.echo.ops[done:]...)
}

// show shows one piece of echo, if there is room.
func (t *Terminal) show(out *outputBlock, op *echoOp) bool {
	switch op.kind {
	case echoMoveBack:
		t.backColumns(1)
	case echoMark:
		t.lineColumn = t.column
	case echoControl:
		if !out.put('^', op.c^0o100) {
			return false
		}
		t.column += 2
	case echoEraseTab:
		columns := uint(op.columns)
		if !op.afterTab {
			columns += t.lineColumn
		}
		back := 8 - columns&7
		if !out.put([]byte("\b\b\b\b\b\b\b\b")[:back]...) {
			return false
		}
		t.backColumns(back)
	default:
		if t.termios.output(unix.OPOST) {
			return t.outputCharacter(out, op.c)
		}
		return out.put(op.c)
	}
	return true
}

func (t *Terminal) backColumns(n uint) { t.column -= min(n, t.column) }
