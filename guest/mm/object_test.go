package mm

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/internal/deepcopy"
)

// text is a Source over bytes.
type text []byte

func (text) SharedInSnapshot() {}

func (s text) ReadAt(p []byte, off int64) unix.Errno {
	clear(p)
	if off < int64(len(s)) {
		copy(p, s[off:])
	}
	return 0
}

// broken is a Source that cannot be read.
type broken struct{}

func (broken) SharedInSnapshot() {}

func (broken) ReadAt([]byte, int64) unix.Errno { return unix.EIO }

// objectModel is an object with its model, bytes in a slice.
type objectModel struct {
	object *Object
	bytes  []byte
}

const maxObject = 150 * arch.PageSize // more than two nodes of the page tree

func (m *objectModel) write(t *rapid.T) {
	off := rapid.IntRange(0, maxObject-1).Draw(t, "offset")
	p := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "bytes"), rapid.SampledFrom([]int{1, 700, 2000}).Draw(t, "times"))
	p = p[:min(len(p), maxObject-off)]
	if n, errno := m.object.WriteAt(p, int64(off)); n != len(p) || errno != 0 {
		t.Fatalf("write: %d, %v", n, errno)
	}
	m.resize(max(len(m.bytes), off+len(p)))
	copy(m.bytes[off:], p)
}

// resize cuts, or adds zeros.
func (m *objectModel) resize(size int) {
	kept := bytes.Clone(m.bytes[:min(size, len(m.bytes))])
	m.bytes = append(kept, make([]byte, size-len(kept))...)
}

func (m *objectModel) truncate(t *rapid.T) {
	size := rapid.IntRange(0, maxObject).Draw(t, "size")
	if errno := m.object.Truncate(int64(size)); errno != 0 {
		t.Fatal(errno)
	}
	m.resize(size)
}

func (m *objectModel) zero(t *rapid.T) {
	off := rapid.IntRange(0, maxObject).Draw(t, "offset")
	n := rapid.IntRange(0, maxObject).Draw(t, "size")
	if errno := m.object.Zero(int64(off), int64(n)); errno != 0 {
		t.Fatal(errno)
	}
	if off < len(m.bytes) {
		clear(m.bytes[off:min(off+n, len(m.bytes))])
	}
}

func (m *objectModel) read(t *rapid.T) {
	off := rapid.IntRange(0, maxObject).Draw(t, "offset")
	p := make([]byte, rapid.IntRange(0, 3*arch.PageSize).Draw(t, "size"))
	n, errno := m.object.ReadAt(p, int64(off))
	want := m.bytes[min(off, len(m.bytes)):min(off+len(p), len(m.bytes))]
	if errno != 0 || !bytes.Equal(p[:n], want) {
		t.Fatalf("read of %d bytes at %d of %d: %d, %v", len(p), off, len(m.bytes), n, errno)
	}
}

// page makes a page resident.
func (m *objectModel) page(t *rapid.T) {
	i := rapid.Uint64Range(0, maxObject/arch.PageSize).Draw(t, "index")
	get := m.object.Page
	if rapid.Bool().Draw(t, "writable") {
		get = m.object.WritablePage
	}
	page, errno := get(i)
	if errno != 0 {
		t.Fatal(errno)
	}
	want := make([]byte, arch.PageSize)
	if off := int(i * arch.PageSize); off < len(m.bytes) {
		copy(want, m.bytes[off:])
	}
	if !bytes.Equal(m.object.ram.Bytes(page), want) {
		t.Fatalf("page %d has other bytes", i)
	}
}

// TestObjectAgreesWithSlice runs random operations on an object, its snapshots
// and snapshots of those, and on slices of bytes.
func TestObjectAgreesWithSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ram, err := mem.NewRAM(16 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer ram.Close()
		content := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 7).Draw(t, "content"), 50000)
		content = content[:min(len(content), maxObject)]
		var source Source
		if rapid.Bool().Draw(t, "source") {
			source = text(bytes.Clone(content))
		} else {
			clear(content)
		}
		all := []*objectModel{{NewObject(ram, source, int64(len(content))), content}}
		on := func(f func(*objectModel, *rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) { f(all[rapid.IntRange(0, len(all)-1).Draw(t, "object")], t) }
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": on((*objectModel).write), "truncate": on((*objectModel).truncate), "zero": on((*objectModel).zero),
			"read": on((*objectModel).read), "page": on((*objectModel).page),
			"snapshot": func(t *rapid.T) {
				if len(all) > 4 {
					t.Skip("there are as many copies as the test takes")
				}
				m := all[rapid.IntRange(0, len(all)-1).Draw(t, "object")]
				all = append(all, &objectModel{deepcopy.Copy(deepcopy.New(), m.object), bytes.Clone(m.bytes)})
				ram.NextGeneration()
			},
			"": func(t *rapid.T) {
				for _, m := range all {
					got := make([]byte, len(m.bytes)+1)
					n, errno := m.object.ReadAt(got, 0)
					if errno != 0 || m.object.Size() != int64(len(m.bytes)) || !bytes.Equal(got[:n], m.bytes) {
						t.Fatalf("an object of %d bytes differs: %d bytes, %v", len(m.bytes), n, errno)
					}
				}
			},
		})
		for _, m := range all {
			m.object.Unref()
			m.object.Release() // has no effect
		}
		if ram.Used() != 0 {
			t.Fatalf("%d pages are left", ram.Used())
		}
	})
}

func TestObjectErrors(t *testing.T) {
	ram, err := mem.NewRAM(16 * arch.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer ram.Close()
	bad := NewObject(ram, broken{}, 100)
	if _, errno := bad.ReadAt(make([]byte, 10), 0); errno != unix.EIO {
		t.Errorf("read of a broken source: %v", errno)
	}
	if _, errno := bad.Page(0); errno != unix.EIO || ram.Used() != 0 {
		t.Errorf("page of a broken source: %v, %d pages used", errno, ram.Used())
	}
	if n, errno := bad.WriteAt([]byte("x"), 5); errno != unix.EIO || n != 0 {
		t.Errorf("write to a broken source: %d, %v", n, errno)
	}
	o := NewObject(ram, nil, 0)
	n, errno := o.WriteAt(make([]byte, 32*arch.PageSize), 0)
	if errno != unix.ENOSPC || uint64(n) != ram.Limit()*arch.PageSize || o.Size() != int64(n) {
		t.Errorf("write beyond memory: %d bytes, %v, size %d", n, errno, o.Size())
	}
	o.Unref()
	if ram.Used() != 0 {
		t.Errorf("%d pages are left", ram.Used())
	}
}

// TestPageTreeReachesFar: offsets up to the largest off_t.
func TestPageTreeReachesFar(t *testing.T) {
	ram, err := mem.NewRAM(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer ram.Close()
	o := NewObject(ram, nil, 0)
	offsets := []int64{0, arch.PageSize, 1 << 18, 1 << 30, 1 << 40, 1<<63 - 2*arch.PageSize}
	for i, off := range offsets {
		if _, errno := o.WriteAt([]byte{byte(i + 1)}, off); errno != 0 {
			t.Fatal(errno)
		}
	}
	for i, off := range offsets {
		var b [1]byte
		if _, errno := o.ReadAt(b[:], off); errno != 0 || b[0] != byte(i+1) {
			t.Errorf("at %#x: %d, %v", off, b[0], errno)
		}
	}
	if errno := o.Truncate(1 << 30); errno != 0 || o.Resident() != 3 {
		t.Errorf("%d pages after truncation, %v", o.Resident(), errno)
	}
	o.Unref()
}
