package mm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// world is the memory of a kernel: processes and a file.
type world struct {
	Spaces []*AddressSpace
	File   *Object
	Name   *named // of the file
}

func newWorld(ram *mem.RAM) *world {
	name := named("/file")
	return &world{
		Spaces: []*AddressSpace{New(ram, DefaultLimits())},
		File:   NewObject(ram, text(bytes.Repeat([]byte("contents"), 3000)), 24000),
		Name:   &name,
	}
}

// operation is one step, the same in every world.
type operation struct {
	kind          string
	space         int
	addr          arch.Addr
	size          uint64
	prot, advice  int
	kindOfMapping int
	data          []byte
}

func drawOperation(t *rapid.T) operation {
	return operation{
		kind: rapid.SampledFrom([]string{
			"map", "map", "write", "write", "write", "write", "read", "read", "fork", "exit", "unmap", "protect", "advise",
			"move", "write file", "truncate",
		}).Draw(t, "kind"),
		space:         rapid.IntRange(0, 3).Draw(t, "space"),
		addr:          region + arch.Addr(rapid.IntRange(0, 12*arch.PageSize).Draw(t, "address")),
		size:          rapid.Uint64Range(1, 5*arch.PageSize).Draw(t, "size"),
		prot:          rapid.SampledFrom([]int{rw, rw, rw, unix.PROT_READ, unix.PROT_NONE}).Draw(t, "prot"),
		advice:        rapid.SampledFrom([]int{unix.MADV_DONTNEED, unix.MADV_REMOVE, unix.MADV_DONTFORK, unix.MADV_WIPEONFORK}).Draw(t, "advice"),
		kindOfMapping: rapid.IntRange(0, 3).Draw(t, "mapping"),
		data:          rapid.SliceOfN(rapid.Byte(), 1, 6).Draw(t, "data"),
	}
}

// do runs an operation and describes its outcome.
func (w *world) do(o operation) string {
	as := w.Spaces[o.space%len(w.Spaces)]
	page := o.addr &^ (arch.PageSize - 1)
	switch o.kind {
	case "map":
		r := MapRequest{Addr: page, Length: o.size, Prot: o.prot, Flags: unix.MAP_FIXED}
		r.Flags |= []int{unix.MAP_PRIVATE, unix.MAP_SHARED}[o.kindOfMapping%2]
		if o.kindOfMapping < 2 {
			r.Flags |= unix.MAP_ANONYMOUS
		} else {
			r.Object, r.Readable, r.Writable, r.File = w.File, true, true, w.Name
		}
		at, errno := as.Mmap(r)
		return fmt.Sprint(at, errno)
	case "write":
		n, errno := as.CopyOutPart(o.addr, bytes.Repeat(o.data, int(o.size)/len(o.data)+1))
		return fmt.Sprint(n, errno)
	case "read":
		b := make([]byte, o.size)
		n, errno := as.CopyInPart(o.addr, b)
		return fmt.Sprint(n, errno, xxh3.Hash(b[:n]))
	case "fork":
		if len(w.Spaces) < 4 {
			child, errno := as.Fork()
			w.Spaces = append(w.Spaces, child)
			return fmt.Sprint(errno)
		}
	case "exit":
		if len(w.Spaces) > 1 {
			as.Unref()
			i := o.space % len(w.Spaces)
			w.Spaces = append(w.Spaces[:i:i], w.Spaces[i+1:]...)
		}
	case "unmap":
		return fmt.Sprint(as.Munmap(page, o.size))
	case "protect":
		return fmt.Sprint(as.Mprotect(page, o.size, o.prot))
	case "advise":
		return fmt.Sprint(as.Madvise(page, o.size, o.advice))
	case "move":
		at, errno := as.Mremap(page, arch.PageSize, o.size, unix.MREMAP_MAYMOVE, 0)
		return fmt.Sprint(at, errno)
	case "write file":
		n, errno := w.File.WriteAt(o.data, int64(o.addr-region))
		return fmt.Sprint(n, errno)
	case "truncate":
		return fmt.Sprint(w.File.Truncate(int64(o.addr - region)))
	}
	return ""
}

// state is all that a guest could see: the digest, mappings, the pages that are
// resident, and the file.
func (w *world) state() string {
	var b strings.Builder
	for _, as := range w.Spaces {
		h := xxh3.New()
		as.Digest(h)
		u := as.Usage()
		u.Tables = 0
		fmt.Fprintf(&b, "%x %+v\n%s", h.Sum128().Bytes(), u, as.Maps())
	}
	content := make([]byte, w.File.Size())
	w.File.ReadAt(content, 0)
	fmt.Fprintf(&b, "%d bytes %x", len(content), xxh3.Hash(content))
	return b.String()
}

// contents is every readable byte of every space. It makes pages resident.
func (w *world) contents() string {
	var b strings.Builder
	for _, as := range w.Spaces {
		for _, v := range as.VMAs() {
			p := make([]byte, v.Len())
			n, errno := as.CopyInPart(v.Start, p)
			fmt.Fprintf(&b, "%x %d %v %x\n", v.Start, n, errno, xxh3.Hash(p[:n]))
		}
	}
	return b.String()
}

func (w *world) release() {
	for _, as := range w.Spaces {
		as.Unref()
	}
	w.File.Unref()
}

// snapshot copies a world.
func (w *world) snapshot(ram *mem.RAM) *world {
	n := deepcopy.Copy(deepcopy.New(), w)
	ram.NextGeneration()
	return n
}

// TestSnapshotsChangeNothing runs the same operations in a world of which
// snapshots are taken and restored, and in one that is left alone: they must
// not differ in anything that a guest could see.
func TestSnapshotsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ram, err := mem.NewRAM(64 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer ram.Close()
		plain, live := newWorld(ram), newWorld(ram)
		var kept *world // a snapshot that stays
		var keptState, keptContents string
		t.Repeat(map[string]func(*rapid.T){
			"operation": func(t *rapid.T) {
				o := drawOperation(t)
				if got, want := live.do(o), plain.do(o); got != want {
					t.Fatalf("%+v: %s, want %s", o, got, want)
				}
			},
			"snapshot": func(t *rapid.T) {
				if kept == nil {
					kept = live.snapshot(ram)
					keptState = kept.state()
					second := kept.snapshot(ram) // reading makes pages resident
					keptContents = second.contents()
					deepcopy.Release(second)
				}
			},
			"restore": func(t *rapid.T) {
				copied := live.snapshot(ram)
				deepcopy.Release(live)
				live = copied
			},
			"snapshot of a snapshot": func(t *rapid.T) {
				if kept != nil {
					second := kept.snapshot(ram)
					deepcopy.Release(kept)
					kept = second
				}
			},
			"": func(t *rapid.T) {
				if got, want := live.state(), plain.state(); got != want {
					t.Fatalf("with snapshots\n%s\nwithout\n%s", got, want)
				}
				if kept != nil && kept.state() != keptState {
					t.Fatalf("the snapshot has become\n%s\nfrom\n%s", kept.state(), keptState)
				}
			},
		})
		if got, want := live.contents(), plain.contents(); got != want {
			t.Fatalf("contents with snapshots\n%s\nwithout\n%s", got, want)
		}
		plain.release()
		live.release()
		if kept != nil {
			if got := kept.contents(); got != keptContents {
				t.Fatalf("the snapshot's contents are\n%s\nwere\n%s", got, keptContents)
			}
			deepcopy.Release(kept)
			deepcopy.Release(kept) // has no effect
		}
		if ram.Used() != 0 || ram.Tables() != 0 {
			t.Fatalf("%d pages and %d page tables are left", ram.Used(), ram.Tables())
		}
	})
}
