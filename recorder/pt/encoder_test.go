package pt_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/pt/pttest"
)

const (
	psb    = "0282028202820282 0282028202820282 "
	psbend = "0223 "
	pip0   = "0243 000000000000 "
)

func word(tag emu.BranchTag, payload uint64) emu.BranchWord {
	return emu.BranchWord(uint64(tag)<<60 | payload)
}

// tnt is a word of outcomes, oldest first, T or N.
func tnt(outcomes string) emu.BranchWord {
	var bits uint64
	for _, o := range outcomes {
		bits <<= 1
		if o == 'T' {
			bits |= 1
		}
	}
	return word(emu.TagTNT, uint64(len(outcomes))<<48|bits)
}

// stream returns the encoder's output after f has used it.
func stream(t *testing.T, cfg pt.Config, f func(e *pt.Encoder)) []byte {
	t.Helper()
	var out bytes.Buffer
	e := pt.NewEncoder(&out, cfg)
	f(e)
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	if int(e.Offset()) != out.Len() {
		t.Errorf("offset %d after %d bytes", e.Offset(), out.Len())
	}
	return out.Bytes()
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// TestPackets has the bytes as they follow by hand from the tables of the SDM,
// volume 3, section "Packet Definitions".
func TestPackets(t *testing.T) {
	untraced := psb + pip0 + psbend
	on := untraced + "9901 " + "510010 4000 " // MODE.Exec 64-bit, TIP.PGE 32 bits against 0
	t47 := strings.Repeat("T", 47)
	for _, c := range []struct {
		name string
		cfg  pt.Config
		do   func(e *pt.Encoder)
		want string
	}{
		{"nothing", pt.Config{}, func(*pt.Encoder) {}, ""},
		{"on and off by a system call", pt.Config{}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Syscall()
		}, on + "01"},
		// The SDM's example of a flow without deferred TIPs: a branch not taken, a
		// jump to 0x1308.
		{"SDM: TNT(0b0), TIP(0x1308)", pt.Config{}, func(e *pt.Encoder) {
			e.Enable(0x1000, 0)
			e.Log([]emu.BranchWord{tnt("N"), word(emu.TagTIP, 0x1308)})
		}, untraced + "9901 310010 " + "04 " + "2d0813"},
		{"short TNT, full and partial", pt.Config{}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{tnt("TNT"), tnt("TTNNTN")})
			e.Syscall()
		}, on + "dc" /* 1 TNTTTN 0: the stop bit first */ + "14" /* 1 NTN 0 */ + "01"},
		{"long TNT, full", pt.Config{}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{tnt(t47)})
		}, on + "02a3 ffffffffffff"},
		{"long TNT across words, rest short", pt.Config{}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{tnt(t47[:40]), tnt("NNNNNNN" + "TTN")})
			e.Syscall()
		}, on + "02a3 80ffffffffff" + "1c" + "01"},
		{"long TNT, 43 outcomes", pt.Config{}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{tnt("N" + t47[:42])})
			e.Syscall()
		}, on + "02a3 ffffffffff0b" + "01"},
		{"IP compression", pt.Config{}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{
				word(emu.TagTIP, 0x402345),       // 16 bits
				word(emu.TagTIP, 0x7f1234567890), // 48 bits, sign-extended
				word(emu.TagTIP, 0x7f1200000001), // 32 bits
				word(emu.TagTIP, 0x7f1200000001), // 16 bits, though equal
				word(emu.TagRet, 0x800000000000), // a kernel address: sign-extended
			})
		}, on + "2d4523 " + "6d90785634127f " + "4d01000000 " + "2d0100 " + "6d000000000080"},
		{"interrupt", pt.Config{}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Async(0x401234)
			e.Enable(0x401234, 0)
		}, on + "3d3412 " + "01 " + "313412"},
		{"address spaces", pt.Config{}, func(e *pt.Encoder) {
			e.PIP(1) // before the first PSB: in its header
			e.Enable(0x401000, 0)
			e.Syscall()
			e.PIP(1) // no change
			e.PIP(0x123)
			// CR3 is 0x123000; its bits from 5 on begin at bit 1 of the payload:
			// 0x123000 >> 5 << 1 = 0x12300.
		}, psb + "0243 000100000000 " + psbend + "9901 5100104000 " + "01 " + "0243 002301000000"},
		{"returns, uncompressed", pt.Config{}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{word(emu.TagCall, 0x401005), word(emu.TagRet, 0x401005)})
		}, on + "2d0510"},
		{"returns, compressed", pt.Config{RetCompression: true}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{
				word(emu.TagCall, 0x401005), word(emu.TagCall, 0x401105), tnt("N"),
				word(emu.TagRet, 0x401105), word(emu.TagRet, 0x401005), word(emu.TagRet, 0x401005),
			})
		}, on + "16" + /* 1 N T T */ "2d0510"},
		{"a return to elsewhere forgets the calls", pt.Config{RetCompression: true}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{
				word(emu.TagCall, 0x401005), word(emu.TagCall, 0x401105),
				word(emu.TagRet, 0x401999), word(emu.TagRet, 0x401005),
			})
		}, on + "2d9919" + "2d0510"},
		{"PSB while tracing, after an indirect branch", pt.Config{PSBPeriod: 1}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{tnt("T"), word(emu.TagTIP, 0x402000)})
			e.Log([]emu.BranchWord{tnt("T")}) // nothing due: the place is not known
		}, on + "06 " + "2d0020 " + psb + pip0 + "9901 " + "5d00204000 " + psbend},
		{"PSB with compressed returns in the log, after a return alone", pt.Config{PSBPeriod: 1, RetCompression: true, LoggedReturns: true}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{tnt("T"), word(emu.TagTIP, 0x402000), word(emu.TagRet, 0x402100)})
		}, on + "06 " + "2d0020 " + "2d0021 " + psb + pip0 + "9901 " + "5d00214000 " + psbend},
		{"PSB at a given place", pt.Config{PSBPeriod: 1}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{tnt("T")})
			e.Position(0x7fff00000123)
		}, on + "06 " + psb + pip0 + "9901 " + "7d230100 00ff7f " + psbend},
		{"PSB before tracing is enabled again, then MODE.Exec again", pt.Config{PSBPeriod: 30}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Syscall()
			e.Enable(0x401002, 0)
			e.Syscall()
		}, on + "01 " + psb + pip0 + psbend + "9901 " + "5102104000 " + "01"},
		{"TSC and CBR", pt.Config{Timing: pt.Timing{TSC: true}}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0x11223344556677)
			e.Syscall()
			e.Enable(0x401002, 0x11223344556688)
		}, psb + "19 77665544332211 " + "0203 1800 " + pip0 + psbend + "9901 5100104000 " +
			"01 " + "19 88665544332211 " + "310210"},
		{"TSC is a multiple of the clock", pt.Config{Timing: pt.Timing{TSC: true, TSCRatio: 3072}}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0x100)
		}, psb + "19 00030000000000 " + "0203 1800 " + pip0 + psbend + "9901 5100104000"},
		// 0x12345678 ticks are 0x48d159 of the crystal and 0x38 more.
		{"TMA and MTC", pt.Config{Timing: pt.Timing{TSC: true, MTCPeriod: 4}}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0x12345678)
			e.Log([]emu.BranchWord{
				tnt("T"), word(emu.TagTime, 64), // one tick on: 0x48d15a >> 2 is as before
				tnt("N"), word(emu.TagTime, 192), // 0x48d15c >> 2 = 0x123457
			})
		}, psb + "19 78563412000000 " + "0273 59d1 00 38 00 " + "0203 1800 " + pip0 + psbend + "9901 5100104000 " +
			"0c " + "5957"},
		{"CYC", pt.Config{Timing: pt.Timing{CYC: true}}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			e.Log([]emu.BranchWord{word(emu.TagTime, 5), word(emu.TagTIP, 0x401010)})
			e.Log([]emu.BranchWord{word(emu.TagTime, 5+0x1f), word(emu.TagTIP, 0x401010)})
			e.Log([]emu.BranchWord{word(emu.TagTime, 5+0x1f+0x20), word(emu.TagTIP, 0x401010)})
			e.Log([]emu.BranchWord{word(emu.TagTime, 5+0x1f+0x20+0x12345), tnt("T")})
			e.Syscall()
			// 0x12345 = 0x91a << 5 | 5, 0x91a = 0x12 << 7 | 0x1a
		}, on + "2b 2d1010 " + "fb 2d1010 " + "07 02 2d1010 " + "2f 35 24 06 01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, want := stream(t, c.cfg, c.do), unhex(c.want); !bytes.Equal(got, want) {
				t.Errorf("stream\n%x, want\n%x", got, want)
			}
		})
	}
}

// TestCallDepth: the 65th call forces the oldest from the stack (SDM, "Indirect
// Transfer Compression for Returns").
func TestCallDepth(t *testing.T) {
	for _, depth := range []uint64{64, 65} {
		got := stream(t, pt.Config{RetCompression: true}, func(e *pt.Encoder) {
			e.Enable(0x401000, 0)
			for i := range depth {
				e.Log([]emu.BranchWord{word(emu.TagCall, 0x500000+i)})
			}
			for i := range depth {
				e.Log([]emu.BranchWord{word(emu.TagRet, 0x500000+depth-1-i)})
			}
			e.Syscall()
		})
		tips, bits := 0, 0
		for _, p := range parse(t, got) {
			if p.Kind == pt.TIP {
				tips++
			}
			if p.Kind == pt.TNT {
				bits += int(p.Aux)
			}
		}
		if want := int(depth) - 64; tips != want || bits != 64 {
			t.Errorf("%d calls: %d returns with TIP and %d compressed, want %d and 64", depth, tips, bits, want)
		}
	}
}

// parse reads a whole stream.
func parse(t *testing.T, stream []byte) []pt.Packet {
	t.Helper()
	var all []pt.Packet
	for at := 0; at < len(stream); {
		p, err := pt.Parse(stream[at:])
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		all = append(all, p)
		at += p.Size
	}
	return all
}

// TestSplitLogs: the stream does not depend on how the log comes in pieces.
func TestSplitLogs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		cfg := pt.Config{PSBPeriod: 128, RetCompression: true}
		var words []emu.BranchWord
		r := pttest.Rand(seed*2 + 1)
		for range 500 {
			switch r.Below(4) {
			case 0:
				words = append(words, word(emu.TagTIP, 0x400000+r.Next()%0x10000))
			case 1:
				words = append(words, word(emu.TagCall, 0x400000+r.Next()%4))
			case 2:
				words = append(words, word(emu.TagRet, 0x400000+r.Next()%4))
			default:
				n := 1 + r.Below(47)
				words = append(words, word(emu.TagTNT, uint64(n)<<48|r.Next()&(1<<n-1)))
			}
		}
		write := func(pieces bool) []byte {
			var out bytes.Buffer
			e := pt.NewEncoder(&out, cfg)
			e.Enable(0x401000, 0)
			for rest := words; len(rest) > 0; {
				n := len(rest)
				if pieces {
					n = 1 + r.Below(n)
				}
				e.Log(rest[:n])
				rest = rest[n:]
				if pieces {
					if err := e.Flush(); err != nil {
						t.Fatal(err)
					}
				}
			}
			e.Syscall()
			if err := e.Flush(); err != nil {
				t.Fatal(err)
			}
			return out.Bytes()
		}
		if !bytes.Equal(write(false), write(true)) {
			t.Error("the stream depends on the pieces")
		}
	})
}

type full struct{ room int }

var errFull = errors.New("no space")

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.room {
		return 0, errFull
	}
	f.room -= len(b)
	return len(b), nil
}

func TestWriterErrorsStay(t *testing.T) {
	e := pt.NewEncoder(&full{room: 35}, pt.Config{})
	e.Enable(0x401000, 0)
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		e.Log([]emu.BranchWord{word(emu.TagTIP, 0x123456)})
		if err := e.Flush(); !errors.Is(err, errFull) {
			t.Fatalf("error %v, want that of the writer", err)
		}
	}
}

func TestMisuseIsABug(t *testing.T) {
	for name, f := range map[string]func(e *pt.Encoder){
		"off while off":   func(e *pt.Encoder) { e.Syscall() },
		"log while off":   func(e *pt.Encoder) { e.Log([]emu.BranchWord{tnt("T")}) },
		"on while on":     func(e *pt.Encoder) { e.Enable(1, 0); e.Enable(1, 0) },
		"space while on":  func(e *pt.Encoder) { e.Enable(1, 0); e.PIP(2) },
		"word of no kind": func(e *pt.Encoder) { e.Enable(1, 0); e.Log([]emu.BranchWord{0}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r, _ := recover().(string); !strings.HasPrefix(r, "bug: ") {
					t.Errorf("panic %q, want a bug", r)
				}
			}()
			f(pt.NewEncoder(&bytes.Buffer{}, pt.Config{}))
		})
	}
}

// TestNoAllocations: nothing is allocated for the words of a log.
func TestNoAllocations(t *testing.T) {
	e := pt.NewEncoder(&full{room: 1 << 40}, pt.Config{PSBPeriod: 4096, RetCompression: true})
	e.Enable(0x401000, 0)
	words := []emu.BranchWord{tnt("TNTNT"), word(emu.TagCall, 5), word(emu.TagTIP, 0x402345), word(emu.TagRet, 5)}
	if n := testing.AllocsPerRun(10_000, func() { e.Log(words) }); n != 0 {
		t.Errorf("%v allocations for a log", n)
	}
}
