package explore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dpor"
)

// Options tune an exploration.
type Options struct {
	// AddCores has the machine get a core for each thread if it has fewer.
	AddCores bool
	// Executions ends it after a number of executions; 0: it does not end before all are explored.
	Executions int
	// Time ends it after a time of the host; 0: it does not.
	Time time.Duration
	// Model is the memory model.
	Model memmodel.Model
	// Workers is the number of executions that are carried out at the same time; no result depends on it. 0 is 1.
	Workers int
	// Bound has the executions explored that cost at most a number; nil: all are, up to equivalence.
	Bound *Bound
	// State is the file from which an exploration continues and to which its state is written; empty: none.
	State string
	// Progress, when set, is called now and then with the numbers of executions so far and of instructions
	// before which executions stop.
	Progress func(executions, instructions int)
}

// Bound bounds the preemptions of executions, or their delays; see dpor.Bounded. Executions that cost less come first.
type Bound struct {
	Delays bool
	Most   int
}

// of names a number of preemptions or delays.
func (b *Bound) of(n int) string {
	text := "preemption"
	if b.Delays {
		text = "delay"
	}
	if n != 1 {
		text += "s"
	}
	return fmt.Sprintf("%d %s", n, text)
}

// explorer chooses executions: a dpor.Explorer or a dpor.Bounded.
type explorer interface {
	chooser
	End() (more bool)
	Abandon() (more bool)
}

// stateInterval is the time after which the state is written. A test shortens it.
var stateInterval = 10 * time.Second

// isProgress reports whether progress is reported after a number of executions: each time that it has
// doubled, and every 16,384.
func isProgress(n int) bool { return n >= 256 && (n&(n-1) == 0 || n%16384 == 0) }

// exploration is an exploration under way.
type exploration struct {
	base     Base
	options  Options
	explorer explorer
	all      *dpor.Explorer // the explorer of all executions; nil: it is the other one
	bounded  *dpor.Bounded
	sharing  *sharing
	runner   *runner
	helpers  helpers
	outputs  map[[sha256.Size]byte]int
	saved    time.Time
	report   Report
}

// Base is a program with the files and the failures of its runs: find.Base.
type Base interface {
	// RunUndisturbed runs the program once. If that run fails it is recorded, and done is true.
	RunUndisturbed(context.Context) (done bool, err error)
	// Undisturbed returns the exit status of that run, which is no failure, its number of threads, and how
	// it failed if it did. Digest identifies the program, its arguments and files, and what the run did.
	Undisturbed() (accepted, threads int, failure machine.Failure)
	// SetCores gives machines a number of cores from the next run on.
	SetCores(n int)
	Digest() string
	// Config is the configuration of a machine under a memory model.
	Config(memmodel.Model) machine.Config
	// Failure returns how an execution that is over has ended, and whether it failed.
	Failure(m *machine.Machine, stdout, stderr []byte) (machine.Failure, bool, error)
	// Limit is the number of instructions after which an execution hangs, when another one had length
	// instructions.
	Limit(length uint64) uint64
	// Verify writes the recording of a run that fails to its file, and replays it; stdout is what the run
	// has printed.
	Verify(ctx context.Context, trace, stdout []byte, want machine.Failure) error
}

// Explore executes a program under every order of its threads, up to equivalence, until one fails. If ctx
// is done, the report has the executions until then.
func Explore(ctx context.Context, base Base, o Options) (*Report, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if o.Time > 0 {
		limited, cancel = context.WithTimeout(ctx, o.Time)
	}
	defer cancel()
	x := &exploration{base: base, options: o, sharing: newSharing(), outputs: map[[sha256.Size]byte]int{}}
	x.report.Model, x.report.Bound, x.report.Explored = o.Model, o.Bound, -1
	err := x.carryOut(limited)
	x.helpers.close()
	if x.runner != nil {
		x.runner.close()
	}
	if err != nil && limited.Err() != nil && (errors.Is(err, limited.Err()) || errors.Is(err, context.Cause(limited))) {
		err = nil
	}
	x.report.Instructions = len(x.sharing.points)
	x.noteBound()
	return &x.report, err
}

// newConfig is the configuration of a machine of the exploration, which reads standard input from its beginning.
func (x *exploration) newConfig() machine.Config {
	c := x.base.Config(x.options.Model)
	c.Memory.Capacity = storebuffer.MaxCapacity
	return c
}

// carryOut carries out the exploration.
func (x *exploration) carryOut(ctx context.Context) error {
	done, err := x.runUndisturbed(ctx)
	x.report.Accepted, x.report.Threads, x.report.Failure = x.base.Undisturbed()
	if done || err != nil {
		x.report.Found, x.report.Undisturbed = done, done
		return err
	}
	if x.runner, err = newRunner(x.newConfig(), x.sharing, false); err != nil {
		return err
	}
	second, err := x.runner.runToSecondThread(ctx)
	if err != nil {
		return err
	}
	if !second {
		return errOneThread.New(x.newConfig().Args[0], x.report.Accepted)
	}
	x.runner.keepStart()
	x.runner.limit = x.base.Limit(x.runner.m.Instructions())
	x.helpers.number = x.options.Workers
	x.restart()
	if done, err := x.load(); done || err != nil {
		x.report.Complete = done
		return err
	}
	return x.exploreAll(ctx)
}

// runUndisturbed runs the program once, and again if the machine needs more cores.
func (x *exploration) runUndisturbed(ctx context.Context) (done bool, err error) {
	done, err = x.base.RunUndisturbed(ctx)
	_, threads, _ := x.base.Undisturbed()
	if err != nil || done || !x.options.AddCores || threads <= x.newConfig().Cores {
		return done, err
	}
	x.base.SetCores(min(threads, sched.MaxCores))
	return x.base.RunUndisturbed(ctx)
}

// exploreAll carries out executions until there is no other, or one fails.
func (x *exploration) exploreAll(ctx context.Context) error {
	x.saved = time.Now()
	for more := true; more; {
		if ctx.Err() != nil { // an execution may be too short to notice it
			return x.saveInterrupted(ctx, context.Cause(ctx))
		}
		if x.options.Executions > 0 && x.report.Executions >= x.options.Executions {
			return x.save(false, true)
		}
		var err error
		if more, err = x.step(ctx); x.report.Found {
			return err
		} else if err != nil {
			return x.saveInterrupted(ctx, err)
		}
		if err := x.save(!more, !more); err != nil {
			return err
		}
	}
	if x.report.Executions == 0 {
		return errNone.New(x.report.Outlasted + x.report.Redundant)
	}
	x.report.Complete = true
	return nil
}

// noteBound notes up to which bound all executions are explored.
func (x *exploration) noteBound() {
	if x.bounded != nil {
		x.report.Explored, x.report.Cut = x.bounded.Explored(), x.bounded.IsCut()
	}
}

// saveInterrupted writes the state after an execution that was cut short by ctx, which the explorer does
// not count.
func (x *exploration) saveInterrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if x.sharing.grown {
		x.restart()
	}
	return cmp.Or(x.save(false, true), err)
}

// restart begins the exploration anew.
func (x *exploration) restart() {
	x.explore(dpor.New())
	if b := x.report.Bound; b != nil {
		x.exploreBounded(dpor.NewBounded(b.Delays, b.Most))
	}
	x.helpers.forget()
	x.runner.dropSaved()
	x.report.Executions, x.report.Redundant, x.report.Outlasted, x.report.Events = 0, 0, 0, 0
	x.report.Outputs, x.report.OtherOutputs = nil, 0
	clear(x.outputs)
}

// explore has all executions explored.
func (x *exploration) explore(e *dpor.Explorer) { x.explorer, x.all, x.bounded = e, e, nil }

// exploreBounded has executions explored by their cost.
func (x *exploration) exploreBounded(b *dpor.Bounded) {
	x.explorer, x.all, x.bounded = b, nil, b
	x.runner.most, x.runner.spinsOn = mostBoundedEvents, true
}

// step carries out an execution, and reports whether there are others.
func (x *exploration) step(ctx context.Context) (more bool, err error) {
	e, err := x.nextExecution(ctx)
	switch {
	case err != nil && x.sharing.grown && errors.Is(err, dpor.ErrDiffers):
		x.restart()
		return true, nil
	case x.runner.tooLong && x.all != nil && x.options.State == "":
		// Those with few preemptions are explored at least.
		x.runner.tooLong = false
		x.report.Bound, x.report.Long = &Bound{Most: -1}, true
		x.restart()
		return true, nil
	case err != nil:
		return true, err
	}
	x.report.Threads = max(x.report.Threads, e.threads)
	x.report.Events = max(x.report.Events, e.events)
	if x.sharing.grown {
		x.report.Restarts++
		x.restart()
		return true, nil
	}
	x.report.notes.add(e.notes)
	if e.runnable > e.cores {
		return true, errCores.New(e.runnable, e.cores)
	}
	switch e.ending {
	case explored:
		x.report.Redundant++
		return x.explorer.Abandon(), nil
	case outlasted:
		x.report.Outlasted++
		return x.explorer.End(), nil
	}
	x.report.Executions++
	x.noteOutput(e.stdout)
	if e.failed {
		x.report.Found, x.report.Failure = true, e.failure
		// The failure that was found is recorded even if the exploration was interrupted.
		return false, x.record(context.WithoutCancel(ctx), e)
	}
	if x.options.Progress != nil && isProgress(x.report.Executions) {
		x.options.Progress(x.report.Executions, len(x.sharing.points))
	}
	return x.explorer.End(), nil
}

// nextExecution carries out the execution that the explorer asks for, unless a guess was one.
func (x *exploration) nextExecution(ctx context.Context) (*execution, error) {
	if x.all != nil {
		x.helpers.guess(ctx, x)
		if e := x.helpers.take(x); e != nil {
			return e, nil
		}
	}
	return x.carryOutOn(ctx, x.runner, x.explorer)
}

// carryOutOn carries out an execution on a machine.
func (x *exploration) carryOutOn(ctx context.Context, r *runner, choose chooser) (*execution, error) {
	r.choose = choose
	r.begin()
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	e := &execution{
		threads: len(r.order), events: len(r.history), notes: r.notes, ending: r.ending, instructions: r.m.Instructions(),
		runnable: r.m.Cluster().MostRunnable(), cores: r.m.Cluster().Cores(), path: r.path, stdout: r.stdout.Bytes(),
	}
	if r.ending != complete || r.sharing.grown {
		return e, nil
	}
	var err error
	e.failure, e.failed, err = x.base.Failure(r.m, r.stdout.Bytes(), r.stderr.Bytes())
	return e, err
}

// execution is an execution that was carried out. Slices are valid until its machine begins another.
type execution struct {
	ending          ending
	threads, events int
	notes           notes
	runnable, cores int // threads that could run at one time, and cores
	instructions    uint64
	path            []dpor.Process
	stdout          []byte
	failure         machine.Failure
	failed          bool
}

// record executes the failing execution again from the start of the program, records it, and verifies the
// recording.
func (x *exploration) record(ctx context.Context, e *execution) error {
	var trace bytes.Buffer
	want := e.failure
	c := x.newConfig()
	c.Record = &machine.Record{To: &trace}
	if want.Class == machine.FailureHang {
		c.MaxInstructions = e.instructions
	}
	r, err := newRunner(c, x.sharing, true)
	if err != nil {
		return err
	}
	defer r.close()
	if _, err := r.runToSecondThread(ctx); err != nil {
		return err
	}
	r.choose, r.limit = &followed{path: e.path}, x.runner.limit
	r.most, r.spinsOn = x.runner.most, x.runner.spinsOn
	r.begin()
	if err := r.run(ctx); err != nil {
		return err
	}
	got, _, err := x.base.Failure(r.m, r.stdout.Bytes(), r.stderr.Bytes())
	if err != nil {
		return err
	}
	if got != want {
		return errUnstable.New(want, "recording", got)
	}
	if _, err := r.m.Finish(); err != nil {
		return err
	}
	if err := r.m.CloseTrace(); err != nil {
		return err
	}
	return x.base.Verify(ctx, trace.Bytes(), r.stdout.Bytes(), want)
}

// followed is a chooser that makes the choices of another execution.
type followed struct {
	path []dpor.Process
	at   int
}

// Begin implements chooser, and so do the other methods.
func (f *followed) Branch() []dpor.Process { return nil }
func (f *followed) Begin(depth int)        { f.at = depth }
func (f *followed) Add(dpor.Event) error   { return nil }
func (f *followed) IsDecided() bool        { return f.at < len(f.path) }
func (f *followed) Choose(_, _ []dpor.Process) (dpor.Process, bool, error) {
	if f.at == len(f.path) {
		return 0, false, nil
	}
	f.at++
	return f.path[f.at-1], true, nil
}
