package concolicrun_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heddle-dmt/heddle/analyses/blocktrace"
	sym "github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/vex"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/gcctest"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// touchedByte is a byte that an instruction loads or stores.
type touchedByte struct {
	pc, addr uint64
	store    bool
}

// sortRuns sorts the bytes of consecutive accesses of one instruction, each byte once: the
// machine and libVEX split accesses differently.
func sortRuns(all []touchedByte) []touchedByte {
	var out []touchedByte
	for from := 0; from < len(all); {
		to := from
		for to < len(all) && all[to].pc == all[from].pc {
			to++
		}
		part := slices.Clone(all[from:to])
		slices.SortFunc(part, func(a, b touchedByte) int {
			switch {
			case a.store != b.store && b.store:
				return -1
			case a.store != b.store || a.addr > b.addr:
				return 1
			case a.addr < b.addr:
				return -1
			}
			return 0
		})
		out = append(out, slices.Compact(part)...)
		from = to
	}
	return out
}

func bytesOf(pc, addr uint64, size int, store bool, to []touchedByte) []touchedByte {
	for i := range size {
		to = append(to, touchedByte{pc, addr + uint64(i), store})
	}
	return to
}

// instructionLog collects the instructions that the engine's hook reports.
type instructionLog struct {
	recorder.Nothing
	t     *testing.T
	log   map[arch.ThreadID][]uint64
	inRun uint64
	begun bool
}

func (e *instructionLog) SharedInSnapshot() {}

func (e *instructionLog) Begin(r *recorder.Recorder, _ *kernel.Task) {
	e.inRun = 0
	if e.begun {
		return
	}
	e.begun = true
	if err := r.CPU().LogInstructions(); err != nil {
		e.t.Fatal(err)
	}
}

func (e *instructionLog) Stopped(r *recorder.Recorder, _ *kernel.Task, s arch.Stop) {
	completed := s.Instructions - s.Repeated
	pcs, err := r.CPU().TakeInstructions(completed - e.inRun)
	if err != nil {
		e.t.Errorf("%v: %v", s.Reason, err)
	}
	e.inRun = completed
	e.log[r.At().Thread] = append(e.log[r.At().Thread], pcs...)
}

// machineLog runs a program with the machine's own logs of instructions and accesses, by
// thread.
func machineLog(t *testing.T, c machine.Config) (map[arch.ThreadID][]uint64, map[arch.ThreadID][]touchedByte) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log := &instructionLog{t: t, log: map[arch.ThreadID][]uint64{}}
	c.Record = &machine.Record{To: file, Memory: &recorder.MemoryConfig{}}
	if _, err := machine.Run(context.Background(), c, machine.WithRecordings(log)); err != nil {
		t.Fatal(err)
	}
	return log.log, storedAccesses(t, file.Name())
}

// storedAccesses returns the accesses in a trace, by thread.
func storedAccesses(t *testing.T, name string) map[arch.ThreadID][]touchedByte {
	t.Helper()
	r, err := trace.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	accesses := map[arch.ThreadID][]touchedByte{}
	for a, err := range memtrace.Read(r, memtrace.Select{}) {
		if err != nil {
			t.Fatal(err)
		}
		if a.Kind == event.Load || a.Kind == event.Store {
			accesses[a.Thread] = bytesOf(uint64(a.PC), uint64(a.Addr), int(a.Size), a.Kind == event.Store, accesses[a.Thread])
		}
	}
	return accesses
}

// pathOf returns the instructions and accesses of a thread's steps. A failed exchange
// writes back the value that it read, as in the machine's log. Helpers are the instructions
// of helpers such as FXSAVE's, for which libVEX gives one area where the machine leaves
// gaps.
func pathOf(th *blocktrace.Thread) (pcs []uint64, accesses []touchedByte, helpers map[uint64]bool) {
	helpers = map[uint64]bool{}
	for c := th.Cursor(0); c.Next(); {
		pc, site := uint64(0), 0
		for i, s := range c.Block.Stmts[:c.Done] {
			if m, ok := s.(*vex.Mark); ok && m.Len > 0 {
				pc = m.Addr
				pcs = append(pcs, pc)
			}
			if d, helper := s.(*vex.Dirty); helper && d.Effect != vex.EffectNone {
				helpers[pc] = true
			}
			for ; site < len(c.Addrs) && c.Block.Sites[site].Stmt == i; site++ {
				at := &c.Block.Sites[site]
				addr := c.Addrs[site]
				if _, cas := s.(*vex.CAS); cas && addr == blocktrace.NoAddr {
					addr = c.Addrs[site-1]
				}
				if addr != blocktrace.NoAddr {
					accesses = bytesOf(pc, addr, at.Size, at.Store, accesses)
				}
			}
		}
	}
	return pcs, accesses, helpers
}

// The steps of every thread agree with the machine's own hooks in the same run: every
// instruction, and every byte that is loaded and stored.
func TestPathIsTheMachines(t *testing.T) {
	bin := gcctest.File(t, "testdata/divide.c", "-no-pie")
	data := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(data, bytes.Repeat([]byte("three\n1.5 apples\n-2 pears\n"), 40), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{bin, "2", "6", "1"}, {"pigz", "-c", "-p2", data}} {
		c := machine.DefaultConfig()
		c.Args, c.Dir, c.Stdin = args, filepath.Dir(data), bytes.NewReader(nil)
		c.Stdout, c.Stderr, c.Sched.TimeSlice = new(bytes.Buffer), new(bytes.Buffer), 3000
		pcs, accesses := machineLog(t, c)
		c.Stdout, c.Stdin = new(bytes.Buffer), bytes.NewReader(nil)
		tr := tracedRun(t, c)
		if len(tr.Threads) != len(pcs) || len(pcs) < 2 {
			t.Errorf("%s: %d threads, the machine has %d", args[0], len(tr.Threads), len(pcs))
		}
		for _, th := range tr.Threads {
			havePCs, have, helpers := pathOf(th)
			if want := pcs[th.ID]; !slices.Equal(slices.Compact(havePCs), slices.Compact(want)) {
				t.Errorf("%s, thread %d: %d instructions, the machine has %d", args[0], th.ID, len(havePCs), len(want))
			}
			gaps := func(x touchedByte) bool { return helpers[x.pc] }
			if len(helpers) > 3 {
				t.Errorf("%d instructions are helpers'", len(helpers))
			}
			sameAccesses(t, sortRuns(slices.DeleteFunc(have, gaps)), sortRuns(slices.DeleteFunc(accesses[th.ID], gaps)))
		}
	}
}

func sameAccesses(t *testing.T, have, want []touchedByte) {
	t.Helper()
	for i := range min(len(have), len(want)) {
		if have[i] != want[i] {
			t.Errorf("byte %d of %d: %+v, the machine has %+v", i, len(want), have[i], want[i])
			return
		}
	}
	if len(have) != len(want) {
		t.Errorf("%d bytes, the machine has %d", len(have), len(want))
	}
}

func tracedRun(t *testing.T, c machine.Config) *blocktrace.Trace {
	t.Helper()
	f := concolicrun.New(concolicrun.Options{Args: c.Args, Env: c.Env, Choose: arguments, Summaries: sym.DefaultSummaries(), Path: true})
	t.Cleanup(f.Close)
	c.Record = &machine.Record{To: new(bytes.Buffer)}
	if _, err := machine.Run(context.Background(), c, machine.WithRecordings(f)); err != nil {
		t.Fatal(err)
	}
	if f.Err() != nil {
		t.Fatal(f.Err())
	}
	return f.Path.Trace()
}

// A cursor passes the same steps backwards as forwards, also from any step on; pieces and
// StepAt agree with it.
func TestPathBackwards(t *testing.T) {
	bin := gcctest.File(t, "testdata/divide.c", "-no-pie")
	c := machine.DefaultConfig()
	c.Args, c.Dir, c.Stdin = []string{bin, "2", "6", "1"}, t.TempDir(), bytes.NewReader(nil)
	c.Stdout, c.Sched.TimeSlice = new(bytes.Buffer), 3000
	tr := tracedRun(t, c)
	r := rand.New(rand.NewPCG(3, 4))
	constraints := 0
	for _, th := range tr.Threads {
		var steps []blocktrace.Step
		at := uint64(0)
		for k := th.Cursor(0); k.Next(); {
			if k.At != at {
				t.Fatalf("step %d is after %d instructions, want %d", k.Index, k.At, at)
			}
			at += uint64(k.Instructions())
			s := k.Step
			s.Constraints = slices.Clone(s.Constraints)
			steps = append(steps, s)
			constraints += len(k.Constraints)
		}
		if len(steps) != th.Len() || at != th.Instructions() {
			t.Fatalf("%d steps of %d instructions, want %d of %d", len(steps), at, th.Len(), th.Instructions())
		}
		back := th.Cursor(th.Len())
		for i := th.Len() - 1; back.Prev(); i-- {
			sameStep(t, &back.Step, &steps[i])
		}
		for range 50 {
			i := r.IntN(len(steps))
			k := th.Cursor(i)
			k.Next()
			sameStep(t, &k.Step, &steps[i])
			if n := th.StepAt(k.At); k.Instructions() > 0 && n != i {
				t.Errorf("instruction %d is in step %d, want %d", k.At, n, i)
			}
			if p := th.PieceOf(i); i < p.First || i >= p.First+p.Count {
				t.Errorf("step %d is not in piece %+v", i, p)
			}
		}
	}
	if constraints < 10 {
		t.Errorf("%d constraints", constraints)
	}
	next := map[int]int{}
	for _, p := range tr.Pieces {
		if p.First != next[p.Thread] || p.Count == 0 {
			t.Errorf("piece %+v, the last ended at step %d", p, next[p.Thread])
		}
		next[p.Thread] += p.Count
	}
}

func sameStep(t *testing.T, a, b *blocktrace.Step) {
	t.Helper()
	if a.Index != b.Index || a.Block != b.Block || a.At != b.At || a.Done != b.Done || !slices.Equal(a.Addrs, b.Addrs) ||
		len(a.Constraints) != len(b.Constraints) {
		t.Errorf("%+v, forwards %+v", a, b)
	}
}
