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
	// BeginRun is called before the engine runs, from a stamp and a count of branches on, and may return what
	// takes the log meanwhile; Memory is called afterwards. An engine may have all in the log all the same.
	BeginRun(start event.Stamp, counted uint64) memlog.Consumer
	// MemorySaved is called where a Writer ends a block.
	MemorySaved()
}

// Forwarder passes the engine's log to a Listener. It must be closed.
type Forwarder struct {
	to     Listener
	buffer *memlog.Buffer
	passed bool // to a consumer
}

// passer is an engine that can pass its log to a consumer.
type passer interface{ PassMemory(to memlog.Consumer) }

// NewForwarder makes a Forwarder to a Listener.
func NewForwarder(to Listener) *Forwarder { return &Forwarder{to: to} }

// SharedInSnapshot marks that copies of a machine's state share the listener.
func (f *Forwarder) SharedInSnapshot() {}

// Take passes on the engine's log, as Writer.Take takes it.
func (f *Forwarder) Take(cpu emu.CPU, start event.Stamp, counted uint64) {
	if cpu.LoggedMemory() == 0 && !f.passed {
		return
	}
	if f.passed {
		cpu.(passer).PassMemory(nil)
		f.passed = false
	}
	if f.buffer == nil {
		f.buffer = memlog.NewBuffer()
	}
	cpu.SwapMemory(f.buffer)
	f.to.Memory(f.buffer, start, counted)
}

// BeginRun asks the listener for a consumer of the log of the run that begins.
func (f *Forwarder) BeginRun(cpu emu.CPU, start event.Stamp, counted uint64) {
	if p, passes := cpu.(passer); passes {
		p.PassMemory(f.to.BeginRun(start, counted))
		f.passed = true
	}
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
