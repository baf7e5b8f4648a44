package trace

import (
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// Version is the version of the format that this package writes and reads. It changes with the layout of a
// trace, and with what a replay does: traces of format 4 and before were recorded when the beginnings and ends of
// threads had all store buffers drained.
const Version = 5

// The fixed parts of a file; docs/traces.md.
const (
	fileMagic    = "\x89heddle trace\r\n\x1a"
	chunkMagic   = "\xfeHDLchnk"
	trailerMagic = "\xfeHDLlast"

	headerSize  = len(fileMagic) + 4 + 4 + 8
	trailerSize = len(trailerMagic) + 8 + 8
	chunkPrefix = len(chunkMagic) + 4

	// maxHead bounds the description of a chunk, maxRaw its bytes before
	// compression: greater numbers are damage.
	maxHead = 1 << 20
	maxRaw  = 1 << 26
)

// A Kind is the kind of a stream's contents.
type Kind string

// The kinds of streams, and the meaning of their numbers.
const (
	Sideband  Kind = "sideband"  // context switches; one stream
	Threads   Kind = "starts"    // starts of threads; one stream
	Exits     Kind = "exits"     // ends of threads; one stream
	Syscalls  Kind = "syscalls"  // system calls; one stream
	Signals   Kind = "signals"   // signals; one stream
	Sync      Kind = "sync"      // sync operations; one stream
	Objects   Kind = "objects"   // the objects of sync operations; one stream
	Inputs    Kind = "inputs"    // inputs; one stream
	Mappings  Kind = "mappings"  // files in memory; one stream
	Heap      Kind = "heap"      // calls of allocators; one stream
	Decisions Kind = "decisions" // the replay log; one stream
	Delays    Kind = "delays"    // stores that others saw late; one stream
	Code      Kind = "code"      // the code that ran; one stream
	PT        Kind = "pt"        // bytes of Intel PT packets, by core
	Stdin     Kind = "stdin"     // the bytes of standard input that were read
	Faults    Kind = "faults"    // failures of the standard streams; one stream
	Clients   Kind = "clients"   // what clients outside of the guest did; one stream
	Registers Kind = "registers" // registers at the beginning of a stretch; one stream
	Areas     Kind = "areas"     // memory at the beginning of a stretch; one stream
	Files     Kind = "files"     // the files of the host that were read; one stream
	Memory    Kind = "memory"    // blocks of memory accesses (package memtrace); one stream
	ManifestK Kind = "manifest"  // the configuration of the run; one record, the first chunk
	SummaryK  Kind = "summary"   // how the run ended; one record, the last

	timelines Kind = "timelines" // returns to marks
	index     Kind = "index"     // the descriptions of all chunks
)

// Key names a stream.
type Key struct {
	Kind Kind
	ID   uint32
}

// Chunk describes a chunk: all that is known of it without reading it.
type Chunk struct {
	Key
	Offset int64 // of the chunk in the file
	// Timeline is the timeline that it was written in, 0 the first.
	Timeline uint32
	// Ordinal numbers the chunks of a stream from 0, First its records; for
	// streams of bytes First counts bytes.
	Ordinal, First uint64
	// Records is how many records it has, 0 in a stream of bytes.
	Records uint64
	Bytes   bool // a stream of bytes
	// Raw and Stored are its size before and after compression.
	Raw, Stored int
	// Low and High are the least and greatest numbers of the records' stamps:
	// Seq, Sync and Time.
	Low, High Range
	// Threads are those of the records' stamps, in order.
	Threads []arch.ThreadID

	head   []byte // as in the file, without checksum
	packed uint64 // how its payload is compressed: a flag, or 0
}

// Range is one end of the range of stamps.
type Range struct {
	Seq, Sync uint64
	Time      arch.Cycles
}

// Size is the chunk's size in the file.
func (c *Chunk) Size() int64 { return int64(chunkPrefix + len(c.head) + 8 + c.Stored + 8) }

// payloadAt is where its payload begins.
func (c *Chunk) payloadAt() int64 { return c.Offset + int64(chunkPrefix+len(c.head)+8) }

// Flags of a chunk.
const (
	flagBytes = 1
	flagZstd  = 2
	flagS2    = 4
)

// encodeHead sets c.head.
func (c *Chunk) encodeHead() {
	flags := c.packed
	if c.Bytes {
		flags |= flagBytes
	}
	b := binary.AppendUvarint(nil, uint64(len(c.Kind)))
	b = append(b, c.Kind...)
	for _, v := range []uint64{
		uint64(c.ID), uint64(c.Offset), flags, uint64(c.Timeline), c.Ordinal, c.First, c.Records,
		uint64(c.Raw), uint64(c.Stored), c.Low.Seq, c.High.Seq, c.Low.Sync, c.High.Sync,
		uint64(c.Low.Time), uint64(c.High.Time), uint64(len(c.Threads)),
	} {
		b = binary.AppendUvarint(b, v)
	}
	last := arch.ThreadID(0)
	for _, t := range c.Threads {
		b = binary.AppendUvarint(b, uint64(t-last))
		last = t
	}
	c.head = b
}

// decodeHead is the opposite, and also returns the rest of b. It accepts only the output of
// encodeHead makes.
func decodeHead(b []byte) (c Chunk, rest []byte, ok bool) {
	d := decoder{b: b}
	c.Kind = Kind(d.takeBytes(d.takeUvarint()))
	numbers := make([]uint64, 16)
	for i := range numbers {
		numbers[i] = d.takeUvarint()
	}
	n := numbers
	c.ID, c.Offset, c.Timeline = uint32(n[0]), int64(n[1]), uint32(n[3])
	c.Bytes, c.packed = n[2]&flagBytes != 0, n[2]&(flagZstd|flagS2)
	c.Ordinal, c.First, c.Records, c.Raw, c.Stored = n[4], n[5], n[6], int(n[7]), int(n[8])
	c.Low = Range{n[9], n[11], arch.Cycles(n[13])}
	c.High = Range{n[10], n[12], arch.Cycles(n[14])}
	last := arch.ThreadID(0)
	for range min(n[15], uint64(len(b))) {
		last += arch.ThreadID(d.takeUvarint())
		c.Threads = append(c.Threads, last)
	}
	if d.bad || c.packed == flagZstd|flagS2 || c.Offset < 0 || n[7] > maxRaw || n[8] > maxRaw+maxRaw/64 || n[15] > uint64(len(b)) {
		return Chunk{}, nil, false
	}
	c.head = slices.Clone(b[:len(b)-len(d.b)])
	return c, d.b, true
}

// checksum is the one that guards everything in a file.
func checksum(b []byte) uint64 { return xxh3.Hash(b) }

func appendSum(b []byte, of []byte) []byte { return binary.LittleEndian.AppendUint64(b, checksum(of)) }

// fileHeader is how a file begins.
func fileHeader() []byte {
	b := []byte(fileMagic)
	b = binary.LittleEndian.AppendUint32(b, Version)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return appendSum(b, b)
}

// fileTrailer is how a complete file ends.
func fileTrailer(indexAt int64) []byte {
	b := []byte(trailerMagic)
	b = binary.LittleEndian.AppendUint64(b, uint64(indexAt))
	return appendSum(b, b)
}

// framePrefix is the prefix of a chunk's payload.
func (c *Chunk) framePrefix() []byte {
	b := []byte(chunkMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.head)))
	b = append(b, c.head...)
	return appendSum(b, b)
}

// decoder takes numbers and bytes off a slice; bad is set when it runs out.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) takeUvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) takeVarint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) takeBytes(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}
