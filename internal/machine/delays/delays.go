// Package delays records the stores of a run that other cores see late: those that wait in a store buffer while
// another thread runs (docs/traces.md).
package delays

import (
	"encoding/binary"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Log follows the stores that wait in buffers from quantum to quantum, and records
// each store that waited while another thread ran when it is committed. It is plain data;
// a nil Log does nothing.
type Log struct {
	to    *trace.Stream
	cores [][]waitingStore
}

// waitingStore is a store in a buffer.
type waitingStore struct {
	store   emu.Store
	thread  arch.ThreadID
	delayed bool // another thread has run since
}

// New makes the Log of a run that has not begun.
func New(w *trace.Writer, cores int) *Log {
	return &Log{to: w.Stream(trace.Delays, 0), cores: make([][]waitingStore, cores)}
}

// Committed compares the buffers with their state at the last call: stores that are no
// longer there were committed at the given point of the run, and decided reports that this was
// by decision.
func (d *Log) Committed(b *storebuffer.Cores, at event.Stamp, decided bool) {
	if d == nil {
		return
	}
	for k := range d.cores {
		core := arch.CoreID(k)
		stores, i := b.Stores(core), 0
		var now []waitingStore
		for _, w := range d.cores[k] {
			if i < len(stores) && stores[i] == w.store {
				now = append(now, w)
				i++
				continue
			}
			d.recordDelay(w, core, at, decided)
		}
		for ; i < len(stores); i++ {
			now = append(now, waitingStore{store: stores[i], thread: b.Thread(core)})
		}
		d.cores[k] = now
	}
}

// NoteRun notes that a thread runs on a core: stores that wait on other cores are delayed.
func (d *Log) NoteRun(core arch.CoreID) {
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

func (d *Log) recordDelay(w waitingStore, core arch.CoreID, at event.Stamp, decided bool) {
	if !w.delayed || w.store.Size == 0 {
		return
	}
	at.Thread, at.Core = w.thread, core
	trace.PutAt(d.to, &event.Delay{
		Stamp: at, Made: w.store.Made, Addr: w.store.Addr, Size: w.store.Size,
		Value: binary.LittleEndian.Uint64(w.store.Data[:]), Decided: decided,
	}, at)
}
