// Package libipt decodes Intel Processor Trace with Intel's own decoder, as the reference in tests
// and benchmarks. The library is Debian's libipt-dev, 2.0.5 or newer.
//
// Only tests import the package: the programs that heddle builds do not need the library.
package libipt

/*
#cgo LDFLAGS: -lipt
#cgo CFLAGS: -std=c11 -Wall -Wextra -Werror
#include <stdlib.h>
#include "ipt.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Code is bytes at an address of an address space, present once At instructions have been decoded,
// or always if no earlier piece has the address.
type Code struct {
	At    uint64
	Space uint64 // page-table root
	Addr  uint64
	Bytes []byte
}

// Config has the timing parameters of the stream.
type Config struct {
	// CrystalTicks is the number of TSC ticks per tick of the crystal clock.
	CrystalTicks uint32
	// MTCShift is the logarithm of the crystal ticks between MTC packets.
	MTCShift uint8
	// Nominal is the nominal frequency in the units of CBR packets.
	Nominal uint8
}

// Kinds of events.
const (
	Enabled       = C.ptev_enabled
	Disabled      = C.ptev_disabled
	AsyncDisabled = C.ptev_async_disabled
	AsyncBranch   = C.ptev_async_branch
	Paging        = C.ptev_paging
	AsyncPaging   = C.ptev_async_paging
)

// Event is an event of the stream that is not an instruction.
type Event struct {
	Kind  int
	After uint64 // instructions decoded before it
	IP    uint64
	Space uint64
	TSC   uint64 // 0: unknown
}

// Error is the reason why decoding ended.
type Error struct {
	Code   int // pt_error_code
	Offset uint64
	// If Pending is set, IP is the address of a branch whose target the stream does not contain.
	IP      uint64
	Pending bool
}

// EndOfStream is the Code of an Error at the end of the stream.
const EndOfStream = C.pte_eos

func (e *Error) Error() string {
	return fmt.Sprintf("%s at offset %#x", C.GoString(C.pt_errstr(C.enum_pt_error_code(e.Code))), e.Offset)
}

// Decoder is libipt's instruction flow decoder of one stream and image of code.
type Decoder struct {
	d      *C.struct_heddle_ipt
	stream unsafe.Pointer
	code   []C.struct_heddle_code
	bytes  []byte
	pin    runtime.Pinner
}

// NewDecoder returns a decoder of a stream, with pieces of code in the order of their At. The
// caller closes it.
func NewDecoder(stream []byte, code []Code, cfg Config) (*Decoder, error) {
	d := &Decoder{d: (*C.struct_heddle_ipt)(C.calloc(1, C.sizeof_struct_heddle_ipt)), stream: C.CBytes(append(stream[:len(stream):len(stream)], 0))}
	for _, c := range code {
		d.code = append(d.code, C.struct_heddle_code{
			at: C.uint64_t(c.At), space: C.uint64_t(c.Space), address: C.uint64_t(c.Addr),
			length: C.uint64_t(len(c.Bytes)), offset: C.uint64_t(len(d.bytes)),
		})
		d.bytes = append(d.bytes, c.Bytes...)
	}
	if len(d.bytes) > 0 {
		d.pin.Pin(&d.bytes[0])
		d.pin.Pin(&d.code[0])
		d.d.code, d.d.bytes, d.d.pieces = &d.code[0], (*C.uint8_t)(&d.bytes[0]), C.uint64_t(len(code))
	}
	status := C.heddle_ipt_open(d.d, (*C.uint8_t)(d.stream), C.uint64_t(len(stream)), C.uint32_t(cfg.CrystalTicks), C.uint8_t(cfg.MTCShift), C.uint8_t(cfg.Nominal))
	if status < 0 {
		return nil, d.decodeError(status)
	}
	return d, nil
}

// Close frees the decoder's memory in C.
func (d *Decoder) Close() {
	C.heddle_ipt_close(d.d)
	C.free(d.stream)
	C.free(unsafe.Pointer(d.d))
	d.pin.Unpin()
}

// Sync moves forward to the next PSB packet.
func (d *Decoder) Sync() error { return d.decodeError(C.heddle_ipt_sync(d.d)) }

// Next decodes until buf is full, an event occurs or decoding ends, and returns the number of
// addresses in buf.
func (d *Decoder) Next(buf []uint64) (int, *Event, error) {
	var n C.uint64_t
	var e C.struct_heddle_event
	status := C.heddle_ipt_next(d.d, (*C.uint64_t)(&buf[0]), C.uint64_t(len(buf)), &n, &e)
	var event *Event
	if e._type != 0 {
		event = &Event{Kind: int(e._type) - 1, After: uint64(e.after), IP: uint64(e.ip), Space: uint64(e.space), TSC: uint64(e.tsc)}
	}
	return int(n), event, d.decodeError(status)
}

// decodeError returns the Error for a negative status, otherwise nil.
func (d *Decoder) decodeError(status C.int) error {
	if status >= 0 {
		return nil
	}
	var offset C.uint64_t
	C.pt_insn_get_offset(d.d.decoder, &offset)
	return &Error{Code: -int(status), Offset: uint64(offset), IP: uint64(d.d.last_ip), Pending: d.d.last != 0}
}

// Section is code in a file, for all address spaces: Size bytes at Offset.
type Section struct{ Offset, Size, Addr uint64 }

// Instructions decodes a whole stream over code in sections of a file, with libipt's block decoder
// and its caches, its fastest interface. It returns the number of instructions.
func Instructions(stream []byte, file string, sections []Section) (uint64, error) {
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	list := make([]C.struct_heddle_section, len(sections))
	for i, s := range sections {
		list[i] = C.struct_heddle_section{offset: C.uint64_t(s.Offset), size: C.uint64_t(s.Size), address: C.uint64_t(s.Addr)}
	}
	n := C.heddle_ipt_blocks((*C.uint8_t)(&stream[0]), C.uint64_t(len(stream)), name, &list[0], C.uint64_t(len(list)))
	if n < 0 {
		return 0, &Error{Code: -int(n)}
	}
	return uint64(n), nil
}
