package trace

import (
	"encoding/json"
	"io"
	"iter"
	"math"
	"slices"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// Where selects records by their stamps; the zero value selects all. Bounds
// are inclusive; an upper bound of 0 means no bound.
type Where struct {
	FromSeq, ToSeq   uint64
	FromSync, ToSync uint64
	FromTime, ToTime arch.Cycles
	// Thread is the one thread, or 0 for all.
	Thread arch.ThreadID
}

func upperBound[T ~uint64](to T) T {
	if to == 0 {
		return math.MaxUint64
	}
	return to
}

// Has reports whether a stamp is selected.
func (w Where) Has(s event.Stamp) bool {
	return s.Seq >= w.FromSeq && s.Seq <= upperBound(w.ToSeq) && s.Sync >= w.FromSync && s.Sync <= upperBound(w.ToSync) &&
		s.Time >= w.FromTime && s.Time <= upperBound(w.ToTime) && (w.Thread == 0 || w.Thread == s.Thread)
}

// mayHave reports whether a chunk can have records that are selected.
func (w Where) mayHave(c *Chunk) bool {
	if w.Thread != 0 && len(c.Threads) > 0 {
		if _, found := slices.BinarySearch(c.Threads, w.Thread); !found {
			return false
		}
	}
	return c.High.Seq >= w.FromSeq && c.Low.Seq <= upperBound(w.ToSeq) &&
		c.High.Sync >= w.FromSync && c.Low.Sync <= upperBound(w.ToSync) &&
		c.High.Time >= w.FromTime && c.Low.Time <= upperBound(w.ToTime)
}

// ChunkRecords is a chunk's content: the records of a stream that begin afresh
// here.
type ChunkRecords struct {
	Chunk Chunk
	r     *Reader
	part  part
}

// Records iterates over the chunk's records, each valid until the next. Damage
// ends the iteration with an error.
func (c ChunkRecords) Records() iter.Seq2[[]byte, error] { return c.r.recordsOf(c.part) }

// Parts iterates over the chunks of a stream that may have records that are
// selected, without reading them yet.
func (r *Reader) Parts(key Key, where Where) iter.Seq[ChunkRecords] {
	return func(yield func(ChunkRecords) bool) {
		for _, p := range r.timelineParts(key, r.timeline) {
			c := r.chunks[p.chunk]
			if where.mayHave(&c) && !yield(ChunkRecords{c, r, p}) {
				return
			}
		}
	}
}

// Records iterates over the records of a stream, each valid until the next, of
// all chunks that may have records that are selected. A damaged chunk gives an
// error in its place; going on gives the next chunk.
func (r *Reader) Records(key Key, where Where) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for c := range r.Parts(key, where) {
			for record, err := range c.Records() {
				if !yield(record, err) {
					return
				}
			}
		}
	}
}

// Record returns record n of a stream, counted from 0; false if there is no such record.
func (r *Reader) Record(key Key, n uint64) ([]byte, bool, error) {
	for _, p := range r.timelineParts(key, r.timeline) {
		c := &r.chunks[p.chunk]
		if n < c.First || n >= c.First+c.Records {
			continue
		}
		at := c.First
		for record, err := range r.recordsOf(p) {
			if err != nil || at == n {
				return record, err == nil, err
			}
			at++
		}
	}
	return nil, false, nil
}

// Bytes reads a stream of bytes from its begin. At a damaged chunk Read gives
// the error once, and then continues after the chunk.
func (r *Reader) Bytes(key Key) io.Reader {
	return &byteReader{r: r, parts: r.timelineParts(key, r.timeline)}
}

type byteReader struct {
	r     *Reader
	parts []part
	left  []byte
}

// Read implements io.Reader.
func (b *byteReader) Read(p []byte) (int, error) {
	for len(b.left) == 0 {
		if len(b.parts) == 0 {
			return 0, io.EOF
		}
		next := b.parts[0]
		b.parts = b.parts[1:]
		var err error
		if b.left, err = b.r.readPayload(next); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// readDocument reads the one record of a stream; nil if the stream is absent.
func (r *Reader) readDocument(kind Kind) ([]byte, error) {
	for record, err := range r.Records(Key{Kind: kind}, Where{}) {
		return record, err
	}
	return nil, nil
}

// Manifest is the JSON text that Writer.Manifest wrote, or nil.
func (r *Reader) Manifest() ([]byte, error) { return r.readDocument(ManifestK) }

// Recorded reports whether the events of a kind were recorded: there is a stream of them, or the manifest lists it
// among its "recordings", and the recorded part of the run has none.
func (r *Reader) Recorded(kind Kind) (bool, error) {
	if r.Has(kind) {
		return true, nil
	}
	text, err := r.Manifest()
	if err != nil || text == nil {
		return false, err
	}
	var manifest struct {
		Recordings []Kind `json:"recordings"`
	}
	err = json.Unmarshal(text, &manifest)
	return slices.Contains(manifest.Recordings, kind), err
}

// Summary is the JSON text that Writer.Summary wrote, or nil if the recording
// was cut.
func (r *Reader) Summary() ([]byte, error) { return r.readDocument(SummaryK) }
