package clap

import (
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/reproduce/balllarus"
	"github.com/heddle-dmt/heddle/emu"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/zydis"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/flow"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var (
	errSpaces = errs.Define("paths-of-several-spaces",
		"the trace {file} is of {count} address spaces, and paths are recorded in one",
		"The program has started others, or was started by a shell.",
		"Record the program alone.")
	errCycles = errs.Define("trace-without-cycles",
		"the trace does not say how many cycles the run took",
		"The recording did not come to its end.",
		"Record the run again.")
)

// Recording is a run's paths.
type Recording struct {
	Log *balllarus.Log
	// Cores is what the instrumentation did on each core.
	Cores map[event.CoreID]balllarus.Counts
	// Functions are instrumented, and InOwn instructions are of instrumented code.
	Functions int
	InOwn     uint64
	Executed

	code *code
}

// Executed is what a run executed: Branches are all instructions that may go
// elsewhere, but for those that enter the kernel.
type Executed struct{ Instructions, Branches uint64 }

// Record records the paths of a recorded run, with the files below a root folder: of
// all its code, or of the program's own, which is what CLAP records.
func Record(file, root string, whole bool) (*Recording, error) {
	r, err := trace.Open(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := oneSpace(r, file); err != nil {
		return nil, err
	}
	c, err := newCode(r, root, whole)
	if err != nil {
		return nil, err
	}
	known, err := observe(r, whole)
	if err != nil {
		return nil, err
	}
	program := balllarus.NewProgram(c, *known)
	recorder, out := balllarus.NewRecorder(program), &Recording{Cores: map[event.CoreID]balllarus.Counts{}, code: c}
	err = pieces(r, func(p *flow.Piece) {
		recorder.Step(p.Thread, p.Core, p.Addr, stepEnd(p))
		out.count(p)
	})
	if err != nil {
		return nil, err
	}
	out.Log, out.Functions = recorder.Close(), len(program.Functions())
	for core, n := range recorder.Cores() {
		out.Cores[core] = *n
	}
	return out, nil
}

func (r *Recording) count(p *flow.Piece) {
	r.Executed.count(p)
	if r.code.Instrumented(p.Addr) {
		r.InOwn += uint64(p.Count)
	}
}

func (x *Executed) count(p *flow.Piece) {
	x.Instructions += uint64(p.Count)
	if p.Count == p.Run.Count && p.Kind != zydis.Straight && p.Kind != zydis.Far {
		x.Branches++
	}
}

// CountBranches counts what a recorded run executed.
func CountBranches(file string) (Executed, error) {
	var x Executed
	r, err := trace.Open(file)
	if err != nil {
		return x, err
	}
	defer r.Close()
	err = pieces(r, x.count)
	return x, err
}

// oneSpace refuses a run of several address spaces.
func oneSpace(r *trace.Reader, file string) error {
	spaces := map[uint64]bool{}
	for x, err := range trace.Get[event.Code](r, trace.Key{Kind: trace.Code}, trace.Where{}) {
		if err != nil {
			return err
		}
		spaces[x.Space] = true
	}
	if len(spaces) > 1 {
		return errSpaces.New(file, len(spaces))
	}
	return nil
}

// pieces goes through what all threads executed, of each in its order.
func pieces(r *trace.Reader, do func(*flow.Piece)) error {
	for p, err := range flow.All(r) {
		if err != nil {
			return err
		}
		do(&p)
	}
	return nil
}

// stepEnd is the address behind the instructions of a piece.
func stepEnd(p *flow.Piece) uint64 {
	if p.Count == p.Run.Count {
		return p.End()
	}
	next := p.Step
	next.Count++
	addresses := next.AppendAddresses(nil)
	return addresses[p.Count]
}

// observe finds where calls, and jumps through registers and memory, go in the run: what
// the compiler knows of the code.
func observe(r *trace.Reader, whole bool) (*balllarus.Known, error) {
	entries, targets := map[uint64]bool{}, map[uint64]map[uint64]bool{}
	last := map[event.ThreadID]flow.Piece{}
	err := pieces(r, func(p *flow.Piece) {
		before, ok := last[p.Thread]
		last[p.Thread] = *p
		if !ok || before.Count < before.Run.Count {
			return
		}
		switch before.Kind {
		case zydis.Call, zydis.IndirectCall:
			entries[p.Addr] = true
		case zydis.IndirectJump:
			if targets[before.End()] == nil {
				targets[before.End()] = map[uint64]bool{}
			}
			targets[before.End()][p.Addr] = true
		}
	})
	known := &balllarus.Known{Whole: whole, Entries: slices.Sorted(maps.Keys(entries)), Targets: map[uint64][]uint64{}}
	for at, all := range targets {
		known.Targets[at] = slices.Sorted(maps.Keys(all))
	}
	return known, err
}

// Cost is what recording takes.
type Cost struct {
	// Bytes were written, and Stored are those of the file.
	Bytes, Stored uint64
	// Overhead is the time of the core that recorded most, as a part of the run's.
	Overhead float64
}

// Cost writes the paths to a file and says what recording them takes.
func (r *Recording) Cost(to io.Writer, costs emu.Costs, cycles uint64) (Cost, error) {
	var c Cost
	most := uint64(0)
	for _, n := range r.Cores {
		c.Bytes += n.Bytes
		most = max(most, n.Increments*uint64(costs.PathIncrement)+n.Writes*uint64(costs.PathWrite)+n.Bytes*uint64(costs.PTByte))
	}
	c.Overhead = float64(most) / float64(cycles)
	n, err := r.Log.Write(to)
	c.Stored = uint64(n)
	return c, err
}

// Branches is the cost of the branch traces of a recorded run.
func Branches(r *trace.Reader) (Cost, error) {
	var c Cost
	cycles, err := Cycles(r)
	if err != nil {
		return c, err
	}
	most := uint64(0)
	for _, id := range r.IDs(trace.PT) {
		n := uint64(0)
		for _, chunk := range r.Chunks(trace.Key{Kind: trace.PT, ID: id}) {
			n += uint64(chunk.Raw)
			c.Stored += uint64(chunk.Stored)
		}
		c.Bytes += n
		most = max(most, n)
	}
	c.Overhead = float64(most) * float64(Costs(r).PTByte) / float64(cycles)
	return c, nil
}

// Costs is the timing model of the recorded machine. A cost that its heddle did not
// have yet is the default.
func Costs(r *trace.Reader) emu.Costs {
	run := struct {
		Costs emu.Costs `json:"costs"`
	}{emu.DefaultCosts()}
	if text, err := r.Manifest(); err == nil {
		_ = json.Unmarshal(text, &run) // what cannot be read leaves the default
	}
	return run.Costs
}

// Cycles is how long a recorded run took, not 0.
func Cycles(r *trace.Reader) (uint64, error) {
	var end struct {
		Result struct {
			Cycles uint64 `json:"cycles"`
		} `json:"result"`
	}
	summary, err := r.Summary()
	if err == nil {
		err = json.Unmarshal(summary, &end)
	}
	if err == nil && end.Result.Cycles == 0 {
		err = errCycles.New()
	}
	return end.Result.Cycles, err
}
