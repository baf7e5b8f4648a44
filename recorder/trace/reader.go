package trace

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/heddle-dmt/heddle/internal/errs"
)

var (
	errOpen = errs.Define("trace-cannot-be-read",
		"the trace {file} cannot be read",
		"The file does not exist or cannot be read; the rest of the sentence says why.",
		"Correct the name or the permissions.")

	errNoTrace = errs.Define("not-a-trace",
		"{file} is not a trace: it begins with {found}, not with a trace's header",
		"The file was not written by heddle, or its begin was overwritten and no part of it is whole.",
		"Name a file that heddle record -o wrote.")

	errShort = errs.Define("trace-too-short",
		"the trace {file} is cut at byte {size}, within its header",
		"The file is empty or was cut; nothing of it can be read.",
		"Record again.")

	errVersion = errs.Define("trace-version",
		"the trace {file} is in format {found}; this heddle reads format {own} only",
		"Another version of heddle wrote the trace.",
		"Read it with that version, or record again.")

	errDamage = errs.Define("trace-damaged",
		"the trace {file} is damaged at byte {offset}: {damage}",
		"Bytes of the file were changed. Everything outside of the damaged chunk is read.",
		"Fetch the file again, or record again; heddle trace check lists all damage.")

	errCut = errs.Define("trace-cut",
		"the trace {file} is cut at byte {size}: {damage}",
		"The recording was ended from outside or by a full disk, or the file was cut. The part before is read.",
		"Work with the part that is whole, or record again.")
)

// IsDamage reports whether an error says that a part of a trace is damaged or missing.
func IsDamage(err error) bool { return errors.Is(err, errDamage) || errors.Is(err, errCut) }

// Reader reads a trace. It is for one goroutine, and must be closed if Open made
// it.
type Reader struct {
	name   string
	in     io.ReaderAt
	size   int64
	closer io.Closer
	unzip  *zstd.Decoder

	chunks   []Chunk // in the order of the file
	streams  map[Key][]int
	keys     []Key
	branches map[uint32]branch
	timeline uint32 // the one that is shown
	damage   []error
}

// Open opens a trace. A damaged one opens, and Damage lists the damage, unless
// nothing of it is whole.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errOpen.Wrap(plainError(err), path)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("it is a folder")
	}
	if err != nil {
		return nil, errors.Join(errOpen.Wrap(plainError(err), path), f.Close())
	}
	r, err := NewReader(path, f, info.Size())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.closer = f
	return r, nil
}

// plainError takes the operation and the path off an error of package os.
func plainError(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// NewReader is Open for a trace that is somewhere else; name is for errors.
func NewReader(name string, in io.ReaderAt, size int64) (*Reader, error) {
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRaw))
	if err != nil {
		panic("bug: the decompressor's options: " + err.Error())
	}
	r := &Reader{name: name, in: in, size: size, unzip: unzip, streams: map[Key][]int{}, branches: map[uint32]branch{}}
	if err := r.checkHeader(); err != nil {
		r.Close()
		return nil, err
	}
	if !r.readIndex() {
		r.scanChunks()
	}
	r.arrangeChunks()
	return r, nil
}

// Close gives everything back.
func (r *Reader) Close() error {
	r.unzip.Close()
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// Damage lists the damage that was found when the trace was opened, in the order of
// the file. Damage within a chunk is returned when it is read; Check finds all.
func (r *Reader) Damage() []error { return r.damage }

// checkHeader checks how the file begins. A damaged header is noted, since the
// chunks after it may be whole.
func (r *Reader) checkHeader() error {
	b, err := r.readAt(0, headerSize)
	if err != nil {
		return err
	}
	own := fileHeader()
	switch {
	case bytes.Equal(b, own):
		return nil
	case len(b) < headerSize && bytes.HasPrefix(own, b):
		return errShort.New(r.name, r.size)
	case len(b) == headerSize && string(b[:len(fileMagic)]) == fileMagic &&
		binary.LittleEndian.Uint64(b[headerSize-8:]) == checksum(b[:headerSize-8]):
		return errVersion.New(r.name, binary.LittleEndian.Uint32(b[len(fileMagic):]), Version)
	}
	if _, ok := r.readHead(int64(headerSize)); !ok {
		return r.errorNoTrace()
	}
	r.noteDamage(0, "the header is not one")
	return nil
}

func (r *Reader) errorNoTrace() error {
	b, err := r.readAt(0, 16)
	if err != nil {
		return err
	}
	return errNoTrace.New(r.name, quoteBytes(b))
}

func (r *Reader) noteDamage(offset int64, damage string) {
	r.damage = append(r.damage, errDamage.New(r.name, offset, damage))
}

// readAt reads n bytes, or as many of them as the file has.
func (r *Reader) readAt(offset int64, n int) ([]byte, error) {
	n = int(max(0, min(int64(n), r.size-offset)))
	b := make([]byte, n)
	if _, err := r.in.ReadAt(b, offset); err != nil && !(errors.Is(err, io.EOF) && n == 0) {
		return nil, errOpen.Wrap(plainError(err), r.name)
	}
	return b, nil
}

// arrangeChunks sorts the chunks by stream and reads the timelines.
func (r *Reader) arrangeChunks() {
	for i := range r.chunks {
		c := &r.chunks[i]
		if _, known := r.streams[c.Key]; !known && c.Kind != timelines {
			r.keys = append(r.keys, c.Key)
		}
		r.streams[c.Key] = append(r.streams[c.Key], i)
	}
	slices.SortFunc(r.keys, func(a, b Key) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	for _, i := range r.streams[Key{Kind: timelines}] {
		for record, err := range r.recordsOf(part{i, -1}) {
			if err != nil {
				r.damage = append(r.damage, err)
				break
			}
			if b, ok := decodeBranch(record); ok {
				r.branches[b.id] = b
				r.timeline = max(r.timeline, b.id)
			}
		}
	}
	for i := range r.chunks {
		r.timeline = max(r.timeline, r.chunks[i].Timeline)
	}
}

// Streams lists the streams, by kind and number.
func (r *Reader) Streams() []Key {
	var keys []Key
	for _, k := range r.keys {
		if len(r.timelineParts(k, r.timeline)) > 0 {
			keys = append(keys, k)
		}
	}
	return keys
}

// Has reports whether there is a stream of a kind.
func (r *Reader) Has(kind Kind) bool {
	return slices.ContainsFunc(r.Streams(), func(k Key) bool { return k.Kind == kind })
}

// IDs lists the numbers of the streams of a kind.
func (r *Reader) IDs(kind Kind) (ids []uint32) {
	for _, k := range r.Streams() {
		if k.Kind == kind {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// Chunks lists the chunks of a stream, in order, as the last timeline has them.
func (r *Reader) Chunks(key Key) []Chunk {
	var list []Chunk
	for _, p := range r.timelineParts(key, r.timeline) {
		list = append(list, r.chunks[p.chunk])
	}
	return list
}

// Timelines is how many timelines the trace has.
func (r *Reader) Timelines() int { return int(r.timeline) + 1 }

// readPayload reads the payload of a part. Damage is reported.
func (r *Reader) readPayload(p part) ([]byte, error) {
	c := &r.chunks[p.chunk]
	all, err := r.readAt(c.Offset, int(c.Size()))
	if err != nil {
		return nil, err
	}
	frame := c.framePrefix()
	if !bytes.HasPrefix(all, frame) {
		return nil, errDamage.New(r.name, c.Offset, "the head of "+c.description()+" differs from the index")
	}
	if int64(len(all)) != c.Size() {
		return nil, errCut.New(r.name, r.size, "within "+c.description())
	}
	end := len(all) - 8
	stored := all[len(frame):end]
	if binary.LittleEndian.Uint64(all[end:]) != checksum(stored) {
		return nil, errDamage.New(r.name, c.payloadAt(), c.description()+" does not have its checksum")
	}
	raw, err := r.unpackChunk(c, stored)
	if err != nil {
		return nil, errDamage.Wrap(err, r.name, c.payloadAt(), c.description()+" cannot be decompressed")
	}
	if p.limit >= 0 && p.limit < len(raw) {
		raw = raw[:p.limit]
	}
	return raw, nil
}

func (r *Reader) unpackChunk(c *Chunk, stored []byte) ([]byte, error) {
	raw := stored
	var err error
	switch c.packed {
	case flagZstd:
		raw, err = r.unzip.DecodeAll(stored, make([]byte, 0, c.Raw))
	case flagS2:
		raw, err = decodeS2(stored, c.Raw)
	}
	if err == nil && len(raw) != c.Raw {
		err = errSize
	}
	return raw, err
}

var errSize = errors.New("its size is wrong")

// decodeS2 makes no room for more bytes than there are to be.
func decodeS2(stored []byte, size int) ([]byte, error) {
	if n, err := s2.DecodedLen(stored); err != nil || n != size {
		return nil, cmp.Or(err, errSize)
	}
	return s2.Decode(make([]byte, size), stored)
}

// recordsOf iterates over the records of a part.
func (r *Reader) recordsOf(p part) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		raw, err := r.readPayload(p)
		if err != nil {
			yield(nil, err)
			return
		}
		d := decoder{b: raw}
		for len(d.b) > 0 {
			record := d.takeBytes(d.takeUvarint())
			if d.bad {
				c := &r.chunks[p.chunk]
				yield(nil, errDamage.New(r.name, c.payloadAt(), "a record of "+c.description()+" has no end"))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
	}
}
