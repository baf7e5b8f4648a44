package syncops

import (
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// takeAtomics records the atomic instructions and fences that the thread
// executed since the last look, up to the moment of at.
func (r *Recognizer) takeAtomics(t *thread, at *event.Stamp) {
	a := &r.atomic
	for r.host.engine.TakeAtomic(a) {
		e := &r.scratch
		*e = event.Sync{
			Stamp: *at, Op: event.OpAtomic, PC: a.PC, Addr: a.Addr, Value: uint64(a.Size), Peer: arch.NoThread,
			Effects: event.Acquire | event.Release,
		}
		e.Instructions -= a.Before
		e.Time -= min(e.Time, a.Cycles)
		if a.Size == 0 {
			e.Op, e.Effects = event.OpFence, 0
		} else {
			e.Object = r.objectAt(t, &e.Stamp, a.Addr, false).id
		}
		if t.space.ofLibrary(t.space.imageAt(a.PC)) {
			e.Effects |= event.Inner
		}
		r.emit(e)
	}
}
