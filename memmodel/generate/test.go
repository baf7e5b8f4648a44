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

func (v Variant) access(n int, d Direction) (op string, size, offset int) {
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
	observed []string
	clauses  []string
}

var names = [...]string{"x", "y", "z", "a", "b", "c", "d", "e"}

// registers that reads fill, and that atomic writes use, by thread's order.
var regs = [...]string{"ax", "bx", "cx", "dx", "si", "di", "8", "9", "10", "11", "12", "13", "14", "15"}

// register is the name of a register's part.
func register(n, size int) string {
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

// Test is the text of the test that asks whether the cycle can be.
func (c Cycle) Test(v Variant) string {
	w := &writer{
		cycle: c, variant: v, code: make([][]string, c.Threads()), regs: make([]int, c.Threads()),
		memory: map[string]*[8]byte{}, writes: map[string]int{},
	}
	others := c.count(func(e Edge) bool { return e.Other })
	thread, place := 0, 0
	for n, e := range c {
		w.event(n, e.From, thread, names[place])
		if e.Fence != "" {
			w.code[thread] = append(w.code[thread], e.Fence)
		}
		if e.External {
			thread = (thread + 1) % c.Threads()
		}
		if e.Other {
			place = (place + 1) % others
		}
	}
	return w.text(max(others, 1))
}

// event adds an access to the code, with what it must see.
func (w *writer) event(n int, d Direction, thread int, place string) {
	op, size, offset := w.variant.access(n, d)
	at := "(" + place + ")"
	if offset > 0 {
		at = fmt.Sprintf("(%s+%d)", place, offset)
	}
	m := w.memory[place]
	if m == nil {
		m = new([8]byte)
		w.memory[place] = m
	}
	reg := w.regs[thread]
	emit := func(format string, args ...any) {
		w.code[thread] = append(w.code[thread], fmt.Sprintf(format, args...))
	}
	name := register(reg, size)
	if d == R {
		w.regs[thread]++
		if op == "xadd" {
			emit("movq $0,%s", register(reg, 8))
			emit("lock xadd%s %s,%s", suffix[size], name, at)
		} else {
			emit("mov%s %s,%s", suffix[size], at, name)
		}
		w.sees(thread, reg, value(m[offset:offset+size]), true)
		return
	}
	w.writes[place]++
	number := pattern(w.writes[place], size)
	if op == "mov" && size < 8 {
		emit("mov%s $%d,%s", suffix[size], number, at)
	} else {
		w.regs[thread]++
		emit("movq $%d,%s", number, register(reg, 8))
		if op == "xchg" {
			w.sees(thread, reg, value(m[offset:offset+size]), false)
			emit("xchg%s %s,%s", suffix[size], name, at)
		} else {
			emit("%s%s %s,%s", op, suffix[size], name, at)
		}
	}
	for i := range size {
		m[offset+i] = byte(number >> (8 * i))
	}
}

// pattern is a number of the given size with k in each of its two ends.
func pattern(k, size int) int64 {
	if size == 8 {
		return int64(k)<<32 | int64(k)
	}
	if size == 4 {
		return int64(k)
	}
	return int64(k) & 0x7f
}

func value(b []byte) int64 {
	var v int64
	for i := range b {
		v |= int64(b[i]) << (8 * i)
	}
	return v
}

// sees notes what a register must hold in the cycle's execution.
func (w *writer) sees(thread, reg int, v int64, asked bool) {
	name := fmt.Sprintf("%d:%s", thread, register(reg, 8)[1:])
	w.observed = append(w.observed, "int64_t "+name)
	if asked {
		w.clauses = append(w.clauses, fmt.Sprintf("%s=%d", name, v))
	}
}

// text puts the test together.
func (w *writer) text(places int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "X86_64 %s%s\n{\n", w.cycle.Name(), w.variant.Name)
	for _, p := range names[:places] {
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
	for _, p := range names[:places] {
		w.observed = append(w.observed, p)
		if w.writes[p] > 1 {
			w.clauses = append(w.clauses, fmt.Sprintf("[%s]=%d", p, value(w.memory[p][:])))
		}
	}
	clauses := strings.Join(w.clauses, ` /\ `)
	if clauses == "" {
		clauses = "true"
	}
	fmt.Fprintf(&b, "locations [%s;]\nexists (%s)\n", strings.Join(w.observed, "; "), clauses)
	return b.String()
}
