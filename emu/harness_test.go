package emu_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/direct"
	"github.com/heddle-dmt/heddle/emu/emutest"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/emu/uc"
)

// engines are those that the tests of this package run on.
var engines = []struct {
	name string
	open func(*mem.RAM) (emu.CPU, error)
}{
	{"unicorn", func(ram *mem.RAM) (emu.CPU, error) { return uc.NewCPU(ram, 4, arch.DefaultCosts()) }},
	{"direct", func(ram *mem.RAM) (emu.CPU, error) { return direct.NewCPU(ram, 4, arch.DefaultCosts(), arch.V2) }},
}

// tester is a test with the engine that it runs on.
type tester struct {
	*testing.T
	open func(*mem.RAM) (emu.CPU, error)
}

func onEngines(t *testing.T, test func(tester)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { test(tester{t, e.open}) })
	}
}

const (
	codeBase  = emutest.CodeBase
	dataBase  = emutest.DataBase
	stackBase = emutest.StackBase
)

type bench struct{ *emutest.Machine[emu.CPU] }

func newBench(t tester, source string) *bench {
	t.Helper()
	return newBenchOf(t, emutest.Assemble(t, source))
}

// newBenchOf is newBench with machine code.
func newBenchOf(t tester, code []byte) *bench {
	t.Helper()
	return &bench{emutest.New(t, t.open, emutest.NewRAM(t), code)}
}
