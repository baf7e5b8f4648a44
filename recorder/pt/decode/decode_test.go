package decode_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/heddle-dmt/heddle/internal/libipt"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/pt/decode"
	"github.com/heddle-dmt/heddle/recorder/pt/pttest"
)

// configs are the encoder's options, each alone and together.
func configs() map[string]pt.Config {
	all := map[string]pt.Config{}
	for _, period := range []uint64{0, 64, 4096} {
		for _, ret := range []bool{false, true} {
			for name, timing := range map[string]pt.Timing{
				"untimed": {},
				"tsc":     {TSC: true},
				"mtc":     {TSC: true, MTCPeriod: 8},
				"cyc":     {CYC: true},
				"all":     {TSC: true, MTCPeriod: 1, CYC: true, TSCRatio: 2048},
			} {
				all[fmt.Sprintf("psb=%d,ret=%v,%s", period, ret, name)] = pt.Config{PSBPeriod: period, RetCompression: ret, Timing: timing}
			}
		}
	}
	return all
}

// record runs a random program and returns its stream.
func record(seed uint64, cfg pt.Config, o pttest.Options, blocks int) ([]byte, *pttest.Walk) {
	var stream bytes.Buffer
	enc := pt.NewEncoder(&stream, cfg)
	o.Time = cfg.Timing != pt.Timing{}
	w := pttest.NewWalk(pttest.NewProgram(seed, 0x401000, 60, pttest.Even), enc, seed, o)
	w.Keep = true
	w.Run(blocks)
	if err := enc.Flush(); err != nil {
		panic(err)
	}
	return stream.Bytes(), w
}

func image(code []pttest.Code) *decode.Image {
	m := decode.NewImage()
	for _, c := range code {
		m.Add(c.Space, c.At, c.Addr, c.Bytes)
	}
	return m
}

// mine decodes with the decoder under test, until it ends.
func mine(d *decode.Decoder) (addresses []uint64, events []decode.Event, err error) {
	steps := make([]decode.Step, 7)
	for {
		n, e, err := d.Next(steps)
		for _, s := range steps[:n] {
			addresses = s.AppendAddresses(addresses)
		}
		if e.Kind != decode.None {
			events = append(events, e)
		}
		if err != nil {
			return addresses, events, err
		}
	}
}

// intel decodes with libipt, until it ends or has given as many instructions as
// asked for.
func intel(t testing.TB, stream []byte, code []pttest.Code, cfg pt.Timing, max int) ([]uint64, []libipt.Event, *libipt.Error) {
	var pieces []libipt.Code
	for _, c := range code {
		pieces = append(pieces, libipt.Code{At: c.At, Space: c.Space << 12, Addr: c.Addr, Bytes: c.Bytes})
	}
	shift := uint8(0)
	for cfg.MTCPeriod>>shift > 1 {
		shift++
	}
	d, err := libipt.NewDecoder(stream, pieces, libipt.Config{CrystalTicks: pt.CrystalTicks, MTCShift: shift, Nominal: pt.CoreBusRatio})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var addresses []uint64
	var events []libipt.Event
	fail := &libipt.Error{}
	if errors.As(d.Sync(), &fail) {
		return nil, nil, fail
	}
	buf := make([]uint64, 4096)
	for len(addresses) < max {
		n, e, err := d.Next(buf)
		addresses = append(addresses, buf[:n]...)
		if e != nil {
			events = append(events, *e)
		}
		if errors.As(err, &fail) {
			return addresses, events, fail
		}
	}
	return addresses, events, nil
}

// equal compares the decoded with the executed instructions.
func equal(t *testing.T, who string, got, want []uint64) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: instruction %d is at %#x, executed was %#x", who, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d instructions, executed were %d", who, len(got), len(want))
	}
}

// TestRandomPrograms: both decoders give exactly the instructions that ran, with all options.
func TestRandomPrograms(t *testing.T) {
	for name, cfg := range configs() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				o := pttest.Options{Threads: 1 + int(seed%3), Changes: seed%2 == 1}
				stream, w := record(seed, cfg, o, 3000)
				got, _, err := mine(decode.NewDecoder(bytes.NewReader(stream), image(w.Code), decode.Options{Timing: cfg.Timing}))
				if err != io.EOF {
					t.Fatalf("seed %d: after %d of %d instructions: %v", seed, len(got), len(w.Addresses), err)
				}
				equal(t, "heddle", got, w.Addresses)
				got, _, fail := intel(t, stream, w.Code, cfg.Timing, 1<<30)
				if fail == nil || fail.Code != libipt.EndOfStream {
					t.Fatalf("seed %d: libipt, after %d of %d instructions: %v", seed, len(got), len(w.Addresses), fail)
				}
				equal(t, "libipt", got, w.Addresses)
			}
		})
	}
}
