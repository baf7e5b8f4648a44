// Package engines makes the engine that a configuration names: Unicorn, which translates for any
// host and is the reference, or direct, which has an x86-64 host's own processor execute. Equal
// runs have equal results on both, except for the differences that docs/engine-differences.md lists.
package engines

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/uc"
)

// Names of engines in configurations. Auto is one of the others: see Resolve.
const (
	Auto    = "auto"
	Direct  = "direct"
	Unicorn = "unicorn"
)

// Names lists the engines that a configuration can name.
func Names() []string { return []string{Auto, Direct, Unicorn} }

// Resolve returns the engine that a configuration with this name and this level of the processor gets;
// an empty name is Auto: Direct if the host can have it. Unicorn has no processor with AVX.
func Resolve(name string, level arch.Level) string {
	if name != Auto && name != "" {
		return name
	}
	if level > arch.V2 || checkDirect(level) == nil {
		return Direct
	}
	return Unicorn
}

// Description returns the name and the version of an engine, for people and for traces.
func Description(name string) string {
	if name == Unicorn {
		v := uc.Version()
		return fmt.Sprintf("%s %d.%d.%d", Unicorn, v[0], v[1], v[2])
	}
	return name
}

// NameIn returns the engine's name in a Description.
func NameIn(description string) string {
	name, _, _ := strings.Cut(description, " ")
	if slices.Contains(Names(), name) {
		return name
	}
	return Auto
}

// A Problem is the reason why this host has no such engine, as the field of a configuration that is
// wrong.
type Problem struct {
	Field, Found, Allowed string
}

// Check returns what is wrong with an engine's name and the level of its processor on this host, or
// nil.
func Check(name string, level arch.Level) *Problem {
	if name != "" && !slices.Contains(Names(), name) {
		return &Problem{"engine", fmt.Sprintf("%q", name), strings.Join(Names(), ", ")}
	}
	if Resolve(name, level) == Direct {
		return checkDirect(level)
	}
	if level > arch.V2 {
		return &Problem{"cpu", level.String(), arch.V2.String() + " with the engine " + Unicorn + "; for AVX use the engine " + Direct}
	}
	return nil
}

// New makes an engine over the given memory. The guest sees the given number of cores. Check has
// returned nil.
func New(name string, level arch.Level, ram *mem.RAM, cores int, costs arch.Costs) (emu.CPU, error) {
	if Resolve(name, level) == Unicorn {
		return orError(uc.NewCPU(ram, cores, costs))
	}
	return newDirect(level, ram, cores, costs)
}

// orError returns a nil interface with an error.
func orError[T emu.CPU](c T, err error) (emu.CPU, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}
