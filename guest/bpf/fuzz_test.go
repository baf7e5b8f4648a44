package bpf

import (
	"bytes"
	"testing"
)

// FuzzProgram: instructions survive a round trip through memory, a program that New accepts ends
// after at most one step per instruction, and gives the same result again.
func FuzzProgram(f *testing.F) {
	const dataSize = 64 // of struct seccomp_data
	f.Add([]byte{6, 0, 0, 0, 0, 0, 0xff, 0x7f}, []byte{})
	f.Add(Encode([]Instruction{{Code: 0x20, K: 0}, {Code: 0x15, JT: 0, JF: 1, K: 110}, {Code: 6, K: 1}, {Code: 6, K: 0x7fff0000}}), []byte{110})
	f.Add(Encode([]Instruction{{Code: 0x20, K: 16}, {Code: 0x34, K: 3}, {Code: 2, K: 15}, {Code: 0x60, K: 15}, {Code: 0x16}}), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, code, input []byte) {
		list := Decode(code)
		if back := Encode(list); !bytes.Equal(back, code[:len(back)]) || len(code)-len(back) >= InstructionSize {
			t.Fatalf("%x becomes %x", code, back)
		}
		p, errno := New(list, dataSize)
		if errno != 0 {
			return
		}
		data := make([]byte, dataSize)
		copy(data, input)
		result, steps := p.Run(data)
		if steps > len(list) {
			t.Errorf("%d steps for %d instructions", steps, len(list))
		}
		if again, n := p.Run(data); again != result || n != steps {
			t.Errorf("results %#x and %#x after %d and %d steps", result, again, steps, n)
		}
	})
}
