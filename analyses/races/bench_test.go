package races

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// benchmarkAccesses is four threads that go through arrays of their own and
// share a small one, with a lock now and then.
func benchmarkAccesses(b *testing.B, order Order) {
	d := New(order, func(*Race) {})
	a := Access{Size: 8}
	n := 0
	for b.Loop() {
		n++
		a.Thread = n >> 12 & 3
		if n&0xfff == 0 {
			d.Sync(a.Thread, 0)
			d.Acquire(a.Thread, 1)
			d.Sync(a.Thread, 0)
			d.Release(a.Thread, 1)
		}
		a.Write = n%4 == 0
		a.PC = arch.Addr(0x400000 + n%16)
		if n%8 == 0 {
			a.Write, a.Addr = false, uint64(n%512*8)
		} else {
			a.Addr = uint64(a.Thread+1)<<24 + uint64(n%(1<<16)*8)
		}
		d.Access(&a)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Maccesses/s")
}

func BenchmarkHappensBefore(b *testing.B) { benchmarkAccesses(b, HappensBefore) }

func BenchmarkScheduleRelative(b *testing.B) { benchmarkAccesses(b, ScheduleRelative) }
