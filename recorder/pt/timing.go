package pt

// Timing says which timing packets a stream holds. Time is the core's clock in
// cycles of virtual time; all of it is a model.
type Timing struct {
	// TSC writes the time stamp counter at each PSB and each time tracing is
	// turned on.
	TSC bool
	// TSCRatio is the number of TSC ticks for 1024 cycles; 0 stands for 1024.
	TSCRatio uint64
	// MTCPeriod is the number of ticks of the crystal clock between MTC packets,
	// a power of two up to 32768; 0: none. A tick is CrystalTicks of the TSC.
	// Without TSC there is nothing that the packets could be counted from.
	MTCPeriod uint64
	// CYC writes the cycles since the last one before each packet that a decoder
	// can place.
	CYC bool
}

const (
	// CrystalTicks is the number of TSC ticks for one tick of the crystal clock:
	// CPUID leaf 15H with EAX 1 and EBX CrystalTicks.
	CrystalTicks = 64
	// CoreBusRatio is the ratio in CBR packets: the core's clock never changes
	// its speed.
	CoreBusRatio = 24
)

// clock keeps the time of a core and the part of it that the stream has.
type clock struct {
	Timing
	base     uint64 // cycles at the start of the run
	now      uint64 // cycles
	lastCYC  uint64 // cycles at the last CYC
	lastMTC  uint64 // crystal ticks / MTCPeriod at the last MTC
	mtcShift int
	timed    bool // a TSC is in the stream
}

func (c *clock) init(t Timing) {
	c.Timing = t
	if c.TSCRatio == 0 {
		c.TSCRatio = 1024
	}
	for c.MTCPeriod>>c.mtcShift > 1 {
		c.mtcShift++
	}
}

func (c *clock) setClock(cycles uint64) {
	c.base = cycles
	c.now = max(c.now, cycles)
}

// timeStamp is the time stamp counter, as the core's RDTSC gives it. The product of
// clock and ratio is taken apart so that it does not overflow.
func (c *clock) timeStamp() uint64 {
	return c.now>>10*c.TSCRatio + c.now&1023*c.TSCRatio>>10
}

// appendHeader appends the timing packets of a PSB's header: TSC, TMA and CBR.
func (c *clock) appendHeader(b []byte) []byte {
	if c.TSC {
		b = c.appendTSC(b)
		b = appendCBR(b, CoreBusRatio)
	}
	return b
}

// appendTSC appends the time, and with MTC the time of the crystal clock.
// Cycles are counted anew from here.
func (c *clock) appendTSC(b []byte) []byte {
	tsc := c.timeStamp()
	b = appendTSC(b, tsc)
	c.timed = true
	c.lastCYC = c.now
	if c.MTCPeriod > 0 {
		b = appendTMA(b, tsc/CrystalTicks, tsc%CrystalTicks)
		c.lastMTC = tsc / CrystalTicks >> c.mtcShift
	}
	return b
}

// advanceTime sets the clock to cycles of the run, and writes an MTC packet if the
// crystal clock has reached the next multiple of the period. The outcomes
// before it are written first, so that they are before it in time too. If it
// has passed several multiples, a decoder finds them by the last alone, as long
// as the eight bits have not come round; then a TSC says the time.
func (e *Encoder) advanceTime(cycles uint64) {
	c := &e.clock
	c.now = max(c.now, c.base+cycles)
	if c.MTCPeriod == 0 || !c.timed {
		return
	}
	ticks := c.timeStamp() / CrystalTicks >> c.mtcShift
	switch passed := ticks - c.lastMTC; {
	case passed == 0:
	case passed < 1<<7:
		e.flushTNT()
		e.writeCycles()
		e.buf = append(e.buf, opMTC, byte(ticks))
		c.lastMTC = ticks
	default:
		e.flushTNT()
		e.buf = c.appendTSC(e.buf)
	}
}

// writeCycles writes a CYC packet if time has passed since the last.
func (e *Encoder) writeCycles() {
	c := &e.clock
	if c.CYC && c.now != c.lastCYC {
		e.buf = appendCYC(e.buf, c.now-c.lastCYC)
		c.lastCYC = c.now
	}
}
