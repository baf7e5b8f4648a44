package machine_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// engineState is what both engines must agree on after a step of the machine.
type engineState struct {
	m   *machine.Machine
	out strings.Builder
}

func startOn(t *testing.T, c machine.Config, engine string) *engineState {
	t.Helper()
	s := &engineState{}
	c.Engine, c.Stdout, c.Stderr, c.EventLog = engine, io.Discard, io.Discard, &s.out
	m, err := machine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	s.m = m
	return s
}

// describe is the registers of all threads.
func (s *engineState) describe() string {
	var b strings.Builder
	for _, task := range s.m.Kernel().Tasks() {
		var r arch.Regs
		var fp [arch.FPSize]byte
		task.Registers(&r, &fp)
		r.RFLAGS &^= 0x8d5
		fmt.Fprintf(&b, "thread %d: %x\n", task.ID(), r)
		fmt.Fprintf(&b, "  x87 %x\n", fp[:160])
		fmt.Fprintf(&b, "  xmm %x\n", fp[160:416])
	}
	return b.String()
}

// firstDifference names the first byte of the threads' memory that differs.
func firstDifference(a, b *kernel.Task) string {
	const end = 1 << 47
	x, y := a.Space().Mappings(0, end), b.Space().Mappings(0, end)
	for i, k := 0, 0; i < len(x) && k < len(y); {
		switch {
		case x[i].Addr < y[k].Addr:
			i++
			continue
		case x[i].Addr > y[k].Addr:
			k++
			continue
		}
		var p, q [arch.PageSize]byte
		a.Space().ReadAt(p[:], x[i].Addr)
		b.Space().ReadAt(q[:], y[k].Addr)
		if p != q {
			for k := range p {
				if p[k] != q[k] {
					k &^= 15
					return fmt.Sprintf("memory at %#x: %x, %x", uint64(x[i].Addr)+uint64(k), p[k:k+16], q[k:k+16])
				}
			}
		}
		i++
		k++
	}
	return ""
}

func TestDebugEngines(t *testing.T) {
	args := os.Getenv("DEBUG_ARGS")
	if args == "" {
		t.Skip()
	}
	c := machine.DefaultConfig()
	c.Args = strings.Fields(args)
	if v := os.Getenv("DEBUG_SCHED"); v != "" {
		c.Sched.Policy = "random"
		c.Sched.Granularity = v
		c.Sched.Quantum = 1
	}
	u, d := startOn(t, c, engines.Unicorn), startOn(t, c, engines.Direct)
	before := ""
	for n := 0; !u.m.Done() && !d.m.Done(); n++ {
		u.m.Step()
		d.m.Step()
		x, y := u.describe(), d.describe()
		lx, ly := u.out.String(), d.out.String()
		bad := x != y || lx != ly
		mem := ""
		if only := os.Getenv("DEBUG_FROM"); only != "" {
			var from uint64
			fmt.Sscan(only, &from)
			if u.m.Instructions() < from {
				before = x
				continue
			}
		}
		ts, ds := u.m.Kernel().Tasks(), d.m.Kernel().Tasks()
		for i := range min(len(ts), len(ds)) {
			if mem == "" {
				mem = firstDifference(ts[i], ds[i])
			}
		}
		if bad || mem != "" {
			t.Fatalf("step %d, %d instructions:\nbefore %s\nunicorn %s\ndirect %s\nlogs\n%s\n%s\n%s", n, u.m.Instructions(), before, x, y, tail(lx), tail(ly), mem)
		}
		before = x
	}
	if !bytes.Equal([]byte(u.out.String()), []byte(d.out.String())) {
		t.Error("logs differ")
	}
}

func tail(s string) string {
	if len(s) > 300 {
		return s[len(s)-300:]
	}
	return s
}

// onEngines runs a test on each engine.
func onEngines(t *testing.T, test func(t *testing.T, engine string)) {
	for _, engine := range []string{engines.Direct, engines.Unicorn} {
		t.Run(engine, func(t *testing.T) { test(t, engine) })
	}
}
