package direct

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// assemble turns Intel-syntax assembly into bytes with the system's assembler.
func assemble(t testing.TB, source string) []byte {
	t.Helper()
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
	return code
}

const (
	codeBase  arch.Addr = 0x400000
	dataBase  arch.Addr = 0x600000
	stackBase arch.Addr = 0x7f0000
)

// bench is a machine with one thread: code at codeBase, four pages of data, one
// of stack.
type bench struct {
	testing.TB
	ram   *mem.RAM
	cpu   *CPU
	space *mem.Space
	ctx   arch.Context
}

func newBench(t testing.TB, source string) *bench {
	t.Helper()
	ram, err := mem.NewRAM(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return newBenchIn(t, ram, source)
}

// newBenchIn is newBench with a RAM, which it closes.
func newBenchIn(t testing.TB, ram *mem.RAM, source string) *bench {
	t.Helper()
	return newBenchOf(t, ram, assemble(t, source))
}

// newBenchOf is newBenchIn with code.
func newBenchOf(t testing.TB, ram *mem.RAM, code []byte) *bench {
	t.Helper()
	cpu, err := NewCPU(ram, 4, arch.DefaultCosts(), arch.V2)
	if err != nil {
		t.Fatal(err)
	}
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
	b.setRegs(func(r *arch.Regs) { r.RIP = uint64(codeBase); r.GPR[arch.RSP] = uint64(stackBase) + arch.PageSize })
	return b
}

func (b *bench) mapPage(at arch.Addr, perm arch.Perm) {
	p, ok := b.ram.Alloc()
	if !ok {
		b.Fatal("no memory")
	}
	b.space.Set(at, mem.MakePTE(p, perm, false))
}

func (b *bench) regs() (r arch.Regs) {
	b.cpu.Regs(&r)
	return r
}

func (b *bench) setRegs(change func(*arch.Regs)) {
	r := b.regs()
	change(&r)
	b.cpu.SetRegs(&r)
}

func (b *bench) expectStop(s arch.Stop, reason arch.StopReason, pc uint64, instructions uint64) {
	b.Helper()
	if s.Reason != reason || b.regs().RIP != pc || s.Instructions != instructions {
		b.Fatalf("stopped for reason %d at %#x after %d instructions (vector %d, err %v); want reason %d at %#x after %d",
			s.Reason, b.regs().RIP, s.Instructions, s.Vector, s.Err, reason, pc, instructions)
	}
}
