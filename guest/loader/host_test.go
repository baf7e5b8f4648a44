package loader

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/mm"
)

// bytesFile is a File and its own mm.Source over bytes in the host's memory.
type bytesFile struct {
	path   string
	data   []byte
	object *mm.Object
}

func (f *bytesFile) Size() int64        { return int64(len(f.data)) }
func (f *bytesFile) Object() *mm.Object { return f.object }
func (f *bytesFile) MapFile() mm.File   { return f }
func (f *bytesFile) Close()             { f.object.Unref() }

func (f *bytesFile) NoteMapping()                      {}
func (f *bytesFile) NoteUnmapping()                    {}
func (f *bytesFile) MapName() (string, uint64, uint64) { return f.path, 0x801, 7 }

func (f *bytesFile) ReadAt(p []byte, off int64) (int, unix.Errno) {
	if off < 0 || off >= f.Size() {
		return 0, 0
	}
	return copy(p, f.data[off:]), 0
}

type bytesSource struct{ data []byte }

func (bytesSource) SharedInSnapshot() {}

func (s bytesSource) ReadAt(p []byte, off int64) unix.Errno {
	clear(p)
	if off < int64(len(s.data)) {
		copy(p, s.data[off:])
	}
	return 0
}

func newFile(ram *mem.RAM, path string, data []byte) *bytesFile {
	return &bytesFile{path, data, mm.NewObject(ram, bytesSource{data}, int64(len(data)))}
}

// opener finds files among its own first, then on the host.
type opener struct {
	ram *mem.RAM
	own map[string][]byte
}

func (o *opener) OpenExec(path string) (File, unix.Errno) {
	if data, ok := o.own[path]; ok {
		return newFile(o.ram, path, data), 0
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, unix.EISDIR
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, unix.ENOENT
	case err != nil:
		return nil, unix.EACCES
	}
	return newFile(o.ram, path, data), 0
}

// newSpace makes an address space that must give everything back.
func newSpace(t testing.TB) *mm.AddressSpace {
	t.Helper()
	ram, err := mem.NewRAM(256 << 20)
	if err != nil {
		t.Fatal(err)
	}
	as := mm.New(ram, mm.DefaultLimits())
	t.Cleanup(func() {
		as.Release()
		if ram.Used() != 0 || ram.Tables() != 0 {
			t.Errorf("%d pages and %d page tables are left", ram.Used(), ram.Tables())
		}
		ram.Close()
	})
	return as
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (*bytesFile) Tracking() mm.Tracking { return mm.TrackNone }

func (*bytesFile) NoteWrite() {}
