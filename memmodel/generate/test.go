package generate

import (
	"fmt"
	"strings"
)

// Variant says how accesses are made.
type Variant struct {
	// Name is added to the names of tests.
	Name string
	// Write and Read are the instructions: "mov", "movnti" (writes), "xchg"
	// (writes) or "xadd" (with the lock prefix; reads).
	Write, Read string
	// Only, if positive, gives these to the Only-th access of the test, from
	// 1, and plain ones to the others.
	Only int
	// Sizes are the widths of accesses in bytes and Offsets where in the
	// location's eight bytes they lie: access n has number n modulo their
	// length. Empty means four bytes at 0.
	Sizes, Offsets []int
}

// Plain accesses are moves of four bytes.
var Plain = Variant{Write: "mov", Read: "mov"}

func (v Variant) accessOf(n int, d Direction) (op string, size, offset int) {
	op = v.Write
	if d == R {
		op = v.Read
	}
	if v.Only > 0 && v.Only != n+1 {
		op = "mov"
	}
	size = 4
	if len(v.Sizes) > 0 {
		size, offset = v.Sizes[n%len(v.Sizes)], v.Offsets[n%len(v.Offsets)]
	}
	if op == "movnti" && size < 4 {
		op = "mov"
	}
	return op, size, offset
}

// writer makes a test's text.
type writer struct {
	cycle    Cycle
	variant  Variant
	code     [][]string
	regs     []int // registers used by thread
	memory   map[string]*[8]byte
	writes   map[string]int
	places   int
	observed []string
	clauses  []string
}

var names = [...]string{"x", "y", "z", "a", "b", "c", "d", "e"}

// registers that reads fill, and that atomic writes use, by thread's order.
var regs = [...]string{"ax", "bx", "cx", "dx", "si", "di", "8", "9", "10", "11", "12", "13", "14", "15"}

// registerPart is the name of a register's part.
func registerPart(n, size int) string {
	base := regs[n]
	if base[0] >= '0' && base[0] <= '9' {
		return "%r" + base + map[int]string{8: "", 4: "d", 2: "w", 1: "b"}[size]
	}
	switch size {
	case 8:
		return "%r" + base
	case 4:
		return "%e" + base
	case 2:
		return "%" + base
	}
	if base[1] == 'x' {
		return "%" + base[:1] + "l"
	}
	return "%" + base + "l"
}

var suffix = map[int]string{1: "b", 2: "w", 4: "l", 8: "q"}

// event is an event with its values in the cycle's execution.
type event struct {
	thread int
	place  string
	sees   int64 // the value of its location's bytes before it
	number int64 // the value that a write writes
}

// executeCycle gives each event its thread and place, and walks through the writes
// of each place in the order of the cycle, which begins where the place does.
func (w *writer) executeCycle() []event {
	events := make([]event, len(w.cycle))
	thread, place, start := 0, 0, 0
	for n, e := range w.cycle {
		events[n].thread, events[n].place = thread, names[place]
		if e.External {
			thread = (thread + 1) % w.cycle.Threads()
		}
		if e.Other {
			place = (place + 1) % w.places
			start = n + 1
		}
	}
	for k := range events {
		n := (start + k) % len(events)
		w.executeAccess(n, &events[n])
	}
	return events
}

// executeAccess carries an event out on memory.
func (w *writer) executeAccess(n int, e *event) {
	m := w.memory[e.place]
	if m == nil {
		m = new([8]byte)
		w.memory[e.place] = m
	}
	_, size, offset := w.variant.accessOf(n, w.cycle[n].From)
	e.sees = littleEndian(m[offset : offset+size])
	if w.cycle[n].From == R {
		return
	}
	w.writes[e.place]++
	e.number = endsPattern(w.writes[e.place], size)
	for i := range size {
		m[offset+i] = byte(e.number >> (8 * i))
	}
}

// Test is the text of the test that asks whether the cycle can be.
func (c Cycle) Test(v Variant) string {
	w := &writer{
		cycle: c, variant: v, code: make([][]string, c.Threads()), regs: make([]int, c.Threads()),
		memory: map[string]*[8]byte{}, writes: map[string]int{}, places: max(1, c.countEdges(func(e Edge) bool { return e.Other })),
	}
	for n, e := range w.executeCycle() {
		w.emitEvent(n, e)
		if fence := c[n].Fence; fence != "" {
			w.code[e.thread] = append(w.code[e.thread], fence)
		}
	}
	return w.testText()
}

// emitEvent adds an event's instructions to the code, with the values that they must see.
func (w *writer) emitEvent(n int, e event) {
	op, size, offset := w.variant.accessOf(n, w.cycle[n].From)
	at := "(" + e.place + ")"
	if offset > 0 {
		at = fmt.Sprintf("(%s+%d)", e.place, offset)
	}
	line := func(format string, args ...any) {
		w.code[e.thread] = append(w.code[e.thread], fmt.Sprintf(format, args...))
	}
	if w.cycle[n].From == W && op == "mov" && size < 8 {
		line("mov%s $%d,%s", suffix[size], e.number, at)
		return
	}
	reg := w.regs[e.thread]
	w.regs[e.thread]++
	name := registerPart(reg, size)
	switch op {
	case "xadd":
		line("movq $0,%s", registerPart(reg, 8))
		line("lock xadd%s %s,%s", suffix[size], name, at)
	case "xchg":
		line("movq $%d,%s", e.number, registerPart(reg, 8))
		line("xchg%s %s,%s", suffix[size], name, at)
	default:
		if w.cycle[n].From == R {
			line("mov%s %s,%s", suffix[size], at, name)
			break
		}
		line("movq $%d,%s", e.number, registerPart(reg, 8))
		line("%s%s %s,%s", op, suffix[size], name, at)
		return
	}
	w.noteRegister(e.thread, reg, e.sees, w.cycle[n].From == R)
}

// endsPattern is a number of the given size with k in each of its two ends.
func endsPattern(k, size int) int64 {
	if size == 8 {
		return int64(k)<<32 | int64(k)
	}
	if size == 4 {
		return int64(k)
	}
	return int64(k) & 0x7f
}

func littleEndian(b []byte) int64 {
	var v int64
	for i := range b {
		v |= int64(b[i]) << (8 * i)
	}
	return v
}

// noteRegister notes the value that a register must hold in the cycle's execution.
func (w *writer) noteRegister(thread, reg int, v int64, asked bool) {
	name := fmt.Sprintf("%d:%s", thread, registerPart(reg, 8)[1:])
	w.observed = append(w.observed, "int64_t "+name)
	if asked {
		w.clauses = append(w.clauses, fmt.Sprintf("%s=%d", name, v))
	}
}

// testText puts the test together.
func (w *writer) testText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "X86_64 %s%s\n{\n", w.cycle.Name(), w.variant.Name)
	for _, p := range names[:w.places] {
		fmt.Fprintf(&b, " int64_t %s=0;\n", p)
	}
	b.WriteString("}\n")
	rows := 0
	for _, c := range w.code {
		rows = max(rows, len(c))
	}
	for r := -1; r < rows; r++ {
		for t, c := range w.code {
			cell := ""
			if r < 0 {
				cell = fmt.Sprintf("P%d", t)
			} else if r < len(c) {
				cell = c[r]
			}
			if t > 0 {
				b.WriteString(" |")
			}
			fmt.Fprintf(&b, " %-24s", cell)
		}
		b.WriteString(" ;\n")
	}
	for _, p := range names[:w.places] {
		w.observed = append(w.observed, p)
		if w.writes[p] > 1 {
			w.clauses = append(w.clauses, fmt.Sprintf("[%s]=%d", p, littleEndian(w.memory[p][:])))
		}
	}
	clauses := strings.Join(w.clauses, ` /\ `)
	if clauses == "" {
		clauses = "true"
	}
	fmt.Fprintf(&b, "locations [%s;]\nexists (%s)\n", strings.Join(w.observed, "; "), clauses)
	return b.String()
}
