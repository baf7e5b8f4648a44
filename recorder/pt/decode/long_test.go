package decode_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/pt/decode"
)

// TestLongStream: neither side's memory grows with the stream.
func TestLongStream(t *testing.T) {
	rounds := 100_000_000
	if testing.Short() {
		rounds = 10_000_000
	}
	const start = 0x401000
	m := decode.NewImage()
	m.Add(1, 0, start, []byte{0x90, 0x75, 0xfd, 0x0f, 0x05}) // nop, jne back, syscall
	in, out := io.Pipe()
	go func() {
		e := pt.NewEncoder(out, pt.Config{PSBPeriod: 4096})
		e.PIP(1)
		e.Enable(start, 0)
		words := make([]emu.BranchWord, 1000)
		for i := range words {
			words[i] = emu.BranchWord(uint64(emu.TagTNT)<<60 | 40<<48 | 1<<40 - 1)
		}
		for range rounds / (40 * len(words)) {
			e.Log(words)
			e.Position(start)
		}
		e.Log([]emu.BranchWord{emu.BranchWord(uint64(emu.TagTNT)<<60 | 1<<48)})
		e.Syscall()
		out.CloseWithError(e.Flush())
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := decode.NewDecoder(in, m, decode.Options{})
	steps := make([]decode.Step, 4096)
	for {
		if _, _, err := d.Next(steps); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if want := uint64(rounds)*2 + 3; d.Count() != want {
		t.Errorf("%d instructions, want %d", d.Count(), want)
	}
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 32<<20 {
		t.Errorf("the heap has grown by %d bytes for %d branches", grown, rounds)
	}
}
