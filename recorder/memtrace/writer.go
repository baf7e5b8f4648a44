package memtrace

import "github.com/heddle-dmt/heddle/recorder/trace"

// Writer encodes the engine's log and appends it to a trace. It is for one goroutine, and must be closed.
type Writer struct {
	*Forwarder
	encoder *Encoder
}

// NewWriter makes a Writer that appends to a stream of a trace.
func NewWriter(to *trace.Stream) *Writer {
	e := NewEncoder(to)
	return &Writer{NewForwarder(e), e}
}

// Close frees its memory, after a Flush. It can be used again.
func (w *Writer) Close() {
	w.Flush()
	w.Forwarder.Close()
	w.encoder.Close()
}
