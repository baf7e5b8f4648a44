package tty

import "golang.org/x/sys/unix"

// Termios is the state of a terminal, struct termios2 of the kernel. TCGETS and
// its like know it without the speeds at its end.
type Termios struct {
	Input, Output, Control, Local uint32
	Line                          uint8
	Chars                         [charCount]uint8
	InputSpeed, OutputSpeed       uint32
}

// charCount is the number of special characters (NCCS of the kernel).
const charCount = 19

// OldSize is the size of struct termios: Termios without the speeds.
const OldSize = 36

// OldTermio is struct termio of System V, for TCGETA and its like.
type OldTermio struct {
	Input, Output, Control, Local uint16
	Line                          uint8
	Chars                         [8]uint8
	_                             uint8
}

const (
	baudExtra  = 0o10000 // CBAUDEX
	inputShift = 16      // IBSHIFT
)

// disabled is the value of a special character that stands for no character.
const disabled = 0

// standard is the state of a new terminal: ICRNL and IXON, OPOST and ONLCR, eight
// bits at 38400 baud, and all editing.
func standard() Termios {
	return Termios{
		Input: unix.ICRNL | unix.IXON, Output: unix.OPOST | unix.ONLCR, Control: unix.B38400 | unix.CS8 | unix.CREAD,
		Local: unix.ISIG | unix.ICANON | unix.ECHO | unix.ECHOE | unix.ECHOK | unix.ECHOCTL | unix.ECHOKE | unix.IEXTEN,
		Chars: [charCount]uint8{
			unix.VINTR: 'C' & 0x1f, unix.VQUIT: 0x1c, unix.VERASE: 0x7f, unix.VKILL: 'U' & 0x1f, unix.VEOF: 'D' & 0x1f,
			unix.VMIN: 1, unix.VSTART: 'Q' & 0x1f, unix.VSTOP: 'S' & 0x1f, unix.VSUSP: 'Z' & 0x1f,
			unix.VREPRINT: 'R' & 0x1f, unix.VDISCARD: 'O' & 0x1f, unix.VWERASE: 'W' & 0x1f, unix.VLNEXT: 'V' & 0x1f,
		},
		InputSpeed: 38400, OutputSpeed: 38400,
	}
}

// raw is the state of a master: bytes pass as they are.
func raw() Termios {
	t := standard()
	t.Input, t.Output, t.Local = 0, 0, 0
	return t
}

// speeds are the rates by their numbers in the control flags.
var speeds = [...]uint32{
	0, 50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200, 38400, 57600, 115200, 230400, 460800,
	500000, 576000, 921600, 1000000, 1152000, 1500000, 2000000, 2500000, 3000000, 3500000, 4000000,
}

// speed is the rate that control flags name; other is the one that BOTHER means.
func speed(flags, other uint32) uint32 {
	code := flags & unix.CBAUD
	switch {
	case code == unix.BOTHER:
		return other
	case code&baudExtra != 0:
		code = code&^baudExtra + 15
	}
	if int(code) >= len(speeds) {
		return 0
	}
	return speeds[code]
}

// FillSpeeds sets the speeds to the ones in the control flags.
func (t *Termios) FillSpeeds() {
	t.OutputSpeed = speed(t.Control, t.OutputSpeed)
	if input := t.Control >> inputShift & unix.CBAUD; input == 0 {
		t.InputSpeed = t.OutputSpeed
	} else {
		t.InputSpeed = speed(input, t.InputSpeed)
	}
}

// Old is the state as struct termio.
func (t *Termios) Old() OldTermio {
	o := OldTermio{
		Input: uint16(t.Input), Output: uint16(t.Output), Control: uint16(t.Control), Local: uint16(t.Local), Line: t.Line,
	}
	copy(o.Chars[:], t.Chars[:])
	return o
}

// SetOld takes over the values of a struct termio.
func (t *Termios) SetOld(o *OldTermio) {
	merge := func(to *uint32, low uint16) { *to = *to&^0xffff | uint32(low) }
	merge(&t.Input, o.Input)
	merge(&t.Output, o.Output)
	merge(&t.Control, o.Control)
	merge(&t.Local, o.Local)
	t.Line = o.Line
	copy(t.Chars[:], o.Chars[:])
}

func (t *Termios) input(flag uint32) bool { return t.Input&flag != 0 }

func (t *Termios) output(flag uint32) bool { return t.Output&flag != 0 }

func (t *Termios) local(flag uint32) bool { return t.Local&flag != 0 }

// is reports whether c is a special character that is in use.
func (t *Termios) is(c byte, which int) bool { return c != disabled && c == t.Chars[which] }

// extended reports whether c is a special character that works with IEXTEN alone.
func (t *Termios) extended(c byte, which int) bool { return t.local(unix.IEXTEN) && t.is(c, which) }

// isCanonical reports whether input is read by lines.
func (t *Termios) isCanonical() bool { return t.local(unix.ICANON) }

// isExternal reports whether the other end processes input (EXTPROC).
func (t *Termios) isExternal() bool { return t.local(unix.EXTPROC) }
