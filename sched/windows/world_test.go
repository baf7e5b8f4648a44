package windows

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// fakeWorld is a server and clients on a clock of which a cycle is a nanosecond. A request takes
// the server `work` steps; clients send what a script says.
type fakeWorld struct {
	now       arch.Cycles
	server    int64
	timers    []int64       // of the server
	outside   []arch.Cycles // of clients
	act       map[arch.Cycles]func()
	list      []*Connection
	changes   uint64
	busy      map[uint64]int // steps that a connection's request still takes
	running   int            // steps that the server runs besides
	clients   int            // steps that clients run
	silent    map[uint64]bool
	admitted  []uint64
	fired     int
	beginning int
	shapes    []uint64
	windows   []Window
	clock     uint64
	forced    int
	spins     bool   // until a request is admitted
	progress  uint64 // of the server
	works     bool   // steps are progress
}

func newFakeWorld() *fakeWorld {
	return &fakeWorld{act: map[arch.Cycles]func(){}, busy: map[uint64]int{}, silent: map[uint64]bool{}}
}

func (w *fakeWorld) IsBusy() bool                { return len(w.busy) > 0 || w.running > 0 || w.spins }
func (w *fakeWorld) IsSettled() bool             { return !w.IsBusy() && w.clients == 0 }
func (w *fakeWorld) Now() arch.Cycles            { return w.now }
func (w *fakeWorld) Pass(to arch.Cycles)         { w.now = max(w.now, to) }
func (w *fakeWorld) ServerNow() int64            { return w.server }
func (w *fakeWorld) Cycles(ns int64) arch.Cycles { return arch.Cycles(ns) }
func (w *fakeWorld) Changes() uint64             { return w.changes }
func (w *fakeWorld) Connections() []*Connection  { return w.list }
func (w *fakeWorld) OpenCalls() int              { return 0 }
func (w *fakeWorld) LogicalClock() uint64        { return w.clock }
func (w *fakeWorld) Progress() uint64            { return w.progress }
func (w *fakeWorld) Beginning(shape, _ uint64, _ []*Connection) {
	w.beginning++
	w.shapes = append(w.shapes, shape)
}

func (w *fakeWorld) Force() { w.forced++ }

func (w *fakeWorld) NextOutside() (arch.Cycles, bool) {
	if len(w.outside) == 0 {
		return 0, false
	}
	return slices.Min(w.outside), true
}

func (w *fakeWorld) NextTimer() (int64, bool) {
	if len(w.timers) == 0 {
		return 0, false
	}
	return slices.Min(w.timers), true
}

func (w *fakeWorld) DueTimers(now int64) (due []uint64) {
	for i, t := range w.timers {
		if t <= now {
			due = append(due, uint64(i))
		}
	}
	return due
}

func (w *fakeWorld) FireTimers(now int64) {
	w.server = max(w.server, now)
	for _, t := range w.timers {
		if t <= w.server {
			w.fired++
			w.running++
		}
	}
	w.timers = slices.DeleteFunc(w.timers, func(t int64) bool { return t <= w.server })
}

func (w *fakeWorld) Admit(c *Connection) {
	w.admitted = append(w.admitted, c.Number)
	w.spins = false
	w.changes++
	if c.HeldBytes > 0 {
		if c.Read += uint64(c.HeldBytes); !w.silent[c.Number] {
			w.busy[c.Number] = 3
		}
	}
	c.HoldsConnection, c.HeldBytes, c.HoldsEnd = false, 0, false
}

func (w *fakeWorld) Closing(x *Window) {
	w.windows = append(w.windows, *x)
	w.list = slices.DeleteFunc(w.list, func(c *Connection) bool { return c.Closed })
}

// connect makes connections, and send sends bytes on one.
func (w *fakeWorld) connect(n int) (made []*Connection) {
	for range n {
		c := &Connection{Number: uint64(len(w.list) + 1), Ordinal: uint64(len(w.list) + 1), HoldsConnection: true}
		w.list = append(w.list, c)
		made = append(made, c)
		w.changes++
	}
	return made
}

func (w *fakeWorld) send(c *Connection, bytes int) {
	c.HeldBytes += bytes
	c.Inputs++
	w.changes++
}

// step is a decision of the machine after one of the engine; false: nothing can happen any more.
func (w *fakeWorld) step(e *Engine) bool {
	before := w.now
	e.Step()
	switch {
	case w.IsBusy():
		w.now += 10
		w.clock++
		if w.works {
			w.progress++
		}
		w.running = max(0, w.running-1)
		for n := range w.busy {
			if w.busy[n]--; w.busy[n] == 0 {
				delete(w.busy, n)
				w.changes++
				for _, c := range w.list {
					if c.Number == n {
						c.Written += 7
					}
				}
			}
		}
	case w.clients > 0:
		w.now += 10
		w.clients--
	case len(w.outside) > 0:
		at := slices.Min(w.outside)
		w.outside = slices.DeleteFunc(w.outside, func(t arch.Cycles) bool { return t == at })
		w.now = max(w.now, at)
		if act := w.act[at]; act != nil {
			act()
		}
	default:
		return w.now != before
	}
	return true
}

// at has a client act at a time.
func (w *fakeWorld) at(t arch.Cycles, act func()) {
	w.outside = append(w.outside, t)
	w.act[t] = act
}

func (w *fakeWorld) run(t *testing.T, o Options) *Engine {
	t.Helper()
	e := New(o, w)
	for range 100_000 {
		if !w.step(e) {
			e.Finish()
			return e
		}
	}
	t.Fatalf("the run does not end: %v, %d windows", e.State(), len(w.windows))
	return nil
}

func (w *fakeWorld) causes() (list []string) {
	for _, x := range w.windows {
		list = append(list, fmt.Sprintf("%s:%d", x.Cause, x.Requests))
	}
	return list
}

var testOptions = Options{Size: 4, Timeout: 1000, TimeoutNS: 1000}

func expectCauses(t *testing.T, w *fakeWorld, want ...string) {
	t.Helper()
	if got := w.causes(); !slices.Equal(got, want) {
		t.Errorf("windows %v, want %v", got, want)
	}
}

func TestFullAndPartialWindows(t *testing.T) {
	w := newFakeWorld()
	w.at(100, func() {
		for _, c := range w.connect(6) {
			w.send(c, 10)
		}
	})
	w.run(t, testOptions)
	expectCauses(t, w, "start:0", "full:4", "partial:2")
	if first := w.windows[1].Begin; first != 100 {
		t.Errorf("the full window began at %d, want 100: as soon as nothing else can come", first)
	}
	if waited := w.windows[2].Begin - w.windows[1].End; waited != testOptions.Timeout {
		t.Errorf("the partial window began %d after the first, want the timeout", waited)
	}
}

func TestClientsThatRunDelayAFullWindow(t *testing.T) {
	w := newFakeWorld()
	w.clients = 20
	for _, c := range w.connect(4) {
		w.send(c, 10)
	}
	w.run(t, testOptions)
	expectCauses(t, w, "start:0", "full:4")
	if w.windows[1].Begin != 200 {
		t.Errorf("the window began at %d, want 200: when the clients wait", w.windows[1].Begin)
	}
}

func TestClientsThatNeverWaitDoNotStopWindows(t *testing.T) {
	w := newFakeWorld()
	w.clients = 5000
	for _, c := range w.connect(9) {
		w.send(c, 10)
	}
	w.run(t, testOptions)
	expectCauses(t, w, "start:0", "full:4", "full:4", "partial:1")
}

func TestRequestInPieces(t *testing.T) {
	w := newFakeWorld()
	c := w.connect(1)[0]
	w.silent[1] = true // the server reads, and cannot answer yet
	w.send(c, 10)
	w.at(1100, func() { w.send(c, 10) })
	w.at(1200, func() { w.silent[1] = false; w.send(c, 10) })
	w.run(t, testOptions)
	expectCauses(t, w, "start:0", "partial:1")
	if got := w.windows[1]; got.Rounds != 2 || got.Carried != 0 {
		t.Errorf("rounds %d, carried %d; want 2, 0", got.Rounds, got.Carried)
	}
}

func TestStoppedClientDoesNotHoldTheWindowOpen(t *testing.T) {
	w := newFakeWorld()
	list := w.connect(2)
	w.silent[1] = true
	w.send(list[0], 10)
	w.at(5_000, func() { w.send(list[1], 10) })
	w.at(9_000, func() { w.silent[1] = false; w.send(list[0], 10) })
	e := w.run(t, testOptions)
	expectCauses(t, w, "start:0", "partial:1", "partial:1", "partial:0")
	if w.windows[1].Carried != 1 || w.windows[2].Carried != 1 || w.windows[3].Carried != 0 {
		t.Errorf("carried %v", w.windows)
	}
	if n := len(e.Responses()); n != 2 {
		t.Errorf("%d requests were answered, want 2", n)
	}
}

func TestServerTimers(t *testing.T) {
	w := newFakeWorld()
	w.timers = []int64{50_000_000, 500_000_000}
	w.run(t, testOptions)
	expectCauses(t, w, "start:0", "timer:0", "timer:0")
	if w.server != 500_000_000 {
		t.Errorf("the server's clock is %d", w.server)
	}
}

// Windows with the same input have the same shape, except if other timers of the server are due at their begin.
func TestDueTimersArePartOfTheShape(t *testing.T) {
	w := newFakeWorld()
	c := w.connect(1)[0]
	w.send(c, 10)
	for i, timers := range [][]int64{nil, nil, {Tick / 2, 2 * Tick}, {Tick / 2, Tick * 3 / 4}} {
		w.at(arch.Cycles(10_000*(i+1)), func() {
			for i := range timers {
				timers[i] += w.server
			}
			w.timers = timers
			w.send(c, 10)
		})
	}
	w.run(t, testOptions)
	expectCauses(t, w, "start:0", "partial:1", "partial:1", "partial:1", "partial:1", "partial:1")
	if s := w.shapes; s[1] != s[2] || s[2] == s[3] || s[3] == s[4] || s[2] == s[4] {
		t.Errorf("shapes %x", s)
	}
}

func TestWorkWithoutInputIsAWindow(t *testing.T) {
	w := newFakeWorld()
	w.at(100, func() { w.running = 3 })
	w.run(t, testOptions)
	expectCauses(t, w, "start:0", "other:0")
}

func TestServerThatSpinsIsForcedOn(t *testing.T) {
	w := newFakeWorld()
	w.spins = true
	c := w.connect(1)[0]
	w.send(c, 10)
	w.run(t, testOptions)
	if w.forced == 0 || c.Written == 0 {
		t.Errorf("forced %d times; windows %v", w.forced, w.causes())
	}
}

// A server that works for long is not forced, unless it never waits.
func TestServerThatWorksIsNotForced(t *testing.T) {
	for _, x := range []struct{ timeouts, forced int }{{overlong + 1, 0}, {endless / 2, 0}, {endless + 1, 1}} {
		w := newFakeWorld()
		w.works = true
		o := Options{Size: 4, Timeout: 100, TimeoutNS: 100}
		w.running = x.timeouts * int(o.Timeout) / 10
		w.run(t, o)
		if w.forced != x.forced {
			t.Errorf("%d timeouts of work: forced %d times, want %d", x.timeouts, w.forced, x.forced)
		}
	}
}

func TestBubblesAdmitWithinAWindow(t *testing.T) {
	w := newFakeWorld()
	w.at(100, func() {
		for _, c := range w.connect(4) {
			w.send(c, 10)
		}
		w.running = 50
	})
	w.at(101, func() {})
	o := testOptions
	o.Bubble = 5
	w.run(t, o)
	if len(w.windows) != 2 || w.windows[1].Requests != 4 {
		t.Errorf("windows %v, want all requests in one", w.causes())
	}
}

// TestRandomWorlds checks for many servers and clients that every request is admitted once and
// answered, that windows hold no more than their size, and that all windows end.
func TestRandomWorlds(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newFakeWorld()
		o := Options{Size: 1 + r.IntN(6), Timeout: arch.Cycles(1 + r.IntN(2000)), TimeoutNS: int64(r.IntN(2000))}
		list := w.connect(1 + r.IntN(8))
		sent := map[uint64]int{}
		for i := range 1 + r.IntN(20) {
			at := arch.Cycles(10_000*i + r.IntN(9_000))
			c := list[r.IntN(len(list))]
			w.at(at, func() {
				w.clients = r.IntN(100)
				w.send(c, 1+r.IntN(100))
				sent[c.Number]++
			})
			if r.IntN(4) == 0 {
				w.timers = append(w.timers, int64(r.IntN(200_000_000)))
			}
		}
		timers := len(w.timers)
		w.run(t, o)
		requests := 0
		for i, x := range w.windows {
			requests += x.Requests
			if x.Requests > o.Size || x.Number != i || x.End < x.Begin {
				t.Errorf("seed %d: window %+v", seed, x)
			}
		}
		for _, c := range list {
			if c.HeldBytes > 0 || sent[c.Number] > 0 && c.Written == 0 {
				t.Errorf("seed %d: connection %d has %d bytes held and %d written", seed, c.Number, c.HeldBytes, c.Written)
			}
		}
		if w.fired != timers || w.beginning != len(w.windows)-1 {
			t.Errorf("seed %d: %d of %d timers, %d of %d windows begun", seed, w.fired, timers, w.beginning, len(w.windows)-1)
		}
	}
}

// A server with timers at shorter intervals than the timeout does not keep input waiting.
func TestTimersDoNotDelayInput(t *testing.T) {
	w := newFakeWorld()
	for at := int64(1); at <= 40; at++ {
		w.timers = append(w.timers, at*testOptions.TimeoutNS/4)
	}
	w.connect(1)
	w.run(t, testOptions)
	i := slices.IndexFunc(w.windows, func(x Window) bool { return x.Cause == Partial })
	if i < 0 || w.windows[i].Begin > 2*testOptions.Timeout {
		t.Errorf("the connection is not admitted in time: %+v", w.windows)
	}
}
