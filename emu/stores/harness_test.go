package stores_test

import (
	"flag"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/direct"
	"github.com/heddle-dmt/heddle/emu/emutest"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/uc"
)

// Random tests draw the same numbers in every run, so that a failure means a
// change; -rapid.seed chooses others.
func init() {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
}

// engine makes a CPU with four cores.
type engine struct {
	name string
	make func(*mem.RAM) (emu.CPU, error)
}

var engines = []engine{
	{"unicorn", func(ram *mem.RAM) (emu.CPU, error) { return uc.NewCPU(ram, 4, arch.DefaultCosts()) }},
	{"direct", func(ram *mem.RAM) (emu.CPU, error) { return direct.NewCPU(ram, 4, arch.DefaultCosts(), arch.V2) }},
}

// onEngines runs a test on each engine.
func onEngines(t *testing.T, test func(*testing.T, engine)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { test(t, e) })
	}
}

const (
	codeBase  = emutest.CodeBase
	dataBase  = emutest.DataBase
	stackBase = emutest.StackBase
)

type bench struct{ *emutest.Machine[emu.CPU] }

func (e engine) newBench(t testing.TB, source string) *bench {
	t.Helper()
	return &bench{emutest.New(t, e.make, emutest.NewRAM(t), emutest.Assemble(t, source))}
}
