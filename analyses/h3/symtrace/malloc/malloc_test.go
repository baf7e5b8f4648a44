package malloc

import (
	"encoding/binary"
	"slices"
	"testing"
)

// heap is memory at 0x1000 with chunks of some sizes after other memory.
func heap(before int, sizes ...uint64) []byte {
	memory := make([]byte, before)
	for _, size := range sizes {
		chunk := make([]byte, size)
		binary.LittleEndian.PutUint64(chunk[8:], size|1) // the chunk before is in use
		memory = append(memory, chunk...)
	}
	return memory
}

func TestPieces(t *testing.T) {
	const start = 0x1000
	for name, c := range map[string]struct {
		memory []byte
		want   []Piece
	}{
		"from the begin":    {heap(0, 32, 48, 64), []Piece{{start + 16, 24}, {start + 48, 40}, {start + 96, 56}}},
		"after other words": {heap(32, 32, 32), []Piece{{start + 48, 24}, {start + 80, 24}}},
		"one chunk":         {heap(0, 96), nil},
		"no heap":           {make([]byte, 256), nil},
		"past the end":      {heap(0, 32, 48, 64)[:100], nil},
	} {
		peek := func(addr uint64, b []byte) int {
			if addr < start || addr >= start+uint64(len(c.memory)) {
				return 0
			}
			return copy(b, c.memory[addr-start:])
		}
		if got := Pieces(peek, start, start+uint64(len(c.memory))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
