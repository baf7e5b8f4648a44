package clap

import (
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/clap"
	"github.com/heddle-dmt/heddle/emu/arch"
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
		"The recording did not reach its end.",
		"Record the run again.")
)

// Recording is a run's paths.
type Recording struct {
	Log *clap.Log
	// Cores counts the work of the instrumentation on each core.
	Cores map[arch.CoreID]clap.Counts
	// Functions are instrumented, and InstrumentedInstructions instructions are of instrumented code.
	Functions                int
	InstrumentedInstructions uint64
	ExecutionCounts

	code *programCode
}

// ExecutionCounts counts the instructions of a run: Branches are all instructions that may jump,
// except calls of the kernel.
type ExecutionCounts struct{ Instructions, Branches uint64 }

// Record records the paths of a recorded run, with the files below a root folder: of all its code,
// or of the program's own, as CLAP does.
func Record(file, root string, whole bool) (*Recording, error) {
	r, err := trace.Open(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := checkOneSpace(r, file); err != nil {
		return nil, err
	}
	c, err := newProgramCode(r, root, whole)
	if err != nil {
		return nil, err
	}
	known, err := observeTargets(r, whole)
	if err != nil {
		return nil, err
	}
	program := clap.NewProgram(c, *known)
	recorder, out := clap.NewRecorder(program), &Recording{Cores: map[arch.CoreID]clap.Counts{}, code: c}
	err = eachPiece(r, func(p *flow.Piece) {
		recorder.Step(p.Thread, p.Core, p.Addr, pieceEnd(p))
		out.countPiece(p)
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

func (r *Recording) countPiece(p *flow.Piece) {
	r.ExecutionCounts.countPiece(p)
	if r.code.Instrumented(p.Addr) {
		r.InstrumentedInstructions += uint64(p.Count)
	}
}

func (x *ExecutionCounts) countPiece(p *flow.Piece) {
	x.Instructions += uint64(p.Count)
	if p.Count == p.Run.Count && p.Kind != zydis.Straight && p.Kind != zydis.Far {
		x.Branches++
	}
}

// CountBranches counts the instructions and branches of a recorded run.
func CountBranches(file string) (ExecutionCounts, error) {
	var x ExecutionCounts
	r, err := trace.Open(file)
	if err != nil {
		return x, err
	}
	defer r.Close()
	err = eachPiece(r, x.countPiece)
	return x, err
}

// checkOneSpace refuses a run of several address spaces.
func checkOneSpace(r *trace.Reader, file string) error {
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

// eachPiece goes through the executed pieces of all threads, of each in its order.
func eachPiece(r *trace.Reader, do func(*flow.Piece)) error {
	for p, err := range flow.All(r) {
		if err != nil {
			return err
		}
		do(&p)
	}
	return nil
}

// pieceEnd is the first address after the instructions of a piece.
func pieceEnd(p *flow.Piece) uint64 {
	if p.Count == p.Run.Count {
		return p.End()
	}
	next := p.Step
	next.Count++
	addresses := next.AppendAddresses(nil)
	return addresses[p.Count]
}

// observeTargets finds the targets of calls, and of jumps through registers and memory, in the run:
// facts that a compiler has about the code.
func observeTargets(r *trace.Reader, whole bool) (*clap.CompilerFacts, error) {
	entries, targets := map[uint64]bool{}, map[uint64]map[uint64]bool{}
	last := map[arch.ThreadID]flow.Piece{}
	err := eachPiece(r, func(p *flow.Piece) {
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
	known := &clap.CompilerFacts{Whole: whole, Entries: slices.Sorted(maps.Keys(entries)), Targets: map[uint64][]uint64{}}
	for at, all := range targets {
		known.Targets[at] = slices.Sorted(maps.Keys(all))
	}
	return known, err
}

// Cost is the cost of recording.
type Cost struct {
	// Bytes were written, and Stored are those of the file.
	Bytes, Stored uint64
	// Overhead is the time of the core that recorded most, as a part of the run's.
	Overhead float64
}

// Cost writes the paths to a file and returns the cost of recording them.
func (r *Recording) Cost(to io.Writer, costs arch.Costs, cycles uint64) (Cost, error) {
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

// BranchTraceCost is the cost of the branch traces of a recorded run.
func BranchTraceCost(r *trace.Reader) (Cost, error) {
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
	c.Overhead = float64(most) * float64(CostTable(r).PTByte) / float64(cycles)
	return c, nil
}

// CostTable is the timing model of the recorded machine. A cost that its heddle did not
// have yet is the default.
func CostTable(r *trace.Reader) arch.Costs {
	run := struct {
		Costs arch.Costs `json:"costs"`
	}{arch.DefaultCosts()}
	if text, err := r.Manifest(); err == nil {
		_ = json.Unmarshal(text, &run) // fields that cannot be read keep the default
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
