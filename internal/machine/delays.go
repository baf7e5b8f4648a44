package machine

import (
	"encoding/binary"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/uc"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// delayLog follows the stores that wait in buffers from slice to slice, and records
// those that waited while another thread ran, once they are committed. It is plain
// data; a nil delayLog does nothing.
type delayLog struct {
	to    *trace.Stream
	cores [][]waiting
}

// waiting is a store in a buffer.
type waiting struct {
	store   uc.Store
	thread  arch.ThreadID
	delayed bool // another thread has run since
}

func newDelayLog(w *trace.Writer, cores int) *delayLog {
	return &delayLog{to: w.Stream(trace.Delays, 0), cores: make([][]waiting, cores)}
}

// look compares the buffers with what they were: what is gone was committed at the
// place in the run. Decided tells that it was by decision.
func (d *delayLog) look(b *storebuffer.Cores, at event.Stamp, decided bool) {
	if d == nil {
		return
	}
	for k := range d.cores {
		core := arch.CoreID(k)
		stores, i := b.Stores(core), 0
		var now []waiting
		for _, w := range d.cores[k] {
			if i < len(stores) && stores[i] == w.store {
				now = append(now, w)
				i++
				continue
			}
			d.record(w, core, at, decided)
		}
		for ; i < len(stores); i++ {
			now = append(now, waiting{store: stores[i], thread: b.Thread(core)})
		}
		d.cores[k] = now
	}
}

// others notes that a thread runs on a core: it does not see what waits elsewhere.
func (d *delayLog) others(core arch.CoreID) {
	if d == nil {
		return
	}
	for k := range d.cores {
		for i := range d.cores[k] {
			if arch.CoreID(k) != core {
				d.cores[k][i].delayed = true
			}
		}
	}
}

func (d *delayLog) record(w waiting, core arch.CoreID, at event.Stamp, decided bool) {
	if !w.delayed || w.store.Size == 0 {
		return
	}
	at.Thread, at.Core = w.thread, core
	trace.PutAt(d.to, &event.Delay{
		Stamp: at, Made: w.store.Made, Addr: w.store.Addr, Size: w.store.Size,
		Value: binary.LittleEndian.Uint64(w.store.Data[:]), Decided: decided,
	}, at)
}

// recordDelays compares the buffers with what they were, at a time of the core that runs.
func (m *Machine) recordDelays(now arch.Cycles, decided bool) {
	s := m.state
	if s.recording.delays == nil {
		return
	}
	at := s.recording.rec.At()
	at.Time = now
	s.recording.delays.look(s.stores.(*storebuffer.ByStore).Cores, at, decided)
}
