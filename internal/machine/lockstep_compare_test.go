package machine_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/internal/zydis"
)

// Load and Store are the interpreter's memory: the machine's, with the
// stores of the block applied.
func (l *lockstep) Load(addr uint64, b []byte) error {
	v := l.now
	if v.replay {
		a := &v.loads[v.next]
		v.next++
		copy(b, a.data())
		return nil
	}
	if n := l.read(b, addr, arch.AccessRead); n < len(b) {
		return fmt.Errorf("memory that is not there")
	}
	for i := range v.stores {
		overlay(b, addr, &v.stores[i])
	}
	v.loads = append(v.loads, newAccess(addr, b))
	return nil
}

func (l *lockstep) Store(addr uint64, b []byte) error {
	v := l.now
	if !v.replay {
		for at := addr; at < addr+uint64(len(b)); at = at/arch.PageSize*arch.PageSize + arch.PageSize {
			page := arch.Addr(at / arch.PageSize * arch.PageSize)
			if _, kind := l.task.Space().Walk(page, arch.AccessWrite); kind == arch.NoFault {
				continue
			} else if !l.pageIn(page, arch.AccessWrite, kind) {
				return fmt.Errorf("memory that is not there")
			}
		}
	}
	v.stores = append(v.stores, newAccess(addr, b))
	return nil
}

func newAccess(addr uint64, b []byte) access {
	a := access{addr: addr, size: len(b)}
	copy(a.bytes[:], b)
	return a
}

// overlay applies a store to the bytes of an address.
func overlay(b []byte, addr uint64, s *access) {
	if s.addr >= addr+uint64(len(b)) || addr >= s.addr+uint64(s.size) {
		return
	}
	for i, x := range s.data() {
		if at := s.addr + uint64(i) - addr; at < uint64(len(b)) {
			b[at] = x
		}
	}
}

// xmmAt is where FXSAVE has the SSE registers.
const xmmAt = 160

// take gives the interpreter the machine's registers.
func (l *lockstep) take() {
	concolicrun.ReadState(l.cpu, &l.now.State)
	var fp [arch.FPSize]byte
	l.cpu.FP(&fp)
	l.mxcsr = mxcsr(&fp)
}

func mxcsr(fp *[arch.FPSize]byte) uint32 { return binary.LittleEndian.Uint32(fp[24:]) }

// compare demands that machine and interpreter are in the same state.
func (l *lockstep) compare(stop arch.Stop) {
	s := &l.now.State
	var regs arch.Regs
	l.cpu.Regs(&regs)
	var differ []string
	say := func(part string, machine, ir uint64) {
		differ = append(differ, fmt.Sprintf("%s is %#x on the machine, %#x in the IR", part, machine, ir))
	}
	for i, w := range regs.GPR {
		// SYSCALL's own registers are set when the kernel acts.
		if syscall := stop.Reason == arch.StopSyscall && (i == arch.RCX || i == arch.R11); syscall {
			continue
		}
		if ir := s.Word(vex.OffsetRAX + 8*i); ir != w {
			say(registerNames[i], w, ir)
		}
	}
	if ir := s.Word(vex.OffsetRIP); ir != regs.RIP {
		say("rip", regs.RIP, ir)
	}
	if ir := s.RFLAGS(); (ir^regs.RFLAGS)&^l.now.block.undefined&comparedFlags != 0 {
		say("rflags", regs.RFLAGS, ir)
	} else if ir != regs.RFLAGS {
		s.SetRFLAGS(regs.RFLAGS)
	}
	l.compareFP(say)
	l.compareMemory(say)
	if len(differ) > 0 {
		l.fail("%s", strings.Join(differ, "; "))
		l.take()
	}
}

// comparedFlags are the flags that a program can see.
const comparedFlags = 0x8d5 | 1<<10 | 1<<18 | 1<<21

var registerNames = [16]string{
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
}

func (l *lockstep) compareFP(say func(string, uint64, uint64)) {
	s := &l.now.State
	var fp [arch.FPSize]byte
	l.cpu.FP(&fp)
	for i := range 16 {
		for half := 0; half < 16; half += 8 {
			machine, ir := binary.LittleEndian.Uint64(fp[xmmAt+16*i+half:]), s.Word(vex.OffsetXMM+32*i+half)
			if machine != ir {
				say(fmt.Sprintf("xmm%d+%d", i, half), machine, ir)
			}
		}
	}
	var machine vex.State
	concolicrun.SetX87(&machine, &fp)
	if s.Word(vex.OffsetFTop)&7 != machine.Word(vex.OffsetFTop)&7 {
		say("the x87's top", machine.Word(vex.OffsetFTop), s.Word(vex.OffsetFTop))
	}
	for i := range 8 {
		full, ir := machine.Word(vex.OffsetFPReg+8*i), s.Word(vex.OffsetFPReg+8*i)
		if machine[vex.OffsetFPTag+i] != min(s[vex.OffsetFPTag+i], 1) || machine[vex.OffsetFPTag+i] != 0 && !areNear(full, ir) {
			say(fmt.Sprintf("x87 register %d", i), full, ir)
		}
	}
	concolicrun.SetX87(s, &fp)
	l.mxcsr = mxcsr(&fp)
}

// areNear reports whether two numbers are equal up to the error of computing in 64 bits instead
// of 80.
func areNear(machine, ir uint64) bool {
	x, y := math.Float64frombits(machine), math.Float64frombits(ir)
	return machine == ir || x != x && y != y || math.Abs(x-y) <= math.Abs(x)*0x1p-48
}

// compareMemory demands that both have stored the same bytes.
func (l *lockstep) compareMemory(say func(string, uint64, uint64)) {
	l.discardLog()
	stores := l.now.stores
	for i := range stores {
		s := &stores[i]
		var b [16]byte
		machine := b[:s.size]
		if n, _ := l.task.Space().ReadAt(machine, arch.Addr(s.addr)); n < s.size {
			say(fmt.Sprintf("the memory at %#x", s.addr), 0, 0)
			continue
		}
		want := b
		for j := range stores[i:] {
			overlay(want[:s.size], s.addr, &stores[i+j])
		}
		if want != b {
			say(fmt.Sprintf("the memory at %#x", s.addr), binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(want[:]))
		}
	}
	for _, e := range l.log.Entries() {
		if e.Kind == memlog.Store && !areStored(stores, uint64(e.Addr), uint64(e.Size)) && !l.savesReserved(stores, e) {
			say(fmt.Sprintf("the memory at %#x, which only the machine stores to,", e.Addr), e.Value, 0)
		}
	}
}

// savesReserved reports whether what the IR does not store of an entry are zeros that FXSAVE stores
// to fields without a meaning: processors do, and libVEX leaves these fields as they were. Engines
// differ in how many fields an entry has.
func (l *lockstep) savesReserved(stores []access, e memlog.Entry) bool {
	for i := range uint64(e.Size) {
		if e.Value>>(8*i)&0xff != 0 && !areStored(stores, uint64(e.Addr)+i, 1) {
			return false
		}
	}
	var code [15]byte
	n, _ := l.task.Space().ReadAt(code[:], arch.Addr(e.PC))
	in, ok := zydis.Decode(code[:n], e.PC)
	return ok && strings.HasPrefix(in.Text, "fxsave")
}

// areStored reports whether every byte of a range is stored to.
func areStored(stores []access, addr, size uint64) bool {
	for at := addr; at < addr+size; {
		next := at
		for i := range stores {
			if s := &stores[i]; s.addr <= at && at < s.addr+uint64(s.size) {
				next = s.addr + uint64(s.size)
			}
		}
		if next == at {
			return false
		}
		at = next
	}
	return true
}

// fail reports a disagreement, with the instructions of the block.
func (l *lockstep) fail(format string, args ...any) {
	l.failures++
	v := l.now
	var b strings.Builder
	fmt.Fprintf(&b, "thread %d, after %d instructions: %s", l.task.ID(), l.instructions, fmt.Sprintf(format, args...))
	if v.block == nil {
		l.report("%s", b.String())
		return
	}
	for at := 0; at < len(v.block.code); {
		pc := v.block.Addr + uint64(at)
		in, ok := zydis.Decode(v.block.code[at:], pc)
		if !ok {
			break
		}
		fmt.Fprintf(&b, "\n\t%#x: %s", pc, in.Text)
		at += in.Length
	}
	l.report("%s", b.String())
}

// summary lists the parts that were not compared, and why.
func (l *lockstep) summary() string {
	var reasons []string
	for why, n := range l.skipped {
		reasons = append(reasons, fmt.Sprintf("%d: %s", n, why))
	}
	sort.Strings(reasons)
	return fmt.Sprintf("%d instructions, %d compared; not: %s", l.instructions, l.compared, strings.Join(reasons, "; "))
}
