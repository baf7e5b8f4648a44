package memtrace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// fakeLog is a part of a log.
type fakeLog struct {
	start   event.Stamp
	counted uint64
	entries []memlog.Entry
	bytes   []byte
}

// encodeBlocks has an Encoder of blocks of most accesses add logs, and returns the blocks. Nil ends a block.
func encodeBlocks(t testing.TB, most uint64, logs ...*fakeLog) [][]byte {
	r := encodeTrace(t, most, nil, logs...)
	defer r.Close()
	return readBlocks(t, r)
}

type failer interface{ Fatal(args ...any) }

// encodeTrace makes a trace of the blocks, and of a further record unless that is nil.
func encodeTrace(t failer, most uint64, further []byte, logs ...*fakeLog) *trace.Reader {
	var file bytes.Buffer
	w := trace.NewWriter(&file)
	e := newEncoder(w.Stream(trace.Memory, 0), most)
	defer e.Close()
	for _, l := range logs {
		if l == nil {
			e.MemorySaved()
		} else {
			e.Add(l.entries, l.bytes, l.start, l.counted)
		}
	}
	e.MemorySaved()
	if further != nil {
		w.Stream(trace.Memory, 0).Append(further, event.Stamp{Seq: 4, Thread: 3})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader("t", bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readBlocks(t failer, r *trace.Reader) (blocks [][]byte) {
	for record, err := range r.Records(Key, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, bytes.Clone(record))
	}
	return blocks
}

// drawLog makes a log as the engine does: a page's mapping precedes its use,
// branches grow.
type drawer struct {
	t        *rapid.T
	mapped   map[uint64]uint64
	branches uint64 // the engine's
	threads  map[arch.ThreadID]uint64
	stamp    event.Stamp
	want     []event.Memory
}

func (d *drawer) log() *fakeLog {
	t := d.t
	if rapid.Bool().Draw(t, "other") {
		d.stamp.Thread = arch.ThreadID(rapid.IntRange(1, 4).Draw(t, "thread"))
		d.stamp.Core = arch.CoreID(rapid.IntRange(0, 3).Draw(t, "core"))
	}
	d.stamp.Seq += uint64(rapid.IntRange(0, 2).Draw(t, "seq"))
	d.stamp.Time += arch.Cycles(rapid.Uint32().Draw(t, "time"))
	d.stamp.Branches = d.threads[d.stamp.Thread]
	if d.stamp.Seq == 0 {
		d.stamp.Seq = 1
	}
	l := &fakeLog{start: d.stamp, counted: d.branches}
	for range rapid.IntRange(0, 60).Draw(t, "n") {
		switch rapid.IntRange(0, 12).Draw(t, "entry") {
		case 0:
			d.content(l)
		case 1:
			d.kernel(l)
		default:
			d.access(l)
		}
	}
	d.threads[d.stamp.Thread] += d.branches - l.counted
	return l
}

func (d *drawer) content(l *fakeLog) {
	page := rapid.Uint64Range(1, 40).Draw(d.t, "page")
	switch rapid.IntRange(0, 2).Draw(d.t, "content") {
	case 0:
		l.entries = append(l.entries, memlog.Entry{Kind: memlog.Zero, PC: page})
		d.expect(event.Memory{Kind: event.Content, Page: page}, l)
	case 1:
		l.entries = append(l.entries, memlog.Entry{Kind: memlog.Content, PC: page, Value: uint64(len(l.bytes))})
		data := bytes.Repeat([]byte{rapid.Byte().Draw(d.t, "byte")}, arch.PageSize)
		l.bytes = append(l.bytes, data...)
		d.expect(event.Memory{Kind: event.Content, Page: page, Data: data}, l)
	default:
		l.entries = append(l.entries, memlog.Entry{Kind: memlog.Copy, PC: page, Value: 77})
		d.expect(event.Memory{Kind: event.Copy, Page: page, From: 77}, l)
	}
}

func (d *drawer) kernel(l *fakeLog) {
	n := rapid.IntRange(1, 30).Draw(d.t, "bytes")
	m := event.Memory{Kind: event.KernelStore, Addr: 0x7fff00001234, Page: 9, Length: uint64(n)}
	e := memlog.Entry{Kind: memlog.Kernel, Addr: m.Addr, PC: m.Page, Branches: uint32(n), Value: uint64(len(l.bytes))}
	if rapid.Bool().Draw(d.t, "later") {
		e.Flags = memlog.FlagLater
	} else {
		if rapid.Bool().Draw(d.t, "view") {
			m.Kind, e.Flags = event.View, memlog.FlagBuffered
		}
		m.Data = rapid.SliceOfN(rapid.Byte(), n, n).Draw(d.t, "data")
		l.bytes = append(l.bytes, m.Data...)
	}
	l.entries = append(l.entries, e)
	d.expect(m, l)
}

// lead logs the page of an address, sometimes anew.
func (d *drawer) lead(l *fakeLog, addr uint64) uint64 {
	number := addr >> pageShift
	page, ok := d.mapped[number]
	if !ok || rapid.IntRange(0, 9).Draw(d.t, "again") == 0 {
		page = rapid.Uint64Range(1, 40).Draw(d.t, "page")
		d.mapped[number] = page
		l.entries = append(l.entries, memlog.Entry{Kind: memlog.Map, Addr: arch.Addr(number << pageShift), PC: page})
	}
	return page
}

func (d *drawer) access(l *fakeLog) {
	t := d.t
	if rapid.IntRange(0, 3).Draw(t, "branches") == 0 {
		d.branches += rapid.Uint64Range(0, 1000).Draw(t, "more")
	}
	pages := []uint64{0x400, 0x401, 0x7ffffffff, 0x7fffffffe}
	addr := rapid.SampledFrom(pages).Draw(t, "number")<<pageShift | rapid.SampledFrom([]uint64{0, 8, 64, 4090, 4093, 4095}).Draw(t, "offset")
	size := rapid.SampledFrom([]uint8{1, 2, 4, 8, 10, 16}).Draw(t, "size")
	addr = min(addr, 1<<47-uint64(size))
	value := rapid.SampledFrom([]uint64{0, 1, 0x1122334455667788, ^uint64(0), rapid.Uint64().Draw(t, "value")}).Draw(t, "kind")
	m := event.Memory{
		Kind: event.Load, Atomic: rapid.Bool().Draw(t, "atomic"), Size: size, Addr: arch.Addr(addr),
		PC:    arch.Addr(rapid.SampledFrom([]uint64{0x401000, 0x401004, 0x7ffff7abcdef}).Draw(t, "pc")),
		Value: [2]uint64{value & maskOf(size)},
	}
	m.Page = d.lead(l, addr)
	if end := addr + uint64(size) - 1; end>>pageShift != addr>>pageShift {
		m.Next = d.lead(l, end)
	}
	e := memlog.Entry{Kind: memlog.Load, Addr: m.Addr, Value: m.Value[0], PC: uint64(m.PC), Branches: uint32(d.branches), Size: uint16(size)}
	if rapid.Bool().Draw(t, "store") {
		m.Kind, e.Kind = event.Store, memlog.Store
	}
	if m.Atomic {
		e.Flags = memlog.FlagAtomic
	}
	if rapid.IntRange(0, 9).Draw(t, "part") == 0 {
		m.Part, m.Parts = 1, uint8(rapid.IntRange(2, 4).Draw(t, "parts"))
		l.entries = append(l.entries, memlog.Entry{Kind: memlog.Part, PC: 1, Addr: arch.Addr(m.Parts)})
	}
	l.entries = append(l.entries, e)
	if size > 8 {
		m.Value[1] = value * 3 & maskOf(size-8)
		l.entries = append(l.entries, memlog.Entry{Kind: memlog.High, Value: m.Value[1], Size: uint16(size - 8)})
	}
	d.expect(m, l)
}

func (d *drawer) expect(m event.Memory, l *fakeLog) {
	m.Stamp = l.start
	m.Branches = l.start.Branches + d.branches - l.counted
	d.want = append(d.want, m)
}

// same compares without the fields that depend on where pieces begin and on the branch
// that an item other than an access follows.
func same(a, b event.Memory) bool {
	for _, m := range []*event.Memory{&a, &b} {
		m.Time, m.Instructions = 0, 0
		if m.Kind != event.Load && m.Kind != event.Store {
			m.Branches = 0
		}
	}
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
}

func decodeAll(t failer, blocks [][]byte) (all []event.Memory) {
	d := NewDecoder()
	for _, b := range blocks {
		if err := d.Block(b); err != nil {
			t.Fatal(err)
		}
		for {
			m, err := d.Next()
			if err != nil {
				t.Fatal(err)
			}
			if m == nil {
				break
			}
			copied := *m
			copied.Data = slices.Clone(m.Data)
			all = append(all, copied)
		}
	}
	return all
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &drawer{t: t, mapped: map[uint64]uint64{}, threads: map[arch.ThreadID]uint64{}, branches: rapid.SampledFrom([]uint64{0, 1<<32 - 3}).Draw(t, "counted")}
		var logs []*fakeLog
		for range rapid.IntRange(1, 6).Draw(t, "logs") {
			logs = append(logs, d.log())
			if rapid.IntRange(0, 4).Draw(t, "end") == 0 {
				logs = append(logs, nil)
			}
		}
		r := encodeTrace(t, rapid.Uint64Range(1, 100).Draw(t, "most"), nil, logs...)
		defer r.Close()
		got := decodeAll(t, readBlocks(t, r))
		if !slices.EqualFunc(got, d.want, same) {
			t.Fatalf("decoded\n%+v\nwant\n%+v", got, d.want)
		}
	})
}

// blockSize is the number of accesses of a block in tests.
const blockSize = 1 << 13

// many is a log of n accesses of a loop.
func many(n int, seed uint64) []memlog.Entry {
	entries := []memlog.Entry{{Kind: memlog.Map, Addr: 0x600000, PC: 5}}
	x := seed
	for i := range n {
		x = x*6364136223846793005 + 1442695040888963407
		e := memlog.Entry{Kind: memlog.Load, Addr: 0x600000 + arch.Addr(i*8%4096), PC: 0x401000 + uint64(i%5), Size: 8, Value: x >> 40, Branches: uint32(i / 3)}
		if i%4 == 0 {
			e.Kind = memlog.Store
		}
		entries = append(entries, e)
	}
	return entries
}

// Invariant 1.
func TestBlocksDoNotDependOnBuffers(t *testing.T) {
	entries := many(3*blockSize, 1)
	encode := func(piece int) [][]byte {
		var logs []*fakeLog
		for part := range slices.Chunk(entries, piece) {
			// The engine counts on, and so does the thread.
			first := uint64(part[0].Branches)
			logs = append(logs, &fakeLog{entries: part, start: event.Stamp{Seq: 1, Thread: 1, Branches: first}, counted: first})
		}
		return encodeBlocks(t, blockSize, logs...)
	}
	want := encode(len(entries))
	for _, piece := range []int{1000, 8192, 10001} {
		got := encode(piece)
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%d blocks out of buffers of %d entries are not the %d of one buffer", len(got), piece, len(want))
		}
	}
	if len(want) != 3 {
		t.Errorf("%d blocks, want 3", len(want))
	}
}

// Nothing can be predicted of these accesses.
func TestBlocksAreBounded(t *testing.T) {
	var logs []*fakeLog
	x := uint64(1)
	for range 40 {
		l := &fakeLog{start: event.Stamp{Seq: 1, Thread: 1}}
		for i := range 10_000 {
			x = x*6364136223846793005 + 1442695040888963407
			addr := arch.Addr(x >> 18 &^ (1<<46 | 15)) // in one page
			l.entries = append(l.entries,
				memlog.Entry{Kind: memlog.Map, Addr: addr &^ (arch.PageSize - 1), PC: x >> 40},
				memlog.Entry{Kind: memlog.Load, Addr: addr, PC: x >> 19, Size: 16, Value: x, Branches: uint32(i * 1000)},
				memlog.Entry{Kind: memlog.High, Value: ^x, Size: 8})
		}
		logs = append(logs, l)
	}
	blocks := encodeBlocks(t, maxAccesses, logs...)
	if len(blocks) < 2 {
		t.Errorf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		if len(b) > trace.MaxRecord/2 {
			t.Errorf("a block of %d bytes", len(b))
		}
	}
	if n := len(decodeAll(t, blocks)); n != 400_000 {
		t.Errorf("%d accesses, want 400000", n)
	}
}

func TestReadSelectsAndReportsDamage(t *testing.T) {
	var logs []*fakeLog
	for thread := range arch.ThreadID(3) {
		at := event.Stamp{Seq: uint64(thread) + 1, Thread: thread + 1, Time: arch.Cycles(thread) * 100}
		logs = append(logs, &fakeLog{entries: many(blockSize, uint64(thread)), start: at})
	}
	r := encodeTrace(t, blockSize, []byte("no block"), logs...)
	defer r.Close()
	for _, c := range []struct {
		s    Select
		want int
	}{
		{Select{}, 3 * blockSize},
		{Select{Threads: []arch.ThreadID{2, 3}}, 2 * blockSize},
		{Select{Where: trace.Where{FromTime: 50, ToTime: 150}}, blockSize},
		{Select{Data: []memlog.Range{{Start: 0x600001, End: 0x600009}}}, 2 * 3 * blockSize / 512},
		{Select{Code: []memlog.Range{{Start: 0x401000, End: 0x401001}}, Threads: []arch.ThreadID{1}}, (blockSize + 4) / 5},
	} {
		n, damaged := 0, 0
		for _, err := range Read(r, c.s) {
			if err != nil {
				damaged++
				continue
			}
			n++
		}
		if n != c.want {
			t.Errorf("%+v: %d accesses, want %d", c.s, n, c.want)
		}
		if damaged > 1 || (damaged == 0 && c.s.Where.ToTime == 0) {
			t.Errorf("%+v: %d errors", c.s, damaged)
		}
	}
}

// Invariant 2: bytes that are no block give an error and never a panic, and no more accesses than a block has.
func FuzzDecode(f *testing.F) {
	f.Add(encodeBlocks(f, maxAccesses, &fakeLog{entries: many(40, 3), start: event.Stamp{Seq: 1, Thread: 7}})[0])
	f.Add(binary.AppendUvarint(nil, 1<<60))
	f.Fuzz(func(t *testing.T, record []byte) {
		d := NewDecoder()
		if d.Block(record) != nil {
			return
		}
		for range mostAccesses + len(record) {
			m, err := d.Next()
			if m == nil || err != nil {
				return
			}
		}
		t.Error("more events than a block has")
	})
}

func BenchmarkEncode(b *testing.B) {
	entries := many(100_000, 5)
	e := NewEncoder(trace.NewWriter(io.Discard).Stream(trace.Memory, 0))
	defer e.Close()
	b.SetBytes(int64(len(entries)))
	for b.Loop() {
		e.Add(entries, nil, event.Stamp{Seq: 1, Thread: 1}, 0)
	}
}

func BenchmarkDecode(b *testing.B) {
	blocks := encodeBlocks(b, maxAccesses, &fakeLog{entries: many(100_000, 5), start: event.Stamp{Seq: 1, Thread: 1}})
	b.SetBytes(100_000)
	d := NewDecoder()
	for b.Loop() {
		for _, block := range blocks {
			if err := d.Block(block); err != nil {
				b.Fatal(err)
			}
			for m, _ := d.Next(); m != nil; m, _ = d.Next() {
			}
		}
	}
}
