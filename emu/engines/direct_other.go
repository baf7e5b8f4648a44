//go:build !amd64

package engines

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

func newDirect(arch.Level, *mem.RAM, int, arch.Costs) (emu.CPU, error) {
	panic("bug: the engine direct on a host that is not x86-64")
}

func checkDirect() *Problem {
	return &Problem{"engine", Direct, Unicorn + ", as the engine direct needs an x86-64 host"}
}
