// Package dynlib has libz3 and libunicorn loaded at the first call of one of their functions. They are
// large, a run on the engine direct needs neither, and the dynamic linker took a third of the time of
// its start to load them.
//
// On x86-64 it defines the functions of the libraries. Each jumps through a table, with an entry that
// looks the function up at its first call. The linker then finds every function defined, and leaves
// the library out if a flag --as-needed precedes it, which the packages that import a binding give.
// Elsewhere the libraries are linked as usual.
//
// A process whose library is missing ends with a sentence and the status of heddle's own failures, as
// it would end at its start if the library were linked.
//
// Invariants:
//
//  1. Every function of the libraries that heddle or a binding calls is in z3_amd64.S or
//     unicorn_amd64.S, which go generate writes: the command needs neither library at its start.
//  2. Functions may be called by several threads at the same time.
package dynlib

//go:generate go run ./generate

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror
int heddle_has_z3(void);
int heddle_has_unicorn(void);
*/
import "C"

// HasZ3 reports whether libz3 can be loaded.
func HasZ3() bool { return C.heddle_has_z3() != 0 }

// HasUnicorn reports whether libunicorn can be loaded.
func HasUnicorn() bool { return C.heddle_has_unicorn() != 0 }
