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

// checkDirect returns a Problem if the host's processor lacks instructions of the guest's, or the host does
// not let heddle execute the code that the engine makes.
func checkDirect(level arch.Level) *Problem {
	hasV2, executes := direct.HostHas(arch.V2), direct.HostExecutes()
	var reason string
	switch {
	case !hasV2:
		reason = "this host's processor lacks instructions of " + arch.V2.String()
	case !direct.HostHas(level):
		reason = "this host's processor lacks instructions of " + level.String()
	case !executes:
		reason = "this host does not let heddle execute the code that the engine " + Direct + " makes"
	default:
		return nil
	}
	switch {
	case level == arch.V2:
		return &Problem{"engine", Direct, Unicorn + ", as " + reason}
	case hasV2 && executes:
		return &Problem{"cpu", level.String(), arch.V2.String() + ", as " + reason + "; use a host that has them"}
	}
	return &Problem{"cpu", level.String(), arch.V2.String() + " with the engine " + Unicorn + ", as " + reason}
}
