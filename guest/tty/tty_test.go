package tty

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// host notes the signals that are sent.
type host struct{ sent []unix.Signal }

func (h *host) SignalGroup(_ int32, n unix.Signal) { h.sent = append(h.sent, n) }

func open(t interface{ Fatal(...any) }) (master, slave *Terminal, h *host) {
	h = &host{}
	master, slave = NewPair(h, 3)
	if errno := slave.Opened(false); errno != unix.EIO {
		t.Fatal("a locked slave was opened", errno)
	}
	master.Lock(false)
	if master.Opened(false) != 0 || slave.Opened(false) != 0 {
		t.Fatal("not opened")
	}
	return master, slave, h
}

// readAll reads until nothing is left.
func readAll(x *Terminal) (all []byte, reads int) {
	for {
		r := x.Begin(1000, 0)
		done, _ := x.Read(r, false, 0)
		if !done || len(r.Data) == 0 {
			return all, reads
		}
		all = append(all, r.Data...)
		reads++
	}
}

func set(x *Terminal, input, output, local uint32) {
	s := x.Termios()
	s.Input, s.Output, s.Local = input, output, local
	x.SetTermios(s)
}

// TestBytesComeInOrder writes and reads at both ends, at random, without
// processing: all bytes come out as they went in.
func TestBytesComeInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		master, slave, _ := open(t)
		set(slave, 0, 0, 0)
		var in, out [2][]byte
		ends := [2]*Terminal{master, slave}
		read := func(i int) {
			b, _ := readAll(ends[i])
			out[1-i] = append(out[1-i], b...)
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			i := rapid.IntRange(0, 1).Draw(t, "end")
			if rapid.Bool().Draw(t, "reads") {
				read(i)
				continue
			}
			b := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 7).Draw(t, "bytes"), rapid.SampledFrom([]int{1, 100, 2000}).Draw(t, "times"))
			n := ends[i].Write(b)
			in[i] = append(in[i], b[:n]...)
			if n < len(b) && ends[i].Ready(0)&unix.EPOLLOUT != 0 {
				t.Fatal("a write was cut, and there is room")
			}
		}
		read(0)
		read(1)
		if !bytes.Equal(in[0], out[0]) || !bytes.Equal(in[1], out[1]) {
			t.Fatalf("%d and %d bytes went in, others came out", len(in[0]), len(in[1]))
		}
	})
}

// TestAnyInput types anything in any mode: bounds hold, and lines stay whole.
func TestAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		master, slave, _ := open(t)
		slave.Group = 5
		flags := rapid.Uint32Range(0, 1<<17-1)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				set(slave, flags.Draw(t, "input"), flags.Draw(t, "output"), flags.Draw(t, "local"))
			case 1:
				readAll(slave)
			case 2:
				readAll(master)
			case 3:
				slave.HoldOutput(rapid.Bool().Draw(t, "held"))
			case 4:
				slave.Write(rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "output"))
			default:
				special := rapid.SampledFrom([]byte("\x03\x04\x11\x12\x13\x15\x16\x17\x1a\x1c\x7f\n\r\tab _\xc3\xa4\xff\x00"))
				master.Write(bytes.Repeat(rapid.SliceOfN(special, 0, 50).Draw(t, "typed"), rapid.SampledFrom([]int{1, 1, 200}).Draw(t, "times")))
			}
			for _, x := range []*Terminal{master, slave} {
				d := &x.input
				if len(d.cells) > bufferSize+3 || d.lines > len(d.cells) || len(x.backlog) > backlogSize || len(x.echo.ops) > maxEcho {
					t.Fatalf("%d bytes, %d in lines, %d before, %d of echo", len(d.cells), d.lines, len(x.backlog), len(x.echo.ops))
				}
				if d.lines > 0 && x.termios.isCanonical() && !d.cells[d.lines-1].last {
					t.Fatal("lines end in the middle of one")
				}
			}
		}
	})
}

func TestKeysSendSignals(t *testing.T) {
	master, slave, h := open(t)
	master.Write([]byte("\x03"))
	slave.Group = 7
	master.Write([]byte("lost\x03\x1c\x1akept\n"))
	want := []unix.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP}
	if len(h.sent) != 3 || h.sent[0] != want[0] || h.sent[1] != want[1] || h.sent[2] != want[2] {
		t.Errorf("signals %v, want %v", h.sent, want)
	}
	if got, _ := readAll(slave); string(got) != "kept\n" {
		t.Errorf("read %q", got)
	}
	slave.SetSize(WindowSize{Rows: 1})
	slave.SetSize(WindowSize{Rows: 1})
	if len(h.sent) != 4 || h.sent[3] != unix.SIGWINCH {
		t.Errorf("after a new size: %v", h.sent)
	}
}

// TestTimeouts follows the four cases of termios(3).
func TestTimeouts(t *testing.T) {
	master, slave, _ := open(t)
	for _, c := range []struct {
		min, time uint8
		deadline  int64 // at the beginning
		after     int64 // after a byte has come at time 50
	}{
		{0, 0, 0, 0}, {0, 3, 3 * tenth, 0}, {2, 0, Forever, Forever}, {2, 3, Forever, 50 + 3*tenth},
	} {
		s := slave.Termios()
		s.Local &^= unix.ICANON | unix.ECHO
		s.Chars[unix.VMIN], s.Chars[unix.VTIME] = c.min, c.time
		slave.SetTermios(s)
		r := slave.Begin(10, 0)
		done, _ := slave.Read(r, false, 0)
		if r.Deadline() != c.deadline || done != (c.deadline == 0) {
			t.Errorf("MIN %d TIME %d: deadline %d, done %v", c.min, c.time, r.Deadline(), done)
		}
		if done {
			continue
		}
		master.Write([]byte("x"))
		if done, _ = slave.Read(r, false, 50); done != (c.min == 0) || !done && r.Deadline() != c.after {
			t.Errorf("MIN %d TIME %d, after a byte: deadline %d, done %v", c.min, c.time, r.Deadline(), done)
		}
		if done, _ = slave.Read(r, false, Forever); !done || string(r.Data) != "x" {
			t.Errorf("MIN %d TIME %d, at the end: %q, done %v", c.min, c.time, r.Data, done)
		}
	}
}

func TestClosing(t *testing.T) {
	master, slave, _ := open(t)
	slave.Write([]byte("last"))
	if slave.Closed() {
		t.Error("a slave counts as a master")
	}
	if got, _ := readAll(master); string(got) != "last" {
		t.Errorf("read %q", got)
	}
	if done, errno := master.Read(master.Begin(1, 0), false, 0); !done || errno != unix.EIO || master.Ready(0)&unix.EPOLLHUP == 0 {
		t.Errorf("read of a master alone: %v, %v, ready %x", done, errno, master.Ready(0))
	}
	if slave.Opened(false) != 0 || master.Ready(0)&unix.EPOLLHUP != 0 {
		t.Error("the slave was opened again, and the master does not know")
	}
	if !master.Closed() {
		t.Error("the last description of a master counts as another")
	}
	slave.HangUp()
	if slave.Ready(0)&unix.EPOLLHUP == 0 || slave.Hangups() != 1 {
		t.Error("the slave works after a hang-up")
	}
	if errno := slave.Opened(true); errno != unix.EIO {
		t.Errorf("the slave of a master that is gone is opened: %v", errno)
	}
}

func TestSpeeds(t *testing.T) {
	for _, c := range []struct{ control, input, output uint32 }{
		{unix.B38400, 38400, 38400},
		{unix.B9600, 9600, 9600},
		{unix.B115200, 115200, 115200},
		{unix.B4000000, 4000000, 4000000},
		{unix.BOTHER, 77, 77},
		{unix.B9600 | unix.B300<<inputShift, 300, 9600},
		{unix.B0, 0, 0},
	} {
		s := Termios{Control: c.control, InputSpeed: 5, OutputSpeed: 77}
		if s.FillSpeeds(); s.InputSpeed != c.input || s.OutputSpeed != c.output {
			t.Errorf("control %o: %d and %d, want %d and %d", c.control, s.InputSpeed, s.OutputSpeed, c.input, c.output)
		}
	}
}

func TestOldTermio(t *testing.T) {
	s := standard()
	s.Local |= 1 << 20
	old := s.Old()
	old.Input = 0
	old.Chars[unix.VINTR] = 9
	s.SetOld(&old)
	if s.Input != 0 || s.Chars[unix.VINTR] != 9 || s.Local>>20 != 1 || s.Chars[unix.VWERASE] == 0 {
		t.Errorf("%+v", s)
	}
}

func TestCopiesAreIndependent(t *testing.T) {
	type pair struct{ Master, Slave *Terminal }
	master, slave, _ := open(t)
	master.Write([]byte("part"))
	n := deepcopy.Copy(deepcopy.New(), pair{master, slave})
	n.Master.Write([]byte("ial\n"))
	if got, _ := readAll(n.Slave); string(got) != "partial\n" {
		t.Errorf("the copy reads %q", got)
	}
	if got, _ := readAll(slave); len(got) != 0 {
		t.Errorf("the original reads %q", got)
	}
	if got, _ := readAll(n.Master); string(got) != "partial\r\n" {
		t.Errorf("the copy shows %q", got)
	}
}
