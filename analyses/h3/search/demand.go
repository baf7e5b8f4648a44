package search

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/h3/model"
)

// A write in a buffer can wait until something depends on its being in memory: a read of the same
// bytes, an event of its own thread that waits only for an empty buffer, or another write that must
// follow it. Every schedule can be changed to one in which each write reaches memory just before
// the first of these, and every read reads the same value; so commits that nothing demands are not
// tried (Mazurkiewicz, 1977).

// byteRange is bytes of memory.
type byteRange struct{ at, size int32 }

func (a byteRange) overlaps(b byteRange) bool { return a.at < b.at+b.size && b.at < a.at+a.size }

// commitDemand has the commits that the threads' next events demand, by thread and place in the
// buffer.
type commitDemand struct {
	*searcher
	s       *state
	asked   [][]bool
	pending [][2]int
}

// demandedWrites lists the writes that something asks for.
func (x *searcher) demandedWrites(s *state) [][]bool {
	d := &commitDemand{searcher: x, s: s, asked: make([][]bool, len(s.buffers))}
	for t := range s.buffers {
		d.asked[t] = make([]bool, len(s.buffers[t]))
	}
	for t, at := range s.nextEvents {
		if int(at) < len(x.Threads[t].Events) {
			d.demandForEvent(t, x.Threads[t].Events[at])
		}
	}
	for len(d.pending) > 0 {
		next := d.pending[len(d.pending)-1]
		d.pending = d.pending[:len(d.pending)-1]
		d.demandForWrite(next[0], next[1])
	}
	return d.asked
}

// demandForEvent demands the commits that a thread's next event needs, or may read.
func (d *commitDemand) demandForEvent(t int, id model.ID) {
	e := &d.Events[id]
	if e.Kind.DrainsWrites() && d.waitsOnlyForBuffer(d.s, id) {
		for i := range d.s.buffers[t] {
			d.demandWrite(t, i)
		}
	}
	if e.Kind.Reads() {
		if at, ok := d.targetAddress(d.s, e); ok {
			d.demandBytes(byteRange{at, int32(e.Size)}, t)
		}
	}
	d.demandWrites(d.before[id])
}

// demandWrites asks for writes that must be in memory.
func (d *commitDemand) demandWrites(all []model.ID) {
	for _, id := range all {
		t := d.Events[id].Thread
		if i := slices.IndexFunc(d.s.buffers[t], func(w write) bool { return w.id == id }); i >= 0 {
			d.demandWrite(t, i)
		}
	}
}

// demandBytes asks for the writes of other threads to some bytes.
func (d *commitDemand) demandBytes(b byteRange, except int) {
	for t, buffer := range d.s.buffers {
		for i, w := range buffer {
			if t != except && w.size > 0 && b.overlaps(byteRange{w.at, w.size}) {
				d.demandWrite(t, i)
			}
		}
	}
}

func (d *commitDemand) demandWrite(t, i int) {
	if !d.asked[t][i] {
		d.asked[t][i] = true
		d.pending = append(d.pending, [2]int{t, i})
	}
}

// demandForWrite demands the commits that precede, or may precede, a demanded write.
func (d *commitDemand) demandForWrite(t, i int) {
	w := d.s.buffers[t][i]
	own := byteRange{w.at, w.size}
	fenced := w.size == 0
	for k := i - 1; k >= 0; k-- {
		o := d.s.buffers[t][k]
		fenced = fenced || o.size == 0
		if fenced || d.model == model.TSO || own.overlaps(byteRange{o.at, o.size}) {
			d.demandWrite(t, k)
		}
	}
	if w.size > 0 {
		d.demandBytes(own, t)
	}
	d.demandWrites(d.before[w.id])
}
