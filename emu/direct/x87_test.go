package direct

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/floats"
	"github.com/heddle-dmt/heddle/internal/testsize"
)

// TestSharedFloats: the x87 instructions of package floats have its results, which its tests
// compare with hardware and with exact values, and a pending exception is raised before them.
func TestSharedFloats(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 11))
	s := newSubject(t, arch.V2, newData(rnd))
	for range testsize.Runs(100, 1000, 10_000) {
		for _, op := range []byte{0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf8, 0xf9, 0xfb, 0xfd, 0xfe, 0xff} {
			c := oracleCase{CodeAt: oracleCode, NCode: 2, Steps: 1, State: randomState(rnd)}
			copy(c.Code[:], []byte{0xd9, op})
			c.State.Regs.RIP = c.CodeAt
			if rnd.IntN(20) == 0 { // invalid, and not masked
				c.State.FP[0] &^= 1
				c.State.FP[2] |= 0x81
				c.State.FP[3] |= 0x80
			}
			want := floats.Image(c.State.FP[:160])
			fits := floats.Execute(&want, op)
			r, stop := s.run(&c)
			if trap := stop.Reason == arch.StopException && stop.Vector == 16; trap == fits {
				t.Fatalf("d9 %x: stopped with %+v", op, stop)
			}
			got, wanted := visibleState(r.State.FP), [stateBytes]byte{}
			copy(wanted[:], want[:])
			wanted = visibleState(wanted)
			if string(got[:24]) != string(wanted[:24]) || string(got[32:160]) != string(wanted[32:160]) {
				t.Fatalf("d9 %x of % x:\n% x, want\n% x", op, c.State.FP[:160], got[:160], wanted[:160])
			}
		}
	}
}

// TestStoresThatAreNotMade has an x87 exception that is not masked keep an instruction from storing. Memory
// stays as it was, in one page and in two.
func TestStoresThatAreNotMade(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	data := newData(rnd)
	o, s := newOracle(t, data), newSubject(t, arch.V2, data)
	var cases []oracleCase
	for _, code := range [][]byte{{0xdf, 0x17}, {0xdb, 0x17}, {0xdf, 0x3f}, {0xdd, 0x1f}, {0xd9, 0x17}} { // of various types, to [rdi]
		for _, at := range []uint64{oracleData + 64, oracleData + arch.PageSize - 1} {
			c := oracleCase{State: randomState(rnd), CodeAt: oracleCode + 256, NCode: 2}
			copy(c.Code[:], code)
			c.State.Regs.RIP, c.State.Regs.GPR[arch.RDI] = c.CodeAt, at
			fp := c.State.FP[:]
			binary.LittleEndian.PutUint16(fp, 0x340) // no exception is masked
			binary.LittleEndian.PutUint16(fp[2:], 0)
			fp[4] = 1 // one register is in use, and it has too large a number
			binary.LittleEndian.PutUint64(fp[32:], 1<<63|1)
			binary.LittleEndian.PutUint16(fp[40:], 0x7ffe)
			cases = append(cases, c)
		}
	}
	compare(t, o, s, cases, func(i int) (string, Instruction) {
		return "store", Inspect(arch.V2, cases[i].Code[:], cases[i].CodeAt)
	})
}
