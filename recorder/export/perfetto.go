package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/guest/linux"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// coresPID is the process under which the cores' tracks stand: no process of
// the guest has so low an id.
const coresPID = 1

// Perfetto writes a trace in the Chrome Trace Event Format ("Trace Event Format",
// the Catapult project's document), which the Perfetto UI opens: a track for each
// core with the threads that ran there, tracks for the stores that waited in its
// buffer while other threads ran, from the slice that made them until they were
// committed, a track for each thread with system calls and sync operations as
// slices, and arrows from each release of an object to the acquisition by another
// thread that followed it.
//
// Times are virtual. Clocks of cores differ by up to the scheduler's lead, so a
// thread that acquires an object can be at an earlier time than the release:
// its slices are then drawn later, by as much as it takes to follow the release.
//
// It returns the damage that it found, or the error that ended its output.
func Perfetto(out io.Writer, r *trace.Reader, mhz uint32) []error {
	p := &perfetto{
		out: bufio.NewWriterSize(out, 1<<16), mhz: uint64(max(mhz, 1)), threads: map[arch.ThreadID]*track{},
		released: map[event.ObjectID]release{}, errs: append([]error(nil), r.Damage()...),
	}
	p.beginFile()
	p.drawCores(r)
	p.drawDelays(r)
	for e, err := range mergeThreads(r) {
		if err != nil {
			p.errs = append(p.errs, err)
			continue
		}
		p.drawEvent(e)
	}
	p.endFile()
	return p.errs
}

type perfetto struct {
	out      *bufio.Writer
	mhz      uint64
	comma    bool
	errs     []error
	threads  map[arch.ThreadID]*track
	order    []*track
	released map[event.ObjectID]release
	flows    int
	last     nanos
}

// track has the open slices of a thread's track.
type track struct {
	thread arch.ThreadID
	pid    int32
	name   string
	now    nanos // of the last event
	open   []slice
}

// slice is one that has begun.
type slice struct {
	name, category string
	at             nanos
	args           map[string]any
}

// release is where an object was released last.
type release struct {
	thread arch.ThreadID
	pid    int32
	at     nanos
}

// record is one object of the format. Fields that are absent have no meaning
// there.
type record struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Time     nanos          `json:"ts"`
	Duration *nanos         `json:"dur,omitempty"`
	PID      int32          `json:"pid"`
	TID      int32          `json:"tid"`
	ID       int            `json:"id,omitempty"`
	Bind     string         `json:"bp,omitempty"`
	Scope    string         `json:"s,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// nanos is a time in nanoseconds. The format has microseconds with decimals.
type nanos uint64

// MarshalJSON implements json.Marshaler.
func (n nanos) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%d.%03d", n/1000, n%1000), nil }

func (p *perfetto) beginFile() {
	p.out.WriteString(`{"displayTimeUnit":"ns","traceEvents":[`)
	p.writeMetadata("process_name", coresPID, 0, "cores")
	p.writeSortIndex(coresPID, 0)
}

func (p *perfetto) endFile() {
	for _, t := range p.order {
		t.now = max(t.now, p.last)
		p.closeAll(t)
	}
	p.out.WriteString("\n]}\n")
	if err := p.out.Flush(); err != nil {
		p.errs = append(p.errs, err)
	}
}

func (p *perfetto) writeRecord(r record) {
	text, err := json.Marshal(r)
	if err != nil {
		panic("bug: an event has no JSON form: " + err.Error())
	}
	if p.comma {
		p.out.WriteByte(',')
	}
	p.comma = true
	p.out.WriteByte('\n')
	p.out.Write(text)
}

func (p *perfetto) writeMetadata(event string, pid, tid int32, name string) {
	p.writeRecord(record{Name: event, Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
}

func (p *perfetto) writeSortIndex(pid int32, index int) {
	p.writeRecord(record{Name: "process_sort_index", Phase: "M", PID: pid, Args: map[string]any{"sort_index": index}})
}

func (p *perfetto) writeSlice(pid, tid int32, s slice, end nanos) {
	d := max(end, s.at+1) - s.at
	p.writeRecord(record{
		Name: s.name, Category: s.category, Phase: "X", Time: s.at, Duration: &d, PID: pid, TID: tid, Args: s.args,
	})
}

func (p *perfetto) nanos(c arch.Cycles) nanos { return nanos(uint64(c) * 1000 / p.mhz) }

// running is the thread that a core runs.
type running struct {
	thread     arch.ThreadID
	begin, end arch.Cycles
}

// merge is how far apart in cycles two slices of one thread on a core may be to
// be drawn as one: a system call and a little more.
const mergeGap = 4000

// drawCores draws the threads that the cores ran.
func (p *perfetto) drawCores(r *trace.Reader) {
	var now []running
	draw := func(core int) {
		s := now[core]
		if s.thread == arch.NoThread {
			return
		}
		p.writeSlice(coresPID, int32(core), slice{
			name: fmt.Sprintf("thread %d", s.thread), category: "core", at: p.nanos(s.begin), args: map[string]any{"thread": s.thread},
		}, p.nanos(s.end))
	}
	for d, err := range trace.Get[event.Decision](r, trace.Key{Kind: trace.Decisions}, trace.Where{}) {
		if err != nil {
			p.errs = append(p.errs, err)
			continue
		}
		if d.Kind != event.DecideQuantum || d.Core < 0 || d.Core > 1<<10 {
			continue
		}
		for int(d.Core) >= len(now) {
			p.writeMetadata("thread_name", coresPID, int32(len(now)), fmt.Sprintf("core %d", len(now)))
			now = append(now, running{thread: arch.NoThread})
		}
		s := &now[d.Core]
		if s.thread == d.Thread && d.Time <= s.end+mergeGap {
			s.end = max(s.end, d.After)
			continue
		}
		draw(int(d.Core))
		*s = running{d.Thread, d.Time, d.After}
	}
	for core := range now {
		draw(core)
	}
}

// drawEvent draws one event of a thread.
func (p *perfetto) drawEvent(e any) {
	switch e := e.(type) {
	case *event.Start:
		p.drawStart(e)
	case *event.Exit:
		p.closeAll(p.moveTrack(e.Stamp))
	case *event.Signal:
		t := p.moveTrack(e.Stamp)
		p.writeRecord(record{
			Name: fmt.Sprintf("signal %d", e.Number), Category: "signal", Phase: "i", Time: t.now, PID: t.pid,
			TID: int32(t.thread), Scope: "t",
		})
	case *event.Syscall:
		p.drawSyscall(e)
	case *event.Sync:
		p.drawSync(e)
	}
}

func (p *perfetto) drawStart(e *event.Start) {
	t := p.trackOf(e.Thread)
	if t.pid != e.Process {
		t.pid = e.Process
		p.writeMetadata("process_name", t.pid, 0, fmt.Sprintf("process %d", t.pid))
	}
	t.name = fmt.Sprintf("thread %d", e.Thread)
	if e.Name != "" {
		t.name += " (" + e.Name + ")"
	}
	p.writeMetadata("thread_name", t.pid, int32(e.Thread), t.name)
}

// trackOf is a thread's track. One whose begin was lost counts as a process of its
// own.
func (p *perfetto) trackOf(id arch.ThreadID) *track {
	t := p.threads[id]
	if t == nil {
		t = &track{thread: id, pid: int32(id)}
		p.threads[id] = t
		p.order = append(p.order, t)
	}
	return t
}

// moveTrack goes to the time of an event on its thread's track.
func (p *perfetto) moveTrack(s event.Stamp) *track {
	t := p.trackOf(s.Thread)
	t.now = max(t.now, p.nanos(s.Time))
	p.last = max(p.last, t.now)
	return t
}

// pushSlice begins a slice: a nanosecond after one that begins at the same time, so
// that they nest.
func (p *perfetto) pushSlice(t *track, s slice) {
	if n := len(t.open); n > 0 {
		t.now = max(t.now, t.open[n-1].at+1)
	}
	s.at = t.now
	t.open = append(t.open, s)
}

// popSlice ends the innermost slice.
func (p *perfetto) popSlice(t *track) {
	n := len(t.open) - 1
	s := t.open[n]
	t.open = t.open[:n]
	t.now = max(t.now, s.at+1)
	p.writeSlice(t.pid, int32(t.thread), s, t.now)
}

func (p *perfetto) closeAll(t *track) {
	for len(t.open) > 0 {
		p.popSlice(t)
	}
}

// drawSyscall draws a system call. One that a signal cut short has no end: it ends
// where the next begins.
func (p *perfetto) drawSyscall(e *event.Syscall) {
	t := p.moveTrack(e.Stamp)
	n := len(t.open)
	if n > 0 && t.open[n-1].category == "syscall" {
		if e.Phase == event.Return {
			t.open[n-1].args["result"] = linux.ResultText(e.Result)
		}
		p.popSlice(t)
	}
	if e.Phase == event.Enter {
		name := linux.NameOrNumber(e.Number)
		p.pushSlice(t, slice{name: name, category: "syscall", args: map[string]any{}})
	}
}

// drawSync draws a sync operation, and the arrows that end or begin with it.
func (p *perfetto) drawSync(e *event.Sync) {
	t := p.moveTrack(e.Stamp)
	p.waitForReleases(t, e)
	if e.Phase == event.Return {
		p.drawArrows(t, e, t.now-1)
		p.unwindSlices(t, e.Op.String())
		return
	}
	p.pushSlice(t, slice{name: e.Op.String(), category: "sync", args: map[string]any{
		"object": fmt.Sprintf("%#x", uint64(e.Object)), "address": fmt.Sprintf("%#x", uint64(e.Addr)),
		"pc": fmt.Sprintf("%#x", uint64(e.PC)), "sync": e.Sync, "inner": e.Effects&event.Inner != 0,
	}})
	p.drawArrows(t, e, t.now)
	if e.Phase == event.Whole {
		p.popSlice(t)
	}
}

// eachObject calls f for each object that is acquired or released.
func eachObject(e *event.Sync, acquire, release event.Effects, f func(event.ObjectID, bool)) {
	for _, x := range []struct {
		effect event.Effects
		object event.ObjectID
		second bool
	}{
		{acquire & event.Acquire, e.Object, false},
		{acquire & event.AcquireSecond, e.Second, false},
		{release & event.Release, e.Object, true},
		{release & event.ReleaseSecond, e.Second, true},
	} {
		if x.effect != 0 && x.object != 0 {
			f(x.object, x.second)
		}
	}
}

// waitForReleases moves a thread after the releases of the objects that it acquires.
func (p *perfetto) waitForReleases(t *track, e *event.Sync) {
	eachObject(e, e.Effects, 0, func(o event.ObjectID, _ bool) {
		if r, ok := p.released[o]; ok && r.thread != t.thread {
			t.now = max(t.now, r.at+3)
			p.last = max(p.last, t.now)
		}
	})
	if n := len(t.open); n > 0 {
		// Room for the slices inside the slice that ends.
		t.now = max(t.now, t.open[n-1].at+2)
	}
}

// drawArrows draws those that end at a time in the innermost slice of a thread, and
// notes those that begin there.
func (p *perfetto) drawArrows(t *track, e *event.Sync, at nanos) {
	if len(t.open) == 0 {
		return // the begin of the operation is lost
	}
	eachObject(e, e.Effects, e.Effects, func(o event.ObjectID, releases bool) {
		if releases {
			p.released[o] = release{t.thread, t.pid, at}
			return
		}
		r, ok := p.released[o]
		if !ok || r.thread == t.thread {
			return
		}
		p.flows++
		flow := record{Name: "order", Category: "order", Phase: "s", Time: r.at, PID: r.pid, TID: int32(r.thread), ID: p.flows}
		p.writeRecord(flow)
		flow.Phase, flow.Bind, flow.Time, flow.PID, flow.TID = "f", "e", at, t.pid, int32(t.thread)
		p.writeRecord(flow)
	})
}

// unwindSlices ends the innermost slice of an operation with all that is in it.
func (p *perfetto) unwindSlices(t *track, name string) {
	for n := len(t.open); n > 0; n-- {
		if s := t.open[n-1]; s.category != "sync" || s.name != name {
			continue
		}
		for len(t.open) >= n {
			p.popSlice(t)
		}
		return
	}
}
