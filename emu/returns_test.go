package emu_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/emu/arch"
)

// returning has returns to where their calls come from, in the same block and in others, more nested
// calls than decoders keep, returns to elsewhere, and calls that never return.
const returning = `
	mov r12d, 300
again:
	call leaf
	mov edi, r12d
	and edi, 127
	inc edi
	call deep
	call outer
	lea rax, [rip+after]
	push rax
	ret
after:
	lea rbx, [rip+outer]
	call rbx
	call skips
	test r12d, 1
	jz 1f
	call leaf
1:	dec r12d
	jnz again
	syscall
leaf:	ret
outer:	test r12d, 4
	jz 1f
	call leaf
1:	call leaf
	ret 0
skips:	call 1f
1:	add rsp, 8
	ret
deep:	dec edi
	jz 1f
	call deep
1:	ret
`

// compressor has the calls of a run that returns can be compressed against (SDM, volume 3, "Indirect Transfer
// Compression for Returns").
type compressor struct {
	calls []uint64
	out   []string
}

func (c *compressor) addRun(words []emu.BranchWord) {
	c.calls = nil
	for _, w := range words {
		switch w.Tag() {
		case emu.TagCall:
			c.calls = append(c.calls, w.Value())
			c.calls = c.calls[max(len(c.calls)-64, 0):]
		case emu.TagRet:
			if n := len(c.calls); n > 0 && c.calls[n-1] == w.Value() {
				c.calls = c.calls[:n-1]
				c.out = append(c.out, "tnt 1")
				continue
			}
			c.calls = nil
			c.out = append(c.out, flattenLog([]emu.BranchWord{w})...)
		default:
			c.out = append(c.out, flattenLog([]emu.BranchWord{w})...)
		}
	}
}

// runInPieces logs the branches of runs up to a system call.
func runInPieces(b *bench, limit arch.Limit, compress bool, take func([]emu.BranchWord)) (compressed bool, branches uint64) {
	if err := b.CPU.LogBranches(false); err != nil {
		b.Fatal(err)
	}
	compressed = compress && b.CPU.CompressReturns()
	for {
		s := b.CPU.Run(limit)
		take(b.CPU.Branches())
		b.CPU.Drained()
		if s.Reason == arch.StopSyscall {
			return compressed, b.CPU.CountedBranches()
		} else if s.Reason != arch.StopBudget {
			b.Fatalf("%+v", s)
		}
	}
}

// TestCompressedReturns compares engines that compress returns with Unicorn's log, which this test compresses.
func TestCompressedReturns(t *testing.T) {
	var programs []func(tester) *bench
	programs = append(programs, func(t tester) *bench { return newBench(t, returning) })
	for _, level := range []string{"-O0", "-O2"} {
		bin := buildCalculations(t, level)
		programs = append(programs, func(t tester) *bench { return newProgram(t, bin) })
	}
	compared := 0
	for k, open := range programs {
		for _, limit := range []arch.Limit{{Instructions: 20_000}, {Instructions: 997}, {Instructions: 61, Exact: true}, {Cycles: 3001, Exact: true}} {
			onEngines(t, func(t tester) {
				var got []string
				collect := func(words []emu.BranchWord) { got = append(got, flattenLog(words)...) }
				compressed, branches := runInPieces(open(t), limit, true, collect)
				if !compressed {
					return
				}
				compared++
				var want compressor
				_, wantBranches := runInPieces(open(tester{t.T, engines[0].open}), limit, false, want.addRun)
				if !slices.Equal(got, want.out) || branches != wantBranches {
					n := 0
					for n < min(len(got), len(want.out)) && got[n] == want.out[n] {
						n++
					}
					t.Errorf("program %d, %+v: %d entries and %d branches, want %d and %d; they differ from %d on: %s",
						k, limit, len(got), branches, len(want.out), wantBranches, n, fmt.Sprint(got[n:min(n+5, len(got))], want.out[n:min(n+5, len(want.out))]))
				}
			})
		}
	}
	if compared == 0 {
		t.Error("no engine compresses returns")
	}
}
