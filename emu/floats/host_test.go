package floats

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/heddle-dmt/heddle/internal/testsize"
)

// The second bytes of the instructions.
const (
	f2xm1   = 0xf0
	fyl2x   = 0xf1
	fptan   = 0xf2
	fpatan  = 0xf3
	fxtract = 0xf4
	fprem1  = 0xf5
	fprem   = 0xf8
	fyl2xp1 = 0xf9
	fsincos = 0xfb
	fscale  = 0xfd
	fsin    = 0xfe
	fcos    = 0xff
)

var names = map[byte]string{
	f2xm1: "f2xm1", fyl2x: "fyl2x", fptan: "fptan", fpatan: "fpatan", fxtract: "fxtract", fprem1: "fprem1", fprem: "fprem",
	fyl2xp1: "fyl2xp1", fsincos: "fsincos", fscale: "fscale", fsin: "fsin", fcos: "fcos",
}

const (
	ie, de, ze, oe, ue, pe = 1, 2, 4, 8, 0x10, 0x20
	c0, c1, c2, c3         = 0x100, 0x200, 0x400, 0x4000
)

// host executes the instruction on the host's processor, for each image.
func host(t *testing.T, ops []byte, images []Image) []Image {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the host has no x87")
	}
	bin := filepath.Join(t.TempDir(), "host")
	if out, err := exec.Command("gcc", "-O1", "-std=gnu11", "-o", bin, filepath.Join("testdata", "host.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var in bytes.Buffer
	for i, op := range ops {
		in.Write(append([]byte{op}, make([]byte, 15)...))
		in.Write(images[i][:])
		in.Write(make([]byte, 512-len(Image{})))
	}
	cmd := exec.Command(bin)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil || len(out) != 512*len(ops) {
		t.Fatalf("%v, %d bytes of %d", err, len(out), 512*len(ops))
	}
	results := make([]Image, len(ops))
	for i := range results {
		copy(results[i][:], out[512*i:])
	}
	return results
}

// randomNumber returns a number of a random kind.
func randomNumber(rnd *rand.Rand) Number {
	sign := uint16(rnd.IntN(2)) << 15
	mantissa := func() uint64 {
		switch rnd.IntN(4) {
		case 0:
			return 1 << 63
		case 1:
			return 1<<63 | rnd.Uint64()&rnd.Uint64()&rnd.Uint64()&rnd.Uint64()
		}
		return 1<<63 | rnd.Uint64()
	}
	switch rnd.IntN(20) {
	case 0:
		return Number{0, sign}
	case 1:
		return Number{1 << 63, sign | 0x7fff} // infinite
	case 2:
		return Number{1<<63 | rnd.Uint64()>>(1+rnd.IntN(60)) | 1, sign | 0x7fff} // not a number
	case 3:
		return Number{rnd.Uint64() >> (1 + rnd.IntN(60)), sign | uint16(rnd.IntN(0x8000))} // unsupported
	case 4:
		return Number{rnd.Uint64() >> rnd.IntN(64), sign} // denormal
	case 5:
		return Number{mantissa(), sign | uint16(1+rnd.IntN(0x7ffe))}
	case 6:
		return Number{mantissa(), sign | uint16(1+rnd.IntN(80))}
	case 7:
		return Number{mantissa(), sign | uint16(0x7ffe-rnd.IntN(80))}
	case 8, 9:
		return Number{mantissa(), sign | uint16(0x3fff+rnd.IntN(80))}
	case 10, 11:
		return Number{mantissa(), sign | uint16(0x3fff-rnd.IntN(80))}
	}
	return Number{mantissa(), sign | uint16(0x3fff+rnd.IntN(13)-8)}
}

// randomImage returns a state with numbers on the stack.
func randomImage(rnd *rand.Rand) Image {
	var i Image
	control := uint16(0x7f | rnd.IntN(16)<<8)
	if rnd.IntN(6) == 0 {
		control &^= 1 << rnd.IntN(6)
	}
	binary.LittleEndian.PutUint16(i[0:], control)
	top := rnd.IntN(8)
	binary.LittleEndian.PutUint16(i[2:], uint16(top<<11|rnd.IntN(2)<<14|rnd.IntN(8)<<8|rnd.IntN(64)&int(control)))
	used := 3 // the first two
	if rnd.IntN(12) == 0 {
		used = rnd.IntN(256)
	}
	for n := range 8 {
		i[4] |= byte(used>>n&1) << ((top + n) & 7)
		i.SetST(n, randomNumber(rnd))
	}
	if rnd.IntN(3) == 0 { // numbers of about the same size
		i.SetST(0, Number{i.ST(0).Mantissa | 1<<63, i.ST(1).Head&0x7fff ^ uint16(rnd.IntN(8))})
	}
	return i
}

func (i *Image) describe() string {
	text := fmt.Sprintf("control %#x status %#x tags %08b: ", binary.LittleEndian.Uint16(i[:]), binary.LittleEndian.Uint16(i[2:]), i[4])
	for n := range 3 {
		text += fmt.Sprintf("st%d %04x:%016x ", n, i.ST(n).Head, i.ST(n).Mantissa)
	}
	return text
}

// isExact reports whether the manual defines the result completely.
func isExact(op byte) bool { return op == fprem || op == fprem1 || op == fscale || op == fxtract }

// isOrdinary reports whether a number is finite and not zero.
func (x Number) isOrdinary() bool {
	return x.Head&0x7fff != 0x7fff && x.Mantissa != 0 && (x.Mantissa>>63 != 0 || x.Head&0x7fff == 0)
}

// isApproximate reports whether an instruction computes a transcendental value.
func isApproximate(op byte, before *Image) bool {
	if isExact(op) || !before.ST(0).isOrdinary() {
		return false
	}
	two := op == fyl2x || op == fyl2xp1 || op == fpatan
	return !two || before.ST(1).isOrdinary()
}

// TestAgainstHost compares with the host's processor: FPREM, FPREM1, FSCALE and FXTRACT in all bits,
// special cases, exceptions and the stack of the others too, and their values within the error that
// the manual allows, on arguments for which the processor's pi of 66 bits does not matter.
func TestAgainstHost(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var ops []byte
	var images []Image
	for op := range names {
		for range testsize.Runs(1000, 10_000, 1_000_000) {
			ops, images = append(ops, op), append(images, randomImage(rnd))
		}
	}
	differences := 0
	for i, want := range host(t, ops, images) {
		op, before, got := ops[i], &images[i], images[i]
		if !Execute(&got, op) {
			t.Fatalf("%s: an exception is pending: %s", names[op], before.describe())
		}
		if text := disagreement(op, before, &got, &want); text != "" {
			if differences++; differences > 20 {
				t.Fatal("too many differences")
			}
			t.Errorf("%s: %s\nfrom %s\ngot  %s\nwant %s", names[op], text, before.describe(), got.describe(), want.describe())
		}
	}
}

// disagreement describes a difference between two results that is not allowed.
func disagreement(op byte, before, got, want *Image) string {
	ignored := uint16(0)
	approximate := isApproximate(op, before)
	if approximate {
		// Which results are exact, and which way they were rounded, follows from the result. AMD's
		// processors report inexact results where they are exact, too.
		ignored = c1 | pe | ue
		if before.Control()&(pe|ue) != pe|ue {
			ignored |= 0x8080
		}
	}
	if (got.Status()^want.Status())&^ignored != 0 {
		return "status"
	}
	if got[4] != want[4] {
		return "tags"
	}
	top := int(want.Status() >> 11 & 7)
	for n := range 8 {
		if want[4]>>((top+n)&7)&1 == 0 || got.ST(n) == want.ST(n) {
			continue
		}
		result := n == 0 || n == 1 && (op == fptan || op == fsincos)
		if !approximate || !result || !nearby(op, before, got.ST(n), want.ST(n)) {
			return fmt.Sprintf("register %d", n)
		}
	}
	return ""
}

// nearby reports whether two results differ by no more than processors differ from the exact result.
func nearby(op byte, before *Image, got, want Number) bool {
	exponent := int(before.ST(0).Head&0x7fff) - 0x3fff
	switch op {
	case fsin, fcos, fsincos, fptan:
		if exponent >= 0 {
			return exponent > 0 || got.Head == want.Head
		}
	case fyl2xp1:
		if exponent >= -2 {
			return true // undefined
		}
	}
	position := func(x Number) int64 { return int64(x.Head&0x7fff)<<63 | int64(x.Mantissa&^(1<<63)) }
	d := position(got) - position(want)
	return got.Head>>15 == want.Head>>15 && d >= -2 && d <= 2
}
