package windows

import (
	"fmt"
	"os"

	"github.com/heddle-dmt/heddle/emu/arch"
)

func (d *Driver) debugDump(n int) {
	dir := os.Getenv("WDUMP")
	if dir == "" {
		return
	}
	f, _ := os.Create(fmt.Sprintf("%s/w%d", dir, n))
	defer f.Close()
	var r arch.Regs
	var fp [arch.FPSize]byte
	for _, p := range d.service().Processes() {
		for _, t := range p.Threads() {
			t.Registers(&r, &fp)
			fmt.Fprintf(f, "thread %d %x %x %x\n", t.ID(), r.RIP, r.FSBase, r.GPR)
		}
		b := make([]byte, 4096)
		for _, v := range p.Space().VMAs() {
			if v.Prot == 0 {
				continue
			}
			name := ""
			if v.File != nil {
				name = fmt.Sprint(v.File)[:0] + "file"
			}
			for a := v.Start; a < v.End; a += 4096 {
				if p.Peek(a, b) < 4096 {
					continue
				}
				for i := 0; i < 4096; i += 8 {
					w := uint64(0)
					for j := 7; j >= 0; j-- {
						w = w<<8 | uint64(b[i+j])
					}
					if w != 0 && v.Prot&2 != 0 {
						fmt.Fprintf(f, "%d %x %x %s\n", p.PID(), uint64(a)+uint64(i), w, name)
					}
				}
			}
		}
	}
}
