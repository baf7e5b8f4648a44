package clap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// firstLine begins the file of a log. The rest is compressed: numbers as in records,
// and a checksum.
const firstLine = "heddle paths 1\n"

// Write writes the log, compressed, and returns the number of bytes.
func (l *Log) Write(to io.Writer) (int, error) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return 0, err
	}
	raw := l.encodeLog()
	raw = binary.LittleEndian.AppendUint64(raw, xxh3.Hash(raw))
	return to.Write(zip.EncodeAll(raw, []byte(firstLine)))
}

// encodeLog is the log as numbers.
func (l *Log) encodeLog() []byte {
	whole := uint64(0)
	if l.Facts.Whole {
		whole = 1
	}
	b := binary.AppendUvarint(nil, whole)
	b = appendList(b, l.Facts.Entries)
	b = binary.AppendUvarint(b, uint64(len(l.Facts.Targets)))
	for _, at := range slices.Sorted(maps.Keys(l.Facts.Targets)) {
		b = appendList(binary.AppendUvarint(b, at), l.Facts.Targets[at])
	}
	b = appendList(b, l.Functions)
	b = binary.AppendUvarint(b, uint64(len(l.Threads)))
	for _, t := range l.Threads {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(t.Thread)), uint64(len(t.Records)))
		b = append(b, t.Records...)
	}
	return b
}

func appendList(b []byte, list []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, n := range list {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// ReadLog reads the output of Log.Write.
func ReadLog(from io.Reader) (*Log, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	packed, ok := bytes.CutPrefix(text, []byte(firstLine))
	if !ok {
		return nil, fmt.Errorf("the first line is not %q", firstLine)
	}
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer unzip.Close()
	raw, err := unzip.DecodeAll(packed, nil)
	if err != nil {
		return nil, err
	}
	const sum = 8
	if len(raw) < sum || binary.LittleEndian.Uint64(raw[len(raw)-sum:]) != xxh3.Hash(raw[:len(raw)-sum]) {
		return nil, fmt.Errorf("the checksum is wrong")
	}
	r := &reader{in: raw[:len(raw)-sum]}
	l := r.readLog()
	return l, r.err
}

// reader reads numbers; after an error they are 0.
type reader struct {
	in  []byte
	err error
}

func (r *reader) readLog() *Log {
	l := &Log{Facts: CompilerFacts{Whole: r.readNumber() != 0, Entries: r.readList(), Targets: map[uint64][]uint64{}}}
	for range r.readNumber() {
		at := r.readNumber()
		l.Facts.Targets[at] = r.readList()
	}
	l.Functions = r.readList()
	for range r.readNumber() {
		w := ThreadLog{Thread: arch.ThreadID(r.readNumber())}
		w.Records = r.readBytes(r.readNumber())
		l.Threads = append(l.Threads, w)
	}
	return l
}

func (r *reader) readNumber() uint64 {
	n, size := binary.Uvarint(r.in)
	if size <= 0 {
		r.in, r.err = nil, io.ErrUnexpectedEOF
		return 0
	}
	r.in = r.in[size:]
	return n
}

func (r *reader) readList() (list []uint64) {
	for range min(r.readNumber(), uint64(len(r.in))) {
		list = append(list, r.readNumber())
	}
	return list
}

func (r *reader) readBytes(n uint64) []byte {
	if n > uint64(len(r.in)) {
		r.in, r.err = nil, io.ErrUnexpectedEOF
		return nil
	}
	b := r.in[:n:n]
	r.in = r.in[n:]
	return b
}
