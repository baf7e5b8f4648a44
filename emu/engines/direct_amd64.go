package engines

import (
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/direct"
	"github.com/heddle-dmt/heddle/emu/mem"
)

func newDirect(level arch.Level, ram *mem.RAM, cores int, costs arch.Costs) (emu.CPU, error) {
	return orError(direct.NewCPU(ram, cores, costs, level))
}

// checkDirect returns a Problem if the host's processor lacks instructions of the guest's.
func checkDirect(level arch.Level) *Problem {
	switch {
	case direct.HostHas(level):
		return nil
	case direct.HostHas(arch.V2):
		return &Problem{"cpu", level.String(), arch.V2.String() + ", as this host's processor lacks instructions of " + level.String() + "; use a host that has them"}
	case level > arch.V2:
		return &Problem{"cpu", level.String(), arch.V2.String() + " with the engine " + Unicorn + ", as this host's processor lacks instructions of " + arch.V2.String()}
	}
	return &Problem{"engine", Direct, Unicorn + ", as this host's processor lacks instructions of " + level.String()}
}
