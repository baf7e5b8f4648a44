package loader

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// seeds are real programs, whole, truncated and with bits flipped.
func seeds(f *testing.F) {
	source := string(readFile(f, "testdata/start.c"))
	small := []string{"-O1", "-nostdlib", "-fno-stack-protector"}
	random := rand.New(rand.NewPCG(1, 2))
	for _, flags := range [][]string{
		append(small, "-static"), append(small, "-pie", "-fPIE", "-Wl,--dynamic-linker,/ld"), append(small, "-static-pie", "-fPIE"),
	} {
		data := readFile(f, gcctest.C(f, source, flags...))
		f.Add(data)
		for _, n := range []int{0, 3, 17, 63, 64, 100, 400, 4095, 4097, len(data) / 2, len(data) - 1} {
			f.Add(data[:n])
		}
		for range 40 {
			flipped := bytes.Clone(data)
			for range 1 + random.IntN(4) {
				// Mostly in the headers, where it matters.
				at := random.IntN(600)
				if random.IntN(4) == 0 {
					at = random.IntN(len(data))
				}
				flipped[at] ^= 1 << random.IntN(8)
			}
			f.Add(flipped)
		}
	}
	for _, text := range []string{"#!", "#!/p", "#!/p\n", "#!/ld x y\n", "#! \t \n", "#!/no"} {
		f.Add([]byte(text))
	}
}

// FuzzLoad: whatever the bytes, loading ends with a program or an Error with a
// sentence of one line, takes no more memory than there is, and gives all of it
// back.
func FuzzLoad(f *testing.F) {
	linker := readFile(f, "/lib64/ld-linux-x86-64.so.2")
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		ram, err := mem.NewRAM(32 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer ram.Close()
		as := mm.New(ram, mm.DefaultLimits())
		files := &opener{ram: ram, own: map[string][]byte{"/p": data, "/ld": linker}}
		image, err := Load(as, files, "/p", []string{"p", "x"}, []string{"A=B"}, Options{})
		var e *Error
		switch {
		case err == nil:
			checkImage(t, as, image)
		case !errors.As(err, &e) || e.Errno == 0 || e.Error() == "" || bytes.ContainsRune([]byte(e.Error()), '\n'):
			t.Errorf("error %#v", err)
		}
		as.Release()
		if ram.Used() != 0 || ram.Tables() != 0 {
			t.Errorf("%d pages and %d page tables are left", ram.Used(), ram.Tables())
		}
	})
}

// checkImage looks at a program that was loaded as the kernel and the engine
// would.
func checkImage(t *testing.T, as *mm.AddressSpace, image Image) {
	if argc, errno := as.ReadU64(image.StackPointer); errno != 0 || argc == 0 || image.StackPointer%16 != 0 {
		t.Errorf("stack pointer %#x: %d, %v", image.StackPointer, argc, errno)
	}
	var end arch.Addr
	for _, v := range as.VMAs() {
		if v.Start < end || v.Start >= v.End || v.End > mm.TaskSize || v.Start < mm.MinAddr {
			t.Errorf("mapping %#x-%#x after %#x", v.Start, v.End, end)
		}
		end = v.End
	}
	as.Fault(image.Entry, arch.AccessFetch)
	as.Maps()
}

// FuzzStack: neither tables of symbols nor of frames are trusted.
func FuzzStack(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		ram, err := mem.NewRAM(8 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer ram.Close()
		as := mm.New(ram, mm.DefaultLimits())
		defer as.Release()
		file := newFile(ram, "/p", data)
		defer file.Close()
		if len(data) == 0 {
			return
		}
		s, err := readTables(bytes.NewReader(data))
		if err != nil {
			return
		}
		at, errno := as.Mmap(mm.MapRequest{
			Length: uint64(len(data)), Prot: unix.PROT_READ | unix.PROT_WRITE, Flags: unix.MAP_PRIVATE,
			Object: file.Object(), File: file.MapFile(), Readable: true,
		})
		if errno != 0 {
			t.Fatal(errno)
		}
		u := NewUnwinder()
		for off := 0; off < len(data); off += 1 + len(data)/200 {
			if va, ok := s.symbols.Address(uint64(off)); ok {
				s.symbols.FunctionAt(va)
			}
			var r arch.Regs
			r.RIP = uint64(at) + uint64(off)
			r.GPR[arch.RSP], r.GPR[arch.RBP] = uint64(at), uint64(at)+16
			if frames := u.Stack(as, r, 20); len(frames) == 0 || len(frames) > 20 {
				t.Errorf("%d frames", len(frames))
			}
		}
	})
}
