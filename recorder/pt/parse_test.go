package pt_test

import (
	"errors"
	"testing"

	"github.com/heddle-dmt/heddle/recorder/pt"
)

// TestParse has packets that the encoder never writes, and packets that are
// damaged, by the tables of the SDM, section "Packet Definitions".
func TestParse(t *testing.T) {
	for _, c := range []struct {
		bytes string
		want  pt.Packet
		err   error
	}{
		{"00", pt.Packet{Kind: pt.PAD, Size: 1}, nil},
		{"02f3", pt.Packet{Kind: pt.OVF, Size: 2}, nil},
		{"0283", pt.Packet{Kind: pt.TraceStop, Size: 2}, nil},
		{"02c8 0102030405", pt.Packet{Kind: pt.VMCS, Size: 7}, nil},
		{"02c388 0102030405060708", pt.Packet{Kind: pt.MNT, Size: 11}, nil},
		{"0212 01020304", pt.Packet{Kind: pt.PTW, Size: 6}, nil},
		{"02b2 0102030405060708", pt.Packet{Kind: pt.PTW, Size: 10, Aux: 1}, nil},
		{"0243 014523010000", pt.Packet{Kind: pt.PIP, Size: 8, Value: 0x1234500 >> 1 << 5, Aux: 1}, nil},
		{"0262", pt.Packet{Kind: pt.EXSTOP, Size: 2}, nil},
		{"02e2", pt.Packet{Kind: pt.EXSTOP, Size: 2, Aux: 1}, nil},
		{"02c2 0000000000000000", pt.Packet{Kind: pt.MWAIT, Size: 10}, nil},
		{"0222 0000", pt.Packet{Kind: pt.PWRE, Size: 4}, nil},
		{"02a2 0000000000", pt.Packet{Kind: pt.PWRX, Size: 7}, nil},
		{"9920", pt.Packet{Kind: pt.MODE, Size: 2, Value: 0x20}, nil},
		{"0273 3412 00 ff 01", pt.Packet{Kind: pt.TMA, Size: 7, Value: 0x1234, Aux: 0x1ff}, nil},
		{"cd 8877665544332211", pt.Packet{Kind: pt.TIP, Size: 9, Value: 0x1122334455667788, Aux: 6}, nil},
		{"8d 665544332211", pt.Packet{Kind: pt.TIP, Size: 7, Value: 0x112233445566, Aux: 4}, nil},
		{"07 ff ff ff ff ff ff ff fe", pt.Packet{Kind: pt.CYC, Size: 9, Value: 1<<61 - 1<<5}, nil},

		{"", pt.Packet{}, pt.ErrShort},
		{"02", pt.Packet{}, pt.ErrShort},
		{"05", pt.Packet{}, pt.ErrOpcode},
		{"02ff", pt.Packet{}, pt.ErrOpcode},
		{"02c399", pt.Packet{Kind: pt.MNT, Size: 11}, pt.ErrOpcode},
		{"2d00", pt.Packet{Kind: pt.TIP, Aux: 1}, pt.ErrShort},
		{"ad", pt.Packet{Kind: pt.TIP, Aux: 5}, pt.ErrPayload},
		{"ed", pt.Packet{Kind: pt.TIP, Aux: 7}, pt.ErrPayload},
		{"9940", pt.Packet{Kind: pt.MODE}, pt.ErrPayload},
		{"02a3 000000000000", pt.Packet{Kind: pt.TNT}, pt.ErrPayload},
		{"02a3 010000000000", pt.Packet{Kind: pt.TNT}, pt.ErrPayload},
		{"0273 3412 00 ff 02", pt.Packet{Kind: pt.TMA, Size: 7, Value: 0x1234, Aux: 0x2ff}, pt.ErrPayload},
		{"0203 00 00", pt.Packet{Kind: pt.CBR, Size: 4}, pt.ErrPayload},
		{"0252 00", pt.Packet{Kind: pt.PTW}, pt.ErrPayload},
		{"0282028202820282 0282028202820283", pt.Packet{Kind: pt.PSB, Size: 16}, pt.ErrPayload},
		{"0282028202820282", pt.Packet{Kind: pt.PSB, Size: 16}, pt.ErrShort},
	} {
		got, err := pt.Parse(unhex(c.bytes))
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v, want %+v, %v", c.bytes, got, err, c.want, c.err)
		}
	}
}

// TestResolve has the SDM's table "FUP/TIP IP Reconstruction".
func TestResolve(t *testing.T) {
	const last = 0x1122334455667788
	for _, c := range []struct {
		how   pt.IPBytes
		value uint64
		want  uint64
		ok    bool
	}{
		{pt.IPNone, 0, last, false},
		{pt.IPLow16, 0xabcd, 0x112233445566abcd, true},
		{pt.IPLow32, 0x89abcdef, 0x1122334489abcdef, true},
		{pt.IPSign48, 0x7f0123456789, 0x00007f0123456789, true},
		{pt.IPSign48, 0x800123456789, 0xffff800123456789, true},
		{pt.IPLow48, 0x800123456789, 0x1122800123456789, true},
		{pt.IPFull, 0xfedcba9876543210, 0xfedcba9876543210, true},
	} {
		got, ok := pt.Packet{Kind: pt.TIP, Value: c.value, Aux: uint16(c.how)}.Resolve(last)
		if got != c.want || ok != c.ok {
			t.Errorf("%d, %#x: %#x, %v, want %#x, %v", c.how, c.value, got, ok, c.want, c.ok)
		}
	}
}

// FuzzParse: no bytes make Parse fail otherwise than by an error, and a packet
// lies within the bytes and does not depend on the bytes after it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{psb, psbend, "02a3ffffffffffff", "0747", "9901", "1901020304050607", "02c3880102030405060708"} {
		f.Add(unhex(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := pt.Parse(b)
		if err != nil {
			return
		}
		if p.Size < 1 || p.Size > len(b) || p.Size > pt.MaxPacket {
			t.Fatalf("a packet of %d bytes in %d", p.Size, len(b))
		}
		if again, err := pt.Parse(b[:p.Size]); again != p || err != nil {
			t.Fatalf("%+v alone is %+v, %v", p, again, err)
		}
	})
}
