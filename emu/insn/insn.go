// Package insn answers questions about one decoded instruction that every engine asks: the memory
// that it accesses with given registers, and its effect on the order of other accesses. It is C
// code for the engines; operands.h has its functions, and Inspect asks them.
package insn

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror
#cgo LDFLAGS: -lZydis
*/
import "C"
