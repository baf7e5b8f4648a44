package trace

import (
	"encoding/binary"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Mark is a place in a trace that is being written, to return to.
type Mark struct {
	timeline uint32
	streams  []place
}

// place is a position in a stream: how many chunks are complete, how many bytes
// before compression are in the open one, and how many records there were in all.
type place struct {
	key     Key
	bytes   bool
	ordinal uint64
	inChunk uint64
	total   uint64
}

// SharedInSnapshot marks that a Mark never changes.
func (*Mark) SharedInSnapshot() {}

// Mark returns the present place in all streams.
func (w *Writer) Mark() *Mark {
	m := &Mark{timeline: w.timeline}
	for _, s := range w.order {
		m.streams = append(m.streams, place{s.key, s.bytes, s.ordinal, uint64(s.pendingBytes()), s.total})
	}
	return m
}

// permanent reports whether a kind of stream is kept in all timelines: bytes that were
// read from standard input are not read again after a return.
func permanent(k Kind) bool { return k == timelines || k == Stdin || k == ManifestK }

// Return begins a new timeline that continues from a mark: for readers, the records
// appended since do not exist.
func (w *Writer) Return(m *Mark) {
	if w.listener != nil {
		panic("bug: a run whose events are passed on has returned to a snapshot")
	}
	w.Flush()
	w.last++
	record := binary.AppendUvarint(nil, uint64(w.last))
	record = binary.AppendUvarint(record, uint64(m.timeline))
	for _, p := range m.streams {
		record = binary.AppendUvarint(record, uint64(len(p.key.Kind)))
		record = append(record, p.key.Kind...)
		for _, v := range []uint64{uint64(p.key.ID), p.ordinal, p.inChunk, p.total} {
			record = binary.AppendUvarint(record, v)
		}
	}
	w.timeline = w.last
	for _, s := range w.order {
		if !permanent(s.key.Kind) {
			s.ordinal, s.total = 0, 0
		}
	}
	for _, p := range m.streams {
		s := w.streamOf(p.key, p.bytes)
		if permanent(p.key.Kind) {
			continue
		}
		s.ordinal, s.total = p.ordinal, p.total
		if p.inChunk > 0 {
			s.ordinal++ // the part of a chunk counts as one
		}
	}
	s := w.Stream(timelines, 0)
	s.Append(record, event.Stamp{Thread: arch.NoThread})
	s.Flush()
}

// branch is a timeline as a reader knows it.
type branch struct {
	id, parent uint32
	places     map[Key]place
}

func decodeBranch(record []byte) (b branch, ok bool) {
	d := decoder{b: record}
	b = branch{id: uint32(d.takeUvarint()), parent: uint32(d.takeUvarint()), places: map[Key]place{}}
	for len(d.b) > 0 {
		key := Key{Kind: Kind(d.takeBytes(d.takeUvarint()))}
		key.ID = uint32(d.takeUvarint())
		b.places[key] = place{key: key, ordinal: d.takeUvarint(), inChunk: d.takeUvarint(), total: d.takeUvarint()}
	}
	return b, !d.bad && b.id > b.parent
}

// part is a chunk as one timeline has it: all of it or its first bytes.
type part struct {
	chunk int // in Reader.chunks
	limit int // bytes before compression, or -1 for all
}

// timelineParts lists the parts of a stream along a timeline, in order.
func (r *Reader) timelineParts(key Key, timeline uint32) []part {
	var parts []part
	if permanent(key.Kind) {
		for _, i := range r.streams[key] {
			parts = append(parts, part{i, -1})
		}
		return parts
	}
	if timeline > 0 {
		b, ok := r.branches[timeline]
		if !ok {
			return nil // its description is damaged, which was reported
		}
		if at, has := b.places[key]; has {
			parts = r.partsUntil(r.timelineParts(key, b.parent), at)
		}
	}
	for _, i := range r.streams[key] {
		if r.chunks[i].Timeline == timeline {
			parts = append(parts, part{i, -1})
		}
	}
	return parts
}

// partsUntil cuts a history at a place.
func (r *Reader) partsUntil(parts []part, at place) []part {
	for i, p := range parts {
		switch ordinal := r.chunks[p.chunk].Ordinal; {
		case ordinal < at.ordinal:
			continue
		case ordinal == at.ordinal && at.inChunk > 0:
			limit := int(at.inChunk)
			if p.limit >= 0 {
				limit = min(limit, p.limit)
			}
			return append(parts[:i:i], part{p.chunk, limit})
		}
		return parts[:i:i]
	}
	return parts
}
