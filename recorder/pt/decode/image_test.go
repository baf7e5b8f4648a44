package decode

import (
	"bytes"
	"testing"

	"github.com/heddle-dmt/heddle/recorder/pt/pttest"
)

// TestImage compares an image with a list of all that was added: before its
// count a byte is the first that was added, then the last.
func TestImage(t *testing.T) {
	r := pttest.Rand(77)
	for range 50 {
		m := NewImage()
		type piece struct {
			at, space, addr uint64
			code            []byte
		}
		var all []piece
		at := uint64(0)
		for range 30 {
			at += uint64(r.Below(3))
			p := piece{at, uint64(r.Below(2)), 0x1000 - 20 + uint64(r.Below(40)), make([]byte, 1+r.Below(30))}
			for i := range p.code {
				p.code[i] = byte(r.Below(3))
			}
			all = append(all, p)
			m.Add(p.space, p.at, p.addr, p.code)
		}
		for now := range at + 2 {
			for m.nextChange() <= now {
				m.applyChange()
			}
			for space := range uint64(2) {
				for addr := uint64(0x1000 - 25); addr < 0x1000+60; addr++ {
					var want []byte
					for _, p := range all {
						if p.space == space && p.addr <= addr && addr < p.addr+uint64(len(p.code)) && (want == nil || p.at <= now) {
							want = []byte{p.code[addr-p.addr]}
						}
					}
					if got := m.readCode(nil, space, addr, 1); !bytes.Equal(got, want) {
						t.Fatalf("at %d, space %d, %#x: %v, want %v", now, space, addr, got, want)
					}
				}
			}
		}
	}
}
