package litmus

import "strings"

// Reg is a general register, numbered as in the encoding of instructions
// (rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6, rdi 7, r8 to r15).
type Reg int8

// NoReg stands for the absence of a register.
const NoReg Reg = -1

var regNames = [16]string{
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
}

// view is a part of a register under its own name.
type view struct {
	reg  Reg
	size int
	high bool // ah, ch, dh, bh
}

var views = makeViews()

func makeViews() map[string]view {
	m := map[string]view{}
	for i, name := range regNames {
		r := Reg(i)
		m[name] = view{r, 8, false}
		if i >= 8 {
			m[name+"d"], m[name+"w"], m[name+"b"] = view{r, 4, false}, view{r, 2, false}, view{r, 1, false}
			continue
		}
		m["e"+name[1:]], m[name[1:]] = view{r, 4, false}, view{r, 2, false}
		if i < 4 {
			m[name[1:2]+"l"], m[name[1:2]+"h"] = view{r, 1, false}, view{r, 1, true}
		} else {
			m[name[1:]+"l"] = view{r, 1, false}
		}
	}
	return m
}

// lookUpReg finds a register by any of its names, in either case.
func lookUpReg(name string) (view, bool) {
	v, ok := views[strings.ToLower(name)]
	return v, ok
}

// partName is the assembler's name of the part.
func (v view) partName() string {
	full := regNames[v.reg]
	if v.reg >= 8 {
		return full + map[int]string{8: "", 4: "d", 2: "w", 1: "b"}[v.size]
	}
	switch {
	case v.size == 8:
		return full
	case v.size == 4:
		return "e" + full[1:]
	case v.size == 2:
		return full[1:]
	case v.high:
		return full[1:2] + "h"
	case v.reg < 4:
		return full[1:2] + "l"
	}
	return full[1:] + "l"
}
