package frost

import (
	"context"
	"io"
	"net/netip"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/complementary"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/frost/epoch"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
)

var errOptions = errs.Define("frost-option",
	"the option {option} of Frost is {found}; allowed: {allowed}",
	"A number is out of its range.",
	"Give one that the sentence allows.")

var errOutput = errs.Define("frost-output",
	"the program's output cannot be written",
	"Frost writes output when an epoch is committed, after the program has gone past it: it is too late to return the host's error to the program.",
	"Make room on the disk, or read the pipe to its end. Under heddle run the program gets the error.")

// Options say how Frost runs a program.
type Options struct {
	// DetectOnly looks for races and survives none: the thread-parallel replica is
	// always committed, and output ends no epoch (section 3.4.3).
	DetectOnly bool
	// Sample is the part of the run's time that is checked, 0 to 1 (section 3.3.3).
	Sample float64
	// Epoch is how long the first epoch is, in milliseconds of virtual time.
	Epoch float64
	// Growth is by how many milliseconds epochs become longer, one after the other.
	Growth float64
	// Heuristic chooses priorities by the constraints between threads (section
	// 3.4.2): "exact" by those of the epoch itself, "greedy" by those of the epochs
	// before, "none" by the order in which threads began.
	Heuristic string
	// Hang is how many instructions a replica may run without a synchronization
	// operation or system call until it counts as hanging.
	Hang uint64
	// Rollbacks is how often one epoch is rolled back at most.
	Rollbacks int
	// CompareReads also compares the values that threads have read, outside of synchronization
	// operations. Where that differs and the outcome does not, there is a race that has
	// no effect in this execution.
	CompareReads bool
	// Followers is how many epoch-parallel replicas are executed at the same time
	// on the host. Nothing depends on it but how long that takes, and memory.
	Followers int `json:"-"`
	// Bound is called for each published port with the addresses of the host that it has. Clients on the host get
	// the guest's bytes when their epoch is committed.
	Bound func(publish.Port, []netip.AddrPort) `json:"-"`
	// Progress, if it is set, is called with how many epochs are committed, how many races
	// there were, and how long the run has taken in milliseconds of virtual time.
	Progress func(committed, races int, ms float64) `json:"-"`
}

// The heuristics.
const (
	Exact  = "exact"
	Greedy = "greedy"
	None   = "none"
)

// MostFollowers bounds Options.Followers: each is a machine of its own.
const MostFollowers = 16

// DefaultOptions check everything, with epochs that begin at 50 ms.
func DefaultOptions() Options {
	return Options{Sample: 1, Epoch: 50, Growth: 50, Heuristic: Exact, Hang: 10_000_000_000, Rollbacks: 2, Followers: 2}
}

// A WrongOption is an option that is out of its range.
type WrongOption struct {
	Name, Allowed string
	Found         any
}

// Wrong returns the first option that is out of its range, or nil.
func (o Options) Wrong() *WrongOption {
	for _, x := range []struct {
		bad           bool
		name, allowed string
		found         any
	}{
		{!(o.Sample >= 0 && o.Sample <= 1), "sample", "0 to 1", o.Sample},
		{!(o.Epoch >= 0.001 && o.Epoch <= 1e6), "epoch", "0.001 to 1000000 ms", o.Epoch},
		{!(o.Growth >= 0 && o.Growth <= 1e6), "growth", "0 to 1000000 ms", o.Growth},
		{!slices.Contains([]string{Exact, Greedy, None}, o.Heuristic), "heuristic", "exact, greedy, none", o.Heuristic},
		{o.Hang < 1000, "hang", "1000 and more", o.Hang},
		{o.Rollbacks < 0 || o.Rollbacks > 1000, "rollbacks", "0 to 1000", o.Rollbacks},
		{o.Followers < 1 || o.Followers > MostFollowers, "followers", "1 to 16", o.Followers},
	} {
		if x.bad {
			return &WrongOption{x.name, x.allowed, x.found}
		}
	}
	return nil
}

// Validate returns an error for the first option that is out of its range.
func (o Options) Validate() error {
	if w := o.Wrong(); w != nil {
		return errOptions.New(w.Name, w.Found, w.Allowed)
	}
	return nil
}

// driver is a run under Frost.
type driver struct {
	replicas *epoch.Runner
	workers  *workerPool
	options  Options
	ahead    int // how many epochs may be executed before the oldest is committed
	raceAt   int // the last epoch whose execution ahead was abandoned
	out, err io.Writer
	report   *Report
	known    knowledge
	pending  []*pendingEpoch   // epochs, the oldest first
	at       *epoch.Checkpoint // where the next one begins
	mhz      float64
	done     struct {
		committed, races int
		ms               float64
	}
}

// knowledge is what the executions so far have shown about the epochs ahead.
type knowledge struct {
	length  complementary.Length
	sampler complementary.Sampler
	counts  complementary.Constraints // of all epochs so far, if they matter
	last    complementary.Order       // of the last epoch that was executed
}

// Run runs the program of a configuration. Its output goes to c.Stdout and
// c.Stderr, epoch by epoch. When ctx is done, the run ends after the last epoch
// that was committed.
func Run(ctx context.Context, c machine.Config, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	sampler, err := complementary.NewSampler(o.Sample)
	if err != nil {
		return nil, err
	}
	peregrine.BindNow(&c) // who is the first to call a function leaves its traces on the stack
	r, err := epoch.NewRunner(ctx, c, epoch.Options{Followers: o.Followers, Reads: o.CompareReads, Bound: o.Bound})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	d := &driver{
		replicas: r, options: o, ahead: window, workers: newWorkerPool(r, o.Followers), out: c.Stdout, err: c.Stderr, mhz: float64(c.Costs.MHz),
		report: &Report{Options: o, Cores: c.Cores},
		known:  knowledge{length: complementary.NewLength(o.Epoch), sampler: *sampler, counts: complementary.Constraints{}},
	}
	defer d.workers.waitForJobs()
	d.known.length.Step = o.Growth
	if len(c.Publish) > 0 {
		d.ahead = 1
	}
	return d.runProgram(ctx)
}

func (d *driver) runProgram(ctx context.Context) (*Report, error) {
	d.at = d.replicas.Start()
	err := d.runPipeline(ctx)
	d.abortPending()
	defer func() { d.at.Release() }()
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	result, err := d.replicas.Finish(ctx, d.at)
	if err != nil {
		return nil, err
	}
	d.report.Result = result
	d.report.PeakMemory = d.replicas.PeakMemory()
	d.report.sumUpEpochs()
	return d.report, nil
}

// writeOutput lets go the output of a replica that is committed.
func (d *driver) writeOutput(x *epoch.Replica) error {
	d.done.committed++
	d.done.ms += d.toMilliseconds(x.Cycles)
	if d.options.Progress != nil {
		d.options.Progress(d.done.committed, d.done.races, d.done.ms)
	}
	for _, w := range x.Output {
		to := d.out
		if w.FD == 2 {
			to = d.err
		}
		if to == nil {
			continue
		}
		if _, err := to.Write(w.Data); err != nil {
			return errOutput.Wrap(err)
		}
	}
	return nil
}

// resolveRace executes an epoch until a replica can be committed, which it returns. The
// first execution is given.
func (d *driver) resolveRace(ctx context.Context, number int, at *epoch.Checkpoint, g *replicaGroup, e *Epoch) (*epoch.Replica, error) {
	var tried []*epoch.Replica // thread-parallel ones
	defer func() {
		for _, x := range tried {
			x.End.Release()
		}
	}()
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			var err error
			if g, err = d.executeAgain(ctx, at, number, attempt, g.inputs()); err != nil {
				return nil, err
			}
			e = d.judgeReplicas(number, attempt, g)
		}
		if err := d.runUnpreempted(ctx, e, g, at); err != nil {
			g.releaseAllBut(nil)
			return nil, err
		}
		choice := d.chooseCommit(e, g, append(tried, g.replicas[0]), at)
		if choice == nil {
			tried = append(tried, g.releaseAllBut(g.replicas[0]))
			continue
		}
		tried = slices.DeleteFunc(tried, func(x *epoch.Replica) bool { return x == choice })
		d.noteCommit(e, choice)
		err := d.replicas.Commit(choice)
		return g.releaseAllBut(choice), err
	}
}

// executeAgain executes an epoch once more, with the same inputs.
func (d *driver) executeAgain(ctx context.Context, at *epoch.Checkpoint, number, attempt int, inputs *epoch.Inputs) (*replicaGroup, error) {
	g, err := d.startEpoch(ctx, at, number, attempt, inputs)
	if err != nil {
		return nil, err
	}
	if err := g.waitForReplicas(d.replicas, at); err != nil {
		g.releaseAllBut(nil)
		return nil, err
	}
	return g, nil
}

func (d *driver) epochOptions() epoch.EpochOptions {
	return d.options.epochOptions(d.known.length.Now, d.known.length.Grace)
}

// chooseSchedule is how an epoch is executed that was rolled back: by turns without
// preemption in the last order of priorities and in its reverse, in which most races do not
// show, and in another interleaving. The first attempt continues under the schedule of before.
func (d *driver) chooseSchedule(number, attempt int) (seed uint64, priority complementary.Order) {
	switch {
	case attempt == 0:
		return 0, nil
	case attempt%3 == 1:
		return 0, d.known.last
	case attempt%3 == 2:
		return 0, d.known.last.Reverse()
	}
	return uint64(number)<<20 + uint64(attempt), nil
}

// instructionLimit bounds the instructions of an epoch-parallel replica.
func (d *driver) instructionLimit(first *epoch.Replica) uint64 {
	return 2*first.Effort + d.options.Hang
}

// orderByPriority orders the threads of an epoch.
func (d *driver) orderByPriority(first *epoch.Replica) complementary.Order {
	var threads []arch.ThreadID
	for i := range first.Order.Threads {
		threads = append(threads, first.Order.Threads[i].ID)
	}
	slices.Sort(threads)
	own := complementary.Constraints{}
	for _, p := range first.Order.Constraints {
		own.Add(first.Order.Threads[p[0]].ID, first.Order.Threads[p[1]].ID, 1)
	}
	switch d.options.Heuristic {
	case Exact:
		return own.Exact(threads)
	case Greedy:
		order := d.known.counts.Greedy(threads)
		for _, c := range own.List() {
			d.known.counts.Add(c.A, c.B, c.N)
		}
		return order
	default:
		return threads
	}
}

// judgeReplicas names the combination of the replicas' outcomes, for the report.
func (d *driver) judgeReplicas(number, attempt int, g *replicaGroup) *Epoch {
	e := &Epoch{Number: number, Attempt: attempt, Target: g.target, Grace: g.grace, Length: d.toMilliseconds(g.replicas[0].Cycles), Order: g.order, Differs: g.differs, Reads: g.reads}
	var failed [3]bool
	for i, x := range g.replicas {
		failed[i] = x.Failed != ""
		e.Replicas = append(e.Replicas, Replica{
			Failed: x.Failed, Diverged: x.Diverged, Benign: x.BenignDivergence, Instructions: x.Instructions, Milliseconds: d.toMilliseconds(x.Cycles), Work: d.toMilliseconds(x.Work),
			Pages: x.Pages, Output: x.OutputSize(),
		})
	}
	if len(g.replicas) == 3 {
		e.Combination = complementary.Combine(failed, func(i, j int) bool { return g.alike[i][j] })
		e.Bug = e.Combination.Diagnose().Bug
		if e.Race = e.Combination.Race(); e.Race {
			d.done.races++
		}
		e.Harmless = !e.Race && !failed[0] && (g.replicas[1].Diverged != "" || g.replicas[2].Diverged != "" || g.reads != "")
	}
	d.report.Epochs = append(d.report.Epochs, e)
	return e
}

func (d *driver) toMilliseconds(c arch.Cycles) float64 { return float64(c) / d.mhz / 1000 }

// chooseCommit says which replica is committed; nil: the epoch is rolled back. Tried are
// its thread-parallel executions so far.
func (d *driver) chooseCommit(e *Epoch, g *replicaGroup, tried []*epoch.Replica, at *epoch.Checkpoint) *epoch.Replica {
	first := g.replicas[0]
	if e.Combination == "" || d.options.DetectOnly {
		return first
	}
	if len(g.replicas) > 3 {
		e.Commit = "unpreempted"
		return g.replicas[3]
	}
	diagnosis := e.Combination.Diagnose()
	if diagnosis.Commit != complementary.NoReplica {
		e.Commit = diagnosis.Commit.String()
		return g.replicas[diagnosis.Commit]
	}
	if e.Attempt < d.options.Rollbacks {
		e.Commit = "rollback"
		if diagnosis.Shorter {
			d.known.length.Cut()
		}
		return nil
	}
	return d.voteOnAttempts(e, g, tried, at)
}

// runUnpreempted executes an epoch once more if no two of its replicas agree on
// an outcome: without preemption, and without the order
// of the first, in which threads may have to wait for each other in the middle of
// an operation that should be atomic. If it does not fail it is the one to commit.
func (d *driver) runUnpreempted(ctx context.Context, e *Epoch, g *replicaGroup, at *epoch.Checkpoint) error {
	if d.options.DetectOnly || e.Combination != "A-BC" && e.Combination != "F-AB" {
		return nil
	}
	o := d.epochOptions()
	o.Priority, o.Inputs = g.order, g.inputs()
	x, err := d.replicas.RunThreadParallel(ctx, at, o)
	if err != nil {
		return err
	}
	if x.Failed != "" {
		x.End.Release()
		return nil
	}
	g.replicas = append(g.replicas, x)
	e.Replicas = append(e.Replicas, Replica{Instructions: x.Instructions, Milliseconds: d.toMilliseconds(x.Cycles), Work: d.toMilliseconds(x.Work)})
	return nil
}

// voteOnAttempts chooses when an epoch has the same race whenever it is executed.
func (d *driver) voteOnAttempts(e *Epoch, g *replicaGroup, tried []*epoch.Replica, at *epoch.Checkpoint) *epoch.Replica {
	results := make([]int, len(tried))
	for i, x := range tried {
		results[i] = i
		if x.Failed != "" {
			results[i] = -1
		}
		for j := range i {
			if results[i] == i && results[j] >= 0 {
				if same, _ := d.replicas.CompareStates(at, tried[j], x); same {
					results[i] = results[j]
				}
			}
		}
	}
	if best := complementary.Vote(results); best >= 0 {
		e.Commit = "vote"
		return tried[best]
	}
	for i, x := range g.replicas {
		if x.Failed == "" {
			e.Commit = complementary.Replica(i).String()
			return x
		}
	}
	e.Commit = "failed"
	return g.replicas[0]
}

// noteCommit notes the commit of an epoch that had a race, or failed, when it was executed first, and adapts
// the length of epochs.
func (d *driver) noteCommit(e *Epoch, choice *epoch.Replica) {
	e.Committed = true
	if e.Race {
		d.known.length.Cut()
	} else {
		d.known.length.Grow()
		d.known.length.EndGrace()
	}
	d.report.failed = choice.Failed
}
