package machine

import (
	"io"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errname"
	"github.com/heddle-dmt/heddle/internal/machine/streams"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// StreamFault is a failure of a standard stream on the host, an input of the run.
type StreamFault = streams.Fault

// newHostSide makes the host's side of the machine.
func (m *Machine) newHostSide() *streams.Host {
	c := &m.config
	return streams.New(streams.Config{
		Stdout: c.Stdout, Stderr: c.Stderr, Strace: c.Strace, EventLog: c.EventLog, Faults: c.Faults,
		Fixed: m.with.isolated || c.Replay != nil, Noted: m.recordFault,
	})
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
		list = append(list, StreamFault{FD: int(e.FD), Bytes: int64(e.Bytes), Errno: errname.Name(e.Errno)})
	}
	return list, nil
}

// watchedStdin is the standard input that the guest gets. A regular file is named in
// the manifest and not copied.
func (m *Machine) watchedStdin() io.Reader {
	in := m.config.Stdin
	if in == nil || namedFile(in) != nil {
		return in
	}
	var keep func([]byte)
	if m.trace != nil {
		to := m.trace.ByteStream(trace.Stdin, 0)
		keep = func(p []byte) { to.Append(p, event.Stamp{Thread: arch.NoThread}) }
	}
	return m.host.NewStdin(in, keep)
}
