package trace

import (
	"encoding/json"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
)

var errWrite = errs.Define("trace-cannot-be-written",
	"recording ended early: the trace cannot be written",
	"The disk is full, or the trace's file cannot be written for another reason; the rest of the sentence has it. "+
		"The run went on without recording, and the trace has the records until then.",
	"Free space or choose another disk with -o, for heddle races with TMPDIR, and record again.")

// Sizes of the writer.
const (
	chunkSize = 256 << 10 // a chunk is closed at this number of bytes
	budget    = 64 << 20  // bytes that open chunks may hold together
	queueSize = 4         // chunks between the appender and the disk
)

// Writer writes a trace. It is for one goroutine; compression and the disk have
// their own. It must be closed.
//
// The first failure to write ends the recording: records that are appended afterwards are
// dropped, and Err and Close return the failure.
type Writer struct {
	streams  map[Key]*Stream
	order    []*Stream // as they came into being
	held     int       // bytes in open chunks
	timeline uint32
	last     uint32 // the greatest timeline so far
	closed   bool

	listener Listener // takes the events, of which none are written; or nil
	// muted reports that only what repeats the run is written. Keeper, unless it is nil, takes the other events.
	muted  bool
	keeper func(e any)

	queue chan *open
	free  chan []byte
	done  chan struct{}

	disk disk
}

// SharedInSnapshot marks that copies of a machine's state share the trace.
func (w *Writer) SharedInSnapshot() {}

// open is a chunk that is being filled or is on its way to the disk.
type open struct {
	Chunk
	raw []byte
	// synced, of one that is no chunk, is closed when all before it is written.
	synced chan struct{}
}

// disk is the side of the Writer that compresses and writes.
type disk struct {
	out    io.Writer
	zip    *zstd.Encoder
	packed []byte
	offset int64
	chunks []Chunk

	mu  sync.Mutex
	err error
}

// truncater is a file that can be shortened after a failure.
type truncater interface{ Truncate(size int64) error }

// Listener takes the events of a run that is not stored.
type Listener interface {
	// Event takes an event, a pointer to one of the types of package event, in the order in which they are
	// put into streams. It is valid during the call.
	Event(e any)
	// Document takes the manifest or the summary.
	Document(kind Kind, text []byte)
}

// NewListenedWriter makes a Writer that passes events and documents on, and writes nothing. Records that
// are no events are dropped. It cannot return to a mark.
func NewListenedWriter(l Listener) *Writer {
	return &Writer{streams: map[Key]*Stream{}, listener: l}
}

// Listener takes the events, unless it is nil.
func (w *Writer) Listener() Listener { return w.listener }

// NewWriter begins a trace. If out can be truncated, as an *os.File can, a
// failure in the middle of a chunk takes the piece away again. Out is not
// closed by Close.
func NewWriter(out io.Writer) *Writer {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	if err != nil {
		panic("bug: the compressor's options: " + err.Error())
	}
	w := &Writer{
		streams: map[Key]*Stream{}, queue: make(chan *open, queueSize), free: make(chan []byte, queueSize+2),
		done: make(chan struct{}), disk: disk{out: out, zip: zip},
	}
	w.disk.writeAll(fileHeader())
	go w.writeChunks()
	return w
}

// writeChunks takes chunks to the disk.
func (w *Writer) writeChunks() {
	for c := range w.queue {
		if c.synced != nil {
			close(c.synced)
			continue
		}
		w.disk.putChunk(&c.Chunk, c.raw)
		select {
		case w.free <- c.raw[:0]:
		default:
		}
	}
	close(w.done)
}

// putChunk compresses and writes a chunk.
func (d *disk) putChunk(c *Chunk, raw []byte) {
	if d.firstError() != nil {
		return
	}
	c.packed = d.compress(c, raw)
	stored := d.packed
	if c.packed == 0 || len(stored) >= len(raw) {
		stored, c.packed = raw, 0
	}
	c.Raw, c.Stored, c.Offset = len(raw), len(stored), d.offset
	c.encodeHead()
	if d.writeAll(c.framePrefix(), stored, appendSum(nil, stored)) {
		d.chunks = append(d.chunks, *c)
	}
}

// compress sets d.packed, and returns the flag of the way; 0: none. Branch traces are long, and have most of what
// zstd would find by S2, in a third of its time. Memory traces are longer, and their records compact.
func (d *disk) compress(c *Chunk, raw []byte) uint64 {
	switch c.Kind {
	case Memory:
		return 0
	case PT:
		d.packed = s2.Encode(d.packed[:cap(d.packed)], raw)
		return flagS2
	}
	d.packed = d.zip.EncodeAll(raw, d.packed[:0])
	return flagZstd
}

// writeAll writes all parts or, as far as that can be arranged, nothing.
func (d *disk) writeAll(parts ...[]byte) bool {
	if d.firstError() != nil {
		return false
	}
	var err error
	size := 0
	for i := 0; i < len(parts) && err == nil; i++ {
		_, err = d.out.Write(parts[i])
		size += len(parts[i])
	}
	if err == nil {
		d.offset += int64(size)
		return true
	}
	if t, ok := d.out.(truncater); ok {
		// The piece stays if this fails too; readers pass over it.
		_ = t.Truncate(d.offset)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = errWrite.Wrap(plainError(err))
	return false
}

func (d *disk) firstError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Err is the failure that ended the recording early, or nil.
func (w *Writer) Err() error { return w.disk.firstError() }

// Stream returns the stream of records of a kind and number, a new one at the
// first call.
func (w *Writer) Stream(kind Kind, id uint32) *Stream { return w.streamOf(Key{kind, id}, false) }

// ByteStream is Stream for a stream of bytes, in which a record is any piece.
func (w *Writer) ByteStream(kind Kind, id uint32) *Stream { return w.streamOf(Key{kind, id}, true) }

func (w *Writer) streamOf(key Key, bytes bool) *Stream {
	if s, ok := w.streams[key]; ok {
		return s
	}
	s := &Stream{w: w, key: key, bytes: bytes, repeats: repeatsRun(key.Kind)}
	w.streams[key] = s
	w.order = append(w.order, s)
	return s
}

// Mute leaves out all events from now on except those that repeat the run, and gives them to keep, which may be nil.
func (w *Writer) Mute(keep func(e any)) { w.muted, w.keeper = true, keep }

// Unmute ends Mute.
func (w *Writer) Unmute() { w.muted, w.keeper = false, nil }

// repeatsRun reports whether a kind of stream is needed to repeat the run from its start.
func repeatsRun(k Kind) bool {
	switch k {
	case Decisions, Stdin, Faults, Clients, Files, ManifestK, SummaryK, timelines:
		return true
	}
	return false
}

// Manifest writes the configuration of the run, once and first.
func (w *Writer) Manifest(v any) error { return w.writeDocument(ManifestK, v) }

// Summary writes how the run ended, once and last.
func (w *Writer) Summary(v any) error { return w.writeDocument(SummaryK, v) }

func (w *Writer) writeDocument(kind Kind, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if w.listener != nil {
		w.listener.Document(kind, text)
		return nil
	}
	w.Flush()
	s := w.Stream(kind, 0)
	s.Append(text, event.Stamp{Thread: arch.NoThread})
	s.Flush()
	return nil
}

// Flush hands all open chunks to the disk: the records appended so far survive
// the end of this process.
func (w *Writer) Flush() {
	for _, s := range w.order {
		s.Flush()
	}
}

// Sync is Flush, and waits until all is written. It returns the same as Err.
func (w *Writer) Sync() error {
	if !w.closed && w.listener == nil {
		w.Flush()
		synced := make(chan struct{})
		w.queue <- &open{synced: synced}
		<-synced
	}
	return w.Err()
}

// flushFullest flushes the fullest stream.
func (w *Writer) flushFullest() {
	fullest := slices.MaxFunc(w.order, func(a, b *Stream) int { return a.pendingBytes() - b.pendingBytes() })
	fullest.Flush()
}

// spareBuffer is an empty buffer for a chunk.
func (w *Writer) spareBuffer() []byte {
	select {
	case b := <-w.free:
		return b
	default:
		return nil
	}
}

// Close completes the trace: the open chunks, the index and the trailer. It
// returns the failure that ended the recording early, if one did.
func (w *Writer) Close() error {
	if w.closed || w.listener != nil {
		return w.Err()
	}
	w.closed = true
	w.Flush()
	close(w.queue)
	<-w.done
	at := w.disk.offset
	var list []byte
	for i := range w.disk.chunks {
		list = append(list, w.disk.chunks[i].head...)
	}
	w.disk.putChunk(&Chunk{Key: Key{Kind: index}, Bytes: true}, list)
	w.disk.writeAll(fileTrailer(at))
	return w.Err()
}
