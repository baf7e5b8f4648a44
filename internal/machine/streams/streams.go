// Package streams is where a machine meets the host: standard input, output and error and the logs,
// and the failures of the former, which are inputs of a run.
package streams

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/internal/errname"
	"github.com/heddle-dmt/heddle/internal/errs"
)

var errOutput = errs.Define("output-cannot-be-written",
	"the guest's output cannot be written",
	"The host refused to take standard output, standard error or a log.",
	"Check the disk or the program at the other end of the pipe.")

// Fault is a failure of a standard stream on the host, as the guest sees it: the
// first Bytes bytes pass, and every read or write after them fails. It is an input of
// the run, like the bytes of standard input.
type Fault struct {
	FD    int          `json:"fd"` // 0, 1 or 2
	Bytes int64        `json:"bytes"`
	Errno errname.Name `json:"errno"`
}

// Host is where the machine meets the host: the streams and logs that it
// was configured with. Snapshots share it.
type Host struct {
	stdout, stderr io.Writer
	// Strace and EventLog are nil unless they are wanted.
	Strace, EventLog io.Writer
	err              error // the first failure that the guest does not see

	// faults are the known failures of the streams, by descriptor. They hold from
	// a position in the stream on, so that a restored snapshot meets them again.
	faults [3]*Fault
	// fixed reports that there are no others: the run repeats another one.
	fixed bool
	// seen are the failures that the guest has seen, and noteFault is called once for each.
	seen      [3]bool
	noteFault func(Fault)

	// Once: output from before a snapshot was restored is not written again
	Once    bool
	written [3]int64 // bytes, by descriptor
}

// Config is what a machine says about its streams and logs. Fixed means that the run repeats another
// one and has no failures but the known ones. Noted is called when the guest sees a failure.
type Config struct {
	Stdout, Stderr   io.Writer
	Strace, EventLog io.Writer
	Faults           []Fault
	Fixed            bool
	Noted            func(Fault)
}

// New makes the host's side of a machine.
func New(c Config) *Host {
	h := &Host{stdout: c.Stdout, stderr: c.Stderr, Strace: c.Strace, EventLog: c.EventLog, fixed: c.Fixed, noteFault: c.Noted}
	for _, f := range c.Faults {
		h.faults[f.FD] = &f
	}
	return h
}

// BoundInSnapshot marks that copies of the machine's state share it.
func (h *Host) BoundInSnapshot() {}

// WriteStream writes the guest's bytes to descriptor 1 or 2 after the first at bytes. It returns
// how many the host took, and the error if that is not all.
func (h *Host) WriteStream(fd int, p []byte, at int64) (int, unix.Errno) {
	taken, f := p, h.faults[fd]
	if f != nil {
		taken = p[:min(max(0, f.Bytes-at), int64(len(p)))]
	}
	from := int64(0) // the host has the bytes before
	if h.Once {
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
		h.faults[fd] = &Fault{FD: fd, Bytes: end, Errno: errname.OfHost(err)}
		taken = taken[:from+int64(n)]
	}
	if len(taken) == len(p) {
		return len(p), 0
	}
	h.noteSeen(fd)
	return len(taken), unix.Errno(h.faults[fd].Errno)
}

// writeHost writes to the host, and returns how many bytes it took.
func (h *Host) writeHost(fd int, p []byte) (int, error) {
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
func (h *Host) noteSeen(fd int) {
	if !h.seen[fd] {
		h.seen[fd] = true
		h.noteFault(*h.faults[fd])
	}
}

// SeenFaults lists the failures that the guest has seen.
func (h *Host) SeenFaults() (list []Fault) {
	for fd, seen := range h.seen {
		if seen {
			list = append(list, *h.faults[fd])
		}
	}
	return list
}

func (h *Host) PrintLine(w io.Writer, format string, args ...any) {
	_, err := fmt.Fprintf(w, format, args...)
	h.keepOutputError(err)
}

// IsInvalid reports whether a run that repeats another one lacks input, or output that the guest
// regards as written: its continuation would show nothing.
func (h *Host) IsInvalid() bool { return h.fixed && h.err != nil }

// keepOutputError keeps a failure to write that the guest does not see.
func (h *Host) keepOutputError(err error) {
	if err != nil {
		h.KeepError(errOutput.Wrap(err))
	}
}

// KeepError keeps the first failure that becomes the error of the whole run.
func (h *Host) KeepError(err error) {
	if h.err == nil {
		h.err = err
	}
}

// Err returns the first failure that becomes the error of the whole run, or nil.
func (h *Host) Err() error { return h.err }

// FaultOf returns the known failure of a stream.
func (h *Host) FaultOf(fd int) *Fault { return h.faults[fd] }

// Stdin is standard input that is no regular file: it keeps the bytes, and fails where the host
// fails, or where an earlier run has failed.
type Stdin struct {
	from  io.Reader
	keep  func([]byte) // nil unless the run is recorded
	host  *Host
	bytes int64
}

// NewStdin makes the standard input of a host's stream. Keep, unless nil, gets all bytes.
func (h *Host) NewStdin(from io.Reader, keep func([]byte)) *Stdin {
	return &Stdin{from: from, keep: keep, host: h}
}

// Read implements io.Reader.
func (s *Stdin) Read(p []byte) (int, error) {
	if f := s.host.faults[0]; f != nil {
		p = p[:min(max(0, f.Bytes-s.bytes), int64(len(p)))]
		if len(p) == 0 {
			s.host.noteSeen(0)
			return 0, unix.Errno(f.Errno)
		}
	}
	n, err := s.from.Read(p)
	s.bytes += int64(n)
	if s.keep != nil {
		s.keep(p[:n])
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	if s.host.fixed {
		// The bytes of the run that is repeated cannot be read.
		s.host.KeepError(err)
		return n, unix.EIO
	}
	s.host.faults[0] = &Fault{FD: 0, Bytes: s.bytes, Errno: errname.OfHost(err)}
	s.host.noteSeen(0)
	return n, unix.Errno(s.host.faults[0].Errno)
}
