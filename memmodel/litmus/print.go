package litmus

import (
	"fmt"
	"strings"
)

// String is the test in herd's format, in AT&T's notation. Parsing it gives
// the test again.
func (t *Test) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", t.Arch, t.Name)
	if t.Doc != "" {
		fmt.Fprintf(&b, "\"%s\"\n", t.Doc)
	}
	for _, m := range t.Meta {
		fmt.Fprintf(&b, "%s=%s\n", m.Key, m.Value)
	}
	t.writeInitial(&b)
	t.writeCode(&b)
	if len(t.Locations) > 0 {
		b.WriteString("locations [")
		for _, l := range t.Locations {
			fmt.Fprintf(&b, "%s;", l)
		}
		b.WriteString("]\n")
	}
	if t.Filter != nil {
		fmt.Fprintf(&b, "filter (%s)\n", t.Filter)
	}
	fmt.Fprintf(&b, "%s (%s)\n", t.Quant, t.Cond)
	return b.String()
}

func (t *Test) writeInitial(b *strings.Builder) {
	b.WriteString("{\n")
	for _, v := range t.Vars {
		prefix := ""
		if v.Typed {
			prefix = v.Type.Name + " "
		}
		var values []string
		for _, x := range v.Init {
			values = append(values, x.String())
		}
		switch {
		case v.Array:
			fmt.Fprintf(b, " %s%s[%d]={%s};\n", prefix, v.Name, v.Count, strings.Join(values, ","))
		case len(values) == 0:
			fmt.Fprintf(b, " %s%s=0;\n", prefix, v.Name)
		default:
			fmt.Fprintf(b, " %s%s=%s;\n", prefix, v.Name, values[0])
		}
	}
	for _, r := range t.Regs {
		prefix := ""
		if r.Typed {
			prefix = r.Type.Name + " "
		}
		fmt.Fprintf(b, " %s%d:%s=%s;\n", prefix, r.Thread, regNames[r.Reg], r.Value)
	}
	b.WriteString("}\n")
}

// writeCode prints the table in columns.
func (t *Test) writeCode(b *strings.Builder) {
	columns := make([][]string, len(t.Threads))
	rows := 0
	for i := range t.Threads {
		columns[i] = append([]string{fmt.Sprintf("P%d", i)}, t.sourceLines(i)...)
		rows = max(rows, len(columns[i]))
	}
	for r := range rows {
		for i, c := range columns {
			width, cell := 0, ""
			for _, text := range c {
				width = max(width, len(text))
			}
			if r < len(c) {
				cell = c[r]
			}
			end := " |"
			if i == len(columns)-1 {
				end = " ;\n"
			}
			fmt.Fprintf(b, " %-*s%s", width, cell, end)
		}
	}
}

// sourceLines is a thread's code, an instruction a line, with labels for jumps.
func (t *Test) sourceLines(thread int) []string {
	code := t.Threads[thread].Code
	targets := map[int]bool{}
	for _, in := range code {
		if operations[in.Op].shape == shapeJump {
			targets[in.Target] = true
		}
	}
	var lines []string
	for i, in := range code {
		text := t.symbolicText(in, fmt.Sprintf("L%d", in.Target))
		if targets[i] {
			text = fmt.Sprintf("L%d: %s", i, text)
		}
		lines = append(lines, text)
	}
	return lines
}

// symbolicText is the assembly of an instruction with locations by name.
func (t *Test) symbolicText(in Instr, label string) string {
	if in.Op == "ret" {
		return "ret"
	}
	return t.formatInstr(in, label, t.namedOperand)
}

// namedOperand is an operand with its location by name.
func (t *Test) namedOperand(o Operand, size int) string {
	if o.Sym == "" || o.Kind == RegOperand {
		return t.operandText(o, size)
	}
	if o.Kind == ImmOperand {
		return "$" + o.Sym
	}
	s := o.Sym
	if o.Imm != 0 {
		s += fmt.Sprintf("+%d", o.Imm)
	}
	if o.Reg == NoReg && o.Index == NoReg {
		return "(" + s + ")"
	}
	o.Sym, o.Imm = "", 0
	return s + strings.TrimPrefix(t.operandText(o, size), "0")
}

// Source is instruction i of a thread, with locations by name.
func (t *Test) Source(thread, i int) string {
	in := t.Threads[thread].Code[i]
	return t.symbolicText(in, fmt.Sprintf("L%d", in.Target))
}
