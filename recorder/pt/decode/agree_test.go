package decode_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/internal/libipt"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/pt/decode"
	"github.com/heddle-dmt/heddle/recorder/pt/pttest"
)

// The two decoders must agree on a damaged stream as follows. Let X be the offset
// of the packet at which this decoder stops.
//
//   - Malformed, truncated, misplaced and foreign packets: libipt, given the
//     stream up to X, decodes exactly the same instructions, without an error.
//     Up to the PSB if X lies in a PSB's header: libipt takes PSB and header as
//     one.
//   - Packets that do not fit the code, and addresses without code: libipt, given
//     the stream up to the end of the packet at X, decodes exactly the same
//     instructions and then fails too. Where this decoder finds no instruction,
//     libipt, which only measures lengths, may continue.
//   - Given the whole stream, libipt never finds an error in one that this
//     decoder takes, and fails too for malformed packets: at X, or at the PSB in
//     whose header X lies.
//
// The remaining differences are permitted. libipt reads one packet ahead: 2.0 drops
// the outcomes before a malformed packet, where this decoder still gives them.
// It takes a TIP out of turn while outcomes before it are left over. And it
// decodes packets that are foreign here: OVF, TSX, other modes than 64-bit. Of more than
// eight pairs of 02 82 in a row this decoder takes the first eight as a PSB.
type verdict struct {
	addresses []uint64
	err       *decode.Error // nil: the stream is right
}

func judge(t testing.TB, stream []byte, code []pttest.Code) verdict {
	got, _, err := mine(decode.NewDecoder(bytes.NewReader(stream), image(code), decode.Options{}))
	var fail *decode.Error
	if err != io.EOF && !errors.As(err, &fail) {
		t.Fatalf("error of no kind: %v", err)
	}
	return verdict{got, fail}
}

const tooMany = 1 << 20 // instructions of libipt, which can turn in circles for ever

// headerOf returns the offset of the PSB in whose header x lies, or x.
func headerOf(stream []byte, x int) int {
	at := bytes.LastIndex(stream[:x], unhexPSB)
	if at < 0 {
		return x
	}
	for in := at; in < x; {
		p, err := pt.Parse(stream[in:])
		if err != nil || p.Kind == pt.PSBEND {
			return x
		}
		in += p.Size
	}
	return at
}

var unhexPSB = bytes.Repeat([]byte{2, 0x82}, 8)

// agree compares the decoders on a stream that may be damaged, from its first
// PSB on.
func agree(t testing.TB, stream []byte, code []pttest.Code) error {
	if bytes.Contains(stream, bytes.Repeat([]byte{2, 0x82}, 9)) {
		return nil
	}
	v := judge(t, stream, code)
	whole, _, wholeErr := intel(t, stream, code, pt.Timing{}, tooMany)
	if v.err == nil {
		if wholeErr != nil && wholeErr.Code != libipt.EndOfStream {
			return fmt.Errorf("no error, libipt has %w after %d of %d instructions", wholeErr, len(whole), len(v.addresses))
		}
		return same("the whole stream", v.addresses, whole, wholeErr)
	}
	x := int(v.err.Offset)
	switch v.err.Kind {
	case decode.ErrUnsynchronized:
		if len(whole) > 0 {
			return fmt.Errorf("%w, libipt has %d instructions", v.err, len(whole))
		}
		return nil
	case decode.ErrNoInstruction:
		if len(whole) < len(v.addresses) && wholeErr == nil {
			return fmt.Errorf("%w, libipt has fewer instructions", v.err)
		}
		return nil
	case decode.ErrMismatch, decode.ErrNoCode:
		p, err := pt.Parse(stream[x:])
		if err != nil {
			return fmt.Errorf("%w at bytes that are no packet: %w", v.err, err)
		}
		got, _, fail := intel(t, stream[:x+p.Size], code, pt.Timing{}, tooMany)
		if fail == nil {
			return fmt.Errorf("%w, libipt has no error", v.err)
		}
		return same(v.err.Error(), v.addresses, got, fail)
	}
	if v.err.Kind == decode.ErrMalformed && (wholeErr == nil || int(wholeErr.Offset) != x && int(wholeErr.Offset) != headerOf(stream, x)) {
		return fmt.Errorf("%w, libipt has %v", v.err, wholeErr)
	}
	got, _, fail := intel(t, stream[:headerOf(stream, x)], code, pt.Timing{}, tooMany)
	if fail == nil || fail.Code != libipt.EndOfStream {
		return fmt.Errorf("%w, libipt has already %v", v.err, fail)
	}
	return same(v.err.Error(), v.addresses, got, fail)
}

// same compares instructions. libipt may have read one more, of unknown
// successor.
func same(name string, mine, theirs []uint64, fail *libipt.Error) error {
	if slices.Equal(mine, theirs) || fail != nil && fail.Pending && slices.Equal(mine, append(slices.Clip(theirs), fail.IP)) {
		return nil
	}
	n := 0
	for n < min(len(mine), len(theirs)) && mine[n] == theirs[n] {
		n++
	}
	return fmt.Errorf("%s: %d instructions, libipt has %d (%v), equal are %d", name, len(mine), len(theirs), fail, n)
}

// damage changes a stream in a way that is drawn.
func damage(r *pttest.Rand, stream []byte) []byte {
	b := slices.Clone(stream)
	at := r.Below(len(b))
	switch r.Below(6) {
	case 0:
		b[at] ^= 1 << r.Below(8)
	case 1:
		b[at] = byte(r.Next())
	case 2:
		b = b[:at]
	case 3:
		b = slices.Delete(b, at, min(at+1+r.Below(8), len(b)))
	case 4:
		b = slices.Insert(b, at, byte(r.Next()), byte(r.Next()))
	case 5:
		from := r.Below(len(b))
		b = slices.Insert(b, at, b[from:min(from+20, len(b))]...)
	}
	return b
}

func TestDamagedStreams(t *testing.T) {
	n := 2500
	if testing.Short() {
		n = 500
	}
	for seed := range uint64(4) {
		cfg := pt.Config{PSBPeriod: 100 + 1000*(seed/2), RetCompression: seed%2 == 1}
		stream, w := record(seed, cfg, pttest.Options{Threads: 2, Changes: seed == 3}, 400)
		r := pttest.Rand(seed + 1)
		for i := range n {
			b := damage(&r, stream)
			if i%3 == 0 && len(b) > 0 {
				b = damage(&r, b)
			}
			if err := agree(t, b, w.Code); err != nil {
				t.Fatalf("seed %d, stream %d: %v", seed, i, err)
			}
		}
	}
}

func FuzzAgree(f *testing.F) {
	_, w := record(1, pt.Config{}, pttest.Options{Threads: 2}, 400)
	for _, cfg := range []pt.Config{{}, {PSBPeriod: 64, RetCompression: true}, {PSBPeriod: 256}} {
		stream, again := record(1, cfg, pttest.Options{Threads: 2}, 400)
		w.Code = append(w.Code, again.Code...)
		f.Add(stream)
	}
	code := w.Code
	for i := range code {
		code[i].At = 0
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		if err := agree(t, stream, code); err != nil {
			t.Error(err)
		}
	})
}

// TestSync: after an error decoding continues at the next PSB, as if the stream
// began there.
func TestSync(t *testing.T) {
	stream, w := record(7, pt.Config{PSBPeriod: 100, RetCompression: true}, pttest.Options{Threads: 2}, 400)
	r := pttest.Rand(9)
	errors := 0
	for i := range 300 {
		b := damage(&r, stream)
		d := decode.NewDecoder(bytes.NewReader(b), image(w.Code), decode.Options{})
		at := 0
		for {
			_, _, err := mine(d)
			if err == io.EOF {
				break
			}
			errors++
			x := int(err.(*decode.Error).Offset)
			next := bytes.Index(b[at+x:], unhexPSB)
			got, err := d.Sync()
			if next < 0 {
				if err == nil {
					t.Fatalf("stream %d: a PSB at %d where no PSB is", i, got)
				}
				break
			}
			if at += x + next; int(got) != at {
				t.Fatalf("stream %d: synchronized at %d, the next PSB is at %d", i, got, at)
			}
			rest, _, _ := mine(d)
			alone := judge(t, b[at:], w.Code)
			if err := same("after an error", rest, alone.addresses, nil); err != nil {
				t.Fatalf("stream %d: %v", i, err)
			}
			if alone.err == nil {
				break
			}
			b, at = b[at:], 0
			d = decode.NewDecoder(bytes.NewReader(b), image(w.Code), decode.Options{})
		}
	}
	if errors < 100 {
		t.Errorf("%d errors in 300 damaged streams", errors)
	}
}
