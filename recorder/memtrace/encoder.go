package memtrace

/*
#cgo CFLAGS: -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I${SRCDIR}/../../emu/memlog
#include "encode.h"

#cgo noescape memtrace_begin
#cgo nocallback memtrace_begin
#cgo noescape memtrace_add
#cgo nocallback memtrace_add
#cgo noescape memtrace_finish
#cgo nocallback memtrace_finish
*/
import "C"

import (
	"encoding/binary"
	"unsafe"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// maxAccesses is the number of accesses after which a block ends.
const maxAccesses = 1 << 23

// Encoder is a Listener that makes blocks and appends them to a stream. Its owner calls Close.
type Encoder struct {
	c      *C.struct_memtrace_encoder // nil: it has nothing
	most   uint64                     // accesses of a block
	to     *trace.Stream
	record []byte // the last one
}

// NewEncoder makes an Encoder that has nothing.
func NewEncoder(to *trace.Stream) *Encoder { return newEncoder(to, maxAccesses) }

func newEncoder(to *trace.Stream, most uint64) *Encoder {
	return &Encoder{most: most, to: to}
}

// Close frees the encoder's memory; what has not been appended is lost. It can be used again.
func (e *Encoder) Close() {
	if e.c != nil {
		C.memtrace_close(e.c)
	}
	e.c = nil
}

// BeginRun implements Listener.
func (e *Encoder) BeginRun(start event.Stamp, counted uint64) memlog.Consumer {
	e.begin(start, counted)
	return memlog.Consumer(e.c)
}

func (e *Encoder) begin(at event.Stamp, counted uint64) {
	if e.c == nil {
		e.c = C.memtrace_open(C.uint64_t(e.most))
	}
	stamp := C.struct_memtrace_stamp{
		seq: C.uint64_t(at.Seq), sync: C.uint64_t(at.Sync), thread: C.uint64_t(at.Thread), core: C.uint64_t(at.Core),
		time: C.uint64_t(at.Time), instructions: C.uint64_t(at.Instructions), branches: C.uint64_t(at.Branches),
	}
	C.memtrace_begin(e.c, &stamp, C.uint64_t(counted))
}

// Memory implements Listener.
func (e *Encoder) Memory(log *memlog.Buffer, start event.Stamp, counted uint64) {
	e.Add(log.Entries(), log.AllBytes(), start, counted)
}

// Add encodes a part of a log, of which bytes has the bytes of entries. Start is the stamp of its begin, and
// counted the engine's count of branches there.
func (e *Encoder) Add(entries []memlog.Entry, bytes []byte, start event.Stamp, counted uint64) {
	if len(entries) > 0 {
		e.begin(start, counted)
		C.memtrace_add(e.c, (*C.struct_heddle_mem_entry)(unsafe.Pointer(unsafe.SliceData(entries))), C.size_t(len(entries)),
			(*C.uint8_t)(unsafe.SliceData(bytes)))
	}
	if e.c != nil {
		e.appendBlocks()
	}
}

// MemorySaved implements Listener: it completes the block and appends it.
func (e *Encoder) MemorySaved() {
	if e.c != nil {
		C.memtrace_finish(e.c)
		e.appendBlocks()
	}
}

// appendBlocks appends the complete blocks.
func (e *Encoder) appendBlocks() {
	for b := C.memtrace_take(e.c); b != nil; b = C.memtrace_take(e.c) {
		out, numbers := bytesOf(b.out), bytesOf(b.numbers)
		e.record = append(binary.AppendUvarint(e.record[:0], uint64(len(out))), out...)
		e.record = append(e.record, numbers...)
		stamps := stampsOf(unsafe.Slice(b.stamps, int(b.nstamps)))
		e.to.Append(e.record, stamps[0], stamps[1:]...)
		C.memtrace_free(e.c, b)
	}
}

func bytesOf(b C.struct_memtrace_buffer) []byte { return unsafe.Slice((*byte)(b.bytes), int(b.n)) }

func stampsOf(list []C.struct_memtrace_stamp) []event.Stamp {
	stamps := make([]event.Stamp, len(list))
	for i, s := range list {
		stamps[i] = event.Stamp{
			Seq: uint64(s.seq), Sync: uint64(s.sync), Thread: arch.ThreadID(s.thread), Core: arch.CoreID(s.core),
			Time: arch.Cycles(s.time), Instructions: uint64(s.instructions), Branches: uint64(s.branches),
		}
	}
	return stamps
}
