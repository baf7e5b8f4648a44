package trace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
)

// description is the chunk for a sentence.
func (c *Chunk) description() string {
	return fmt.Sprintf("chunk %d of stream %s %d", c.Ordinal, c.Kind, c.ID)
}

// quoteBytes shows bytes in an error.
func quoteBytes(b []byte) string { return strconv.QuoteToASCII(string(b)) }

// readHead reads the description of the chunk at an offset; false if no whole chunk
// is there.
func (r *Reader) readHead(offset int64) (Chunk, bool) {
	prefix, err := r.readAt(offset, chunkPrefix)
	if err != nil || len(prefix) < chunkPrefix || string(prefix[:len(chunkMagic)]) != chunkMagic {
		return Chunk{}, false
	}
	size := binary.LittleEndian.Uint32(prefix[len(chunkMagic):])
	if size > maxHead {
		return Chunk{}, false
	}
	all, err := r.readAt(offset, chunkPrefix+int(size)+8)
	if err != nil || len(all) < chunkPrefix+int(size)+8 {
		return Chunk{}, false
	}
	end := len(all) - 8
	if binary.LittleEndian.Uint64(all[end:]) != checksum(all[:end]) {
		return Chunk{}, false
	}
	c, rest, ok := decodeHead(all[chunkPrefix:end])
	return c, ok && len(rest) == 0 && c.Offset == offset
}

// readTrailer returns where the trailer says that the index is.
func (r *Reader) readTrailer() (offset int64, ok bool) {
	b, err := r.readAt(r.size-int64(trailerSize), trailerSize)
	if err != nil || r.size < int64(headerSize+trailerSize) {
		return 0, false
	}
	offset = int64(binary.LittleEndian.Uint64(b[len(trailerMagic):]))
	return offset, bytes.Equal(b, fileTrailer(offset))
}

// readIndex takes the chunks from the index at the end; false if the file has no
// index that fits it.
func (r *Reader) readIndex() bool {
	at, ok := r.readTrailer()
	if !ok {
		return false
	}
	own, ok := r.readHead(at)
	if !ok || own.Kind != index || at+own.Size()+int64(trailerSize) != r.size {
		return false
	}
	r.chunks = []Chunk{own}
	list, err := r.readPayload(part{0, -1})
	r.chunks = nil
	if err != nil {
		return false
	}
	next := int64(headerSize)
	var chunks []Chunk
	for len(list) > 0 {
		c, rest, ok := decodeHead(list)
		if !ok || c.Offset != next {
			return false
		}
		chunks, list, next = append(chunks, c), rest, next+c.Size()
	}
	if next != at {
		return false
	}
	r.chunks = chunks
	return true
}

// scanChunks finds the chunks without an index, and notes the bytes between them.
func (r *Reader) scanChunks() {
	at := int64(headerSize)
	for at < r.size {
		c, ok := r.readHead(at)
		switch {
		case ok && at+c.Size() > r.size:
			r.damage = append(r.damage, errCut.New(r.name, r.size, "within "+c.description()))
			return
		case ok && c.Kind == index:
			r.scanEnd(at, c)
			return
		case ok:
			r.chunks = append(r.chunks, c)
			at += c.Size()
		default:
			next, found := r.nextChunk(at + 1)
			if !found {
				r.noteTail(at)
				return
			}
			r.noteDamage(at, fmt.Sprintf("%d bytes are no chunk", next-at))
			at = next
		}
	}
	r.damage = append(r.damage, errCut.New(r.name, r.size, "the index is missing"))
}

// scanEnd looks at the index and the trailer, one of which is not as it should
// be.
func (r *Reader) scanEnd(at int64, c Chunk) {
	trailer, end := r.readTrailer()
	switch rest := r.size - at - c.Size(); {
	case rest < int64(trailerSize):
		r.damage = append(r.damage, errCut.New(r.name, r.size, "the trailer is missing"))
	case end && trailer == at && rest == int64(trailerSize):
		r.noteDamage(at, "the index is not that of the chunks")
	default:
		r.noteDamage(at+c.Size(), "the trailer is not one")
	}
}

// noteTail notes the end of a file in which nothing more is whole.
func (r *Reader) noteTail(at int64) {
	b, err := r.readAt(at, len(chunkMagic))
	if err == nil && (bytes.HasPrefix([]byte(chunkMagic), b) || string(b) == chunkMagic) {
		r.damage = append(r.damage, errCut.New(r.name, r.size, "within the head of a chunk, or that is damaged"))
		return
	}
	if err == nil && string(b) == trailerMagic {
		r.noteDamage(at, "the trailer follows no index")
		return
	}
	r.noteDamage(at, fmt.Sprintf("the last %d bytes are no chunk", r.size-at))
}

// nextChunk finds the next offset at which a whole head is.
func (r *Reader) nextChunk(from int64) (int64, bool) {
	const window = 1 << 20
	for from < r.size {
		b, err := r.readAt(from, window)
		if err != nil {
			return 0, false
		}
		for at := 0; ; at++ {
			i := bytes.Index(b[at:], []byte(chunkMagic))
			if i < 0 {
				break
			}
			at += i
			if _, ok := r.readHead(from + int64(at)); ok {
				return from + int64(at), true
			}
		}
		if len(b) < window {
			return 0, false
		}
		from += int64(window - len(chunkMagic) + 1)
	}
	return 0, false
}

// Check reads everything and returns all damage, in the order of the file.
func (r *Reader) Check() []error {
	fresh := &Reader{
		name: r.name, in: r.in, size: r.size, unzip: r.unzip, streams: map[Key][]int{}, branches: map[uint32]branch{},
	}
	if err := fresh.checkHeader(); err != nil {
		return []error{err}
	}
	if !fresh.readIndex() {
		fresh.scanChunks()
	}
	for i := range fresh.chunks {
		if _, err := fresh.readPayload(part{i, -1}); err != nil {
			fresh.damage = append(fresh.damage, err)
		}
	}
	return fresh.damage
}
