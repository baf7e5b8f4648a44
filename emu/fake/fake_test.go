package fake_test

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/fake"
	"github.com/heddle-dmt/heddle/emu/mem"
)

// loadThread returns a CPU with a loaded thread, and the thread's context and space.
func loadThread(t *testing.T) (*fake.CPU, *fake.Context, *mem.Space) {
	t.Helper()
	ram, err := mem.NewRAM(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ram.Close)
	space := mem.NewSpace(ram)
	t.Cleanup(space.Release)
	cpu := &fake.CPU{}
	context := cpu.NewContext().(*fake.Context)
	cpu.Load(context, space)
	return cpu, context, space
}

// TestSyscallRegisters expects the number and the arguments of a system call in the registers
// of the System V ABI for AMD64 (section A.2.1), and the PC after the instruction.
func TestSyscallRegisters(t *testing.T) {
	cpu, _, _ := loadThread(t)
	stop := cpu.Syscall(0x1000, 9, 11, 12, 13, 14, 15, 16)
	if stop.Reason != arch.StopSyscall || cpu.PC() != 0x1002 {
		t.Errorf("stop %v at %#x, want StopSyscall at 0x1002", stop.Reason, cpu.PC())
	}
	var r arch.Regs
	cpu.Regs(&r)
	want := map[int]uint64{arch.RAX: 9, arch.RDI: 11, arch.RSI: 12, arch.RDX: 13, arch.R10: 14, arch.R8: 15, arch.R9: 16}
	for index, value := range r.GPR {
		if value != want[index] {
			t.Errorf("register %d is %d, want %d", index, value, want[index])
		}
	}
	r.GPR[arch.RAX] = 10
	cpu.SetRegs(&r)
	if cpu.SyscallAgain(0x2000); cpu.PC() != 0x2002 {
		t.Errorf("PC %#x, want 0x2002", cpu.PC())
	}
	if cpu.Regs(&r); r.GPR[arch.RAX] != 10 || r.GPR[arch.RDI] != 11 {
		t.Errorf("SyscallAgain has changed the registers: %v", r.GPR)
	}
}

// TestFaultKind expects a fault to be Absent without a page, and Denied with one.
func TestFaultKind(t *testing.T) {
	cpu, _, space := loadThread(t)
	space.FillZero(0x3000, 0x4000, arch.Read)
	for address, want := range map[arch.Addr]arch.FaultKind{0x3123: arch.Denied, 0x5123: arch.Absent} {
		stop := cpu.Fault(arch.AccessWrite, address)
		page := address &^ (arch.PageSize - 1)
		if stop.Reason != arch.StopFault || stop.Access != arch.AccessWrite || stop.Kind != want || stop.Page != page {
			t.Errorf("fault at %#x: %+v, want kind %v of page %#x", address, stop, want, page)
		}
		if cpu.FaultAddr() != address {
			t.Errorf("fault address %#x, want %#x", cpu.FaultAddr(), address)
		}
	}
}

// TestInterruptPC expects the PC after INT n, and at an instruction that raises an exception.
func TestInterruptPC(t *testing.T) {
	cpu, context, _ := loadThread(t)
	context.Regs.RIP = 0x1000
	if stop := cpu.Exception(6); stop.Reason != arch.StopException || stop.Vector != 6 || cpu.PC() != 0x1000 {
		t.Errorf("exception: %+v at %#x", stop, cpu.PC())
	}
	if stop := cpu.Interrupt(0x80); stop.Reason != arch.StopInterrupt || stop.Vector != 0x80 || cpu.PC() != 0x1002 {
		t.Errorf("interrupt: %+v at %#x", stop, cpu.PC())
	}
}

// TestContexts expects a clone to be independent, and Load to exchange all registers.
func TestContexts(t *testing.T) {
	cpu, first, space := loadThread(t)
	cpu.SetRegs(&arch.Regs{RIP: 1})
	cpu.SetFP(&[arch.FPSize]byte{7})
	second := cpu.CloneContext(first)
	cpu.SetRegs(&arch.Regs{RIP: 2})
	cpu.SetFP(&[arch.FPSize]byte{8})
	cpu.Load(second, space)
	var image [arch.FPSize]byte
	if cpu.FP(&image); cpu.PC() != 1 || image[0] != 7 {
		t.Errorf("clone has PC %d and floating-point state %d, want 1 and 7", cpu.PC(), image[0])
	}
	second.Release()
	if first.Released || !second.(*fake.Context).Released {
		t.Error("Release has marked the wrong context")
	}
}

// TestScriptedAnswers expects Operands, RepetitionIsOver and CPUID to return the test's values.
func TestScriptedAnswers(t *testing.T) {
	cpu, _, _ := loadThread(t)
	cpu.NextOperands = []arch.Operand{{Addr: 0x10, Size: 8, Write: true}}
	cpu.NextIsOver = true
	cpu.Features = [4]uint32{1, 2, 3, 4}
	if got := cpu.Operands(); len(got) != 1 || got[0] != cpu.NextOperands[0] {
		t.Errorf("operands %v", got)
	}
	if !cpu.RepetitionIsOver() || cpu.CPUID(7, 0) != cpu.Features {
		t.Error("RepetitionIsOver or CPUID does not return the scripted value")
	}
}
