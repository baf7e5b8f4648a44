package stores_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/direct"
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

var assembled sync.Map // code by source

// assemble translates assembly in Intel syntax to machine code with the system's assembler.
func assemble(t testing.TB, source string) []byte {
	t.Helper()
	if code, ok := assembled.Load(source); ok {
		return code.([]byte)
	}
	dir := t.TempDir()
	src, obj, bin := filepath.Join(dir, "a.s"), filepath.Join(dir, "a.o"), filepath.Join(dir, "a.bin")
	text := ".intel_syntax noprefix\n.text\n" + source + "\n"
	if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"as", "-o", obj, src}, {"objcopy", "-O", "binary", "-j", ".text", obj, bin}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	code, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	assembled.Store(source, code)
	return code
}

const (
	codeBase  arch.Addr = 0x400000
	dataBase  arch.Addr = 0x600000
	stackBase arch.Addr = 0x7f0000
)

// bench is a machine with one thread: code at codeBase, four pages of data, one page of stack.
type bench struct {
	testing.TB
	ram   *mem.RAM
	cpu   emu.CPU
	space *mem.Space
	ctx   arch.Context
}

func (e engine) newBench(t testing.TB, source string) *bench {
	t.Helper()
	ram, err := mem.NewRAM(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := e.make(ram)
	if err != nil {
		t.Fatal(err)
	}
	code := assemble(t, source)
	b := &bench{TB: t, ram: ram, cpu: cpu, space: mem.NewSpace(ram)}
	t.Cleanup(func() { cpu.Close(); ram.Close() })
	for off := 0; off <= len(code); off += arch.PageSize {
		b.mapPage(codeBase+arch.Addr(off), arch.Read|arch.Exec)
		p := b.space.Get(codeBase + arch.Addr(off)).Page()
		copy(ram.Bytes(p), code[off:])
	}
	for i := range arch.Addr(4) {
		b.mapPage(dataBase+i*arch.PageSize, arch.Read|arch.Write)
	}
	b.mapPage(stackBase, arch.Read|arch.Write)
	b.ctx = cpu.NewContext()
	cpu.Load(b.ctx, b.space)
	b.changeRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase); r.GPR[arch.RSP] = uint64(stackBase) + arch.PageSize })
	return b
}

func (b *bench) mapPage(at arch.Addr, perm arch.Perm) {
	p, ok := b.ram.Alloc()
	if !ok {
		b.Fatal("no memory")
	}
	b.space.Set(at, mem.MakePTE(p, perm, false))
}

func (b *bench) readRegs() (r arch.Regs) {
	b.cpu.Regs(&r)
	return r
}

func (b *bench) changeRegs(change func(*arch.Regs)) {
	r := b.readRegs()
	change(&r)
	b.cpu.SetRegs(&r)
}

func (b *bench) expectStop(s arch.Stop, reason arch.StopReason, pc uint64, instructions uint64) {
	b.Helper()
	if s.Reason != reason || b.readRegs().RIP != pc || s.Instructions != instructions {
		b.Fatalf("stopped for reason %d at %#x after %d instructions (vector %d, err %v); want reason %d at %#x after %d",
			s.Reason, b.readRegs().RIP, s.Instructions, s.Vector, s.Err, reason, pc, instructions)
	}
}
