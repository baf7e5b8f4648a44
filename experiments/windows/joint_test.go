package windows

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/sched/windows"
)

// stateWord is a word of hidden state of process 7 as an expression.
func stateWord(p *symbolic.Pool, at int) *symbolic.Expr {
	var e *symbolic.Expr
	for i := range wordBytes {
		b := p.Symbol(fmt.Sprintf("%s[%d]", stateName(7), at+i), 8)
		if e == nil {
			e = b
		} else {
			e = p.Concat(b, e)
		}
	}
	return e
}

// Two counters whose difference decides a branch may both have advanced; the condition is stored and read.
func TestConditionsOnSeveralWords(t *testing.T) {
	p := symbolic.NewPool()
	less := p.ULT(stateWord(p, 0x1000), stateWord(p, 0x2000))
	same := p.Eq(p.Sub(stateWord(p, 0x2000), stateWord(p, 0x1000)), p.Sub(stateWord(p, 0x3000), stateWord(p, 0x1000)))
	for e, want := range map[*symbolic.Expr]bool{
		less: true, same: true,
		p.ULT(stateWord(p, 0x1000), p.Word(9, 64)):                                false, // one word
		p.Eq(p.Add(stateWord(p, 0x1000), stateWord(p, 0x2000)), p.Word(9, 64)):    false, // a value
		p.ULT(stateWord(p, 0x1000), p.ZeroExt(p.Symbol("connection1[0]", 8), 64)): false, // a request
	} {
		if isJoint(e) != want {
			t.Errorf("%v is kept as it is: %v, want %v", e, !want, want)
		}
	}
	leads := func(w pointerWord) int {
		if w.at >= 0x3000 {
			return 0
		}
		return windows.Fixed
	}
	joint := newJoint([]*symbolic.Expr{less, same}, leads)
	s := windows.NewStore()
	o := windows.Schedule{Precondition: windows.Precondition{
		Patterns: []windows.Pattern{{windows.Values{2}}}, Joint: joint,
		Pointers: []windows.Pointer{{Process: 7, At: 0x10, By: windows.Fixed, Value: 0x3000}},
	}}
	for _, b := range joint.Bytes {
		o.Hidden = append(o.Hidden, windows.HiddenState{Process: 7, At: b.At, By: b.By, Pattern: make(windows.Pattern, 1)})
		for v := range 4 {
			o.Hidden[len(o.Hidden)-1].Pattern[0][v] = ^uint64(0)
		}
	}
	s.Add(5, o)
	path := filepath.Join(t.TempDir(), "orders")
	if err := SaveStore(path, s); err != nil {
		t.Fatal(err)
	}
	read, err := LoadStore(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*windows.Store{s, read} {
		for _, x := range []struct {
			first, second, third byte
			want                 bool
		}{{1, 2, 2, true}, {8, 200, 200, true}, {2, 2, 2, false}, {1, 2, 3, false}} {
			memory := map[arch.Addr]byte{0x11: 0x50, 0x1000: x.first, 0x2000: x.second, 0x5000: x.third}
			a := windows.Admission{Key: 5, Exact: 1, Bytes: [][]byte{{1}}, Peek: func(_ int32, at arch.Addr, b []byte) int {
				for i := range b {
					b[i] = memory[at+arch.Addr(i)]
				}
				return len(b)
			}}
			if got := s.Matching(&a) == 1; got != x.want {
				t.Errorf("%v are admitted: %v", x, got)
			}
			if list, _, found := s.Obstacles(&a); !x.want && (!found || !slices.Contains(list, windows.Obstacle{Process: 7, At: 0x1000})) {
				t.Errorf("%v are refused by %v", x, list)
			}
		}
	}
}

func TestRegistersHaveAddresses(t *testing.T) {
	at := arch.Addr(registerAddress(2097153, arch.RBX))
	if thread, offset, ok := registerAt(at); !ok || thread != 2097153 || offset != 8*arch.RBX {
		t.Errorf("thread %d, offset %d, %v", thread, offset, ok)
	}
	if _, _, ok := registerAt(0x7fffffffffff); ok {
		t.Error("an address of memory is one of a register")
	}
	reader := registerReader{2097153: make([]byte, registerBytes)}
	reader[2097153][8*arch.RBX] = 9
	var b [16]byte
	if n := reader.peek(at, b[:]); n != 16 || b[0] != 9 {
		t.Errorf("%d bytes, the first %d", n, b[0])
	}
	if n := reader.peek(arch.Addr(registerAddress(5, arch.RBX)), b[:]); n != 0 {
		t.Errorf("%d bytes of a thread that is not there", n)
	}
	if name := registerName(at); name != "register rbx of thread 2097153" {
		t.Error(name)
	}
}

// BenchmarkJoint checks conditions on two words each, all of which hold.
func BenchmarkJoint(b *testing.B) {
	p := symbolic.NewPool()
	var conditions []*symbolic.Expr
	for i := range 300 {
		conditions = append(conditions, p.ULE(stateWord(p, 0x1000+8*i), p.Add(stateWord(p, 0x8000+8*(i%7)), p.Word(uint64(i), 64))))
	}
	j := compileJoint(conditions)
	operations := symbolic.Compile(conditions).Len()
	values := make([]byte, len(j.Bytes))
	for b.Loop() {
		if j.Refuses(values) != nil {
			b.Fatal("a condition does not hold")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*operations), "ns/operation")
}
