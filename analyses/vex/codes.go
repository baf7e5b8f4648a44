package vex

import "sync"

// stepCode is the way the Machine executes a step: kinds by sizes, and frequent short
// operations.
type stepCode uint8

const (
	codeOther stepCode = iota
	codeMark
	codeGet1
	codeGet2
	codeGet4
	codeGet8
	codeGet16
	codePut1
	codePut2
	codePut4
	codePut8
	codePut16
	codeCopy
	codeLoad
	codeStore
	codeExit
	codeChoose
	codeTable // any other operation
	codeMask
	codeSign
	codeNot
	codeAdd
	codeSub
	codeAnd
	codeOr
	codeXor
	codeMul
	codeShl
	codeShr
	codeEqual
	codeDiffer
	codeBelow
	codeBelowEqual
	codeLess
	codeLessEqual
	codeAddReal
	codeSubReal
	codeMulReal
	codeDivReal
)

var kindCodes = [...]stepCode{
	StepOther: codeOther, StepMark: codeMark, StepCopy: codeCopy, StepLoad: codeLoad, StepStore: codeStore, StepExit: codeExit,
	StepChoose: codeChoose, StepGet: codeGet1, StepPut: codePut1, StepOperation: codeTable,
}

// setCode sets the code of a step, unless its operation has set it.
func (s *Step) setCode() {
	if s.Kind == StepOperation && s.code != 0 {
		return
	}
	s.code = kindCodes[s.Kind]
	if s.Kind == StepGet || s.Kind == StepPut {
		for size := uint8(1); size < min(s.Size, 16); size *= 2 {
			s.code++
		}
	}
}

// quickOp is the fast execution of an operation: a code, the mask of its bits, and the left
// shift that moves its top bit to bit 63. The zero quickOp stands for no fast execution.
type quickOp struct {
	code  stepCode
	shift uint8
	mask  uint64
}

// quickOps are those of all operations, by number.
var quickOps = sync.OnceValue(func() []quickOp {
	table := make([]quickOp, len(opNames()))
	set := func(name string, c stepCode, from, to int) {
		if op, known := opNumbers()[name]; known {
			table[op] = quickOp{c, uint8(64 - from), ^uint64(0) >> (64 - to)}
		}
	}
	names := []string{"1", "8", "16", "32", "64"}
	sizes := []int{1, 8, 16, 32, 64}
	for i, n := range sizes {
		for name, c := range map[string]stepCode{
			"Add": codeAdd, "Sub": codeSub, "And": codeAnd, "Or": codeOr, "Xor": codeXor, "Mul": codeMul, "Not": codeNot,
			"Shl": codeShl, "Shr": codeShr, "CmpEQ": codeEqual, "CasCmpEQ": codeEqual, "CmpNE": codeDiffer,
			"CasCmpNE": codeDiffer, "ExpCmpNE": codeDiffer,
		} {
			set(name+names[i], c, n, n)
		}
		for name, c := range map[string]stepCode{"CmpLT": codeBelow, "CmpLE": codeBelowEqual} {
			set(name+names[i]+"U", c, n, n)
			set(name+names[i]+"S", c+codeLess-codeBelow, n, n)
		}
		for j := i + 1; j < len(sizes); j++ {
			set(names[i]+"Uto"+names[j], codeCopy, n, sizes[j])
			set(names[i]+"Sto"+names[j], codeSign, n, sizes[j])
			set(names[j]+"to"+names[i], codeMask, n, n)
		}
	}
	for name, c := range map[string]stepCode{
		"ReinterpF64asI64": codeCopy, "ReinterpI64asF64": codeCopy, "V128to64": codeMask, "64UtoV128": codeCopy,
		"Add64F0x2": codeAddReal, "Sub64F0x2": codeSubReal, "Mul64F0x2": codeMulReal, "Div64F0x2": codeDivReal,
	} {
		set(name, c, 64, 64)
	}
	return table
})
