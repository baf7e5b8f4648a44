package direct

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/uc"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// unicorn is the other engine, with memory like the oracle's.
type unicorn struct {
	*world
	cpu *uc.CPU
	ctx arch.Context
	// steps has instructions executed one at a time, otherwise they are in blocks.
	steps bool
}

func newUnicorn(t testing.TB, data *[3 * arch.PageSize]byte) *unicorn {
	t.Helper()
	w := newWorld(t, data)
	cpu, err := uc.NewCPU(w.ram, 4, arch.DefaultCosts())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cpu.Close(); w.ram.Close() })
	return &unicorn{world: w, cpu: cpu, ctx: cpu.NewContext()}
}

func (s *unicorn) run(c *oracleCase) (r oracleResult, stop arch.Stop) {
	s.putCode(c, c.Code[:c.NCode])
	defer s.putCode(c, bytes.Repeat([]byte{0xcc}, int(c.NCode)))
	s.ctx.Release()
	s.ctx = s.cpu.NewContext()
	s.cpu.Load(s.ctx, s.space)
	s.cpu.SetRegs(&c.State.Regs)
	var image [arch.FPSize]byte
	copy(image[:], c.State.FP[:])
	s.cpu.SetFP(&image)
	stop = s.cpu.Run(arch.Limit{Instructions: max(uint64(c.Steps), 1), Exact: s.steps || c.Steps != 0})
	s.cpu.Regs(&r.State.Regs)
	switch {
	case !s.steps && c.Steps == 0 && stop.Reason == arch.StopInterrupt && stop.Vector == 3:
		// The block has executed the INT3 that follows.
		r.State.Regs.RIP--
		stop.Reason = arch.StopBudget
	case stop.Reason == arch.StopFault && stop.Access == arch.AccessFetch && stop.Instructions == 1:
		stop.Reason = arch.StopBudget // at a branch's target, which the oracle does not execute
	}
	s.cpu.FP(&image)
	copy(r.State.FP[:], image[:])
	copy(r.State.FP[512:], c.State.FP[512:])
	s.takeChanges(&r)
	return r, stop
}

func (s *unicorn) faultAddress() arch.Addr { return s.cpu.FaultAddr() }

// remaining are the differences between Unicorn and processors that the table of
// docs/engine-differences.md has, in the order in which a case is tried against them.
var remaining = []struct {
	name string // in the first column of the table
	is   func(d *deviation) bool
}{
	{"aligned operands", func(d *deviation) bool { return d.want == 13 && d.got != 6 && d.in.Size >= 16 }},
	{"unmasked SSE exceptions", func(d *deviation) bool { return d.want == 19 }},
	{"rejected encodings", func(d *deviation) bool { return d.got == 6 }},
	{"stack faults and conditions of the x87", func(d *deviation) bool { return d.in.vexMap == 0 && d.in.opcode >= 0xd8 && d.in.opcode <= 0xdf }},
	{"segment registers", func(d *deviation) bool { return d.got == 13 && d.want == 1 }},
	{"descriptors", func(d *deviation) bool { return d.in.vexMap == 1 && d.in.opcode <= 3 }},
	{"BSF and BSR of zero with 32 bits", func(d *deviation) bool { return d.in.vexMap == 1 && d.in.opcode|1 == 0xbd && d.in.Width == 4 }},
	{"ENTER", func(d *deviation) bool { return d.in.vexMap == 0 && d.in.opcode == 0xc8 }},
	{"branches to non-canonical addresses", func(d *deviation) bool { return d.want == 13 && d.in.branches() }},
	{"the state of MMX", func(d *deviation) bool { return strings.Contains(d.kind, "ftw") || strings.Contains(d.kind, " st") }},
	{"denormals and rounding in MXCSR", func(d *deviation) bool { return strings.Contains(d.kind, "mxcsr") }},
	{"NaNs and horizontal operations", func(d *deviation) bool { return strings.Contains(d.kind, "xmm") }},
	{"string comparisons", func(d *deviation) bool { return d.in.vexMap == 3 && d.in.opcode >= 0x60 && d.in.opcode <= 0x63 }},
	{"rotations and double shifts", func(d *deviation) bool {
		rotation := d.in.vexMap == 0 && (d.in.opcode&^1 == 0xc0 || d.in.opcode&^3 == 0xd0)
		return rotation || d.in.vexMap == 1 && (d.in.opcode&^9 == 0xa4)
	}},
}

// deviation is how an instruction on Unicorn differs from the host.
type deviation struct {
	in        Instruction
	got, want uint64 // the traps
	kind      string // the parts of the state that differ
}

// TestUnicornAgainstHardware: the instructions of a v2 processor have the same results on Unicorn as on the
// host's, but for flags that the manual leaves undefined and the differences of the table.
func TestUnicornAgainstHardware(t *testing.T) {
	table, err := os.ReadFile("../../docs/engine-differences.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range remaining {
		if !bytes.Contains(table, []byte("\n| "+r.name+" |")) {
			t.Errorf("docs/engine-differences.md has no line on %s", r.name)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	data := newData(rnd)
	o, blocks := newOracle(t, data), newUnicorn(t, data)
	steps := newUnicorn(t, data)
	steps.steps = true
	perForm := testsize.Runs(1, 4, 1000)
	only := os.Getenv("HEDDLE_FORM")
	counts, total, unknown := map[string]int{}, 0, 0
	for _, f := range forms(arch.V2) {
		if only != "" && !strings.Contains(f.String(), only) {
			continue
		}
		var cases []oracleCase
		var list []Instruction
		for tries := 0; len(cases) < perForm && tries < 20*perForm; tries++ {
			var c oracleCase
			if i, ok := f.instance(rnd, arch.V2, &c); ok && !i.differs() && !i.isNewer() {
				cases, list = append(cases, c), append(list, i)
			}
		}
		if len(cases) == 0 {
			continue
		}
		total += len(cases)
		results := o.run(t, cases)
		for i := range cases {
			for _, s := range []*unicorn{blocks, steps} {
				d := deviationOf(s, &cases[i], &results[i], list[i])
				if d == nil || hostIsIntel() && list[i].differsByVendor(&cases[i], d.got) {
					continue
				}
				name := d.name()
				counts[name]++
				if name == "" {
					unknown++
					t.Errorf("%s: % x: trap %d, want %d, differs in%s", f, cases[i].Code[:cases[i].NCode], d.got, d.want, d.kind)
				}
			}
			if unknown > 40 {
				t.Fatal("too many differences")
			}
		}
	}
	for _, r := range remaining {
		t.Logf("%d cases: %s", counts[r.name], r.name)
	}
	t.Logf("%d instructions", total)
}

// isNewer reports whether the host may take the encoding for an instruction that a v2 processor
// lacks: LZCNT and TZCNT for BSR and BSF.
func (i Instruction) isNewer() bool {
	return i.vexMap == 1 && (i.opcode == 0xbc || i.opcode == 0xbd) && i.prefixed
}

func (d *deviation) name() string {
	for _, r := range remaining {
		if r.is(d) {
			return r.name
		}
	}
	return ""
}

// deviationOf compares a case on Unicorn with the host's result. nil: they agree.
func deviationOf(s *unicorn, c *oracleCase, r *oracleResult, in Instruction) *deviation {
	want := *r
	got, stop := s.run(c)
	d := &deviation{in: in, want: want.Trap}
	d.got, _ = outcome(s, stop)
	if d.got != d.want {
		return d
	}
	undefined := in.undefinedAfter(c)
	got.State.Regs.RFLAGS &^= undefined
	want.State.Regs.RFLAGS &^= undefined
	d.kind = kindOf(&got, &want)
	if d.kind == "" {
		return nil
	}
	return d
}

// kindOf names the parts of the state that differ.
func kindOf(got, want *oracleResult) string {
	kind := ""
	note := func(differs bool, name string) {
		if differs {
			kind += " " + name
		}
	}
	note(got.State.Regs.GPR != want.State.Regs.GPR, "gpr")
	note(got.State.Regs.RFLAGS != want.State.Regs.RFLAGS, "flags")
	note(got.State.Regs.RIP != want.State.Regs.RIP, "rip")
	g, w := visibleState(got.State.FP), visibleState(want.State.FP)
	note(!bytes.Equal(g[0:4], w[0:4]), "control or status")
	note(g[4] != w[4], "ftw")
	note(!bytes.Equal(g[24:28], w[24:28]), "mxcsr")
	note(!bytes.Equal(g[32:160], w[32:160]), "st")
	note(!bytes.Equal(g[160:416], w[160:416]), "xmm")
	n := min(got.NChanges, want.NChanges, oracleChanges)
	note(got.NChanges != want.NChanges || !slices.Equal(got.Changes[:n], want.Changes[:n]), "memory")
	return kind
}
