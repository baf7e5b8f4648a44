// Package stores decides when the stores of a core become visible to the others, for every engine:
// places inside instructions (inside.h), buffers of stores (buffers.h) and private pages of cores
// (private.h). It is C code that engines call, with the Go types of buffers and of private pages.
// The methods are in docs/memory-models.md.
//
// Invariants:
//
//  1. While a core runs, guest memory has the values that this core sees; otherwise it has those
//     that all cores see.
//  2. What differs between engines comes through the functions that an engine gives. Equal runs
//     have equal results on every engine.
//  3. Nothing here calls Go from C.
package stores

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror -I${SRCDIR}/../mem -I${SRCDIR}/../memlog -I${SRCDIR}/../insn
#cgo LDFLAGS: -lZydis
*/
import "C"

import (
	_ "github.com/heddle-dmt/heddle/emu/insn" // C code
	_ "github.com/heddle-dmt/heddle/emu/mem"  // C code
)
