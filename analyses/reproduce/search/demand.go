package search

import (
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/model"
)

// A write that waits in a buffer can wait on until something depends on its being in
// memory: a read of the same bytes, an event of its own thread that waits for nothing but
// an empty buffer, or another write that must come behind it. Every schedule can be
// changed to one that has each write reach memory just before the first of these, without
// a read that reads anything else; so writes that nothing has asked for are not tried
// (Mazurkiewicz, 1977).

// span is bytes of memory.
type span struct{ at, size int32 }

func (a span) meets(b span) bool { return a.at < b.at+b.size && b.at < a.at+a.size }

// demand is what the threads' next events ask for, by thread and place in the buffer.
type demand struct {
	*searcher
	s     *state
	asked [][]bool
	todo  [][2]int
}

// demanded lists the writes that something asks for.
func (x *searcher) demanded(s *state) [][]bool {
	d := &demand{searcher: x, s: s, asked: make([][]bool, len(s.buffers))}
	for t := range s.buffers {
		d.asked[t] = make([]bool, len(s.buffers[t]))
	}
	for t, at := range s.at {
		if int(at) < len(x.Threads[t].Events) {
			d.event(t, x.Threads[t].Events[at])
		}
	}
	for len(d.todo) > 0 {
		next := d.todo[len(d.todo)-1]
		d.todo = d.todo[:len(d.todo)-1]
		d.write(next[0], next[1])
	}
	return d.asked
}

// event asks for what a thread's next event needs, or may read.
func (d *demand) event(t int, id model.ID) {
	e := &d.Events[id]
	if e.Kind.Full() && d.due(d.s, id) {
		for i := range d.s.buffers[t] {
			d.ask(t, i)
		}
	}
	if e.Kind.Reads() {
		if at, ok := d.target(d.s, e); ok {
			d.bytes(span{at, int32(e.Size)}, t)
		}
	}
	d.events(d.before[id])
}

// events asks for writes that must be in memory.
func (d *demand) events(all []model.ID) {
	for _, id := range all {
		t := d.Events[id].Thread
		if i := slices.IndexFunc(d.s.buffers[t], func(w write) bool { return w.id == id }); i >= 0 {
			d.ask(t, i)
		}
	}
}

// bytes asks for the writes of other threads to some bytes.
func (d *demand) bytes(b span, except int) {
	for t, buffer := range d.s.buffers {
		for i, w := range buffer {
			if t != except && w.size > 0 && b.meets(span{w.at, w.size}) {
				d.ask(t, i)
			}
		}
	}
}

func (d *demand) ask(t, i int) {
	if !d.asked[t][i] {
		d.asked[t][i] = true
		d.todo = append(d.todo, [2]int{t, i})
	}
}

// write asks for what a write that is asked for comes behind, or may.
func (d *demand) write(t, i int) {
	w := d.s.buffers[t][i]
	own := span{w.at, w.size}
	fenced := w.size == 0
	for k := i - 1; k >= 0; k-- {
		o := d.s.buffers[t][k]
		fenced = fenced || o.size == 0
		if fenced || d.model == model.TSO || own.meets(span{o.at, o.size}) {
			d.ask(t, k)
		}
	}
	if w.size > 0 {
		d.bytes(own, t)
	}
	d.events(d.before[w.id])
}
