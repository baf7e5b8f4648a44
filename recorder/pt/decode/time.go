package decode

import (
	"math/bits"

	"github.com/heddle-dmt/heddle/recorder/pt"
)

// clock makes time of the timing packets, in TSC ticks (SDM, "Tracking Time").
// A TSC sets it. CYC packets count on from there, exactly, because the core's
// clock and the TSC have a fixed ratio here; MTC packets move it to the edges
// of the crystal clock that they report.
type clock struct {
	now      uint64
	ratio    uint64 // TSC ticks for 1024 cycles
	mtcShift int

	set    bool   // there has been a TSC
	tsc    uint64 // of the last one
	cycles uint64 // since then
	edge   uint64 // TSC at the crystal tick of the last TMA
	ctc    uint64 // that tick, of which 16 bits are known
	mtc    uint64 // the last MTC, extended
	timed  bool   // there has been a TMA
}

func newClock(t pt.Timing) clock {
	c := clock{ratio: t.TSCRatio}
	if c.ratio == 0 {
		c.ratio = 1024
	}
	if t.MTCPeriod > 0 {
		c.mtcShift = bits.Len64(t.MTCPeriod) - 1
	}
	return c
}

func (c *clock) applyPacket(p pt.Packet) {
	switch p.Kind {
	case pt.TSC:
		c.now, c.tsc, c.set = p.Value, p.Value, true
		c.cycles, c.timed = 0, false
	case pt.TMA:
		if c.set && !c.timed {
			c.ctc, c.mtc, c.timed = p.Value, p.Value>>c.mtcShift, true
			c.edge = c.tsc - uint64(p.Aux)
		}
	case pt.CYC:
		c.cycles += p.Value
		if c.set {
			hi, lo := bits.Mul64(c.cycles, c.ratio)
			c.now = max(c.now, c.tsc+(hi<<54|lo>>10))
		}
	case pt.MTC:
		if c.timed {
			c.mtc += (p.Value - c.mtc) & 0xff
			c.now = max(c.now, c.edge+(c.mtc<<c.mtcShift-c.ctc)*pt.CrystalTicks)
		}
	}
}
