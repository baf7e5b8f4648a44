package prediction

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/predict"
	racereport "github.com/heddle-dmt/heddle/analyses/races/report"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/accesses"
	"github.com/heddle-dmt/heddle/internal/shellword"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/dmt"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

var (
	errProcesses = errs.Define("prediction-of-processes",
		"no races can be predicted of a run with several processes",
		"The memory of a process that was forked has two histories, and a reordering would need both.",
		"Run the program that has the threads by itself, without a shell around it; heddle races without --predict examines runs with processes.")
	errFolder = errs.Define("witnesses-cannot-be-written",
		"the folder {folder} for witnesses cannot be made",
		"A file of the same name exists, or permission is lacking.",
		"Name another folder with --witness.")
)

// Options say how races are predicted.
type Options struct {
	// Report is how races are reported. Its order is that of the program's synchronization.
	Report racereport.Options
	// Accesses, Shared, Steps and Witnesses are bounds: on the accesses that are read from the
	// beginning of the run, on those to memory that several threads use, on the search and on the runs.
	Accesses, Shared, Steps uint64
	Witnesses               int
	// Folder is where the witnesses of reported races are kept; empty: nowhere.
	Folder string
	// Progress, unless nil, gets a sentence now and then.
	Progress func(sentence string)
}

// DefaultOptions are options with the default bounds.
func DefaultOptions() Options {
	return Options{Accesses: 200_000_000, Shared: 2_000_000, Steps: 20_000_000, Witnesses: 50}
}

// Prepare makes the folder for witnesses.
func (o *Options) Prepare() error {
	if o.Folder == "" {
		return nil
	}
	if err := os.MkdirAll(o.Folder, 0o777); err != nil {
		return errFolder.Wrap(err, o.Folder)
	}
	return nil
}

// places is how many variables and pairs of threads are examined for two instructions.
const places = 256

// Predict reports the races of a recorded run, and with them the races that it predicts and confirms.
func Predict(ctx context.Context, path, name string, o Options) (*racereport.Report, error) {
	if err := o.Prepare(); err != nil {
		return nil, err
	}
	limit := o.Report.Limit
	o.Report.Limit = 0
	report, err := ReportRecorded(ctx, path, name, o.Report)
	if err != nil {
		return nil, err
	}
	p := &prediction{Options: o, path: path, report: report, known: map[pair]bool{}}
	ordered, err := peregrine.OpenOrdered(path)
	if err != nil {
		return nil, err
	}
	defer ordered.Close()
	p.say("reading the run")
	if p.run, err = readRun(ctx, ordered, o.Accesses, o.Shared); err != nil {
		return nil, err
	}
	if err := p.predict(ctx); err != nil {
		return nil, err
	}
	report.NotePrediction(p.counts, limit)
	return report, nil
}

// ReportRecorded reports the races of a recorded run itself, which has a name for people. If its accesses are those of a
// replay, this takes place meanwhile, with the operations and calls of allocators that the detector needs.
func ReportRecorded(ctx context.Context, path, name string, o racereport.Options) (*racereport.Report, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if !accesses.AreRepeated(r) {
		return racereport.Make(name, r, o)
	}
	live := racereport.NewLive(name, o)
	defer live.Close()
	if err := accesses.Repeat(ctx, path, live, func(r *machine.Record) {
		r.PT, r.Inputs = nil, false
		sync := machine.SyncRecord{}
		if r.Sync != nil {
			sync = *r.Sync
		}
		sync.Heap, r.Sync = true, &sync
		if sync.Atomics {
			live.SeparateAtomics()
		}
	}); err != nil {
		return nil, err
	}
	return live.Report()
}

// pair is two instructions, the lower address first.
type pair [2]arch.Addr

func pairOf(a, b arch.Addr) pair { return pair{min(a, b), max(a, b)} }

// prediction is the state of Predict.
type prediction struct {
	Options
	*run
	path      string
	report    *racereport.Report
	known     map[pair]bool
	witnesses []*witness
	counts    racereport.Prediction
}

func (p *prediction) say(format string, args ...any) {
	if p.Progress != nil {
		p.Progress(fmt.Sprintf(format, args...))
	}
}

// predict searches for races, and confirms the ones that the report lacks.
func (p *prediction) predict(ctx context.Context) error {
	p.say("searching in %d events", p.b.Len())
	found := p.b.Search(predict.Bounds{Steps: p.Steps, Places: places, Stop: func() bool { return ctx.Err() != nil }})
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &p.counts
	*c = racereport.Prediction{
		Accesses: p.accesses, Events: p.b.Len(), Cut: p.cut, Pairs: found.Pairs, Predicted: len(found.Races),
		Omitted: found.Omitted, Unfinished: found.Unfinished,
	}
	if len(found.Races) > 0 {
		own, err := ReportRecorded(ctx, p.path, "", p.everyRace())
		if err != nil {
			return err
		}
		for _, r := range own.Races {
			p.known[pairOf(r.First.PC, r.Second.PC)] = true
		}
	}
	var constraints []event.Constraint
	for _, race := range found.Races {
		switch {
		case p.known[pairOf(arch.Addr(race.Code[0]), arch.Addr(race.Code[1]))]:
			c.Known++
		case len(p.witnesses) == p.Witnesses:
			c.NotRun++
		default:
			w := p.newWitness(race)
			constraints = append(constraints, w.schedule.Constraints...)
			p.witnesses = append(p.witnesses, w)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := p.o.Locate(ctx, constraints); err != nil {
		return err
	}
	for i, w := range p.witnesses {
		n := copy(w.schedule.Constraints, constraints)
		constraints = constraints[n:]
		p.say("running witness %d of %d", i+1, len(p.witnesses))
		if err := p.confirm(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// confirm runs a witness, and reports the race if the run has it.
func (p *prediction) confirm(ctx context.Context, w *witness) error {
	key := pairOf(arch.Addr(w.race.Code[0]), arch.Addr(w.race.Code[1]))
	if p.known[key] {
		p.counts.Known++
		return nil
	}
	report, err := p.runWitness(ctx, w)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(report.Races, func(r *racereport.Race) bool { return pairOf(r.First.PC, r.Second.PC) == key })
	if i < 0 {
		p.counts.Refuted++
		return nil
	}
	p.known[key] = true
	if report.Races[i].Internal && !p.Options.Report.Library {
		p.counts.Library++
		return nil
	}
	p.counts.Confirmed++
	command, err := p.keep(w)
	if err != nil {
		return err
	}
	p.report.AddPredicted(report, report.Races[i], command)
	return nil
}

// keep writes the file of a witness, and returns a command that shows its race; empty: there is no file.
func (p *prediction) keep(w *witness) (command string, err error) {
	if p.Folder == "" {
		return "", nil
	}
	path := filepath.Join(p.Folder, strconv.Itoa(p.counts.Confirmed)+".schedule")
	f, err := p.o.NewFile(w.schedule)
	if err != nil {
		return "", err
	}
	if err := peregrine.Save(f, path); err != nil {
		return "", err
	}
	words := append([]string{"heddle", "races", "--enforce=" + path, "--free", "--"}, f.Args...)
	for i, word := range words {
		words[i] = shellword.Quote(word)
	}
	return strings.Join(words, " "), nil
}

// everyRace are options by which all pairs of instructions that race are reported, except the ones that a rule leaves
// out.
func (p *prediction) everyRace() racereport.Options {
	o := p.Options.Report
	o.Library, o.Repeats, o.Rules = true, true, slices.Clone(o.Rules)
	for i, rule := range o.Rules {
		copied := *rule
		o.Rules[i] = &copied
	}
	return o
}

// slack is how many more instructions a run of a witness may have than the recorded run, in whole.
const slack = 10_000_000

// runWitness runs the program under a witness, and reports the races of the run.
func (p *prediction) runWitness(ctx context.Context, w *witness) (*racereport.Report, error) {
	replay, err := machine.OpenReplay(p.path)
	if err != nil {
		return nil, err
	}
	defer replay.Close()
	if err := replay.CheckWhole(); err != nil {
		return nil, err
	}
	c, err := replay.Config()
	if err != nil {
		return nil, err
	}
	live := racereport.NewLive(strings.Join(c.Args, " "), p.everyRace())
	defer live.Close()
	c.Replay, c.Control, c.Faults = nil, dmt.Control{}, nil
	c.Enforce = &machine.Enforce{Schedule: w.schedule, Options: enforce.Options{Free: true}, Seed: c.Seed, Cores: c.Cores}
	c.Record = &machine.Record{Listener: live, Sync: &machine.SyncRecord{Heap: true}, Memory: &recorder.MemoryConfig{}}
	if recorded := replay.Recorded(); recorded != nil {
		if most := 4*recorded.Instructions + slack; c.MaxInstructions == 0 || c.MaxInstructions > most {
			c.MaxInstructions = most
		}
	}
	if _, err := machine.Run(ctx, c, machine.Isolated()); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return live.Report()
}
