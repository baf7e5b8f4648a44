package races

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// TestMarksOfManyAccesses has more instructions and segments than are numbered at once. The accesses of races are
// described as they were made, however long ago.
func TestMarksOfManyAccesses(t *testing.T) {
	const (
		rounds = 5 << 19
		cells  = 1 << 10
		every  = 100_003 // of these rounds has a race
		kept   = 1 << 40 // is written in a few rounds only, and read at the end
		apart  = 500_009
	)
	type access struct {
		pc, at, syncs uint64
		thread        int
	}
	var got, want [][2]access
	d := New(HappensBefore, func(r *Race) {
		inOrder := [2]access{}
		for i, a := range []Instance{r.First, r.Second} {
			inOrder[i] = access{uint64(a.PC), a.At, a.Syncs, a.Thread}
		}
		got = append(got, inOrder)
	})
	defer d.Close()
	syncs := [3]uint64{}
	at := uint64(1) << 33 // more than a mark has
	take := func(thread int, addr, pc uint64, write bool) access {
		at += 1 << 13
		d.Access(&Access{Thread: thread, Addr: addr, Size: 4, PC: arch.Addr(pc), At: at, Write: write})
		return access{pc, at, syncs[thread], thread}
	}
	release := func(from, to int, object uint64) {
		d.Sync(from, 0)
		syncs[from]++
		d.Release(from, object)
		if to != 0 {
			d.Acquire(to, object)
		}
	}
	keeps := map[uint64]access{}
	for i := range uint64(rounds) {
		wrote := take(1, i%cells*8, i+1, true)
		if i%apart == 0 {
			keeps[kept+i] = take(1, kept+i, i+2, true)
		}
		release(1, 0, 1)
		if i%every == 0 {
			want = append(want, [2]access{wrote, take(2, i%cells*8, i+3, false)})
			release(2, 1, 2)
		}
	}
	for i := uint64(0); i < rounds; i += apart {
		want = append(want, [2]access{keeps[kept+i], take(2, kept+i, rounds+i, false)})
	}
	if len(got) != len(want) {
		t.Fatalf("%d races, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("race %d: %v, want %v", i, got[i], want[i])
		}
	}
}
