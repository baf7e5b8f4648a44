package races

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// step is one line of a test's trace.
type step struct {
	op            string // read, write, rewrite (what is there), atomic, free, forget, acquire, release, fork, join
	thread, other int
	addr          uint64 // or object
	size          int
}

func (s step) String() string {
	return fmt.Sprintf("%s t%d %d %d+%d", s.op, s.thread, s.other, s.addr, s.size)
}

// mode is how a trace is looked at.
type mode struct {
	order Order
	omits bool // repeated accesses
}

func (m mode) String() string {
	name := map[Order]string{HappensBefore: "happens-before", ScheduleRelative: "schedule-relative"}[m.order]
	if m.omits {
		name += " omit-repeats"
	}
	return name
}

// found runs a trace through a detector. PCs are the numbers of the steps, so that each race names
// its two steps.
func found(m mode, trace []step) []string {
	var out []string
	d := New(m.order, func(r *Race) {
		out = append(out, fmt.Sprintf("%d %d %v @%d", r.First.PC, r.Second.PC, r.Kind, r.Addr))
	})
	defer d.Close()
	if m.omits {
		d.OmitRepeats()
	}
	for i, s := range trace {
		switch s.op {
		case "acquire":
			d.Sync(s.thread, 0)
			d.Acquire(s.thread, s.addr)
		case "release":
			d.Sync(s.thread, 0)
			d.Release(s.thread, s.addr)
		case "fork": // and the child's start
			d.Sync(s.thread, 0)
			d.Fork(s.thread, s.other)
			d.Sync(s.other, 0)
		case "join": // after the child's end
			d.Sync(s.other, 0)
			d.Sync(s.thread, 0)
			d.Join(s.thread, s.other)
		case "forget":
			d.Forget(s.addr, s.addr+uint64(s.size))
		default:
			d.Access(&Access{
				Thread: s.thread, Addr: s.addr, Size: s.size, Write: s.op != "read", Atomic: s.op == "atomic",
				Other: s.op == "free", Valued: s.op == "rewrite", PC: addrOf(i),
			})
		}
	}
	return out
}

// precedes is the happens-before relation of a trace, as a matrix, from its definition: program
// order, releases before later acquires of the object, forks and joins, and the transitive closure.
func precedes(trace []step) [][]bool {
	n := len(trace)
	before := make([][]bool, n)
	for j := range before {
		before[j] = make([]bool, n) // before[j][i]: i comes before j
		for i := range j {
			a, b := trace[i], trace[j]
			edge := a.thread == b.thread ||
				a.op == "release" && b.op == "acquire" && a.addr == b.addr ||
				a.op == "fork" && a.other == b.thread ||
				b.op == "join" && b.other == a.thread ||
				a.op == "fork" && b.op == "join" && a.other == b.other // a thread that did nothing else
			if !edge {
				continue
			}
			before[j][i] = true
			for k := range i {
				before[j][k] = before[j][k] || before[i][k]
			}
		}
	}
	return before
}

func isSync(s step) bool {
	return !slices.Contains([]string{"read", "rewrite", "write", "atomic"}, s.op)
}

// overlaps reports whether a step accesses a byte.
func overlaps(s step, at uint64) bool {
	return !isSync(s) && at >= s.addr && at < s.addr+uint64(s.size)
}

// isRepeated reports, by the definition, whether an access is a repetition: its thread has accessed each
// of its bytes in the same segment, not atomically, with the same effect or a higher one and without a race
// with an earlier access, and no other thread since, unless both only read.
func isRepeated(trace []step, raced []bool, at int) bool {
	effects := map[string]int{"read": 1, "rewrite": 2, "write": 3, "atomic": 3}
	b := trace[at]
	repeats := func(byte uint64) bool {
		for i := at - 1; i >= 0; i-- {
			a := trace[i]
			switch {
			case a.thread == b.thread && (a.op == "release" || a.op == "fork"):
				return false
			case !overlaps(a, byte):
			case a.thread == b.thread && a.op != "atomic" && !raced[i] && effects[a.op] >= effects[b.op]:
				return true
			case a.thread != b.thread && (a.op != "read" || b.op != "read"):
				return false
			}
		}
		return false
	}
	for byte := b.addr; byte < b.addr+uint64(b.size); byte++ {
		if !repeats(byte) {
			return false
		}
	}
	return true
}

// clock is PEREGRINE's [m, n) of a step that accesses memory: the positions in
// the total order of its thread's operations before and after it. Step i has
// the positions 2i and 2i+1.
func clock(trace []step, at int) (m, n int) {
	m, n = -1, 2*len(trace)
	for i, s := range trace {
		position := 2 * i
		switch thread := trace[at].thread; {
		case !isSync(s):
			continue
		case s.op == "fork" && s.other == thread, s.op == "join" && s.thread == thread:
			position++
		case s.thread != thread && !(s.op == "join" && s.other == thread):
			continue
		}
		if i < at {
			m = position
		} else if n == 2*len(trace) {
			n = position
		}
	}
	return m, n
}

// concurrent reports whether, by the definitions, nothing orders two accesses.
func concurrent(order Order, trace []step, before [][]bool, i, j int) bool {
	if trace[i].thread == trace[j].thread {
		return false
	}
	if order == HappensBefore {
		return !before[j][i]
	}
	m0, n0 := clock(trace, i)
	m1, n1 := clock(trace, j)
	return m0 < n1 && m1 < n0
}

// expected finds races by comparing each access with all before it.
func expected(m mode, trace []step) map[string]bool {
	before := precedes(trace)
	kept, raced := slices.Clone(trace), make([]bool, len(trace)) // kept: repeated accesses have no bytes
	out := map[string]bool{}
	for j, b := range trace {
		if isSync(b) {
			continue
		}
		if m.omits && isRepeated(trace, raced, j) {
			kept[j].size = 0
			continue
		}
		for at := b.addr; at < b.addr+uint64(b.size); at++ {
			seen := map[int]bool{} // threads whose last read was met
			for i := j - 1; i >= 0; i-- {
				a := kept[i]
				if !overlaps(a, at) {
					continue
				}
				write := a.op != "read"
				if !write && (b.op == "read" || seen[a.thread]) {
					continue
				}
				adjacent := !write || b.op == "read" || len(seen) == 0
				if !write {
					seen[a.thread] = true
				}
				if adjacent && concurrent(m.order, trace, before, i, j) && !(a.op == "atomic" && b.op == "atomic") {
					out[fmt.Sprintf("%d %d", i, j)] = true
					raced[j] = true
				}
				if write {
					break
				}
			}
		}
	}
	return out
}

func drawTrace(t *rapid.T) []step {
	n := rapid.IntRange(1, 40).Draw(t, "length")
	threads := rapid.IntRange(2, 4).Draw(t, "threads")
	var trace []step
	for range n {
		s := step{
			op:     rapid.SampledFrom([]string{"read", "write", "rewrite", "write", "read", "atomic", "acquire", "release", "fork", "join"}).Draw(t, "op"),
			thread: rapid.IntRange(0, threads-1).Draw(t, "thread"),
			addr:   rapid.Uint64Range(0, 20).Draw(t, "addr"),
			size:   rapid.SampledFrom([]int{1, 2, 4, 8, 16}).Draw(t, "size"),
		}
		switch s.op {
		case "acquire", "release":
			s.addr, s.size = s.addr%2, 0
		case "fork", "join":
			s.other = (s.thread + rapid.IntRange(1, threads-1).Draw(t, "other")) % threads
			// A thread is made before it does anything, and joined after.
			idle := true
			for _, b := range trace {
				idle = idle && b.thread != s.other
			}
			if s.op == "fork" && !idle {
				continue
			}
		}
		if slices.ContainsFunc(trace, func(b step) bool { return b.op == "join" && b.other == s.thread }) {
			continue
		}
		trace = append(trace, s)
	}
	return trace
}

// Invariant 1, for both orders, and without repeated accesses.
func TestDetectorAgreesWithDefinition(t *testing.T) {
	for _, m := range []mode{{HappensBefore, false}, {HappensBefore, true}, {ScheduleRelative, false}} {
		rapid.Check(t, func(t *rapid.T) {
			trace := drawTrace(t)
			want := expected(m, trace)
			got := map[string]bool{}
			for _, r := range found(m, trace) {
				fields := strings.Fields(r)
				got[fields[0]+" "+fields[1]] = true
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%v: found %v, want %v in\n%v", m, got, want, trace)
			}
		})
	}
}

func addrOf(i int) arch.Addr { return arch.Addr(i) }

// A byte with a race has one without repeated accesses, too.
func TestRepeatsKeepBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trace, at := drawTrace(t), rapid.Uint64Range(0, 36).Draw(t, "byte")
		for i := range trace {
			switch {
			case overlaps(trace[i], at):
				trace[i].addr, trace[i].size = at, 1
			case !isSync(trace[i]):
				trace[i].size = 0
			}
		}
		all, kept := found(mode{HappensBefore, false}, trace), found(mode{HappensBefore, true}, trace)
		if len(all) > 0 != (len(kept) > 0) {
			t.Fatalf("%v, without repeated accesses %v in\n%v", all, kept, trace)
		}
	})
}

// TERN section 7.1: races on values that stay the same.
func TestBenign(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second Access
		benign        bool
	}{
		{"both write the same", Access{Write: true, Old: 1, Value: 2}, Access{Write: true, Old: 2, Value: 2}, true},
		{"different values", Access{Write: true, Old: 1, Value: 2}, Access{Write: true, Old: 2, Value: 3}, false},
		{"read, then written as it was", Access{Value: 2}, Access{Write: true, Old: 2, Value: 2}, true},
		{"read, then changed", Access{Value: 2}, Access{Write: true, Old: 2, Value: 3}, false},
		{"written as it was, then read", Access{Write: true, Old: 2, Value: 2}, Access{Value: 2}, true},
		{"changed, then read", Access{Write: true, Old: 1, Value: 2}, Access{Value: 2}, false},
	} {
		for _, valued := range []bool{true, false} {
			var got []bool
			d := New(HappensBefore, func(r *Race) { got = append(got, r.Benign) })
			for thread, a := range []Access{c.first, c.second} {
				a.Thread, a.Addr, a.Size, a.Valued = thread, 64, 4, valued
				d.Access(&a)
			}
			if want := []bool{c.benign && valued}; !slices.Equal(got, want) {
				t.Errorf("%s, values known %v: %v, want %v", c.name, valued, got, want)
			}
		}
	}
}

// Memory that is given out again has no past.
func TestForget(t *testing.T) {
	for _, c := range []struct {
		from, to uint64
		races    int
	}{{0, 1 << 20, 0}, {4096, 8192, 1}, {8190, 8194, 1}, {8184, 8208, 0}, {9000, 10000, 1}} {
		races := 0
		d := New(HappensBefore, func(*Race) { races++ })
		for thread := range 2 {
			if thread == 1 {
				d.Forget(c.from, c.to)
			}
			d.Access(&Access{Thread: thread, Addr: 8190, Size: 8, Write: true})
		}
		if races != c.races {
			t.Errorf("[%d, %d): %d races, want %d", c.from, c.to, races, c.races)
		}
	}
}

// An instance is counted from the thread's last synchronization operation.
func TestInstances(t *testing.T) {
	var got []Instance
	d := New(HappensBefore, func(r *Race) { got = append(got, r.First, r.Second) })
	d.Sync(0, 100)
	d.Access(&Access{Thread: 0, Addr: 8, Size: 8, Write: true, PC: 0x10, Branches: 103})
	d.Sync(1, 7)
	d.Sync(1, 9)
	d.Access(&Access{Thread: 1, Addr: 8, Size: 8, PC: 0x20, Branches: 9})
	want := []Instance{{PC: 0x10, Thread: 0, Syncs: 1, Branches: 3}, {PC: 0x20, Thread: 1, Syncs: 2}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Figure 6 of PEREGRINE: threads that use different mutexes, t1 before t0. The
// program does not order their accesses to result, the order of operations does.
func TestFigure6(t *testing.T) {
	const m0, m1, result = 100, 101, 8
	trace := []step{
		{op: "acquire", thread: 1, addr: m1},
		{op: "write", thread: 1, addr: result, size: 4},
		{op: "release", thread: 1, addr: m1},
		{op: "acquire", thread: 0, addr: m0},
		{op: "write", thread: 0, addr: result, size: 4},
		{op: "release", thread: 0, addr: m0},
	}
	if got := found(mode{order: HappensBefore}, trace); !slices.Equal(got, []string{"1 4 write-write @8"}) {
		t.Errorf("by the program's synchronization: %v", got)
	}
	if got := found(mode{order: ScheduleRelative}, trace); len(got) > 0 {
		t.Errorf("by the order of operations: %v", got)
	}
}

// The example of PEREGRINE section 3.1: [4, 8) and [5, 6) are concurrent; [4, 5)
// and [5, 6) are not.
func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		until int // where the first thread's interval that begins at 4 ends
		races int
	}{{8, 1}, {5, 0}} {
		races := 0
		d := New(ScheduleRelative, func(*Race) { races++ })
		for position := range 9 {
			switch position {
			case 4:
				d.Sync(0, 0)
				d.Access(&Access{Thread: 0, Addr: 16, Size: 8, Write: true})
				if c.until == 5 {
					d.Sync(0, 0)
				}
			case 5, 6:
				d.Sync(1, 0)
				if position == 5 {
					d.Access(&Access{Thread: 1, Addr: 16, Size: 8, At: 1})
				}
			default:
				if position != 8 || c.until == 8 {
					d.Sync(position/8, 0) // others' operations before, and t0's at 8
				}
			}
		}
		if races != c.races {
			t.Errorf("[4, %d) and [5, 6): %d races, want %d", c.until, races, c.races)
		}
	}
}

// TestJoinCode: ranges that overlap or touch become one, whatever their order.
func TestJoinCode(t *testing.T) {
	got := joinCode([]Code{{Start: 30, End: 40}, {Start: 0, End: 10}, {Start: 5, End: 8}, {Start: 10, End: 12}, {Start: 35, End: 50}, {Start: 60, End: 61}})
	if want := []Code{{Start: 0, End: 12}, {Start: 30, End: 50}, {Start: 60, End: 61}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
