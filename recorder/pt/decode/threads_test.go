package decode_test

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/pt/decode"
)

// TestThreads: two threads take turns on a core. One of them runs in a circle
// that is not in the stream; the sideband's counts have it.
func TestThreads(t *testing.T) {
	const circle, straight = 0x401000, 0x402000
	m := decode.NewImage()
	m.Add(1, 0, circle, []byte{0x90, 0x90, 0xeb, 0xfc}) // nop, nop, jmp back
	m.Add(1, 0, straight, []byte{0x90, 0x90, 0x90, 0x90})
	var out bytes.Buffer
	e := pt.NewEncoder(&out, pt.Config{})
	e.PIP(1)
	var switches []event.Switch
	turn := func(thread arch.ThreadID, from, to, before uint64) {
		s := event.Switch{Process: 7, Offset: e.Offset(), CoreInstructions: before}
		s.Thread = thread
		switches = append(switches, s)
		e.Enable(from, 0)
		e.Async(to)
	}
	turn(10, circle, circle+1, 0)
	turn(11, straight, straight+2, 3001) // three thousand rounds of one
	turn(10, circle+1, circle+1, 3003)
	turn(11, straight+2, straight+4, 3003)
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	// A last switch, to no thread, has the count of the last interruption.
	switches = append(switches, event.Switch{Offset: e.Offset(), CoreInstructions: 3005})

	got := map[arch.ThreadID][]uint64{}
	d := decode.NewDecoder(&out, m, decode.Options{})
	th := decode.NewThreads(d, switches)
	steps := make([]decode.Step, 100)
	for {
		n, _, err := th.Next(steps)
		for _, s := range steps[:n] {
			got[th.Thread()] = s.AppendAddresses(got[th.Thread()])
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if a := got[10]; len(a) != 3001 || a[3000] != circle || a[2999] != circle+2 {
		t.Errorf("thread 10: %d instructions, should be 3001", len(a))
	}
	if want := []uint64{straight, straight + 1, straight + 2, straight + 3}; !slices.Equal(got[11], want) {
		t.Errorf("thread 11: %#x, want %#x", got[11], want)
	}
	if th.Process() != 7 || d.Count() != 3005 {
		t.Errorf("process %d, %d instructions", th.Process(), d.Count())
	}
}
