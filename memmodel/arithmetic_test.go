package memmodel_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// randomInstruction draws an instruction on registers and one location.
func randomInstruction(t *rapid.T) string {
	size := rapid.IntRange(0, 3).Draw(t, "size")
	suffix := "bwlq"[size : size+1]
	names := [][]string{{"%al", "%bl", "%cl", "%r8b"}, {"%ax", "%bx", "%cx", "%r8w"}, {"%eax", "%ebx", "%ecx", "%r8d"}, {"%rax", "%rbx", "%rcx", "%r8"}}
	reg := func(size int) string { return rapid.SampledFrom(names[size]).Draw(t, "reg") }
	place := func() string {
		return rapid.SampledFrom([]string{"(x)", "(x+1)", "(x+3)", "(%rdi)", "4(%rdi,%rsi,2)", reg(size), reg(size)}).Draw(t, "place")
	}
	number := func() string {
		return fmt.Sprintf("$%d", rapid.SampledFrom([]int{0, 1, -1, 127, -128, 5}).Draw(t, "number"))
	}
	condition := rapid.SampledFrom([]string{"o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"}).Draw(t, "condition")
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0, 1:
		op := rapid.SampledFrom([]string{"add", "sub", "and", "or", "xor", "cmp", "mov", "test"}).Draw(t, "op")
		return fmt.Sprintf("%s%s %s,%s", op, suffix, number(), place())
	case 2:
		op := rapid.SampledFrom([]string{"add", "sub", "and", "or", "xor", "cmp", "mov", "test"}).Draw(t, "op")
		return fmt.Sprintf("%s%s %s,%s", op, suffix, reg(size), place())
	case 3:
		op := rapid.SampledFrom([]string{"add", "sub", "and", "or", "xor", "cmp", "mov"}).Draw(t, "op")
		return fmt.Sprintf("%s%s %s,%s", op, suffix, place(), reg(size))
	case 4:
		op := rapid.SampledFrom([]string{"inc", "dec", "neg", "not"}).Draw(t, "op")
		return fmt.Sprintf("%s%s %s", op, suffix, place())
	case 5:
		op := rapid.SampledFrom([]string{"xadd", "cmpxchg", "xchg", "lock xadd", "lock cmpxchg"}).Draw(t, "op")
		at := place()
		if strings.HasPrefix(op, "lock") {
			at = "(x+2)"
		}
		return fmt.Sprintf("%s%s %s,%s", op, suffix, reg(size), at)
	case 6:
		return fmt.Sprintf("set%s %s", condition, rapid.SampledFrom([]string{"%al", "%ah", "%dl", "(x)", "%r8b"}).Draw(t, "byte"))
	case 7:
		size = max(size, 1)
		return fmt.Sprintf("cmov%s%s %s,%s", condition, "bwlq"[size:size+1], place(), reg(size))
	}
	from := rapid.IntRange(0, size).Draw(t, "from")
	if from == size {
		return fmt.Sprintf("lea%s 3(%%rax,%%rbx,4),%s", "wwlq"[size:size+1], reg(max(size, 1)))
	}
	if size == 3 && from == 2 {
		return "movslq (x)," + reg(3)
	}
	return fmt.Sprintf("mov%s%s%s (x),%s", rapid.SampledFrom([]string{"z", "s"}).Draw(t, "sign"), "bwlq"[from:from+1], suffix, reg(size))
}

// TestInterpreterAgreesWithEngine runs random code in one thread under both:
// the axiomatic checker has its own idea of every instruction.
func TestInterpreterAgreesWithEngine(t *testing.T) {
	m := newMachine(t)
	rapid.Check(t, func(rt *rapid.T) {
		var texts []string
		for range 4 {
			var b strings.Builder
			b.WriteString("X86_64 random\n{ uint64_t x=0x8091a2b3c4d5e6f7; 0:rdi=x; 0:rsi=1;\nint64_t 0:rax=0x1122334455667788; int64_t 0:rbx=-1; int64_t 0:rcx; int64_t 0:rdx=7; int64_t 0:r8=0x80; }\nP0;\n")
			for range rapid.IntRange(1, 8).Draw(rt, "n") {
				b.WriteString(randomInstruction(rt) + ";\n")
			}
			b.WriteString("locations [x; 0:rax; 0:rbx; 0:rcx; 0:rdx; 0:r8;]\nforall true\n")
			texts = append(texts, b.String())
		}
		tests, codes := parseAll(t, texts)
		for i, test := range tests {
			agree(t, m, test, codes[i])
		}
	})
}
