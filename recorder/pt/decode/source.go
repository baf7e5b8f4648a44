package decode

import (
	"io"

	"github.com/heddle-dmt/heddle/recorder/pt"
)

// source is a window on the stream.
type source struct {
	in   io.Reader
	buf  []byte
	pos  int    // of the next packet in buf
	end  int    // of the bytes that have been read
	base uint64 // offset of buf[0] in the stream
	err  error  // why there is no more: io.EOF or a failure
}

const windowSize = 64 << 10

func newSource(in io.Reader) source { return source{in: in, buf: make([]byte, windowSize)} }

func (s *source) offset() uint64 { return s.base + uint64(s.pos) }

// windowBytes returns the bytes in the window: a whole packet, unless the stream ends.
func (s *source) windowBytes() []byte {
	if s.end-s.pos < pt.MaxPacket && s.err == nil {
		s.fillWindow()
	}
	return s.buf[s.pos:s.end]
}

// fillWindow moves the rest to the front of the window and reads until it has a whole
// packet.
func (s *source) fillWindow() {
	copy(s.buf, s.buf[s.pos:s.end])
	s.base += uint64(s.pos)
	s.end -= s.pos
	s.pos = 0
	for s.err == nil && s.end < pt.MaxPacket {
		var n int
		n, s.err = s.in.Read(s.buf[s.end:])
		s.end += n
	}
}

// seekPSB goes forward to the next PSB, and reports whether there is one.
func (s *source) seekPSB() bool {
	for {
		b := s.windowBytes()
		if i := pt.FindPSB(b); i >= 0 {
			s.pos += i
			return true
		}
		if s.err != nil {
			s.pos = s.end
			return false
		}
		s.pos = s.end - min(len(b), pt.MaxPacket-1)
	}
}
