package loader

import (
	"errors"
	"testing"

	"github.com/heddle-dmt/heddle/emu/mem"
	"github.com/heddle-dmt/heddle/guest/mm"
	"github.com/heddle-dmt/heddle/internal/gcctest"
)

// TestCutAnywhere cuts programs at each length of their headers: none can be
// loaded, and each time one sentence says why.
func TestCutAnywhere(t *testing.T) {
	source := string(readFile(t, "testdata/start.c"))
	ram, err := mem.NewRAM(32 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer ram.Close()
	linker := readFile(t, "/lib64/ld-linux-x86-64.so.2")
	for _, flags := range [][]string{{"-static"}, {"-pie", "-fPIE", "-Wl,--dynamic-linker,/ld"}, {"-static-pie", "-fPIE"}} {
		data := readFile(t, gcctest.C(t, source, append([]string{"-O1", "-nostdlib", "-fno-stack-protector"}, flags...)...))
		for n := range 64 + 56*int(data[56]) {
			as := mm.New(ram, mm.DefaultLimits())
			files := &opener{ram: ram, own: map[string][]byte{"/p": data[:n], "/ld": linker}}
			_, err := Load(as, files, "/p", []string{"p"}, nil, Options{})
			var e *Error
			if !errors.As(err, &e) || e.Errno == 0 {
				t.Errorf("%v, %d bytes: %v", flags, n, err)
			}
			as.Release()
		}
	}
}
