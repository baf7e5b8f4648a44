package windows

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched/windows"
)

// The limits of a condition that is kept as it is, which is checked with about as many operations as its expression has.
const (
	maxJointBytes      = 1024
	maxJointOperations = 4096
)

// isJoint reports whether a condition is kept as it is: it is about several words of hidden state alone, and does not say that
// they have certain values.
func isJoint(e *symbolic.Expr) bool {
	if e.Op == symbolic.Eq && e.Bits == 1 && (e.A.IsConst() || e.B.IsConst()) {
		return false
	}
	var first pointerWord
	n, several := 0, false
	seen := map[*symbolic.Expr]bool{}
	var visit func(*symbolic.Expr) bool
	visit = func(e *symbolic.Expr) bool {
		if e == nil || seen[e] {
			return true
		}
		if seen[e] = true; len(seen) > maxJointOperations {
			return false
		}
		if e.Op == symbolic.Symbol {
			w, state := parseState(e.Name)
			w.at /= wordBytes
			if n++; n == 1 {
				first = w
			}
			several = several || w != first
			return state && e.Bits == 8 && n <= maxJointBytes
		}
		return visit(e.A) && visit(e.B) && visit(e.C)
	}
	return visit(e) && several
}

// newJoint makes the conditions of a precondition; nil: there are none.
func newJoint(conditions []*symbolic.Expr, leads func(pointerWord) int) *windows.Joint {
	if len(conditions) == 0 {
		return nil
	}
	lines, numbers := symbolic.Lines(conditions)
	for _, n := range numbers {
		lines = append(lines, fmt.Sprintf("holds %d", n))
	}
	j := compileJoint(conditions)
	j.Lines = lines
	for i := range j.Bytes {
		b := &j.Bytes[i]
		b.By = leads(pointerWord{b.Process, uint64(b.At)})
	}
	return j
}

// compileJoint makes conditions without their lines, and without the pointers that lead to their bytes.
func compileJoint(conditions []*symbolic.Expr) *windows.Joint {
	program := symbolic.Compile(conditions)
	j := &windows.Joint{}
	for _, name := range program.Symbols() {
		w, _ := parseState(name)
		j.Bytes = append(j.Bytes, windows.StateByte{Process: w.process, At: arch.Addr(w.at), By: windows.Fixed})
	}
	values := make([]symbolic.Value, len(j.Bytes))
	j.Refuses = func(b []byte) (list []int) {
		for i, v := range b {
			values[i] = symbolic.Value{Lo: uint64(v)}
		}
		n := program.FirstFalse(values)
		if n < 0 {
			return nil
		}
		symbolic.Symbols(conditions[n], func(s *symbolic.Expr) { list = append(list, slices.Index(program.Symbols(), s.Name)) })
		return list
	}
	return j
}

// jointReader reads the lines of a Joint.
type jointReader struct {
	pool       *symbolic.Pool
	parser     *symbolic.Parser
	lines      []string
	conditions []*symbolic.Expr
}

// add reads a line.
func (r *jointReader) add(line string) error {
	if r.parser == nil {
		r.pool = symbolic.NewPool()
		r.parser = symbolic.NewParser(r.pool)
	}
	r.lines = append(r.lines, line)
	var n int
	if _, err := fmt.Sscanf(line, "holds %d", &n); err != nil {
		return r.parser.ParseLine(line)
	}
	e := r.parser.Expr(n)
	if e == nil || !isJoint(e) {
		return fmt.Errorf("the number of a condition on hidden state, %d: %w", n, strconv.ErrRange)
	}
	r.conditions = append(r.conditions, e)
	return nil
}

// finish returns the conditions that were read, for memory to which some pointers lead; nil: there are none.
func (r *jointReader) finish(hidden []windows.HiddenState) *windows.Joint {
	if len(r.conditions) == 0 {
		return nil
	}
	j := compileJoint(r.conditions)
	j.Lines = r.lines
	by := map[windows.StateByte]int{}
	for _, h := range hidden {
		for i := range h.Pattern {
			by[windows.StateByte{Process: h.Process, At: h.At + arch.Addr(i)}] = h.By
		}
	}
	for i := range j.Bytes {
		b := &j.Bytes[i]
		if to, found := by[windows.StateByte{Process: b.Process, At: b.At}]; found {
			b.By = to
		}
	}
	return j
}
