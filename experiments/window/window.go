// Package window slices a recorded stretch of a server's run: it finds which decisions on the bytes of the requests in it,
// and on state that the caller names, the order of the stretch's operations depends on (PEREGRINE section 6, TERN section 6).
//
// The trace is of a stretch (docs/traces.md) that begins with a request; the process that reads it is the server. Make
// repeats the run up to the stretch, follows the threads of the server through it on expressions, and slices it.
//
// Invariants:
//
//  1. The same trace and options give the same result, apart from times.
//  2. Other processes are not followed: what they write to shared memory depends on no input.
package window

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/analyses/cfg"
	"github.com/heddle-dmt/heddle/analyses/concolic"
	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/analyses/specialize"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/concolicrun"
	"github.com/heddle-dmt/heddle/guest/kernel"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var (
	errNoServer = errs.Define("window-without-server",
		"{file} cannot be sliced as a window of a server: {problem}",
		"A window is a stretch that begins with a request, with its operations and inputs.",
		"Record the window as heddle schedule window --help shows.")
	errState = errs.Define("window-without-variable",
		"{file} cannot be sliced with the state {name}: {program} has no variable of that name",
		"The symbols of the server's program do not name it; programs of Debian are stripped, and name exported variables alone.",
		"Name a variable that nm -D or nm lists with its size, or leave it out.")
	errImage = errs.Define("window-without-program",
		"{file} cannot be sliced: the program {program} of the server's process cannot be read",
		"The file that the process had mapped first is not where the trace has it, or is no program.",
		"Slice the trace on the host on which it was recorded, with the server's package installed.")
)

// Options choose what is followed.
type Options struct {
	// State are the names of the program's variables that are inputs, too: state that earlier requests may have changed
	// (TERN section 6).
	State []string
	// Terms has the Result list the constraints on inputs and state that slicing with simplification keeps.
	Terms bool
	// MaxInstructions and MaxTerms bound the computation; 0: no limit.
	MaxInstructions uint64
	MaxTerms        int
}

// Result is a sliced window.
type Result struct {
	// Process is the server's, Program its file, Threads the ones with instructions in the window.
	Process int32  `json:"process"`
	Program string `json:"program"`
	Threads int    `json:"threads"`
	// Instructions are those of the server in the window, and Operations the synchronization operations.
	Instructions uint64 `json:"instructions"`
	Operations   int    `json:"operations"`
	// Inputs are the bytes that are symbols.
	Inputs int `json:"inputs"`
	// Branches are the branches that depend on inputs (PEREGRINE's UB), Kept those that each mode of slicing keeps.
	Branches uint64            `json:"branches"`
	Kept     map[string]uint64 `json:"kept"`
	// SlicedInstructions are the instructions in the slice of each mode.
	SlicedInstructions map[string]uint64 `json:"sliced_instructions"`
	// Terms are the kept constraints, each once, if they were asked for.
	Terms []string `json:"terms,omitempty"`
	// Reasons counts the constraints that each mode keeps by reason (docs/slicing.md).
	Reasons map[string]slice.Counts `json:"reasons"`
	// Followed and Sliced are processor times, the garbage collector's included: of the repetition of the run on
	// expressions, and of slicing by each mode.
	Followed time.Duration            `json:"followed"`
	Sliced   map[string]time.Duration `json:"sliced"`
}

// Make slices a recorded window.
func Make(ctx context.Context, path string, o Options) (*Result, error) {
	w, err := readWindow(path)
	if err != nil {
		return nil, err
	}
	begin := processorTime()
	run, in, err := w.follow(ctx, path, o)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	out := &Result{
		Process: w.process, Program: w.program, Threads: len(in.Trace.Threads), Instructions: run.Executor.Stats.Instructions,
		Operations: len(w.schedule.Operations), Inputs: len(run.Executor.Symbols()), Followed: processorTime() - begin,
		Kept: map[string]uint64{}, Reasons: map[string]slice.Counts{}, Sliced: map[string]time.Duration{},
		SlicedInstructions: map[string]uint64{},
	}
	for _, mode := range []slice.Mode{slice.Upper, slice.Plain, slice.Simplified, slice.Lower, slice.TERN} {
		begin := processorTime()
		options := slice.DefaultOptions()
		options.Mode, options.Clone.Late = mode, true
		s := slice.Make(in, options)
		name := slice.Modes()[mode]
		out.Branches, out.Kept[name], out.Sliced[name] = s.Stats.Branches, s.Stats.KeptBranches, processorTime()-begin
		out.Reasons[name], out.SlicedInstructions[name] = s.Stats.Reasons, s.Stats.Sliced
		if mode == slice.Simplified && o.Terms {
			out.Terms = termsOf(s, in)
		}
	}
	return out, ctx.Err()
}

// termsOf lists the constraints that a slice keeps, each once, in the order of the threads.
func termsOf(s *slice.Slice, in *slice.Input) (list []string) {
	known := map[string]bool{}
	for i := range in.Trace.Threads {
		kept := s.Constraints(i)
		for k := range kept {
			if text := kept[k].Expr().String(); !known[text] {
				known[text] = true
				list = append(list, text)
			}
		}
	}
	return list
}

// processorTime is the processor time of this process.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// window is what is read of the trace.
type window struct {
	process int32
	program string
	at      uint64 // where it is mapped
	// libraries are the files that are sliced with it.
	libraries []cfg.File
	schedule  *event.Schedule
	marks     []hybrid.Mark
	ids       []arch.ThreadID
	// begun is how many instructions each thread had retired when the window began.
	begun map[arch.ThreadID]uint64
	of    map[arch.ThreadID]int32 // processes of threads
}

func readWindow(path string) (*window, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	w := &window{begun: map[arch.ThreadID]uint64{}, of: map[arch.ThreadID]int32{}}
	for _, k := range []trace.Kind{trace.Registers, trace.Sync, trace.Inputs} {
		if !r.Has(k) {
			return nil, errNoServer.New(path, "it has no stream "+string(k))
		}
	}
	err = each(r, trace.Registers, func(e *event.Registers) { w.begun[e.Thread] = e.Instructions })
	err = cmp.Or(err, each(r, trace.Threads, func(e *event.Start) { w.of[e.Thread] = e.Process }))
	err = cmp.Or(err, each(r, trace.Inputs, func(e *event.Input) {
		if e.Source == event.InputSocket && w.process == 0 {
			w.process = w.of[e.Thread]
		}
	}))
	err = cmp.Or(err, each(r, trace.Mappings, func(e *event.Mapping) {
		if e.Process == w.process && e.Offset == 0 {
			w.addFile(e.Name, uint64(e.Addr))
		}
	}))
	if err == nil && w.process == 0 {
		err = errNoServer.New(path, "nothing is read from a socket in it")
	}
	return w, cmp.Or(err, w.order(r))
}

// addFile adds a mapped file: the first is the program, and libraries other than the run-time libraries are sliced with it.
func (w *window) addFile(name string, at uint64) {
	if w.program == "" {
		w.program, w.at = name, at
		return
	}
	has := func(f cfg.File) bool { return f.Path == name }
	if name != w.program && !slices.ContainsFunc(w.libraries, has) && cfg.IsSliced(name) {
		w.libraries = append(w.libraries, cfg.File{Path: name, Bias: at})
	}
}

// each calls do for the events of a stream.
func each[E trace.Event](r *trace.Reader, k trace.Kind, do func(*E)) error {
	for e, err := range trace.Get[E](r, trace.Key{Kind: k}, trace.Where{}) {
		if err != nil {
			return err
		}
		do(&e)
	}
	return nil
}

// order finds the operations of the server's threads. Instructions are counted from the window's beginning.
func (w *window) order(r *trace.Reader) error {
	o := hybrid.NewOrderBuilder(hybrid.Rules{
		Ordered: func(uint64) bool { return false }, Forks: func(uint64) bool { return false },
		Transparent: func(op event.SyncOp) bool { return op == event.OpAtomic || op == event.OpThreadReturn },
	})
	own := func(s *event.Stamp) bool {
		s.Instructions -= min(s.Instructions, w.begun[s.Thread])
		return w.of[s.Thread] == w.process
	}
	type numbered struct {
		seq uint64
		add func()
	}
	var all []numbered
	err := each(r, trace.Threads, func(e *event.Start) {
		if x := *e; own(&x.Stamp) {
			all = append(all, numbered{x.Seq, func() { o.AddStart(&x) }})
		}
	})
	err = cmp.Or(err, each(r, trace.Objects, func(e *event.Object) { o.AddObject(e) }))
	err = cmp.Or(err, each(r, trace.Sync, func(e *event.Sync) {
		if x := *e; own(&x.Stamp) {
			all = append(all, numbered{x.Seq, func() { o.AddSync(&x) }})
		}
	}))
	err = cmp.Or(err, each(r, trace.Exits, func(e *event.Exit) {
		if x := *e; own(&x.Stamp) {
			all = append(all, numbered{x.Seq, func() { o.AddExit(&x) }})
		}
	}))
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b numbered) int { return cmp.Compare(a.seq, b.seq) })
	for _, e := range all {
		e.add()
	}
	w.schedule, w.marks = o.Finish()
	for n := range w.schedule.Threads {
		w.ids = append(w.ids, o.ThreadID(n))
	}
	return nil
}

// follow repeats the run, and follows the server through the window on expressions.
func (w *window) follow(ctx context.Context, path string, o Options) (*concolicrun.Recording, *slice.Input, error) {
	image, err := cfg.OpenImage(w.program, w.at, w.libraries...)
	if err != nil {
		return nil, nil, errImage.Wrap(err, path, w.program)
	}
	var state []concolicrun.Variable
	for _, name := range o.State {
		v, ok := image.VariableNamed(name)
		if !ok || v.Size == 0 {
			return nil, nil, errState.New(path, name, w.program)
		}
		state = append(state, concolicrun.Variable{Name: name, Addr: v.Addr, Size: v.Size})
	}
	run, err := concolicrun.Repeat(ctx, path, func(*machine.Config) (concolicrun.Options, error) {
		return concolicrun.Options{
			Path: true, State: state, Summaries: concolic.DefaultSummaries(), MaxTerms: o.MaxTerms, MaxInstructions: o.MaxInstructions,
			Follow: func(t *kernel.Task) bool { return t.Process().PID() == w.process },
			Choose: func(e *event.Input) bool { return e.Source == event.InputSocket },
		}, nil
	})
	if err != nil {
		return nil, nil, err
	}
	events := specialize.NewEvents(w.schedule, w.marks, w.ids)
	events.FreeCalls = true
	return run, &slice.Input{
		Trace: run.Path.Trace(), Events: events, Image: image, Models: cfg.DefaultModels(),
	}, nil
}
