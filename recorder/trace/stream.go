package trace

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// MaxRecord is the greatest size of a record.
const MaxRecord = 48 << 20

// Stream is one stream of a Writer.
type Stream struct {
	w     *Writer
	key   Key
	bytes bool
	// repeats reports that the stream is needed to repeat the run.
	repeats bool

	chunk   *open  // being filled, or nil
	ordinal uint64 // of the chunk that is being filled or comes next
	total   uint64 // records, or bytes, so far
	latest  arch.ThreadID
	scratch []byte // for encoding a record
}

// SharedInSnapshot marks that copies of a machine's state share the trace.
func (s *Stream) SharedInSnapshot() {}

// Fresh reports that the next record begins a chunk. Chunks are read each by
// itself: an encoding that depends on earlier records starts anew.
func (s *Stream) Fresh() bool { return s.chunk == nil }

// Total is how many records, or bytes, were appended on this timeline.
func (s *Stream) Total() uint64 { return s.total }

func (s *Stream) pendingBytes() int {
	if s.chunk == nil {
		return 0
	}
	return len(s.chunk.raw)
}

// Append adds a record, or a piece of a stream of bytes. The stamp is for the
// index: the record itself is all that a reader gets. NoThread in it stands for
// no thread in particular. A record of several things has more stamps.
func (s *Stream) Append(record []byte, at event.Stamp, more ...event.Stamp) {
	if len(record) > MaxRecord {
		panic(fmt.Sprintf("bug: a record of %d bytes", len(record)))
	}
	if s.w.listener != nil || s.w.muted && !s.repeats {
		return
	}
	if s.chunk == nil {
		s.beginChunk(at)
	}
	c := s.chunk
	before := len(c.raw)
	if s.bytes {
		s.total += uint64(len(record))
	} else {
		c.raw = binary.AppendUvarint(c.raw, uint64(len(record)))
		c.Records++
		s.total++
	}
	c.raw = append(c.raw, record...)
	s.coverStamp(at)
	for _, at := range more {
		s.coverStamp(at)
	}
	s.w.held += len(c.raw) - before
	if len(c.raw) >= chunkSize {
		s.Flush()
	} else if s.w.held > budget {
		s.w.flushFullest()
	}
}

// beginChunk opens a chunk.
func (s *Stream) beginChunk(at event.Stamp) {
	r := Range{at.Seq, at.Sync, at.Time}
	s.chunk = &open{
		Chunk: Chunk{
			Key: s.key, Timeline: s.w.timeline, Ordinal: s.ordinal, First: s.total, Bytes: s.bytes, Low: r, High: r,
		},
		raw: s.w.spareBuffer(),
	}
	s.latest = arch.NoThread
}

// coverStamp notes a stamp in the chunk's description.
func (s *Stream) coverStamp(at event.Stamp) {
	c := s.chunk
	c.Low = Range{min(c.Low.Seq, at.Seq), min(c.Low.Sync, at.Sync), min(c.Low.Time, at.Time)}
	c.High = Range{max(c.High.Seq, at.Seq), max(c.High.Sync, at.Sync), max(c.High.Time, at.Time)}
	if at.Thread == s.latest || at.Thread == arch.NoThread {
		return
	}
	s.latest = at.Thread
	if i, found := slices.BinarySearch(c.Threads, at.Thread); !found {
		c.Threads = slices.Insert(c.Threads, i, at.Thread)
	}
}

// Flush hands the open chunk to the disk.
func (s *Stream) Flush() {
	if s.chunk == nil {
		return
	}
	s.w.held -= len(s.chunk.raw)
	s.w.queue <- s.chunk
	s.chunk = nil
	s.ordinal++
}
