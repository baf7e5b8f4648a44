package decode

import (
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Threads assigns each part of a core's stream to a thread, by the
// context-switch sideband (H3, section 3.1): a switch says how many bytes of the
// stream come before it.
type Threads struct {
	d        *Decoder
	switches []event.Switch // to come
	thread   arch.ThreadID
	process  int32
}

// NewThreads makes a Threads of a decoder that has not begun, and the switches
// of its core in their order.
func NewThreads(d *Decoder, switches []event.Switch) *Threads {
	t := &Threads{d: d, switches: slices.Clone(switches), thread: arch.NoThread}
	d.switches = t.countAt
	return t
}

// countAt is how many instructions the core had run at the switch at an offset
// of the stream, or 0 if no switch is there. Where a thread runs in a circle without
// branches that are in the stream, nothing else says how often.
func (t *Threads) countAt(offset uint64) uint64 {
	for _, s := range t.switches {
		if s.Offset >= offset {
			if s.Offset == offset {
				return s.CoreInstructions
			}
			break
		}
	}
	return 0
}

// Next is the decoder's Next. Its steps are all of one thread, Thread.
func (t *Threads) Next(steps []Step) (n int, e Event, err error) {
	t.switchThread()
	return t.d.Next(steps)
}

// switchThread goes over to the thread of the next step: tracing is off where a core
// switches, so it is the one whose turn it is at the last packet read.
func (t *Threads) switchThread() {
	for len(t.switches) > 0 && t.switches[0].Offset <= t.d.packetAt {
		t.thread, t.process = t.switches[0].Thread, t.switches[0].Process
		t.switches = t.switches[1:]
	}
}

// Thread is the thread that the steps of the last Next are of, or NoThread if
// there were none yet.
func (t *Threads) Thread() arch.ThreadID { return t.thread }

// Process is its process.
func (t *Threads) Process() int32 { return t.process }
