package direct

import (
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/emutest"
)

// TestLoadsInTwoPages adds up words and halves of vectors at each place around the border of two pages, which do not follow each
// other in physical memory. An aligned load of a vector there is refused.
func TestLoadsInTwoPages(t *testing.T) {
	const border, around = uint64(dataBase) + 9*arch.PageSize, 24
	b := newBenchIn(t, emutest.NewRAM(t), `
		mov ecx, 48
	next:
		mov rax, [rsi]
		add rdx, rax
		movups xmm1, [rsi]
		movq rax, xmm1
		add r8, rax
		movhlps xmm1, xmm1
		movq rax, xmm1
		add r9, rax
		movzx eax, word ptr [rsi]
		add r10, rax
		inc rsi
		dec ecx
		jnz next
		sub rsi, 26
		movaps xmm1, [rsi]
		syscall`)
	b.MapPage(arch.Addr(border), arch.Read)
	b.MapPage(arch.Addr(border-arch.PageSize), arch.Read)
	at := func(va uint64) byte { return byte(va*0x9d ^ va>>3) }
	for va := border - arch.PageSize; va < border+arch.PageSize; va++ {
		b.RAM.Bytes(b.Space.Get(arch.Addr(va)).Page())[va%arch.PageSize] = at(va)
	}
	word := func(va uint64, n uint64) (w uint64) {
		for i := range n {
			w |= uint64(at(va+i)) << (8 * i)
		}
		return w
	}
	var whole, high, half uint64
	for va := border - around; va < border+around; va++ {
		whole += word(va, 8)
		high += word(va+8, 8)
		half += word(va, 2)
	}
	b.ChangeRegs(func(r *arch.Regs) { r.GPR[arch.RSI] = border - around })
	stop := b.CPU.Run(arch.Limit{Instructions: 10_000})
	if stop.Reason != arch.StopException || stop.Vector != 13 {
		t.Errorf("the aligned load stops with %+v", stop)
	}
	r := b.Regs()
	if r.GPR[arch.RDX] != whole || r.GPR[8] != whole || r.GPR[9] != high || r.GPR[10] != half {
		t.Errorf("sums %#x, %#x, %#x, %#x; want %#x, %#x, %#x, %#x", r.GPR[arch.RDX], r.GPR[8], r.GPR[9], r.GPR[10], whole, whole, high, half)
	}
}
