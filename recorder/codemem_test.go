package recorder

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// TestCodeMemory: a block is new exactly when one of its bytes differs from that
// of a plain map.
func TestCodeMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := codeMemory{}
		type place struct {
			space uint64
			addr  arch.Addr
		}
		model := map[place]byte{}
		for range rapid.IntRange(1, 40).Draw(t, "blocks") {
			space := rapid.Uint64Range(1, 2).Draw(t, "space")
			addr := arch.Addr(rapid.Uint64Range(4090, 4102).Draw(t, "address"))
			code := bytes.Repeat([]byte{rapid.ByteRange(0, 2).Draw(t, "byte")}, rapid.IntRange(0, 9).Draw(t, "size"))
			want := false
			for i, b := range code {
				p := place{space, addr + arch.Addr(i)}
				if old, ok := model[p]; !ok || old != b {
					want = true
				}
				model[p] = b
			}
			if got := m.storeBlock(space, addr, code); got != want {
				t.Fatalf("%x at %d of %d: new %v, want %v", code, addr, space, got, want)
			}
		}
	})
}
