package decode

import (
	"io"
	"math/bits"

	"github.com/heddle-dmt/heddle/recorder/pt"
)

func (d *Decoder) unreadable() error {
	return &Error{Offset: d.packetAt, Kind: ErrUnreadable, err: ErrUnreadable.Wrap(d.src.err, d.packetAt)}
}

// readPacket reads the next packet and carries it out, or sets the task that it
// takes.
func (d *Decoder) readPacket() (Event, error) {
	if !d.synced {
		if _, err := d.Sync(); err != nil {
			return Event{}, err
		}
	}
	d.idle = 0
	d.packetAt = d.src.offset()
	b := d.src.windowBytes()
	if len(b) == 0 {
		return Event{}, d.endStream()
	}
	if op := b[0]; op&1 == 0 && op > 2 && d.on && !d.header && !d.hasFUP && !d.bound {
		return Event{}, d.readShortTNT(op)
	}
	var err error
	if d.packet, err = pt.Parse(b); err != nil {
		if err == pt.ErrShort && d.src.err != io.EOF {
			return Event{}, d.unreadable()
		}
		return Event{}, d.malformed(err)
	}
	e, err := d.applyPacket()
	if err == nil {
		d.src.pos += d.packet.Size
	}
	return e, err
}

// readShortTNT reads the most frequent packet, a short TNT, in the shortest way.
func (d *Decoder) readShortTNT(op byte) error {
	n := bits.Len8(op) - 2
	d.packet = pt.Packet{Kind: pt.TNT, Size: 1}
	d.task, d.bits, d.nbits = outcomes, uint64(op>>1), n
	d.src.pos++
	return nil
}

// endStream handles the end of the stream.
func (d *Decoder) endStream() error {
	switch {
	case d.src.err != io.EOF:
		return d.unreadable()
	case d.header:
		return d.errorAtPacket(ErrTruncated, "a PSB's header")
	case d.hasFUP || d.bound:
		return d.errorAtPacket(ErrTruncated, "a group of packets")
	}
	return io.EOF
}

func (d *Decoder) applyPacket() (Event, error) {
	p := d.packet
	switch p.Kind {
	case pt.PAD, pt.MNT:
		return Event{}, nil
	case pt.TSC, pt.TMA, pt.MTC, pt.CYC, pt.CBR:
		return d.applyTiming(), nil
	}
	if d.header {
		return d.applyHeader()
	}
	if d.bound && p.Kind != pt.TIP && p.Kind != pt.TIPPGE {
		return Event{}, d.misplaced("a MODE packet before it waits for a TIP")
	}
	if d.hasFUP && p.Kind != pt.TIP && p.Kind != pt.TIPPGD {
		return Event{}, d.misplaced("a FUP before it waits for a TIP")
	}
	d.bound = false
	switch p.Kind {
	case pt.PSB:
		d.header, d.lastIP = true, 0
		return Event{}, nil
	case pt.MODE:
		d.bound = true
		return Event{}, d.applyMode()
	case pt.TIPPGE:
		return d.enableTracing()
	case pt.PIP:
		if d.on {
			return Event{}, d.misplaced("tracing is on")
		}
		return d.enterSpace()
	case pt.TNT, pt.TIP, pt.TIPPGD, pt.FUP:
		return Event{}, d.flowPacket()
	case pt.PSBEND:
		return Event{}, d.misplaced("there is no PSB before it")
	}
	return Event{}, d.errorAtPacket(ErrForeign, p.Kind)
}

// applyHeader reads a packet between PSB and PSBEND.
func (d *Decoder) applyHeader() (Event, error) {
	switch p := d.packet; p.Kind {
	case pt.MODE:
		return Event{}, d.applyMode()
	case pt.PIP:
		if d.on && p.Value>>12 != d.space {
			return Event{}, d.misplaced("tracing is on in another address space")
		}
		return d.enterSpace()
	case pt.FUP:
		if d.hasFUP {
			return Event{}, d.misplaced("there is one before it")
		}
		if !d.fresh && !d.on {
			return Event{}, d.misplaced("tracing is off")
		}
		var ok bool
		if d.fup, ok = d.resolveIP(); !ok {
			return Event{}, d.misplaced("it has no address")
		}
		d.hasFUP = true
		return Event{}, nil
	case pt.PSBEND:
		return d.endHeader()
	case pt.OVF, pt.TraceStop, pt.VMCS, pt.PTW, pt.EXSTOP, pt.MWAIT, pt.PWRE, pt.PWRX:
		return Event{}, d.errorAtPacket(ErrForeign, p.Kind)
	}
	return Event{}, d.misplaced("it is within a PSB's header")
}

// endHeader ends a PSB's header. Decoding begins after it, or continues to its
// address.
func (d *Decoder) endHeader() (Event, error) {
	d.header = false
	if d.fresh {
		d.fresh, d.on = false, d.hasFUP
		if d.on && !d.wide {
			return Event{}, d.misplaced("no MODE packet has given the width of the code")
		}
		e := Event{Kind: Synchronized}
		if d.on {
			d.hasFUP = false
			d.cur, d.ip, e.IP = nil, d.fup, d.fup
		}
		return e, nil
	}
	if d.on && !d.hasFUP {
		return Event{}, d.misplaced("tracing is on, and the header has no FUP")
	}
	if d.on {
		d.task = position
	}
	return Event{}, nil
}

// resolveIP resolves the address of an IP packet.
func (d *Decoder) resolveIP() (uint64, bool) {
	ip, ok := d.packet.Resolve(d.lastIP)
	d.lastIP = ip
	return ip, ok
}

// applyMode accepts 64-bit mode alone.
func (d *Decoder) applyMode() error {
	if d.packet.Value&^4 != pt.ModeExec64 { // bit 2 is the interrupt flag
		return d.errorAtPacket(ErrForeign, d.packet.Kind)
	}
	d.wide = true
	return nil
}

// enterSpace goes over to another address space, which is known by a number.
func (d *Decoder) enterSpace() (Event, error) {
	space := d.packet.Value >> 12
	if d.packet.Value != space<<12 || d.packet.Aux != 0 {
		return Event{}, d.errorAtPacket(ErrForeign, d.packet.Kind)
	}
	if space == d.space {
		return Event{}, nil
	}
	d.space = space
	if d.fresh {
		return Event{}, nil
	}
	return Event{Kind: Space}, nil
}

func (d *Decoder) enableTracing() (Event, error) {
	if d.on {
		return Event{}, d.misplaced("tracing is on")
	}
	ip, ok := d.resolveIP()
	if !ok {
		return Event{}, d.misplaced("it has no address")
	}
	if !d.wide {
		return Event{}, d.misplaced("no MODE packet has given the width of the code")
	}
	d.on, d.cur, d.ip = true, nil, ip
	return Event{Kind: Enabled, IP: ip}, nil
}

// flowPacket sets the task of a packet about the flow of instructions.
func (d *Decoder) flowPacket() error {
	if !d.on {
		return d.misplaced("tracing is off")
	}
	p := d.packet
	if p.Kind == pt.TNT {
		d.task, d.bits, d.nbits = outcomes, p.Value, int(p.Aux)
		return nil
	}
	ip, ok := d.resolveIP()
	switch {
	case p.Kind == pt.TIPPGD && d.hasFUP:
		d.task = interrupt
		if d.switches != nil && d.counted {
			d.until = d.switches(d.packetAt + uint64(p.Size))
		}
	case p.Kind == pt.TIPPGD:
		d.task, d.to, d.hasTo = leave, ip, ok
	case !ok:
		return d.misplaced("it has no address")
	case p.Kind == pt.FUP:
		d.fup, d.hasFUP = ip, true
	case d.hasFUP:
		d.task, d.to = divert, ip
	default:
		d.task, d.to = branch, ip
	}
	return nil
}

// applyTiming takes the time from a packet.
func (d *Decoder) applyTiming() Event {
	before := d.time.now
	d.time.applyPacket(d.packet)
	if d.opts.Time && d.time.now != before && !d.header {
		return Event{Kind: Time}
	}
	return Event{}
}
