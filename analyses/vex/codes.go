package vex

import "sync"

// code says how the Machine carries out a step: kinds by sizes, and operations that are
// frequent and short.
type code uint8

const (
	codeOther code = iota
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
	codeTable // an operation that is none of the following
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

var kindCodes = [...]code{
	StepOther: codeOther, StepMark: codeMark, StepCopy: codeCopy, StepLoad: codeLoad, StepStore: codeStore, StepExit: codeExit,
	StepChoose: codeChoose, StepGet: codeGet1, StepPut: codePut1, StepOperation: codeTable,
}

// encode says how a step is carried out, if its operation does not say that.
func (s *Step) encode() {
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

// quickOp is how an operation is computed: by a code, on the bits of a mask, of which a
// shift by so many puts the top at the top of 64. The zero quickOp is none.
type quickOp struct {
	code  code
	shift uint8
	mask  uint64
}

// quickOps are those of all operations, by number.
var quickOps = sync.OnceValue(func() []quickOp {
	table := make([]quickOp, len(opNames()))
	set := func(name string, c code, from, to int) {
		if op, known := opNumbers()[name]; known {
			table[op] = quickOp{c, uint8(64 - from), ^uint64(0) >> (64 - to)}
		}
	}
	names := []string{"1", "8", "16", "32", "64"}
	sizes := []int{1, 8, 16, 32, 64}
	for i, n := range sizes {
		for name, c := range map[string]code{
			"Add": codeAdd, "Sub": codeSub, "And": codeAnd, "Or": codeOr, "Xor": codeXor, "Mul": codeMul, "Not": codeNot,
			"Shl": codeShl, "Shr": codeShr, "CmpEQ": codeEqual, "CasCmpEQ": codeEqual, "CmpNE": codeDiffer,
			"CasCmpNE": codeDiffer, "ExpCmpNE": codeDiffer,
		} {
			set(name+names[i], c, n, n)
		}
		for name, c := range map[string]code{"CmpLT": codeBelow, "CmpLE": codeBelowEqual} {
			set(name+names[i]+"U", c, n, n)
			set(name+names[i]+"S", c+codeLess-codeBelow, n, n)
		}
		for j := i + 1; j < len(sizes); j++ {
			set(names[i]+"Uto"+names[j], codeCopy, n, sizes[j])
			set(names[i]+"Sto"+names[j], codeSign, n, sizes[j])
			set(names[j]+"to"+names[i], codeMask, n, n)
		}
	}
	for name, c := range map[string]code{
		"ReinterpF64asI64": codeCopy, "ReinterpI64asF64": codeCopy, "V128to64": codeMask, "64UtoV128": codeCopy,
		"Add64F0x2": codeAddReal, "Sub64F0x2": codeSubReal, "Mul64F0x2": codeMulReal, "Div64F0x2": codeDivReal,
	} {
		set(name, c, 64, 64)
	}
	return table
})
