package windows

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// A block has been returned by the allocator and not been freed; a new process has its parent's.
func TestBlocksOfTheHeap(t *testing.T) {
	var n placeNames
	n.noteAllocation(1, &event.Heap{Op: event.HeapAllocate, Addr: 0x1000, Size: 16, PC: 7})
	n.noteAllocation(1, &event.Heap{Op: event.HeapAllocate, Addr: 0x2000, Size: 16, PC: 8})
	n.noteFork(1, 2)
	n.noteAllocation(1, &event.Heap{Op: event.HeapFree, Old: 0x1000})
	n.noteAllocation(1, &event.Heap{Op: event.HeapResize, Old: 0x2000, Addr: 0x3000, Size: 64, PC: 9})
	for _, x := range []struct {
		process int32
		at      arch.Addr
		site    arch.Addr // 0: no block
	}{{1, 0x1000, 0}, {1, 0x2008, 0}, {1, 0x303f, 9}, {1, 0x3040, 0}, {2, 0x100f, 7}, {2, 0x2000, 8}, {2, 0x3000, 0}, {3, 0x1000, 0}} {
		if _, b, ok := n.blockAt(x.process, x.at); ok != (x.site != 0) || b.site != x.site {
			t.Errorf("process %d, %#x: block %v of site %d, want site %d", x.process, uint64(x.at), ok, b.site, x.site)
		}
	}
}
