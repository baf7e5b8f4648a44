package libipt_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/internal/libipt"
)

// The packets of Intel SDM volume 3, "Intel Processor Trace", section "Packet Definitions".
var stream = slices.Concat(
	[]byte{2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82}, // PSB
	[]byte{0x99, 0x01}, // MODE.Exec: 64-bit code
	[]byte{0x02, 0x23}, // PSBEND
	[]byte{0xd1, 0x00, 0x10, 0x40, 0, 0, 0, 0, 0}, // TIP.PGE: tracing starts at 0x401000
	[]byte{0x06}, // TNT: one branch, taken
	[]byte{0xcd, 0x00, 0x10, 0x40, 0, 0, 0, 0, 0}, // TIP: the return goes to 0x401000
)

// noSpace is the page-table root of a stream without PIP packets.
const noSpace = 1<<64 - 1

// code is at 0x401000: nop; jne 0x401005; hlt; hlt; nop; ret.
var code = []byte{0x90, 0x75, 0x02, 0xf4, 0xf4, 0x90, 0xc3}

func TestNextFollowsTheStream(t *testing.T) {
	decoder, err := libipt.NewDecoder(stream, []libipt.Code{{Space: noSpace, Addr: 0x401000, Bytes: code}}, libipt.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	if err := decoder.Sync(); err != nil {
		t.Fatal(err)
	}
	var addresses []uint64
	var kinds []int
	buffer := make([]uint64, 16)
	for {
		n, event, err := decoder.Next(buffer)
		addresses = append(addresses, buffer[:n]...)
		if event != nil {
			kinds = append(kinds, event.Kind)
		}
		if err == nil {
			continue
		}
		var end *libipt.Error
		if !errors.As(err, &end) || end.Code != libipt.EndOfStream {
			t.Fatal(err)
		}
		break
	}
	if want := []uint64{0x401000, 0x401001, 0x401005, 0x401006}; !slices.Equal(addresses, want) {
		t.Errorf("instructions at %#x, want %#x", addresses, want)
	}
	if !slices.Contains(kinds, libipt.Enabled) {
		t.Errorf("events %v, want %d among them", kinds, libipt.Enabled)
	}
}

// TestMissingCode expects an error at the first instruction whose bytes are not in the image.
func TestMissingCode(t *testing.T) {
	decoder, err := libipt.NewDecoder(stream, []libipt.Code{{Space: noSpace, Addr: 0x401000, Bytes: code[:3]}}, libipt.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	if err := decoder.Sync(); err != nil {
		t.Fatal(err)
	}
	buffer := make([]uint64, 16)
	var addresses []uint64
	for err == nil {
		var n int
		n, _, err = decoder.Next(buffer)
		addresses = append(addresses, buffer[:n]...)
	}
	var missing *libipt.Error
	if !errors.As(err, &missing) || missing.Code == libipt.EndOfStream {
		t.Errorf("error %v, want one for missing code", err)
	}
	if want := []uint64{0x401000, 0x401001}; !slices.Equal(addresses, want) {
		t.Errorf("instructions at %#x, want %#x", addresses, want)
	}
}
