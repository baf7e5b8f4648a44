package gdbserver

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

// The description is well-formed, its registers are numbered without gaps, and
// their sizes add up to the answer to a g packet. The number of the
// first SSE register and the places in the packet are those of GDB's own
// 64bit-core.xml and 64bit-sse.xml.
func TestDescription(t *testing.T) {
	for _, avx := range []bool{false, true} {
		t.Run(fmt.Sprintf("AVX %v", avx), func(t *testing.T) { checkDescription(t, avx) })
	}
}

func checkDescription(t *testing.T, avx bool) {
	var d struct {
		Features []struct {
			Name string `xml:"name,attr"`
			Regs []struct {
				Name   string `xml:"name,attr"`
				Bits   int    `xml:"bitsize,attr"`
				Number int    `xml:"regnum,attr"`
			} `xml:"reg"`
		} `xml:"feature"`
	}
	decoder := xml.NewDecoder(strings.NewReader(targetDescription(avx)))
	decoder.Strict = true
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	bits, next, place := 0, 0, map[string]int{}
	for _, f := range d.Features {
		for _, r := range f.Regs {
			if r.Number != next {
				t.Errorf("%s has number %d, want %d", r.Name, r.Number, next)
			}
			next++
			place[r.Name] = bits / 8
			bits += r.Bits
		}
	}
	r := Registers{HasAVX: avx}
	for i := range r.GPR {
		r.GPR[i] = uint64(i) + 1
	}
	r.RIP, r.FSBase = 0x1122334455667788, 99
	r.FP[fxVectors+16] = 0xab // xmm1
	raw, err := hex.DecodeString(r.encodeAll())
	if err != nil || len(raw) != bits/8 {
		t.Fatalf("a g packet has %d bytes, the description %d (%v)", len(raw), bits/8, err)
	}
	r.YMMHigh[16*15] = 0xcd
	wanted := map[string]byte{"rax": 1, "rbx": 2, "rsi": 5, "rbp": 7, "rsp": 8, "r15": 16, "rip": 0x88, "xmm1": 0xab, "fs_base": 99}
	if raw, err = hex.DecodeString(r.encodeAll()); err != nil {
		t.Fatal(err)
	}
	if _, has := place["ymm15h"]; has != avx {
		t.Errorf("ymm15h is in the description: %v", has)
	}
	if avx {
		wanted["ymm15h"] = 0xcd
	}
	for name, want := range wanted {
		if got := raw[place[name]]; got != want {
			t.Errorf("%s is %#x, want %#x", name, got, want)
		}
	}
	if place["eflags"] != 136 || place["st0"] != 164 || place["xmm0"] != 276 {
		t.Errorf("places %v", place)
	}
	if one, _ := r.encodeOne(16); one != "8877665544332211" {
		t.Errorf("register 16 is %s", one)
	}
}

// still is a target that goes nowhere.
type still struct{ points []Point }

func (s *still) Threads() []Thread                     { return []Thread{{7, `a"<b`}} }
func (s *still) Registers(id int32, _ *Registers) bool { return id == 7 }
func (s *still) Read(at arch.Addr, b []byte) int       { return copy(b, "}#$*memory"[min(10, at):]) }
func (s *still) Insert(p Point)                        { s.points = append(s.points, p) }
func (s *still) Remove(Point)                          { s.points = nil }
func (s *still) Go(m Motion, _ func() bool) (Stop, error) {
	return Stop{Thread: 7, Reason: AtBeginning}, nil
}
func (s *still) Current() Stop   { return Stop{Thread: 7} }
func (s *still) HasAVX() bool    { return false }
func (s *still) Auxv() []byte    { return []byte("}aux#") }
func (s *still) Program() string { return "/bin/p" }

// Answers are those of the manual's chapter on packets.
func TestAnswers(t *testing.T) {
	target := &still{}
	s := &Session{target: target}
	for _, c := range []struct{ packet, want string }{
		{"?", "T05thread:7;"},
		{"qC", "QC7"},
		{"qAttached", "1"},
		{"qfThreadInfo", "m7"},
		{"qsThreadInfo", "l"},
		{"qThreadExtraInfo,7", hex.EncodeToString([]byte(`a"<b`))},
		{"qXfer:threads:read::0,ffff", `l<?xml version="1.0"?><threads><thread id="7" name="a&quot;&lt;b"/></threads>`},
		{"qXfer:auxv:read::1,3", "maux"},
		{"qXfer:auxv:read::5,3", "l"},
		{"qXfer:exec-file:read:7:0,100", "l/bin/p"},
		{"m4,6", hex.EncodeToString([]byte("memory"))},
		{"m4,60", hex.EncodeToString([]byte("memory"))},
		{"m40,6", "E01"},
		{"Hg7", "OK"},
		{"Hg8", "E01"},
		{"Hc-1", "OK"},
		{"Hg0", "OK"},
		{"T7", "OK"},
		{"T8", "E01"},
		{"Z2,1000,8", "OK"},
		{"Z5,1000,8", ""},
		{"M0,1:00", "E01"},
		{"G00", "E01"},
		{"vCont?", "vCont;c;C;s;S"},
		{"vMustReplyEmpty", ""},
		{"vCont;x", "E01"},
		{"unknown", ""},
		{"bc", "T05thread:7;replaylog:begin;"},
	} {
		if got, err := s.answerText(c.packet); got != c.want || err != nil {
			t.Errorf("%s: %q %v, want %q", c.packet, got, err, c.want)
		}
	}
	if len(target.points) != 1 || target.points[0] != (Point{WatchWrite, 0x1000, 8}) {
		t.Errorf("points %v", target.points)
	}
}

// Packets come as they went, whatever bytes are in them.
func TestPacketsAreEscaped(t *testing.T) {
	for _, body := range []string{"", "OK", "}#$*", "\x00\xff}]", strings.Repeat("}", 1000)} {
		var b bytes.Buffer
		c := wire{r: bufio.NewReader(&b), w: &b}
		if err := c.writePacket(body); err != nil {
			t.Fatal(err)
		}
		if got, err := c.readPacket(); got != body || err != nil {
			t.Errorf("%.20q came as %.20q, %v", body, got, err)
		}
	}
}

// A packet with a wrong sum is asked for again.
func TestWrongSum(t *testing.T) {
	client, server := net.Pipe()
	go func() { _, _ = Serve(server, &still{}) }()
	r := bufio.NewReader(client)
	for _, c := range []struct{ send, want string }{{"$qC#00", "-"}, {"$qC#b4", "+$QC7#cb"}, {"++$D#44", "+$OK#9a"}} {
		if _, err := fmt.Fprint(client, c.send); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(c.want))
		for i := range got {
			got[i], _ = r.ReadByte()
		}
		if string(got) != c.want {
			t.Errorf("%s is answered with %q, want %q", c.send, got, c.want)
		}
	}
}

func FuzzWire(f *testing.F) {
	for _, s := range []string{"$qC#b4", "\x03", "$}", "+-+$a#", "$" + strings.Repeat("a", 100)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := wire{r: bufio.NewReader(bytes.NewReader(b)), w: &bytes.Buffer{}, acks: true}
		s := &Session{target: &still{}}
		for {
			p, err := c.readPacket()
			if err != nil {
				return
			}
			if _, err := s.answerText(p); err != nil {
				t.Fatal(err)
			}
		}
	})
}
