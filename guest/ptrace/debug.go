package ptrace

import (
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// PointKind is the kind of access at which a hardware breakpoint stops.
type PointKind uint8

// Kinds, as DR7 has them. Breakpoints on ports are not supported.
const (
	Execute   PointKind = 0
	Write     PointKind = 1
	ReadWrite PointKind = 3
)

// Slots is the number of hardware breakpoints.
const Slots = 4

// Point is a hardware breakpoint.
type Point struct {
	Slot int
	Kind PointKind
	Addr arch.Addr
	Len  int
}

// Overlaps reports whether the point has one of the bytes from at on.
func (p *Point) Overlaps(at arch.Addr, size int) bool {
	return at < p.Addr+arch.Addr(p.Len) && p.Addr < at+arch.Addr(size)
}

// DebugRegisters are the debug registers of a thread, as Linux lets a tracer set them.
type DebugRegisters struct {
	addr    [Slots]uint64
	status  uint64 // DR6, without the bits that are always set
	control uint64 // DR7
}

const (
	statusRegister  = 6
	controlRegister = 7
	// statusFixed are the bits of DR6 that are always set.
	statusFixed = 0xffff0ff0
)

// Get reads register n.
func (d *DebugRegisters) Get(n int) uint64 {
	switch {
	case n < Slots:
		return d.addr[n]
	case n == statusRegister:
		return d.status ^ statusFixed
	case n == controlRegister:
		return d.control
	}
	return 0
}

// Set changes register n. EIO: there is no such register. EINVAL: a breakpoint that the processor, or
// Linux, does not have.
func (d *DebugRegisters) Set(n int, value uint64) unix.Errno {
	after := *d
	switch {
	case n < Slots:
		after.addr[n] = value
	case n == statusRegister:
		after.status = value ^ statusFixed
	case n == controlRegister:
		after.control = value
	default:
		return unix.EIO
	}
	for slot := range Slots {
		if errno := after.check(slot); errno != 0 {
			return errno
		}
	}
	*d = after
	return 0
}

// enabled reports whether a slot is in use.
func (d *DebugRegisters) enabled(slot int) bool { return d.control>>(2*slot)&3 != 0 }

// point is the breakpoint of a slot.
func (d *DebugRegisters) point(slot int) Point {
	bits := d.control >> (16 + 4*slot)
	size := [...]int{1, 2, 8, 4}[bits>>2&3]
	return Point{Slot: slot, Kind: PointKind(bits & 3), Addr: arch.Addr(d.addr[slot]), Len: size}
}

// check checks a slot.
func (d *DebugRegisters) check(slot int) unix.Errno {
	p := d.point(slot)
	if p.Addr >= arch.UserEnd-arch.PageSize {
		return unix.EINVAL
	}
	if !d.enabled(slot) {
		return 0
	}
	badKind := p.Kind != Execute && p.Kind != Write && p.Kind != ReadWrite || p.Kind == Execute && p.Len != 1
	if badKind || uint64(p.Addr)%uint64(p.Len) != 0 {
		return unix.EINVAL
	}
	return 0
}

// Points are the breakpoints that are in use.
func (d *DebugRegisters) Points() []Point {
	var all []Point
	for slot := range Slots {
		if d.enabled(slot) {
			all = append(all, d.point(slot))
		}
	}
	return all
}

// InUse reports whether there are breakpoints.
func (d *DebugRegisters) InUse() bool { return d.control&0xff != 0 }

// statusStep is the bit of DR6 of a single step.
const statusStep = 0x4000

// Trap notes a debug exception: after a single step or because of breakpoints.
func (d *DebugRegisters) Trap(step bool, hits []Point) {
	d.status = 0
	if step {
		d.status = statusStep
	}
	for _, p := range hits {
		d.status |= 1 << p.Slot
	}
}
