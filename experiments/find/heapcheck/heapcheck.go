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
	"github.com/heddle-dmt/heddle/internal/machine"
)

var errCompile = errs.Define("heap-check-not-compiled",
	"cannot compile the allocator of --heap-check",
	"It is a shared library that the host's gcc compiles when it is first used.",
	"Install gcc and the headers of the C library.")

//go:embed source/heapcheck.c
var source []byte

// guestPath is where the guest sees the library.
const guestPath = "/run/heddle-heapcheck.so"

// Use has the program of a configuration use the allocator.
func Use(c *machine.Config) error {
	path, err := gcc.Build{
		Cache: "heddle-heapcheck", Name: "heapcheck.so", Label: "library",
		Args:    []string{"-std=gnu11", "-Wall", "-Wextra", "-O2", "-fno-builtin-malloc", "-ftls-model=initial-exec", "-shared", "-fPIC", "heapcheck.c"},
		Sources: []gcc.Source{{Path: "heapcheck.c", Text: source}},
	}.Make()
	if err != nil {
		return errCompile.Wrap(err)
	}
	c.Mounts = append(c.Mounts[:len(c.Mounts):len(c.Mounts)], machine.Mount{Host: path, Guest: guestPath})
	const name = "LD_PRELOAD="
	value, env := guestPath, []string(nil)
	for _, x := range c.Env {
		if other, is := strings.CutPrefix(x, name); is {
			value = guestPath + ":" + other
			continue
		}
		env = append(env, x)
	}
	c.Env = append(env, name+value)
	return nil
}
