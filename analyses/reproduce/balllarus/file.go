package balllarus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/recorder/event"
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
	raw := l.encode()
	raw = binary.LittleEndian.AppendUint64(raw, xxh3.Hash(raw))
	return to.Write(zip.EncodeAll(raw, []byte(firstLine)))
}

// encode is the log as numbers.
func (l *Log) encode() []byte {
	whole := uint64(0)
	if l.Known.Whole {
		whole = 1
	}
	b := binary.AppendUvarint(nil, whole)
	b = appendList(b, l.Known.Entries)
	b = binary.AppendUvarint(b, uint64(len(l.Known.Targets)))
	for _, at := range slices.Sorted(maps.Keys(l.Known.Targets)) {
		b = appendList(binary.AppendUvarint(b, at), l.Known.Targets[at])
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

// ReadLog reads what Write has written.
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
	l := r.log()
	return l, r.err
}

// reader reads numbers; behind an error they are 0.
type reader struct {
	in  []byte
	err error
}

func (r *reader) log() *Log {
	l := &Log{Known: Known{Whole: r.number() != 0, Entries: r.list(), Targets: map[uint64][]uint64{}}}
	for range r.number() {
		at := r.number()
		l.Known.Targets[at] = r.list()
	}
	l.Functions = r.list()
	for range r.number() {
		w := Written{Thread: event.ThreadID(r.number())}
		w.Records = r.bytes(r.number())
		l.Threads = append(l.Threads, w)
	}
	return l
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.in)
	if size <= 0 {
		r.in, r.err = nil, io.ErrUnexpectedEOF
		return 0
	}
	r.in = r.in[size:]
	return n
}

func (r *reader) list() (list []uint64) {
	for range min(r.number(), uint64(len(r.in))) {
		list = append(list, r.number())
	}
	return list
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.in)) {
		r.in, r.err = nil, io.ErrUnexpectedEOF
		return nil
	}
	b := r.in[:n:n]
	r.in = r.in[n:]
	return b
}
