package machine

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errname"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// StreamFault is a failure of a standard stream on the host, as the guest sees it: the
// first Bytes bytes pass, and every read or write after them fails. It is an input of
// the run, like the bytes of standard input.
type StreamFault struct {
	FD    int          `json:"fd"` // 0, 1 or 2
	Bytes int64        `json:"bytes"`
	Errno errname.Name `json:"errno"`
}

// hostSide is where the machine meets the host: the streams and logs that it
// was configured with. Snapshots share it.
type hostSide struct {
	stdout, stderr   io.Writer
	strace, eventLog io.Writer
	err              error // the first failure that the guest does not see

	// faults are the known failures of the streams, by descriptor. They hold from
	// a position in the stream on, so that a restored snapshot meets them again.
	faults [3]*StreamFault
	// fixed reports that there are no others: the run repeats another one.
	fixed bool
	// seen are the failures that the guest has seen, and noteFault is called once for each.
	seen      [3]bool
	noteFault func(StreamFault)

	once    bool     // output from before a snapshot was restored is not written again
	written [3]int64 // bytes, by descriptor
}

func newHostSide(c *Config, isolated bool) *hostSide {
	h := &hostSide{
		stdout: c.Stdout, stderr: c.Stderr, strace: c.Strace, eventLog: c.EventLog,
		fixed: isolated || c.Replay != nil,
	}
	for _, f := range c.Faults {
		h.faults[f.FD] = &f
	}
	return h
}

// BoundInSnapshot marks that copies of the machine's state share it.
func (h *hostSide) BoundInSnapshot() {}

// writeStream writes the guest's bytes to descriptor 1 or 2 after the first at bytes. It returns
// how many the host took, and the error if that is not all.
func (h *hostSide) writeStream(fd int, p []byte, at int64) (int, unix.Errno) {
	taken, f := p, h.faults[fd]
	if f != nil {
		taken = p[:min(max(0, f.Bytes-at), int64(len(p)))]
	}
	from := int64(0) // the host has the bytes before
	if h.once {
		from = min(max(0, h.written[fd]-at), int64(len(taken)))
	}
	n, err := h.writeHost(fd, taken[from:])
	end := at + from + int64(n)
	h.written[fd] = max(h.written[fd], end)
	switch {
	case err == nil:
	case h.fixed || f != nil:
		h.keepOutputError(err)
	default:
		h.faults[fd] = &StreamFault{FD: fd, Bytes: end, Errno: errname.OfHost(err)}
		taken = taken[:from+int64(n)]
	}
	if len(taken) == len(p) {
		return len(p), 0
	}
	h.noteSeen(fd)
	return len(taken), unix.Errno(h.faults[fd].Errno)
}

// writeHost writes to the host, and returns how many bytes it took.
func (h *hostSide) writeHost(fd int, p []byte) (int, error) {
	w := h.stdout
	if fd == 2 {
		w = h.stderr
	}
	if w == nil || len(p) == 0 {
		return len(p), nil
	}
	n, err := w.Write(p)
	return min(max(0, n), len(p)), err
}

// noteSeen notes that the guest sees a failure.
func (h *hostSide) noteSeen(fd int) {
	if !h.seen[fd] {
		h.seen[fd] = true
		h.noteFault(*h.faults[fd])
	}
}

// seenFaults lists the failures that the guest has seen.
func (h *hostSide) seenFaults() (list []StreamFault) {
	for fd, seen := range h.seen {
		if seen {
			list = append(list, *h.faults[fd])
		}
	}
	return list
}

func (h *hostSide) printLine(w io.Writer, format string, args ...any) {
	_, err := fmt.Fprintf(w, format, args...)
	h.keepOutputError(err)
}

// isInvalid reports whether a run that repeats another one lacks input, or output that the guest
// regards as written: its continuation would show nothing.
func (h *hostSide) isInvalid() bool { return h.fixed && h.err != nil }

// keepOutputError keeps a failure to write that the guest does not see.
func (h *hostSide) keepOutputError(err error) {
	if err != nil {
		h.keepError(errOutput.Wrap(err))
	}
}

// keepError keeps the first failure that becomes the error of the whole run.
func (h *hostSide) keepError(err error) {
	if h.err == nil {
		h.err = err
	}
}

// recordFault puts a failure of a stream into the trace.
func (m *Machine) recordFault(f StreamFault) {
	if m.trace == nil {
		return
	}
	e := event.StreamFault{FD: int32(f.FD), Bytes: uint64(f.Bytes), Errno: uint32(f.Errno)}
	at := event.Stamp{Thread: arch.NoThread}
	if r := m.state.recording.rec; r != nil {
		at = r.At()
	}
	e.Stamp = at
	trace.PutAt(m.trace.Stream(trace.Faults, 0), &e, at)
	m.trace.Flush() // a recorder that is killed leaves no decision that depends on it without it
}

// recordedFaults are the failures of streams in a trace.
func recordedFaults(r *trace.Reader) (list []StreamFault, err error) {
	for e, err := range trace.Get[event.StreamFault](r, trace.Key{Kind: trace.Faults}, trace.Where{}) {
		if err != nil {
			return nil, err
		}
		list = append(list, StreamFault{int(e.FD), int64(e.Bytes), errname.Name(e.Errno)})
	}
	return list, nil
}

// stdinTap is standard input that is no regular file: it keeps the bytes in the trace, and fails
// where the host fails, or where an earlier run has failed.
type stdinTap struct {
	from  io.Reader
	to    *trace.Stream // nil unless the run is recorded
	host  *hostSide
	bytes int64
}

// Read implements io.Reader.
func (s *stdinTap) Read(p []byte) (int, error) {
	if f := s.host.faults[0]; f != nil {
		p = p[:min(max(0, f.Bytes-s.bytes), int64(len(p)))]
		if len(p) == 0 {
			s.host.noteSeen(0)
			return 0, unix.Errno(f.Errno)
		}
	}
	n, err := s.from.Read(p)
	s.bytes += int64(n)
	if s.to != nil {
		s.to.Append(p[:n], event.Stamp{Thread: arch.NoThread})
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	if s.host.fixed {
		// The bytes of the run that is repeated cannot be read.
		s.host.keepError(err)
		return n, unix.EIO
	}
	s.host.faults[0] = &StreamFault{FD: 0, Bytes: s.bytes, Errno: errname.OfHost(err)}
	s.host.noteSeen(0)
	return n, unix.Errno(s.host.faults[0].Errno)
}

// watchedStdin is the standard input that the guest gets. A regular file is named in
// the manifest and not copied.
func (m *Machine) watchedStdin() io.Reader {
	in := m.config.Stdin
	if in == nil || namedFile(in) != nil {
		return in
	}
	tap := &stdinTap{from: in, host: m.host}
	if m.trace != nil {
		tap.to = m.trace.ByteStream(trace.Stdin, 0)
	}
	return tap
}
