package direct

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// TestStringsAgainstHardware executes iterations of string instructions, with all prefixes, on
// the engine and on the host's processor.
func TestStringsAgainstHardware(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	data := newData(rnd)
	o, s := newOracle(t, data), newSubject(t, arch.V2, data)
	var cases []oracleCase
	for range testsize.Runs(500, 2000, 200_000) {
		var c oracleCase
		opcode := []byte{0xa4, 0xa5, 0xa6, 0xa7, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf}[rnd.IntN(10)]
		var code []byte
		for _, prefix := range []byte{0x67, 0x66, 0x64, 0x65} {
			if rnd.IntN(6) == 0 {
				code = append(code, prefix)
			}
		}
		repeated := rnd.IntN(3)
		if repeated > 0 {
			code = append(code, []byte{0, 0xf2, 0xf3}[repeated])
		}
		if rnd.IntN(3) == 0 {
			code = append(code, 0x48)
		}
		code = append(code, opcode)
		c.State = randomState(rnd)
		c.State.Regs.GPR[arch.RSI], c.State.Regs.GPR[arch.RDI] = randomAddress(rnd), randomAddress(rnd)
		c.State.Regs.GPR[arch.RCX] = uint64(rnd.IntN(4)) | uint64(rnd.IntN(2))<<32
		c.State.Regs.FSBase, c.State.Regs.GSBase = uint64(rnd.IntN(64)), uint64(rnd.IntN(64))
		c.CodeAt, c.NCode, c.Steps = oracleCode, uint32(copy(c.Code[:], code)), 1
		c.State.Regs.RIP = c.CodeAt
		cases = append(cases, c)
	}
	results := o.run(t, cases)
	for i := range cases {
		c, want := &cases[i], &results[i]
		got, stop := s.run(c)
		in := Inspect(arch.V2, c.Code[:c.NCode], oracleCode)
		trap, address := outcome(s, stop)
		// The processor leaves the instruction with its last iteration, heddle after it.
		if r := &got.State.Regs; trap == 1 && in.Repeated && r.RIP == c.CodeAt && want.State.Regs.RIP == c.CodeAt+uint64(c.NCode) {
			if count := r.GPR[arch.RCX]; count != 0 && !(in.Address == 4 && uint32(count) == 0) {
				t.Errorf("% x: stays with count %#x", c.Code[:c.NCode], count)
			}
			r.RIP = want.State.Regs.RIP
		}
		if hostIsIntel() && in.Repeated {
			if in.stringDiffersByVendor(c) {
				continue
			}
			// Between two iterations of a comparison Intel's processors show the flags from before the
			// instruction (SDM volume 2, "REP"), AMD's those of the last iteration.
			const comparison = 0x8d5 // CF, PF, AF, ZF, SF and OF
			if w := &want.State.Regs; trap == 1 && w.RIP == c.CodeAt && w.RFLAGS&comparison == c.State.Regs.RFLAGS&comparison {
				w.RFLAGS = w.RFLAGS&^comparison | got.State.Regs.RFLAGS&comparison
			}
		}
		text := difference(&got, want, 0)
		if trap != want.Trap || trap == 14 && address != want.Address || text != "" {
			t.Errorf("% x: trap %d at %#x, the processor has %d at %#x: %s", c.Code[:c.NCode], trap, address, want.Trap, want.Address, text)
		}
	}
}

// repeatedProgram is a program of repeated string instructions, some of which overlap their own
// operands, lie in two pages, have no end, or store to code.
func repeatedProgram(rnd *rand.Rand) []byte {
	var code []byte
	set := func(reg int, value uint64) {
		code = append(code, 0x48, 0xb8|byte(reg))
		code = binary.LittleEndian.AppendUint64(code, value)
	}
	for range 1 + rnd.IntN(6) {
		destination := randomAddress(rnd)
		set(arch.RDI, destination)
		switch rnd.IntN(3) {
		case 0:
			set(arch.RSI, destination+uint64(rnd.IntN(40))-20)
		case 1:
			set(arch.RSI, randomAddress(rnd))
		}
		set(arch.RCX, uint64(rnd.IntN(5000)))
		if rnd.IntN(2) == 0 {
			set(arch.RAX, 0)
		}
		if rnd.IntN(8) == 0 {
			code = append(code, 0xfd) // STD
		}
		for _, prefix := range []byte{0x67, 0x66, 0x64} {
			if rnd.IntN(8) == 0 {
				code = append(code, prefix)
			}
		}
		code = append(code, 0xf2|byte(rnd.IntN(2)))
		if rnd.IntN(3) == 0 {
			code = append(code, 0x48)
		}
		code = append(code, []byte{0xa4, 0xa5, 0xa6, 0xa7, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf}[rnd.IntN(10)], 0xfc) // and CLD
	}
	return append(code, 0x0f, 0x05)
}

// TestRepeatedStrings compares repeated string instructions, of which the engine executes many
// iterations at once, with one iteration at a time: each stop is the same, with the same state.
func TestRepeatedStrings(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	data := newData(rnd)
	clear(data[len(data)/4 : len(data)/2]) // for long comparisons
	many, steps := newSubject(t, arch.V2, data), newSubject(t, arch.V2, data)
	steps.cpu.setStepsOnly(true)
	reasons := map[arch.StopReason]int{}
	for n := range testsize.Runs(300, 2000, 100_000) {
		state := randomState(rnd)
		state.Regs.RFLAGS &^= 0x400
		state.Regs.RIP = oracleCode + programCode
		code := repeatedProgram(rnd)
		many.place(&state, code)
		steps.place(&state, code)
		for range 40 {
			limit := arch.Limit{Instructions: 1 + uint64(rnd.IntN(8000)), Exact: rnd.IntN(2) == 0}
			if rnd.IntN(3) == 0 {
				limit.Cycles = 1 + arch.Cycles(rnd.IntN(9000))
			}
			a, b := many.cpu.Run(limit), steps.cpu.Run(limit)
			reasons[a.Reason]++
			if text := many.compareWith(steps, a, b); text != "" {
				t.Fatalf("program %d: % x: %s", n, code, text)
			}
			if a.Reason != arch.StopBudget {
				break
			}
		}
	}
	t.Log(reasons)
}
