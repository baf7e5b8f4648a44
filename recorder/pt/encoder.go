package pt

import (
	"io"
	"slices"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// callDepth is the number of return addresses that decoders keep (SDM,
// "Indirect Transfer Compression for Returns").
const callDepth = 64

// Config chooses the contents of a stream. The zero value is a plain stream with one
// PSB, no timing and no compressed returns.
type Config struct {
	// PSBPeriod is the number of bytes after which a PSB is due. It is written at
	// the next point whose address is known: an indirect branch or return, an
	// Enable, or a Position. 0: only at the beginning.
	PSBPeriod uint64
	// RetCompression writes a TNT bit instead of a TIP for a return to the place
	// after its call.
	RetCompression bool
	// LoggedReturns says that the log has compressed returns (emu.CPU.CompressReturns), and a Position or
	// an Enable after each run. RetCompression has no effect then, and no PSB stands after a TIP of
	// another branch than a return.
	LoggedReturns bool
	Timing
}

// Encoder writes the packets of one core to a writer, buffered. Errors of the
// writer end the output; Flush returns them.
type Encoder struct {
	out     io.Writer
	cfg     Config
	buf     []byte
	written uint64 // bytes handed to out
	err     error

	on      bool // between TIP.PGE and TIP.PGD
	started bool
	mode    bool   // a MODE.Exec has been written since the last PSB
	lastPSB uint64 // offset
	process uint64
	lastIP  uint64
	bits    uint64 // outcomes that are in no packet yet, the oldest highest
	nbits   int
	stack   [callDepth]uint64
	top     int // index of the next entry
	depth   int // entries that count
	clock   clock
}

// bufferSize is the room for packets before they go to the writer, and reserve
// the most that the packets of one word, with a PSB and its header, need.
const (
	bufferSize = 64 << 10
	reserve    = 256
)

// NewEncoder returns an encoder that writes to out, in which nothing is traced
// yet.
func NewEncoder(out io.Writer, cfg Config) *Encoder {
	e := &Encoder{out: out, cfg: cfg, buf: make([]byte, 0, bufferSize)}
	e.clock.init(cfg.Timing)
	return e
}

// Offset is the length of the stream so far. Outcomes that wait for their
// packet to fill are not in it; while tracing is off none wait.
func (e *Encoder) Offset() uint64 { return e.written + uint64(len(e.buf)) }

// On reports whether tracing is on: an Enable was the last but for Syscall and
// Async.
func (e *Encoder) On() bool { return e.on }

// Flush hands all packets to the writer and returns the first error that it
// ever gave.
func (e *Encoder) Flush() error {
	e.drainBuffer()
	return e.err
}

func (e *Encoder) drainBuffer() {
	if e.err == nil && len(e.buf) > 0 {
		_, e.err = e.out.Write(e.buf)
	}
	e.written += uint64(len(e.buf))
	e.buf = e.buf[:0]
}

// makeRoom makes space for the packets of one word or call.
func (e *Encoder) makeRoom() {
	if len(e.buf) > bufferSize-reserve {
		e.drainBuffer()
	}
}

// Clock sets the core's clock at which the run begins whose words follow. It
// never goes back.
func (e *Encoder) Clock(at arch.Cycles) {
	e.clock.setClock(uint64(at))
	if e.on {
		e.makeRoom()
		e.advanceTime(0)
	}
}

// PIP gives the address space of the code that is traced next, as a page-table root of
// 4096 times the number. Tracing must be off.
func (e *Encoder) PIP(space uint64) {
	if e.on {
		panic("bug: the address space of a core changes while it is traced")
	}
	if space == e.process {
		return
	}
	e.process = space
	if e.started {
		e.makeRoom()
		e.buf = appendPIP(e.buf, space<<12)
	}
}

// Enable turns tracing on: the core runs in user mode from ip on, at a time of
// its clock.
func (e *Encoder) Enable(ip uint64, at arch.Cycles) {
	if e.on {
		panic("bug: tracing of a core is turned on while it is on")
	}
	e.makeRoom()
	e.Clock(at)
	if !e.started || e.isPSBDue() {
		e.syncPoint(0)
	} else if e.cfg.TSC {
		e.buf = e.clock.appendTSC(e.buf)
	}
	if !e.mode {
		e.buf = append(e.buf, opMODE, ModeExec64)
		e.mode = true
	}
	e.writeCycles()
	e.writeIPPacket(opTIPPGE, ip)
	e.on = true
}

// Syscall turns tracing off after an instruction that leaves user mode by
// itself: SYSCALL, INT n, INT3.
func (e *Encoder) Syscall() {
	e.mustBeOn()
	e.makeRoom()
	e.flushTNT()
	e.writeCycles()
	e.buf = append(e.buf, byte(IPNone)<<5|opTIPPGD)
	e.on = false
}

// Async turns tracing off before the instruction at ip: a fault there, an
// interrupt, another thread's turn.
func (e *Encoder) Async(ip uint64) {
	e.mustBeOn()
	e.makeRoom()
	e.flushTNT()
	e.writeCycles()
	e.writeIPPacket(opFUP, ip)
	e.buf = append(e.buf, byte(IPNone)<<5|opTIPPGD)
	e.on = false
}

// Position says that the core is about to run the instruction at ip, after all
// words so far: a place where a PSB may stand if one is due.
func (e *Encoder) Position(ip uint64) {
	e.mustBeOn()
	e.makeRoom()
	e.syncIfDue(ip)
}

func (e *Encoder) mustBeOn() {
	if !e.on {
		panic("bug: a core is traced that tracing is off for")
	}
}

// Log writes the packets for a branch log, in which times count from the last
// Clock or Enable. It returns how many conditional branches, indirect branches and
// returns the log has.
func (e *Encoder) Log(words []emu.BranchWord) (branches uint64) {
	if len(words) > 0 {
		e.mustBeOn()
	}
	for len(words) > 0 {
		e.makeRoom()
		w := words[0]
		if w.Tag() == emu.TagTNT && !e.cfg.CYC {
			n, outcomes := e.addWords(words)
			words = words[n:]
			branches += outcomes
			continue
		}
		words = words[1:]
		switch w.Tag() {
		case emu.TagTNT:
			outcomes, n := w.Outcomes()
			e.addOutcomes(outcomes, n)
			branches += uint64(n)
		case emu.TagTIP:
			e.writeTIP(canonical(w))
			if !e.cfg.LoggedReturns {
				e.syncIfDue(canonical(w))
			}
			branches++
		case emu.TagCall:
			e.pushCall(canonical(w))
		case emu.TagRet:
			e.writeReturn(canonical(w))
			branches++
		case emu.TagTime:
			e.advanceTime(w.Value())
		default:
			panic("bug: a branch log with a word of no known kind")
		}
	}
	return branches
}

// addWords adds the outcomes of the words from the first on, as far as they have some and there
// is room. It returns how many words it has taken and how many outcomes they had. It is the
// same as addOutcomes for each, without CYC packets.
func (e *Encoder) addWords(words []emu.BranchWord) (taken int, outcomes uint64) {
	at := len(e.buf)
	buf := slices.Grow(e.buf, bufferSize-at)[:bufferSize] // a copy of an encoder has less room
	bits, nbits := e.bits, e.nbits
	words = words[:min(len(words), (bufferSize-at)/longTNTSize)]
	for _, w := range words {
		if w.Tag() != emu.TagTNT {
			break
		}
		more, n := w.Outcomes()
		taken++
		outcomes += uint64(n)
		over := nbits + n - maxLongTNT
		if over < 0 {
			bits, nbits = bits<<(n&63)|more, nbits+n
			continue
		}
		putLongTNT(buf[at:], bits<<((n-over)&63)|more>>(over&63), maxLongTNT)
		at += longTNTSize
		bits, nbits = more&(1<<(over&63)-1), over
	}
	e.buf, e.bits, e.nbits = buf[:at], bits, nbits
	return taken, outcomes
}

// canonical is the address in the low 48 bits of a word.
func canonical(w emu.BranchWord) uint64 { return uint64(int64(w) << 16 >> 16) }

// addOutcomes adds n outcomes to the pending ones, and writes a long TNT when it
// is full.
func (e *Encoder) addOutcomes(bits uint64, n int) {
	if over := e.nbits + n - maxLongTNT; over >= 0 {
		full := e.bits<<(n-over) | bits>>over
		e.writeCycles()
		e.buf = appendLongTNT(e.buf, full, maxLongTNT)
		e.bits, e.nbits = bits&(1<<over-1), over
		return
	}
	e.bits = e.bits<<n | bits
	e.nbits += n
}

// flushTNT writes the outcomes that wait, in the fewest bytes: short TNTs of
// six are denser than a long one unless it is nearly full.
func (e *Encoder) flushTNT() {
	if e.nbits == 0 {
		return
	}
	e.writeCycles()
	if e.nbits > 7*maxShortTNT {
		e.buf = appendLongTNT(e.buf, e.bits, e.nbits)
		e.bits, e.nbits = 0, 0
		return
	}
	for e.nbits > 0 {
		n := min(e.nbits, maxShortTNT)
		e.nbits -= n
		e.buf = appendShortTNT(e.buf, e.bits>>e.nbits&(1<<n-1), n)
	}
	e.bits = 0
}

func (e *Encoder) writeTIP(target uint64) {
	e.flushTNT()
	e.writeCycles()
	e.writeIPPacket(opTIP, target)
}

// syncIfDue writes a PSB if one is due, where the core is at ip.
func (e *Encoder) syncIfDue(ip uint64) {
	if e.isPSBDue() {
		e.syncPoint(ip)
	}
}

func (e *Encoder) pushCall(next uint64) {
	e.stack[e.top] = next
	e.top = (e.top + 1) % callDepth
	e.depth = min(e.depth+1, callDepth)
}

// writeReturn writes a taken outcome for a return to where the newest call on the stack
// comes from, otherwise a TIP.
//
// The SDM has decoders pop their stack at each return, libipt only at a
// compressed one. So a return that does not match forgets the stack here: no
// later outcome then relies on an entry below, and both read the same.
func (e *Encoder) writeReturn(target uint64) {
	newest := (e.top + callDepth - 1) % callDepth
	if !e.cfg.RetCompression || e.cfg.LoggedReturns || e.depth == 0 || e.stack[newest] != target {
		e.depth = 0
		e.writeTIP(target)
	} else {
		e.top = newest
		e.depth--
		e.addOutcomes(1, 1)
	}
	e.syncIfDue(target)
}

// writeIPPacket writes a packet with an address, compressed against the last.
func (e *Encoder) writeIPPacket(op byte, ip uint64) {
	e.buf = appendIP(e.buf, op, ip, e.lastIP)
	e.lastIP = ip
}

// isPSBDue reports whether the period is over since the last PSB.
func (e *Encoder) isPSBDue() bool {
	return e.cfg.PSBPeriod > 0 && e.Offset()-e.lastPSB >= e.cfg.PSBPeriod
}

// syncPoint writes a PSB with its header: state that a decoder needs to begin
// here. With tracing on, ip is where the core is.
func (e *Encoder) syncPoint(ip uint64) {
	e.flushTNT()
	e.lastPSB = e.Offset()
	e.buf = append(e.buf, psb[:]...)
	e.buf = e.clock.appendHeader(e.buf)
	e.buf = appendPIP(e.buf, e.process<<12)
	e.lastIP, e.depth, e.started = 0, 0, true
	e.mode = e.on
	if e.on {
		e.buf = append(e.buf, opMODE, ModeExec64)
		e.writeIPPacket(opFUP, ip)
	}
	e.buf = append(e.buf, opExtension, extPSBEND)
}
