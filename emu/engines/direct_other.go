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

func checkDirect(level arch.Level) *Problem {
	if level > arch.V2 {
		return &Problem{"cpu", level.String(), arch.V2.String() + ", as processors with AVX need an x86-64 host"}
	}
	return &Problem{"engine", Direct, Unicorn + ", as the engine direct needs an x86-64 host"}
}
