package machine_test

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/machinetest"
	"github.com/heddle-dmt/heddle/internal/testsize"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/flow"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched"
)

// contents is what a trace has of a run: rows of tables after an event, accesses to memory, and the instructions of threads.
type contents struct {
	rows  map[trace.Kind][]string
	seqs  map[trace.Kind][]uint64
	loads []string
	from  []uint64 // numbers of the loads' pieces
	flow  map[arch.ThreadID][]string
	first uint64 // the last event before the stretch
	last  uint64
}

// stretchKinds are the streams whose rows are the same in a stretch; others count from its beginning.
var stretchKinds = []trace.Kind{trace.Threads, trace.Exits, trace.Syscalls, trace.Signals, trace.Sync, trace.Objects, trace.Inputs, trace.Heap}

func readContents(t *testing.T, path string) *contents {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := &contents{rows: map[trace.Kind][]string{}, seqs: map[trace.Kind][]uint64{}, flow: map[arch.ThreadID][]string{}}
	for e, err := range trace.Get[event.Registers](r, trace.Key{Kind: trace.Registers}, trace.Where{}) {
		if err != nil {
			t.Fatal(err)
		}
		c.first = e.Seq
	}
	for _, k := range stretchKinds {
		for row, err := range r.Rows(trace.Key{Kind: k}, trace.Where{}) {
			if err != nil {
				t.Fatal(err)
			}
			number, _, _ := strings.Cut(row, ",")
			seq, _ := strconv.ParseUint(number, 10, 64)
			if k == trace.Sync { // an atomic instruction has the count of branches of the engine's next stop
				cells := strings.Split(row, ",")
				row = strings.Join(slices.Delete(cells, 6, 7), ",")
			}
			c.rows[k], c.seqs[k] = append(c.rows[k], row), append(c.seqs[k], seq)
			c.last = max(c.last, seq)
		}
	}
	for e, err := range memtrace.Read(r, memtrace.Select{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == event.Load || e.Kind == event.Store {
			c.loads = append(c.loads, fmt.Sprint(e.Thread, e.PC, e.Addr, e.Size, e.Value, e.Kind, e.Branches, e.Part))
			c.from = append(c.from, e.Seq)
		}
	}
	for p, err := range flow.All(r) {
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range p.AppendAddresses(nil) {
			c.flow[p.Thread] = append(c.flow[p.Thread], fmt.Sprint(at))
		}
	}
	return c
}

// isPart reports whether a list is a contiguous part of another.
func isPart(part, whole []string) bool {
	for i := 0; len(part) > 0 && i+len(part) <= len(whole); i++ {
		if whole[i] == part[0] && slices.Equal(whole[i:i+len(part)], part) {
			return true
		}
	}
	return len(part) == 0
}

// checkStretch compares the recording of a stretch with that of the whole run.
func checkStretch(t *testing.T, whole, part *contents) {
	t.Helper()
	for _, k := range stretchKinds {
		var want, got []string
		for i, row := range whole.rows[k] {
			if seq := whole.seqs[k][i]; seq > part.first && seq <= part.last {
				want = append(want, row)
			}
		}
		for i, row := range part.rows[k] {
			if part.seqs[k][i] > part.first {
				got = append(got, row)
			}
		}
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		if len(got) != len(want) || i < len(got) {
			t.Errorf("%s: %d rows, want %d; they are different from row %d on: %.200q, want %.200q",
				k, len(got), len(want), i, got[i:min(i+1, len(got))], want[i:min(i+1, len(want))])
		}
	}
	begin := 0
	for begin < len(whole.from) && whole.from[begin] < part.first {
		begin++
	}
	if !isPart(part.loads, whole.loads[begin:]) {
		t.Errorf("%d accesses are no part of those after event %d of the run", len(part.loads), part.first)
	}
	for id, list := range part.flow {
		if !isPart(list, whole.flow[id]) {
			t.Errorf("%d instructions are no part of those of thread %d", len(list), id)
		}
	}
}

// TestStretch: a recording of a stretch has what the recording of the whole run has between its places, and can be
// read and replayed alone, whatever places bound it.
func TestStretch(t *testing.T) {
	for name, source := range map[string]string{"racy": machinetest.Racy, "signals": signals, "memory": memoryUser} {
		bin := machinetest.Compile(t, source)
		for _, engine := range []string{"direct", "unicorn"} {
			if (engine == "unicorn" || name == "racy") && !testsize.Long() {
				continue
			}
			t.Run(name+"/"+engine, func(t *testing.T) {
				c, out := machinetest.Config(t, bin)
				c.Engine = engine
				if name == "racy" {
					c.Sched = sched.Options{Policy: sched.Random, Granularity: "instruction", Quantum: 100}
				}
				recording := func(s recorder.Stretch) func(io.Writer) *machine.Record {
					return func(to io.Writer) *machine.Record {
						r := everything(to)
						r.Sync.Heap, r.Stretch = true, s
						return r
					}
				}
				run, path := record(t, c, recording(recorder.Stretch{}))
				whole := readContents(t, path)
				n := run.Instructions
				for _, places := range [][2]recorder.Place{
					{{Kind: recorder.AtInstruction, N: n / 2}, {Kind: recorder.AtInstruction, N: n * 3 / 4}},
					{{Kind: recorder.AtInstruction, N: n * 9 / 10}, {}},
					{{}, {Kind: recorder.AtInstruction, N: n * 6 / 10}},
					{{Kind: recorder.AtTime, N: run.Cycles * 6 / 10}, {Kind: recorder.AtTime, N: run.Cycles * 9 / 10}},
					{{Kind: recorder.AtInstruction, N: n * 8 / 10, Thread: 1000}, {Kind: recorder.AtInstruction, N: n * 9 / 10}},
				} {
					out.Reset()
					s := recorder.Stretch{From: places[0], To: places[1]}
					got, path := record(t, c, recording(s))
					if got.Digest != run.Digest || got.Cycles != run.Cycles {
						t.Fatalf("%v: the run is another one: %d cycles, not %d", s, got.Cycles, run.Cycles)
					}
					if got.Stretch.Why != "" {
						continue // the thread has not as many instructions
					}
					checkStretch(t, whole, readContents(t, path))
					if s.From.Kind != recorder.NoPlace {
						replayMemory(t, path, memtrace.Select{})
					}
					printed := out.String()
					again, text := replayed(t, path, nil)
					if again.Digest != run.Digest || text != printed {
						t.Errorf("%v: the replay is another run", s)
					}
				}
			})
		}
	}
}
