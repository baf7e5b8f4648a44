// Package heapcheck has an allocator under which a use of memory that a program must not use is a fault at that
// instruction: blocks end at pages without access, and freed blocks have no access.
//
// The allocator is a shared library that is preloaded in the guest. It is compiled by the host's gcc. Programs
// that are linked statically cannot use it.
package heapcheck

import (
	_ "embed"
	"strings"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/gcc"
)

var errCompile = errs.Define("heap-check-not-compiled",
	"cannot compile the allocator of `heddle find --heap-check`",
	"It is a shared library that the host's gcc compiles when it is first used.",
	"Install gcc and the headers of the C library.")

//go:embed source/heapcheck.c
var source []byte

// GuestPath is where the guest is to see the library.
const GuestPath = "/run/heddle-heapcheck.so"

// Library returns the host's path of the library, which it compiles if it is not in the cache.
func Library() (string, error) {
	path, err := gcc.Build{
		Cache: "heddle-heapcheck", Name: "heapcheck.so", Label: "library",
		Args:    []string{"-std=gnu11", "-Wall", "-Wextra", "-O2", "-fno-builtin-malloc", "-ftls-model=initial-exec", "-shared", "-fPIC", "heapcheck.c"},
		Sources: []gcc.Source{{Path: "heapcheck.c", Text: source}},
	}.Make()
	if err != nil {
		return "", errCompile.Wrap(err)
	}
	return path, nil
}

// Preload returns an environment in which the dynamic linker loads the library before all others.
func Preload(env []string) (list []string) {
	const name = "LD_PRELOAD="
	value := GuestPath
	for _, x := range env {
		if others, is := strings.CutPrefix(x, name); is {
			value = GuestPath + ":" + others
			continue
		}
		list = append(list, x)
	}
	return append(list, name+value)
}
