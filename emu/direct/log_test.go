package direct

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// flowLogs are the logs of a run that tell where it went.
type flowLogs struct {
	words        []emu.BranchWord
	instructions []uint64
	branches     uint64
	accesses     []memlog.Entry
}

func (s *subject) takeLogs(t *testing.T, stop arch.Stop) (l flowLogs) {
	t.Helper()
	l = flowLogs{words: slices.Clone(s.cpu.Branches()), branches: s.cpu.CountedBranches()}
	s.cpu.Drained()
	if s.cpu.c.log.memory.to == nil {
		return l // no other logs
	}
	pcs, err := s.cpu.TakeInstructions(stop.Instructions - stop.Repeated)
	if err != nil {
		t.Fatal(err)
	}
	l.instructions = slices.Clone(pcs)
	buffer := memlog.NewBuffer()
	defer buffer.Close()
	s.cpu.SwapMemory(buffer)
	for _, e := range buffer.Entries() {
		if e.Kind <= memlog.High {
			l.accesses = append(l.accesses, e)
		}
	}
	return l
}

// TestLogsOfBlocks runs random programs in blocks and one instruction at a time: the logs are the
// same, whatever ends a run or leaves a block in its middle. The stack pointer is canonical here.
func TestLogsOfBlocks(t *testing.T) {
	testLogsOfBlocks(t, func(c *CPU) error {
		return errors.Join(c.LogBranches(true), c.LogInstructions(), c.LogMemory(memlog.Filter{Partial: true}))
	})
}

// TestBranchesOfBlocks is the same with a log of branches alone.
func TestBranchesOfBlocks(t *testing.T) {
	testLogsOfBlocks(t, logCompressed)
}

// TestBranchesOfBlocksBytewise is the same as on a host without BMI2.
func TestBranchesOfBlocksBytewise(t *testing.T) {
	testLogsOfBlocks(t, func(c *CPU) error {
		defer func() { c.c.log.extracts = false }()
		return logCompressed(c)
	})
}

func logCompressed(c *CPU) error {
	err := c.LogBranches(false)
	if err == nil && !c.CompressReturns() {
		err = errors.New("returns are not compressed")
	}
	return err
}

func testLogsOfBlocks(t *testing.T, start func(*CPU) error) {
	level := arch.V3
	list := programForms(level)
	rnd := rand.New(rand.NewPCG(1, 8))
	data := newData(rnd)
	blocks, steps := newSubject(t, level, data), newSubject(t, level, data)
	steps.cpu.setStepsOnly(true)
	for _, s := range []*subject{blocks, steps} {
		if err := start(s.cpu); err != nil {
			t.Fatal(err)
		}
	}
	branches, accesses := 0, 0
	for n := range testsize.Runs(2_000, 10_000, 500_000) {
		rnd := rand.New(rand.NewPCG(2, uint64(n)))
		state := randomState(rnd)
		state.Regs.RFLAGS &^= 0x400
		state.Regs.RIP = oracleCode + programCode
		var code []byte
		for range 4 {
			code = append(code, randomProgram(rnd, list, level, 2+rnd.IntN(8))...)
			code = code[:len(code)-2]
			code = append(code, randomBranch(rnd, len(code), []int{0})...)
		}
		code = append(code, 0x0f, 0x05)
		if writesStackPointer(level, code) {
			continue
		}
		blocks.place(&state, code)
		steps.place(&state, code)
		for range 3 {
			for range 4 {
				limit := arch.Limit{Instructions: 1 + uint64(rnd.IntN(1000)), Exact: rnd.IntN(2) == 0}
				a, b := blocks.cpu.Run(limit), steps.cpu.Run(limit)
				if text := blocks.compareWith(steps, a, b); text != "" {
					t.Fatalf("case %d: % x: %s", n, code, text)
				}
				x, y := blocks.takeLogs(t, a), steps.takeLogs(t, b)
				if !slices.Equal(x.words, y.words) || !slices.Equal(x.instructions, y.instructions) || x.branches != y.branches {
					t.Fatalf("case %d: % x: blocks have\n%x, steps\n%x", n, code, x, y)
				}
				if !slices.Equal(x.accesses, y.accesses) {
					t.Fatalf("case %d: % x: blocks access\n%x, steps\n%x", n, code, x.accesses, y.accesses)
				}
				branches = int(x.branches)
				accesses += len(x.accesses)
				if a.Reason != arch.StopBudget {
					break
				}
			}
			blocks.restart(&state)
			steps.restart(&state)
		}
	}
	if branches < 10_000 {
		t.Errorf("only %d branches", branches)
	}
	t.Logf("%d branches, %d accesses", branches, accesses)
}

// writesStackPointer reports whether an instruction of the code may give the stack pointer any value.
func writesStackPointer(level arch.Level, code []byte) bool {
	for at := 0; at < len(code); {
		i := Inspect(level, code[at:], oracleCode+programCode+uint64(at))
		if i.Length == 0 {
			return false
		}
		if i.writesStack {
			return true
		}
		at += i.Length
	}
	return false
}
