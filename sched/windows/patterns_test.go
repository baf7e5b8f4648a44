package windows

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
)

const memoryEnd = 1 << 24

// memory is the memory of one process, up to memoryEnd.
type memory map[arch.Addr]byte

func (m memory) peek(process int32, at arch.Addr, b []byte) int {
	if process != 7 || at >= memoryEnd {
		return 0
	}
	for i := range b {
		b[i] = m[at+arch.Addr(i)]
	}
	return len(b)
}

func (m memory) put(at arch.Addr, value uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], value)
	for i, v := range b {
		m[at+arch.Addr(i)] = v
	}
}

func only(text string) (p Pattern) {
	for _, v := range []byte(text) {
		var s Values
		s[v/64] = 1 << (v % 64)
		p = append(p, s)
	}
	return p
}

// listPrecondition is that of a window that reads "get", and in memory a list of two elements of which the first
// begins with an x.
func listPrecondition() Precondition {
	return Precondition{
		Patterns: []Pattern{only("get")},
		Pointers: []Pointer{
			{Process: 7, At: 0x100, By: Fixed, Value: 0x1000, Used: []uint64{0x200, 0x201}, Not: []uint64{0}},
			{Process: 7, At: 0x1008, By: 0, Value: 0x2000, Used: []uint64{0x400}},
			{Process: 7, At: 0x108, By: Fixed, Value: 0x1000, Compared: []int{0}},
		},
		Hidden: []HiddenState{{Process: 7, At: 0x1000, By: 0, Pattern: only("x")}},
	}
}

func TestHiddenStateBehindPointers(t *testing.T) {
	for _, x := range []struct {
		what          string
		first, second uint64
		content       byte
		input         string
		admitted      bool
	}{
		{"as recorded", 0x1000, 0x2000, 'x', "get", true},
		{"other requests", 0x1000, 0x2000, 'x', "set", false},
		{"a longer request", 0x1000, 0x2000, 'x', "gets", false},
		{"elements elsewhere", 0x3000, 0x5000, 'x', "get", true},
		{"elements exchanged", 0x2000, 0x1000, 'x', "get", true},
		{"another content", 0x3000, 0x2000, 'y', "get", false},
		{"no first element", 0, 0x2000, 'x', "get", false},
		{"one element", 0x3000, 0x3000, 'x', "get", false},
		{"one in the other", 0x3000, 0x3008, 'x', "get", false},
		{"another alignment", 0x3004, 0x2000, 'x', "get", false},
	} {
		m := memory{}
		m.put(0x100, x.first)
		m.put(0x108, x.first)
		m.put(arch.Addr(x.first), 0)
		m[arch.Addr(x.first)] = x.content
		m.put(arch.Addr(x.first)+8, x.second)
		p := listPrecondition()
		a := Admission{Bytes: [][]byte{[]byte(x.input)}, Peek: m.peek}
		for range 2 { // the order of conditions changes
			if got := p.admits(&a); got != x.admitted {
				t.Errorf("%s: admitted %v", x.what, got)
			}
		}
		m.put(0x108, x.second)
		if p.admits(&a) {
			t.Errorf("%s: admitted with another pointer", x.what)
		}
		m.put(0x108, x.first)
		a.Registers = 1
		if p.admits(&a) {
			t.Errorf("%s: admitted with other registers", x.what)
		}
	}
}

// A number that was compared with a constant, and by which no memory was accessed, may have any other value.
func TestNumbersThatAreCompared(t *testing.T) {
	p := Precondition{Patterns: []Pattern{only("get")}, Pointers: []Pointer{{Process: 7, At: 0x100, By: Fixed, Value: 390, Not: []uint64{1000}}}}
	for value, want := range map[uint64]bool{390: true, 455: true, 1000: false} {
		m := memory{}
		m.put(0x100, value)
		if got := p.admits(&Admission{Bytes: [][]byte{[]byte("get")}, Peek: m.peek}); got != want {
			t.Errorf("%d is admitted: %v", value, got)
		}
	}
}

func TestObstacles(t *testing.T) {
	s := NewStore()
	s.Add(5, Schedule{Exact: 1, Precondition: listPrecondition()})
	m := memory{0x1000: 'y'}
	m.put(0x100, 0x1000)
	m.put(0x1008, 0x2000)
	m.put(0x108, 0x1000)
	a := Admission{Key: 5, Exact: 2, Bytes: [][]byte{[]byte("get")}, Peek: m.peek}
	if list, registers, found := s.Obstacles(&a); !found || registers || fmt.Sprint(list) != "[{7 4096}]" {
		t.Errorf("%v, %v, %v", list, registers, found)
	}
	if n := s.Matching(&a); n != 0 {
		t.Errorf("%d schedules match", n)
	}
	// A pointer that leads to no memory is the obstacle, not the place that it leads to.
	m.put(0x100, memoryEnd)
	m.put(0x108, memoryEnd)
	if list, _, found := s.Obstacles(&a); !found || list[0] != (Obstacle{7, 0x100}) {
		t.Errorf("%v, %v", list, found)
	}
	m.put(0x100, 0x1000)
	m.put(0x108, 0x1000)
	m[0x1000] = 'x'
	if n := s.Matching(&a); n != 1 {
		t.Errorf("%d schedules match, want 1", n)
	}
	a.Registers = 3
	if _, registers, found := s.Obstacles(&a); found || !registers {
		t.Error("registers are no obstacle")
	}
}

// BenchmarkMatch looks for the schedule of a window among 1,000 of one key, the last of which admits it. Each has eight
// requests of 24 bytes and 3,000 bytes of hidden state.
func BenchmarkMatch(b *testing.B) {
	s := NewStore()
	m := memory{}
	a := Admission{Key: 1, Peek: m.peek}
	text := func(n, i int) string { return fmt.Sprintf("set key%04d 0 0 4\r\n%04d", n, i) }
	for n := range 1000 {
		var p Precondition
		for i := range 8 {
			p.Patterns = append(p.Patterns, only(text(n, i)))
		}
		for i := range 1500 {
			p.Hidden = append(p.Hidden, HiddenState{Process: 7, At: arch.Addr(0x10000 + 16*i), By: Fixed, Pattern: only("\x00\x00")})
		}
		s.Add(1, Schedule{Exact: uint64(n + 1), Precondition: p})
	}
	for i := range 8 {
		a.Bytes = append(a.Bytes, []byte(text(999, i)))
	}
	for b.Loop() {
		if s.Matching(&a) != 1 {
			b.Fatal("no match")
		}
	}
}
