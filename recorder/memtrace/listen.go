package memtrace

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Listener takes the engine's log as it is, in place of an encoder.
type Listener interface {
	// Memory takes a part of the log, which is valid during the call: the stamp of its begin, and the
	// engine's count of branches there.
	Memory(log *memlog.Buffer, start event.Stamp, counted uint64)
	// MemorySaved is called where a Writer ends a block.
	MemorySaved()
}

// Forwarder passes the engine's log to a Listener. It must be closed.
type Forwarder struct {
	to     Listener
	buffer *memlog.Buffer
}

// NewForwarder makes a Forwarder to a Listener.
func NewForwarder(to Listener) *Forwarder { return &Forwarder{to: to} }

// SharedInSnapshot marks that copies of a machine's state share the listener.
func (f *Forwarder) SharedInSnapshot() {}

// Take passes on the engine's log, as Writer.Take takes it.
func (f *Forwarder) Take(cpu emu.CPU, start event.Stamp, counted uint64) {
	if cpu.LoggedMemory() == 0 {
		return
	}
	if f.buffer == nil {
		f.buffer = memlog.NewBuffer()
	}
	cpu.SwapMemory(f.buffer)
	f.to.Memory(f.buffer, start, counted)
}

// Flush tells the listener.
func (f *Forwarder) Flush() { f.to.MemorySaved() }

// Close frees the buffer.
func (f *Forwarder) Close() {
	if f.buffer != nil {
		f.buffer.Close()
	}
	f.buffer = nil
}
