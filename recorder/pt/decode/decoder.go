package decode

import (
	"io"

	"github.com/heddle-dmt/heddle/internal/zydis"
	"github.com/heddle-dmt/heddle/recorder/pt"
)

// EventKind is the kind of an event between steps.
type EventKind uint8

// Events.
const (
	// None: the steps were full.
	None EventKind = iota
	// Synchronized: decoding has begun at a PSB. IP is where the core is, if
	// tracing is on.
	Synchronized
	// Enabled: tracing is on from IP.
	Enabled
	// Disabled: tracing is off after an instruction that left user mode.
	Disabled
	// Interrupted: tracing is off before the instruction at IP.
	Interrupted
	// Diverted: an interrupt before the last step's end took the core to IP.
	Diverted
	// Space: the steps after it are in another address space.
	Space
	// Time: the time has changed. Only if Options.Time asks for it.
	Time
)

// Event is an event after the steps that are returned with it.
type Event struct {
	Kind EventKind
	// IP is an address, as the kinds say.
	IP uint64
	// Space is the number of the address space, as in the encoder's PIP.
	Space uint64
	// TSC is the last time in the stream, in ticks of the time stamp
	// counter, 0 if none.
	TSC uint64
	// Count is the number of instructions before the event.
	Count uint64
	// Offset is the first byte of the packet of the event.
	Offset uint64
}

// Options of a decoder.
type Options struct {
	// Timing is that of the encoder, without which CYC and MTC packets cannot be
	// turned into time.
	Timing pt.Timing
	// Time asks for Time events.
	Time bool
	// Start is the offset in the core's stream at which the reader begins.
	Start uint64
}

// task is the next act of the decoder for the packet that it has read.
type task uint8

const (
	nothing   task = iota
	outcomes       // of a TNT: follow them
	branch         // a TIP: go to the next indirect branch
	leave          // a TIP.PGD: go to the instruction that left user mode
	interrupt      // FUP and TIP.PGD: go to the address of the FUP
	divert         // FUP and TIP
	position       // a PSB's FUP
)

// callDepth is the number of calls that an encoder reckons with (SDM, "Indirect
// Transfer Compression for Returns").
const callDepth = 64

// Decoder decodes one core's stream.
type Decoder struct {
	src  source
	runs *runs
	opts Options
	time clock

	packet   pt.Packet
	packetAt uint64
	failed   error

	synced bool // Sync has been called
	fresh  bool // no header has been read since
	header bool // between PSB and PSBEND
	on     bool // tracing
	bound  bool // a MODE waits for its TIP
	wide   bool // a MODE has said that the code is of 64 bits
	lastIP uint64
	fup    uint64 // address of a FUP that waits for its TIP or PSBEND
	hasFUP bool
	task   task
	to     uint64 // address of the packet
	hasTo  bool
	bits   uint64 // outcomes that are not used yet
	nbits  int

	cur   *Run   // run at the present address, nil: not looked up yet, at ip
	ip    uint64 // valid if cur is nil
	space uint64
	count uint64          // instructions
	limit uint64          // count at which the code changes
	stack [callDepth]*Run // that end with calls
	top   int
	depth int
	idle  int // steps since the last packet

	// Of an interruption at which the core went over to another thread, the count
	// that the sideband has, 0: not known.
	until    uint64
	counted  bool // count is that of the core
	switches func(offset uint64) uint64
}

// NewDecoder returns a decoder that reads a stream from in. The image belongs
// to it from now on.
func NewDecoder(in io.Reader, image *Image, opts Options) *Decoder {
	src := newSource(in)
	src.base = opts.Start
	return &Decoder{
		src: src, packetAt: opts.Start, runs: newRuns(image), opts: opts, time: newClock(opts.Timing), limit: image.nextChange(),
	}
}

// Sync moves forward to the next PSB, from the beginning or after an error. A
// decoder that was never asked to syncs itself to the first. Bytes before the
// PSB are lost. It returns the PSB's offset.
func (d *Decoder) Sync() (uint64, error) {
	d.synced, d.fresh, d.header, d.on, d.bound, d.wide, d.hasFUP = true, true, false, false, false, false, false
	d.failed, d.task, d.nbits, d.cur, d.depth, d.until = nil, nothing, 0, nil, 0, 0
	d.packetAt = d.src.offset()
	if !d.src.seekPSB() {
		d.failed = d.errorAtPacket(ErrUnsynchronized)
		if d.src.err != io.EOF {
			d.failed = d.unreadable()
		}
		return 0, d.failed
	}
	d.time = newClock(d.opts.Timing)
	d.counted = d.src.offset() == 0
	return d.src.offset(), nil
}

// SetCount sets the number of instructions that the core had run before the PSB
// that Sync has found, so that the image changes at the right time.
func (d *Decoder) SetCount(n uint64) { d.count, d.counted = n, true }

// Count is the number of instructions in all steps so far.
func (d *Decoder) Count() uint64 { return d.count }

// Offset is the offset of the first byte after the packets that have been read.
func (d *Decoder) Offset() uint64 { return d.src.offset() }

// On reports whether tracing is on. At the end of a stream it is off, unless the
// recording was cut.
func (d *Decoder) On() bool { return d.on }

// Next decodes until steps is full, an event is met or decoding ends. It
// returns the number of steps, the event that comes after them, and io.EOF or
// an *Error, which repeats until Sync. There may be steps with an error too.
func (d *Decoder) Next(steps []Step) (n int, e Event, err error) {
	if d.failed != nil {
		return 0, Event{}, d.failed
	}
	for n < len(steps) {
		switch d.task {
		case nothing:
			e, err = d.readPacket()
		case outcomes:
			n, err = d.followOutcomes(steps, n)
		default:
			n, e, err = d.runToPlace(steps, n)
		}
		if err != nil {
			d.failed = err
			return n, Event{}, err
		}
		if e.Kind != None {
			e.Count, e.Offset, e.TSC, e.Space = d.count, d.packetAt, d.time.now, d.space
			return n, e, nil
		}
	}
	return n, Event{}, nil
}

// currentRun is the run at the present address, once the changes of the code that are
// due have been made, and how many of its instructions can be executed before
// the next change.
func (d *Decoder) currentRun() (*Run, uint32, error) {
	for d.count >= d.limit {
		d.runs.applyChange()
		d.limit = d.runs.image.nextChange()
	}
	if d.cur == nil || d.cur.dead {
		if d.cur != nil {
			d.ip = d.cur.Addr
		}
		d.cur = d.runs.runAt(d.space, d.ip)
	}
	r := d.cur
	if r.Count == 0 {
		d.cur, d.ip = nil, r.Addr
		return nil, 0, d.errorNoCode(r)
	}
	if left := d.limit - d.count; left < uint64(r.Count) {
		return r, uint32(left), nil
	}
	return r, r.Count, nil
}

// executePart executes the first instructions of the current run, and stops there.
func (d *Decoder) executePart(r *Run, n uint32) Step {
	d.ip = r.Addr
	for _, length := range r.lengths[:n] {
		d.ip += uint64(length)
	}
	d.cur = nil
	d.count += uint64(n)
	return Step{r, n}
}

// linkRun finds the run at an address and links it. Where there is no code it
// returns nil and leaves the address in ip.
func (d *Decoder) linkRun(link **Run, addr uint64) *Run {
	if r := *link; r != nil && !r.dead && r.Addr == addr {
		return r
	}
	r := d.runs.runAt(d.space, addr)
	if r.Count == 0 {
		d.ip = addr
		return nil
	}
	*link = r
	return r
}

// linkSuccessor finds the run after r that is not linked yet. Of the kinds that follow
// deals with it is at the target or after the end.
func (d *Decoder) linkSuccessor(r *Run, taken bool) *Run {
	switch r.Kind {
	case zydis.Return:
		return nil // back has looked, and left the address in ip
	case zydis.Straight:
		return d.linkRun(&r.behind, r.End())
	case zydis.Conditional:
		if !taken {
			return d.linkRun(&r.behind, r.End())
		}
	}
	return d.linkRun(&r.target, r.Target)
}

// pushCall remembers where a call returns to. A call to the next instruction is
// none that a return belongs to.
func (d *Decoder) pushCall(r *Run) {
	if r.Kind == zydis.Call && r.Target == r.End() {
		return
	}
	d.stack[d.top] = r
	d.top = (d.top + 1) % callDepth
	d.depth = min(d.depth+1, callDepth)
}

// popCall returns the newest call that has not returned, or nil.
func (d *Decoder) popCall() *Run {
	if d.depth == 0 {
		return nil
	}
	d.depth--
	d.top = (d.top + callDepth - 1) % callDepth
	return d.stack[d.top]
}

// runAfterCall returns the run after a call. In another address space the same address
// means other code.
func (d *Decoder) runAfterCall(call *Run) *Run {
	if b := call.behind; b != nil && !b.dead && call.space == d.space {
		return b
	}
	var elsewhere *Run
	link := &call.behind
	if call.space != d.space {
		link = &elsewhere
	}
	return d.linkRun(link, call.End())
}

// followOutcomes executes runs as the outcomes of a TNT say. It is where the decoder
// spends its time, so its working state is in local variables.
func (d *Decoder) followOutcomes(steps []Step, n int) (int, error) {
	r, count, nbits, idle := d.cur, d.count, d.nbits, d.idle
	for nbits > 0 && n < len(steps) {
		if r == nil || r.dead || count+uint64(r.Count) > d.limit {
			d.cur, d.count, d.nbits = r, count, nbits
			run, whole, err := d.currentRun()
			if err != nil {
				return n, err
			}
			if whole < run.Count {
				steps[n] = d.executePart(run, whole)
				n++
				r, count = nil, d.count
				continue
			}
			r = run
		}
		var next *Run
		switch r.Kind {
		case zydis.Conditional:
			nbits--
			if d.bits>>nbits&1 != 0 {
				next = r.target
			} else {
				next = r.behind
			}
		case zydis.Jump:
			next = r.target
		case zydis.Straight:
			next = r.behind
		case zydis.Call:
			d.pushCall(r)
			next = r.target
		case zydis.Return:
			nbits--
			call := d.popCall()
			if d.bits>>nbits&1 == 0 || call == nil {
				d.cur, d.count = r, count
				return d.rejectPacket(steps, n, r)
			}
			next = d.runAfterCall(call)
		default:
			d.cur, d.count = r, count
			return d.rejectPacket(steps, n, r)
		}
		if next == nil || next.dead {
			next = d.linkSuccessor(r, d.bits>>nbits&1 != 0)
		}
		if idle++; idle > maxIdle {
			return n, d.errorMismatch(r)
		}
		steps[n] = Step{r, r.Count}
		n++
		count += uint64(r.Count)
		r = next
	}
	d.cur, d.count, d.nbits, d.idle = r, count, nbits, idle
	if nbits == 0 {
		d.task = nothing
	}
	return n, nil
}

// rejectPacket ends decoding at the last instruction of a run, which the packet does
// not fit. Those before it have been executed.
func (d *Decoder) rejectPacket(steps []Step, n int, r *Run) (int, error) {
	err := d.errorMismatch(r)
	if r.Count > 1 {
		steps[n] = d.executePart(r, r.Count-1)
		n++
	}
	return n, err
}

// maxIdle is more runs than any code has between two branches that appear in the
// stream.
const maxIdle = 1 << 20

// runToPlace executes runs to the place that a TIP, TIP.PGD or FUP is about, and
// then carries out the packet.
func (d *Decoder) runToPlace(steps []Step, n int) (int, Event, error) {
	for n < len(steps) {
		if d.task >= interrupt && d.cur == nil && d.ip == d.fup && d.count >= d.until {
			return n, d.finishTask(), nil
		}
		r, whole, err := d.currentRun()
		if err != nil {
			return n, Event{}, err
		}
		if d.task >= interrupt {
			k, ok := r.lengthBefore(d.fup)
			if ok && k <= whole && (k < r.Count || r.Kind == zydis.Straight) && d.count+uint64(k) >= d.until {
				if k > 0 {
					steps[n] = d.executePart(r, k)
					n++
				}
				return n, d.finishTask(), nil
			}
		}
		if whole < r.Count {
			steps[n] = d.executePart(r, whole)
			n++
			continue
		}
		done := d.task == leave && d.endsWithRun(r) || d.task == branch && r.endsIndirectly()
		d.idle++
		if !done && (!r.continuesDirectly() || d.idle > maxIdle && d.count >= d.until) {
			n, err := d.rejectPacket(steps, n, r)
			return n, Event{}, err
		}
		d.passRun(r, done)
		steps[n] = Step{r, r.Count}
		n++
		d.count += uint64(r.Count)
		if done {
			return n, d.finishTask(), nil
		}
	}
	return n, Event{}, nil
}

// endsWithRun reports whether the TIP.PGD belongs to the last instruction of a run. One
// without an address belongs to a far transfer, one with an address to a branch
// that can go there.
func (d *Decoder) endsWithRun(r *Run) bool {
	switch r.Kind {
	case zydis.Far:
		return true
	case zydis.Jump, zydis.Call:
		return d.hasTo && r.Target == d.to
	case zydis.Straight:
		return false
	}
	return d.hasTo
}

// passRun continues after the last instruction of a run: where its code says, or
// where a TIP does.
func (d *Decoder) passRun(r *Run, given bool) {
	if r.Kind == zydis.Call || r.Kind == zydis.IndirectCall {
		d.pushCall(r)
	}
	switch {
	case !given:
		d.cur = d.linkSuccessor(r, true)
	case d.task == branch:
		d.cur = d.linkRun(&r.target, d.to)
	}
}

// finishTask ends the task at its place.
func (d *Decoder) finishTask() Event {
	t := d.task
	d.task, d.until = nothing, 0
	switch t {
	case leave:
		d.on = false
		return Event{Kind: Disabled}
	case interrupt:
		d.on, d.hasFUP = false, false
		return Event{Kind: Interrupted, IP: d.fup}
	case divert:
		d.hasFUP = false
		d.cur, d.ip = nil, d.to
		return Event{Kind: Diverted, IP: d.to}
	case position:
		d.hasFUP = false
	}
	return Event{}
}
