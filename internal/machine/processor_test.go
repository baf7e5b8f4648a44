package machine_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/internal/zydis"
)

// processorCheck is a Hook that has the host's processor execute what the engine executes: each
// time that the engine stops, a process of the host executes as many instructions one at a time,
// from the same registers and memory, and must reach the same ones. What the kernel does is copied.
type processorCheck struct {
	machine.NoHook
	t     *testing.T
	m     *machine.Machine
	child *nativeChild
	rand  *rand.Rand
	gap   int // instructions between two stops, in the mean

	base      uint64 // instructions of the run that the child has executed
	halt      uint64
	leaving   bool   // the child has left a repeated instruction, and the engine has not
	undefined uint64 // flags that the last instruction leaves undefined

	task    *kernel.Task
	code    map[uint64]decoded
	scanned map[arch.Addr]bool
	special map[arch.Addr]bool // where instructions may begin whose result the machine decides

	path                []string // since the last stop
	instructions, stops uint64
}

// decoded is an instruction with its bytes.
type decoded struct {
	zydis.Instruction
	bytes []byte
}

func (p *processorCheck) Prepare(m *machine.Machine) error {
	p.m = m
	return nil
}

func newProcessorCheck(t *testing.T, seed uint64) *processorCheck {
	t.Helper()
	return &processorCheck{
		t: t, child: newNativeChild(t), rand: rand.New(rand.NewPCG(seed, 2)), gap: 60,
		code: map[uint64]decoded{}, scanned: map[arch.Addr]bool{}, special: map[arch.Addr]bool{},
	}
}

// EngineStarts gives the child the thread's registers and memory.
func (p *processorCheck) EngineStarts(t *kernel.Task) machine.Reaction {
	p.task, p.base, p.undefined = t, 0, 0
	p.copyMemory(t)
	p.copyRegisters()
	p.leaving = false
	p.haltSoon()
	return machine.Proceed
}

// haltSoon has the engine stop at a random instruction, or after one that is special.
func (p *processorCheck) haltSoon() {
	next := 1 + uint64(p.rand.IntN(2*p.gap))
	if p.special[p.m.CPU().PC()] {
		next = 1
	}
	p.m.CPU().HaltAt(p.base + next)
}

// EngineStopped has the child catch up, and compares.
func (p *processorCheck) EngineStopped(t *kernel.Task, stop arch.Stop) machine.Reaction {
	p.follow(stop)
	p.stops++
	p.compare(stop)
	switch {
	case stop.Reason == arch.StopFault && p.m.Kernel().PageIn(t, stop):
		p.copyMemory(t)
		return machine.ResumeEngine
	case stop.Reason == arch.StopBreakpoint:
		p.haltSoon()
		return machine.ResumeEngine
	}
	return machine.Proceed
}

// copyMemory gives the child the thread's memory, and has the engine stop at special instructions of new
// code.
func (p *processorCheck) copyMemory(t *kernel.Task) {
	p.child.setMemory(p.t, t.Space())
	before := len(p.special)
	for at, page := range p.child.pages {
		if page.perm&arch.Exec == 0 || p.scanned[at] {
			continue
		}
		p.scanned[at] = true
		for i := range page.bytes[:arch.PageSize-2] {
			if isSpecial(page.bytes[i : i+3]) {
				p.special[at+arch.Addr(i)] = true
				p.special[at+arch.Addr(i)-1] = true // with a prefix
				p.special[at+arch.Addr(i)-2] = true // with two
			}
		}
	}
	if len(p.special) > before {
		p.m.CPU().SetDebugBreakpoints(slices.Collect(maps.Keys(p.special)))
	}
}

// isSpecial reports whether bytes may begin an instruction whose result the machine decides: CPUID, RDTSC,
// RDTSCP, XGETBV; FXSAVE and XSAVE, since images have the addresses of the last x87 instruction and the
// processor's mask of MXCSR; XRSTOR, since a processor accesses as much memory as the image of all its components
// has; TZCNT and LZCNT, which processors of level v2 execute as BSF and BSR.
func isSpecial(code []byte) bool {
	if code[0] != 0x0f {
		return false
	}
	switch code[1] {
	case 0xa2, 0x31, 0xbc, 0xbd:
		return true
	case 0x01:
		return code[2] == 0xf9 || code[2] == 0xd0
	case 0xae:
		return code[2]>>6 != 3 && (code[2]>>3&7 == 0 || code[2]>>3&7 == 4 || code[2]>>3&7 == 5)
	}
	return false
}

func (p *processorCheck) copyRegisters() {
	var regs arch.Regs
	var fp [arch.FPSize]byte
	var ymm [arch.YMMHighSize]byte
	p.m.CPU().Regs(&regs)
	p.m.CPU().FP(&fp)
	p.m.CPU().YMMHigh(&ymm)
	p.child.setRegs(p.t, &regs)
	p.child.setVectors(p.t, &fp, &ymm)
}

// follow has the child execute the instructions that the engine has executed since it stopped last.
func (p *processorCheck) follow(stop arch.Stop) {
	n := stop.Instructions - p.base
	p.base = stop.Instructions
	p.instructions += n
	p.path = p.path[:0]
	for i := range n {
		if p.leaving { // the engine counts this
			p.leaving = false
			continue
		}
		regs := p.child.regs(p.t)
		in := p.instructionAt(regs.RIP)
		if !strings.HasSuffix(in.Text, ", cl") || regs.GPR[arch.RCX]&31 != 0 { // a shift by 0 leaves all flags
			p.undefined = p.undefined&^in.Written | in.Undefined
		}
		p.path = append(p.path, fmt.Sprintf("%#x: %s", regs.RIP, in.Text))
		name, _, _ := strings.Cut(in.Text, " ")
		switch {
		case name == "syscall":
			regs.RIP += uint64(in.Length)
			p.child.setRegs(p.t, &regs)
		case slices.Contains(specialNames, name):
			if n > 1 {
				p.t.Fatalf("instruction %d of %d at %#x is %s", i, n, regs.RIP, name)
			}
			p.copyRegisters()
			p.copyMemory(p.task)
		default:
			p.child.step(p.t)
			if strings.HasPrefix(name, "rep") && regs.GPR[arch.RCX] != 0 {
				p.leaving = p.child.rawRegs(p.t).Rip != regs.RIP
			}
		}
	}
}

// specialNames are the instructions that isSpecial finds.
var specialNames = []string{"cpuid", "rdtsc", "rdtscp", "xgetbv", "fxsave", "fxsave64", "xsave", "xsave64", "xrstor", "xrstor64", "tzcnt", "lzcnt"}

func (p *processorCheck) instructionAt(pc uint64) zydis.Instruction {
	code := p.child.code(pc)
	if known, ok := p.code[pc]; ok && bytes.HasPrefix(code, known.bytes) {
		return known.Instruction
	}
	in, ok := zydis.Decode(code, pc)
	if !ok {
		p.t.Fatalf("no instruction at %#x", pc)
	}
	p.code[pc] = decoded{in, code[:in.Length]}
	return in
}

// compare demands that child and machine have the same registers and memory.
func (p *processorCheck) compare(stop arch.Stop) {
	var want arch.Regs
	p.m.CPU().Regs(&want)
	got := p.child.regs(p.t)
	if p.leaving {
		got.RIP = want.RIP
	}
	var differ []string
	say := func(what string, ours, theirs any) {
		differ = append(differ, fmt.Sprintf("%s is %#x, on the host's processor %#x", what, ours, theirs))
	}
	for i, name := range registerNames {
		if want.GPR[i] != got.GPR[i] {
			say(name, want.GPR[i], got.GPR[i])
		}
	}
	if want.RIP != got.RIP {
		say("rip", want.RIP, got.RIP)
	}
	if want.FSBase != got.FSBase || want.GSBase != got.GSBase {
		say("the bases of FS and GS", [2]uint64{want.FSBase, want.GSBase}, [2]uint64{got.FSBase, got.GSBase})
	}
	if (want.RFLAGS^got.RFLAGS)&^p.undefined&comparedFlags != 0 {
		say("rflags", want.RFLAGS, got.RFLAGS)
	}
	var fp [arch.FPSize]byte
	var ymm [arch.YMMHighSize]byte
	p.m.CPU().FP(&fp)
	p.m.CPU().YMMHigh(&ymm)
	theirs, theirHigh := p.child.vectors(p.t)
	if a, b := visibleState(&fp), visibleState(&theirs); !bytes.Equal(a, b) {
		say("the floating-point state", a, b)
	}
	if ymm != theirHigh {
		say("the upper halves of YMM", ymm, theirHigh)
	}
	for at, page := range p.child.pages {
		if page.perm&arch.Write == 0 {
			continue
		}
		pte := p.task.Space().Get(at)
		if ours := p.m.Memory().Bytes(pte.Page()); !bytes.Equal(ours, page.bytes) {
			i := 0
			for ours[i] == page.bytes[i] {
				i++
			}
			say(fmt.Sprintf("the byte at %#x", uint64(at)+uint64(i)), ours[i], page.bytes[i])
		}
	}
	if len(differ) > 0 {
		p.t.Errorf("after %d instructions, stop %+v:\n%s\n%s", p.instructions, stop, strings.Join(p.path, "\n"), strings.Join(differ, "\n"))
	}
}

// visibleState is an image of FXSAVE without the addresses of the last x87 instruction and its operand, of which
// the machine keeps none, and the bytes that are reserved.
func visibleState(fp *[arch.FPSize]byte) []byte {
	s := bytes.Clone(fp[:416])
	clear(s[6:24])
	clear(s[28:32])
	for r := 32; r < 160; r += 16 {
		clear(s[r+10 : r+16])
	}
	return s
}

// mixture sorts, copies, computes in three kinds of floating point, divides by zero, and leaves functions by
// longjmp and signals.
const mixture = `
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static jmp_buf out;
static void caught(int sig) { siglongjmp(out, sig); }
static int compare(const void *a, const void *b) { return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b; }
static unsigned char carry(unsigned long long a[4], const unsigned long long b[4]) {
	unsigned char c = 0;
	for (int i = 0; i < 4; i++) {
		unsigned long long s = a[i] + b[i] + c;
		c = s < a[i] || (c && s == a[i]);
		a[i] = s;
	}
	return c;
}
int main(void) {
	static int list[600];
	static char text[4000], copy[4100];
	unsigned seed = 12345;
	unsigned long long a[4] = {~0ull, 1, ~0ull, 2}, b[4] = {1, ~1ull, 7, 9}, bits = 0;
	long double l = 1;
	double d = 1;
	float f = 1;
	for (int i = 0; i < 600; i++) list[i] = (int)(seed = seed * 1103515245 + 12345);
	qsort(list, 600, sizeof *list, compare);
	for (int i = 0; i < 3999; i++) text[i] = (char)('a' + (seed = seed * 1103515245 + 12345) % 26);
	for (int i = 1; i < 90; i++) {
		memmove(copy + i % 7, text + i * 3, 4000 - i * 40);
		bits += strlen(copy + i) + (unsigned)memcmp(copy, text + i, 50) + (strchr(copy, 'q') != 0);
		bits = bits << (i & 7) | bits >> (64 - (i & 7) - 1);
		bits ^= __builtin_popcountll(bits) * 77 + __builtin_ctzll(bits | 256) - __builtin_clz((unsigned)bits | 1);
		bits += bits / (seed | 1) + (unsigned)((int)bits % (i + 1)) + (unsigned long long)((__int128)bits * seed >> 64);
		l = l * 1.0000001L + (long double)i / 3 - (long double)(long long)l / 1e9L;
		d = d * 1.1 + (double)(long)seed / (i + 0.5) - d / 3;
		f = f * 0.9f + (float)i / 7 - (d > 1e9 ? f : -f) * 0.01f;
		carry(a, b);
	}
	signal(SIGFPE, caught);
	signal(SIGSEGV, caught);
	volatile int zero = 0, got = 0;
	if (sigsetjmp(out, 1) == 0) got += 7 / zero;
	else got++;
	if (sigsetjmp(out, 1) == 0) *(volatile int *)(long)zero = 1;
	else got += 10;
	printf("%d %llx %llx %.15Lg %.15g %.7g %d %s\n", list[77], bits, a[3], l, d, f, got, copy + 3900);
	return 0;
}`

// checked are programs that the host's processor executes beside the engine: dynamic ones of Debian, and
// static ones. DATA stands for a text.
func checked(t *testing.T) [][]string {
	t.Helper()
	static := machinetest.Compile(t, numbers, "-O2", "-static", "-lm")
	return [][]string{
		{"/bin/ls", "-l", "/usr/share/doc/bash"},
		{"/bin/cat", "DATA"},
		{"/usr/bin/sort", "-k3", "DATA"},
		{"/usr/bin/wc", "DATA"},
		{"/usr/bin/sha256sum", "DATA"},
		{"/usr/bin/b2sum", "DATA"},
		{"/usr/bin/od", "-c", "-A", "x", "DATA"},
		{"/usr/bin/base64", "DATA"},
		{"/usr/bin/factor", "1234567890123456789", "97", "340282366920938463463374607431768211457"},
		{"/usr/bin/seq", "-f", "%.7g", "1", "0.37", "60"},
		{"/bin/gzip", "-c", "DATA"},
		{"/bin/bzip2", "-c", "DATA"},
		{"/usr/bin/xz", "-c", "-T1", "DATA"},
		{"/usr/bin/zstd", "-q", "-c", "DATA"},
		{"/bin/sed", "-n", "s/\\([0-9]*\\) of \\([a-f]*\\)/\\2-\\1/p", "DATA"},
		{"/bin/grep", "-c", "of [0-9a-f]*7.*text", "DATA"},
		{"/usr/bin/gawk", `{ for (i = 1; i <= NF; i++) n[$i] += sqrt(i) / 3 } END { for (w in n) printf "%s %.6f\n", w, n[w] }`, "DATA"},
		{"/usr/bin/perl", "-e", `my %h; $h{$_ % 7} .= chr(65 + $_ % 26) for 1 .. 99; print join(",", map { length($h{$_}) * 1.25 } sort keys %h), "\n"`},
		{"/bin/bash", "-c", `i=0; while [ $i -lt 200 ]; do i=$((i + 1)); a[$i]="x$((i * i))"; done; echo ${a[@]:5:9}`},
		{"/usr/bin/python3", "-S", "-E", "-c", "print(sum(i * i % 7 for i in range(999)), 3 ** 500 % 1000007)"},
		{"/usr/bin/sqlite3", ":memory:", "select round(sqrt(2) * 3.7, 4), hex(abs(-77))"},
		{"/sbin/ldconfig", "-p"}, // static
		{static},
		{machinetest.Compile(t, mixture, "-O3", "-static")},
		{machinetest.Compile(t, mixture, "-O0", "-static", "-march=x86-64-v2")},
		{machinetest.Compile(t, mixture, "-Os", "-static-pie")},
	}
}

// TestProcessorAgrees stops at random instructions of real programs: counts, registers, flags and memory are those
// that the host's processor has after as many single steps.
func TestProcessorAgrees(t *testing.T) {
	testsize.SkipQuick(t)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	var text strings.Builder
	for i := range 90 {
		fmt.Fprintf(&text, "line %d of %x: some text that compresses, more or less\n", i*i%7919, i*2654435761)
	}
	if err := os.WriteFile(data, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	instructions := uint64(0)
	for i, args := range testsize.Sample(checked(t), 3, 0) {
		level := arch.V2
		if i%2 == 1 {
			level = arch.V3
		}
		t.Run(fmt.Sprintf("%s on %v", filepath.Base(args[0]), level), func(t *testing.T) {
			if p := engines.Check(engines.Auto, level); p != nil {
				t.Skip(p.Allowed)
			}
			if _, err := os.Stat(args[0]); err != nil {
				t.Skipf("%v: make setup-test installs it", err)
			}
			for i, a := range args {
				args[i] = strings.ReplaceAll(a, "DATA", data)
			}
			instructions += checkOnProcessor(t, uint64(i), level, dir, args)
		})
	}
	t.Logf("%d instructions in all", instructions)
}

// checkOnProcessor runs a program with about a thousand stops, and returns the number of instructions.
func checkOnProcessor(t *testing.T, seed uint64, level arch.Level, dir string, args []string) uint64 {
	t.Helper()
	c, _ := machinetest.Config(t, args...)
	c.Dir, c.Seed, c.CPU = dir, seed, level
	c.MaxInstructions = testsize.Pick[uint64](0, 120_000, 300_000)
	p := newProcessorCheck(t, seed)
	m, err := machine.New(c, machine.WithHook(p))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for !m.Done() && !t.Failed() {
		m.Step()
	}
	t.Logf("%d instructions, %d stops", p.instructions, p.stops)
	if p.stops < 1000 {
		t.Errorf("%d stops", p.stops)
	}
	return p.instructions
}
