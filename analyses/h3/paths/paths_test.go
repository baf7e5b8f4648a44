package paths_test

import (
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/h3/paths"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// block is a straight run of one-byte instructions.
func block(addr arch.Addr, count uint32) paths.Run {
	return paths.Run{Addr: addr, Count: count, Bytes: count, AppendAddresses: func(to []uint64) []uint64 {
		for i := range count {
			to = append(to, uint64(addr)+uint64(i))
		}
		return to
	}}
}

func core(id arch.CoreID, runs ...paths.Run) paths.Core {
	var all iter.Seq2[paths.Run, error] = func(yield func(paths.Run, error) bool) {
		for _, r := range runs {
			if !yield(r, nil) {
				return
			}
		}
	}
	return paths.Core{ID: id, Runs: all}
}

// switchTo is a context switch after a number of the core's instructions.
func switchTo(core arch.CoreID, thread arch.ThreadID, instructions uint64) event.Switch {
	s := event.Switch{CoreInstructions: instructions}
	s.Core, s.Thread = core, thread
	return s
}

// Core 0 executes thread 1, then thread 2, then thread 1 again; core 1 executes thread 2
// first: each thread's path is its blocks in the order of the switches (algorithm 1).
func TestPathsOfTwoThreads(t *testing.T) {
	a, b, c := block(0x100, 3), block(0x200, 2), block(0x300, 4)
	p, err := paths.Read(
		[]paths.Core{core(0, a, b, c, a), core(1, b)},
		[]event.Switch{switchTo(0, 1, 0), switchTo(1, 2, 0), switchTo(0, 2, 5), switchTo(0, 1, 9)},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []paths.Thread{
		{ID: 1, Turns: []paths.Turn{{Core: 0, Blocks: []int32{0, 1}}, {Core: 0, CoreInstructions: 9, Blocks: []int32{0}}}},
		{ID: 2, Turns: []paths.Turn{{Core: 1, Blocks: []int32{1}}, {Core: 0, CoreInstructions: 5, Blocks: []int32{2}}}},
	}
	if !reflect.DeepEqual(p.Threads, want) {
		t.Errorf("threads %+v, want %+v", p.Threads, want)
	}
	if got := slices.Collect(p.Instructions(&p.Threads[1])); !slices.Equal(got, []uint64{0x200, 0x201, 0x300, 0x301, 0x302, 0x303}) {
		t.Errorf("thread 2 executed %x", got)
	}
}

// Branch traces that are cut, or that do not stop where the switches are, are refused.
func TestForeignSwitches(t *testing.T) {
	for _, c := range []struct {
		name     string
		switches []event.Switch
		want     string
	}{
		{"cut", []event.Switch{switchTo(0, 1, 0), switchTo(0, 2, 7)}, "ends after 5 instructions"},
		{"of another run", []event.Switch{switchTo(0, 1, 0), switchTo(0, 2, 4)}, "continues past instruction 4, at which the core switched to thread 2"},
		{"without a switch", nil, "the branch trace of core 0 continues at instruction 0, after the core's last context switch"},
	} {
		_, err := paths.Read([]paths.Core{core(0, block(0x100, 3), block(0x200, 2))}, c.switches)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}
