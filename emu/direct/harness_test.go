package direct

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/emutest"
	"github.com/heddle-dmt/heddle/emu/mem"
)

const (
	codeBase  = emutest.CodeBase
	dataBase  = emutest.DataBase
	stackBase = emutest.StackBase
)

type bench struct{ *emutest.Machine[*CPU] }

func newBench(t testing.TB, source string) *bench {
	t.Helper()
	return newBenchIn(t, emutest.NewRAM(t), source)
}

// newBenchIn is newBench in a given RAM, which it closes.
func newBenchIn(t testing.TB, ram *mem.RAM, source string) *bench {
	t.Helper()
	return newBenchOf(t, ram, emutest.Assemble(t, source))
}

// newBenchOf is newBenchIn with machine code.
func newBenchOf(t testing.TB, ram *mem.RAM, code []byte) *bench {
	t.Helper()
	open := func(ram *mem.RAM) (*CPU, error) { return NewCPU(ram, 4, arch.DefaultCosts(), arch.V2) }
	b := &bench{emutest.New(t, open, ram, code)}
	b.CPU.setHeat(48)
	return b
}
