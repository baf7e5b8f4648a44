package pt_test

import (
	"io"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/pt/pttest"
)

// BenchmarkEncode writes logs of full words of outcomes, and logs in which one
// word of ten is of another kind, with fewer outcomes in a word.
func BenchmarkEncode(b *testing.B) {
	r := pttest.Rand(1)
	full, mixed := make([]emu.BranchWord, 1000), make([]emu.BranchWord, 0, 1000)
	branches := 0
	for i := range full {
		full[i] = word(emu.TagTNT, 47<<48|r.Next()&(1<<47-1))
		switch n := uint64(1 + r.Below(20)); i % 10 {
		case 0:
			mixed = append(mixed, word(emu.TagTIP, 0x400000+r.Next()%0x100000))
			branches++
		case 3:
			mixed = append(mixed, word(emu.TagCall, 0x400000))
		case 6:
			mixed = append(mixed, word(emu.TagRet, 0x400000))
			branches++
		default:
			mixed = append(mixed, word(emu.TagTNT, n<<48|r.Next()&(1<<n-1)))
			branches += int(n)
		}
	}
	for _, c := range []struct {
		name     string
		words    []emu.BranchWord
		branches int
	}{{"outcomes", full, 47 * len(full)}, {"mixed", mixed, branches}} {
		b.Run(c.name, func(b *testing.B) {
			e := pt.NewEncoder(io.Discard, pt.Config{PSBPeriod: 1 << 16, RetCompression: true})
			e.Enable(0x401000, 0)
			for b.Loop() {
				e.Log(c.words)
			}
			b.ReportMetric(float64(c.branches)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mbranches/s")
		})
	}
}
