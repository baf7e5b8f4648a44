// Package sweep runs experiments: a YAML file names programs and a grid of
// parameters, each point of the grid is one run of a program on the machine,
// and the results go to a store from which tables are made.
//
// An Experiment is a checked file. Plan expands it into Runs, in a fixed order.
// Sweep carries out the ones that the store does not have yet, each in a worker
// process of its own, and the same programs natively for comparison. Table
// groups the stored results over the seeds.
//
// Invariants:
//
//  1. A stored result is used again only if nothing that its run depended on
//     has changed: configuration, program, inputs, heddle itself (Run.Key), and
//     every host file that the run read (the manifest in its result).
//  2. Two runs with one key that differ in their digest are never passed over:
//     the sweep reports them, and so does every table made later.
//  3. The plan, the inputs and the tables depend on the file and the stored
//     results alone, not on the number of workers or the order in which they
//     finish.
package sweep

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddle-dmt/heddle/experiments/servers"
	"github.com/heddle-dmt/heddle/experiments/windows/settings"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/output"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/sched"
)

// Experiment is an experiment file.
type Experiment struct {
	// Name names the store and the table; the default is the file's name.
	Name string `mapstructure:"name"`
	// Store is the file that keeps the results, relative to the experiment
	// file; the default is results/NAME.sqlite in the current folder.
	Store string `mapstructure:"store"`
	// Programs are the programs of the experiment.
	Programs []Program `mapstructure:"programs"`
	// Inputs are the files in the folder that programs start in.
	Inputs []Input `mapstructure:"inputs"`
	// Machine configures the machine; the grid overrides it.
	Machine job.Options `mapstructure:"machine"`
	// Grid are the parameters that are varied.
	Grid Grid `mapstructure:"grid"`
	// Repetitions is how often each run is made; all must be equal.
	Repetitions int `mapstructure:"repetitions"`
	// Native compares output and exit status with a run on the host.
	Native bool `mapstructure:"native"`
	// Filter makes standard output comparable with the native run's, where they differ for good reasons.
	Filter output.Filter `mapstructure:"filter"`
	// Workers is the number of runs at a time; 0 means one for each processor
	// of the host.
	Workers int `mapstructure:"workers"`
	// TimeLimit ends a run that takes the host longer, as a failure; 0 means
	// no limit.
	TimeLimit Duration `mapstructure:"time_limit"`
	// Values are parsed from the programs' output.
	Values []Value `mapstructure:"values"`
	// Selection chooses the table's rows and columns, unless the command line does.
	Selection Selection `mapstructure:"table"`
	// Plots are drawn by heddle experiment plot.
	Plots []PlotOptions `mapstructure:"plots"`
	// Windows, if they have a size, are those of all runs.
	Windows settings.Settings `mapstructure:"windows"`
	// Failures, when it asks for anything, makes the experiment one about runs
	// that fail.
	Failures Failures `mapstructure:"failures"`

	path  string         // of the file
	rules settings.Rules // of Windows
}

// Program is one program under study.
type Program struct {
	// Name stands for the program in tables; the default is the command's.
	Name string `mapstructure:"name"`
	// Command is the program and its arguments, in which {threads} and the
	// names of Grid.Arguments are replaced. A program without a slash is found
	// in the guest's PATH; a relative path is relative to the experiment file.
	Command []string `mapstructure:"command"`
	// Stdin is the name of the input that is standard input.
	Stdin string `mapstructure:"stdin"`
	// Sched are values of scheduling options that take the place of those of Grid.Sched.
	Sched Scheduling `mapstructure:"sched"`
	// Server is the file of a server with its client (package servers), in place of Command; relative to the
	// experiment file. The grid's cores are then those of the server.
	Server string `mapstructure:"server"`
	// Client, if set, is the client's command in place of that of the server's file.
	Client []string `mapstructure:"client"`

	server *servers.Server // of the file, or nil
}

// Input is a file that programs find in their working folder: a copy of a
// host's file, or a generated one.
type Input struct {
	Name     string   `mapstructure:"name"`
	File     string   `mapstructure:"file"`
	Generate string   `mapstructure:"generate"`
	Size     job.Size `mapstructure:"size"`
	Seed     uint64   `mapstructure:"seed"`
}

// Grid lists the values of each parameter; every combination is a run. A
// parameter that is not listed has the machine's value.
type Grid struct {
	// Cores are numbers of cores, or "threads" for as many as threads.
	Cores []Cores `mapstructure:"cores"`
	// Threads are the values of {threads}.
	Threads []Range `mapstructure:"threads"`
	// Seeds are the machine's seeds.
	Seeds []Range `mapstructure:"seeds"`
	// Policy are scheduling policies.
	Policy []string `mapstructure:"policy"`
	// Sched are scheduling options of the machine with their values. An option that a policy does not use is not
	// varied under it.
	Sched Scheduling `mapstructure:"sched"`
	// Model are memory models. Commit and Capacity, when stores become visible and
	// how many a core's buffer holds, are not varied under sc, which has no buffers.
	Model    []string `mapstructure:"model"`
	Commit   []string `mapstructure:"commit"`
	Capacity []int    `mapstructure:"capacity"`
	// Arguments are further placeholders in commands, with their values.
	Arguments map[string][]string `mapstructure:"arguments"`
}

// guestDir is the folder that programs start in, where the inputs are.
const guestDir = "/experiment"

// Load reads and checks an experiment file.
func Load(path string) (*Experiment, error) {
	x := &Experiment{
		Machine: job.DefaultOptions(), Repetitions: 1, Native: true, path: path,
	}
	file, err := yamlfile.Load(path, x)
	if err != nil {
		return nil, err
	}
	if err := x.completeFields(); err != nil {
		return nil, err
	}
	err = x.checkFields()
	var wrong *job.FieldError
	if errors.As(err, &wrong) {
		return nil, file.Wrong(wrong.Field, wrong.Found, wrong.Allowed)
	}
	return x, err
}

// completeFields fills in values that depend on other fields and resolves paths.
func (x *Experiment) completeFields() error {
	dir, err := filepath.Abs(filepath.Dir(x.path))
	if err != nil {
		return errFolder.Wrap(err)
	}
	if x.Name == "" {
		base := filepath.Base(x.path)
		x.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if x.Store == "" {
		x.Store = filepath.Join("results", x.Name+".sqlite")
	} else if !filepath.IsAbs(x.Store) {
		x.Store = filepath.Join(dir, x.Store)
	}
	if folder := &x.Failures.Folder; *folder != "" && !filepath.IsAbs(*folder) {
		*folder = filepath.Join(dir, *folder)
	}
	x.Machine.Resolve(dir)
	for i := range x.Inputs {
		if file := &x.Inputs[i].File; *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(dir, *file)
		}
	}
	for i := range x.Programs {
		if err := x.Programs[i].completeFields(dir); err != nil {
			return err
		}
	}
	for i := range x.Values {
		x.Values[i].completeFields()
	}
	x.Windows.Resolve(dir)
	return nil
}

func (p *Program) completeFields(dir string) error {
	if p.Server != "" {
		return p.loadServer(dir)
	}
	if len(p.Command) == 0 {
		return nil
	}
	if p.Name == "" {
		p.Name = filepath.Base(p.Command[0])
	}
	if name := p.Command[0]; strings.Contains(name, "/") && !filepath.IsAbs(name) {
		p.Command = append([]string{filepath.Join(dir, name)}, p.Command[1:]...)
	}
	return nil
}

// program is the program that the run's first process executes: of a server, the shell of its script.
func (p Program) program() string {
	switch {
	case p.server != nil:
		return servers.Shell
	case len(p.Command) == 0:
		return ""
	}
	return p.Command[0]
}

func fieldError(field string, found any, allowed string) error {
	if text, ok := found.(string); ok {
		found = strconv.Quote(text)
	}
	return &job.FieldError{Field: field, Found: found, Allowed: allowed}
}

// maxRuns bounds a plan, so that a slip in a range is an error and not a day's
// work.
const maxRuns = 1_000_000

// checkFields returns the first field that is wrong.
func (x *Experiment) checkFields() error {
	checks := []func() error{x.checkScalars, x.checkMachine, x.checkInputs, x.checkPrograms, x.checkScheduling, x.checkGrid, x.checkModels, x.checkWindows, x.checkFailures, x.checkValues, x.checkSelection, x.checkPlots}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

var plainName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
})

const plainNameForm = "letters, digits, dots, hyphens, underscores and plus signs"

func (x *Experiment) checkScalars() error {
	switch {
	case !plainName().MatchString(x.Name):
		return fieldError("name", x.Name, plainNameForm)
	case x.Repetitions < 1 || x.Repetitions > 1000:
		return fieldError("repetitions", x.Repetitions, "1 to 1000")
	case x.Workers < 0 || x.Workers > 1000:
		return fieldError("workers", x.Workers, "0 to 1000")
	case len(x.Programs) == 0:
		return fieldError("programs", "empty", "at least one program")
	}
	if name, found, allowed := x.Filter.Wrong(); name != "" {
		return fieldError("filter"+name, found, allowed)
	}
	return nil
}

func (x *Experiment) checkMachine() error {
	if list := x.Machine.Publish; len(list) > 0 {
		return fieldError("machine.publish", list[0].String(), "none: the runs of an experiment are repeated, and clients on the host are not")
	}
	err := x.Machine.Check()
	var field *job.FieldError
	if errors.As(err, &field) {
		return fieldError("machine."+field.Field, field.Found, field.Allowed)
	}
	for i, m := range x.Machine.Mounts {
		if m.Writable {
			return fieldError(fmt.Sprintf("machine.mounts[%d]", i), m.String(), "a mount without :rw; runs of a sweep must not change the input of others")
		}
	}
	return err
}

func (x *Experiment) checkInputs() error {
	seen := map[string]bool{}
	for i, in := range x.Inputs {
		field := fmt.Sprintf("inputs[%d].", i)
		switch {
		case !plainName().MatchString(in.Name):
			return fieldError(field+"name", in.Name, plainNameForm)
		case seen[in.Name]:
			return fieldError(field+"name", in.Name, "a name that no other input has")
		case (in.File == "") == (in.Generate == ""):
			return fieldError(fmt.Sprintf("inputs[%d]", i), "an input with "+describeSources(in), "either file or generate")
		case in.Generate != "" && !slices.Contains(GeneratorNames(), in.Generate):
			return fieldError(field+"generate", in.Generate, strings.Join(GeneratorNames(), ", "))
		case in.Generate != "" && (in.Size == 0 || in.Size > maxGenerated):
			return fieldError(field+"size", in.Size, "1 to "+maxGenerated.String())
		case in.File != "" && !job.IsFile(in.File):
			return fieldError(field+"file", in.File, "a file that exists")
		}
		seen[in.Name] = true
	}
	return nil
}

func describeSources(in Input) string {
	if in.File == "" {
		return "neither file nor generate"
	}
	return "both file and generate"
}

func (x *Experiment) checkPrograms() error {
	seen := map[string]bool{}
	for i, p := range x.Programs {
		field := fmt.Sprintf("programs[%d].", i)
		if err := x.checkServer(p, field); err != nil {
			return err
		}
		switch {
		case p.program() == "":
			return fieldError(field+"command", "empty", "a list of the program and its arguments, or a server")
		case len(p.Command) == 1 && strings.Contains(p.Command[0], " "):
			return fieldError(field+"command", p.Command[0], "a list of the program and its arguments, as in [pigz, -p, \"4\", file]")
		case !plainName().MatchString(p.Name):
			return fieldError(field+"name", p.Name, plainNameForm)
		case seen[p.Name]:
			return fieldError(field+"name", p.Name, "a name that no other program has")
		case p.Stdin != "" && !slices.ContainsFunc(x.Inputs, func(in Input) bool { return in.Name == p.Stdin }):
			return fieldError(field+"stdin", p.Stdin, "the name of an input")
		}
		seen[p.Name] = true
		if _, err := findProgram(p.program(), x.Machine); err != nil {
			return fieldError(field+"command", p.program(), err.Error())
		}
		if err := x.checkPlaceholders(p, field+"command"); err != nil {
			return err
		}
	}
	return nil
}

var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{([a-z][a-z0-9_-]*)\}`)
})

// checkPlaceholders finds names in braces that the grid does not give.
func (x *Experiment) checkPlaceholders(p Program, field string) error {
	for i, word := range p.Command {
		for _, match := range placeholder().FindAllStringSubmatch(word, -1) {
			name := match[1]
			if _, ok := x.Grid.Arguments[name]; !ok && (name != "threads" || len(x.Grid.Threads) == 0) {
				return fieldError(fmt.Sprintf("%s[%d]", field, i), word, "placeholders that the grid gives: threads or a name in arguments")
			}
		}
	}
	return nil
}

func (x *Experiment) checkGrid() error {
	for i, c := range x.Grid.Cores {
		if c.AsThreads && len(x.Grid.Threads) == 0 {
			return fieldError(fmt.Sprintf("grid.cores[%d]", i), "threads", "a number, unless the grid gives threads")
		}
	}
	for i, r := range x.Grid.Threads {
		if r.Low < 1 || r.High > math.MaxInt32 {
			return fieldError(fmt.Sprintf("grid.threads[%d]", i), r.String(), "at least 1")
		}
		asCores := slices.ContainsFunc(x.Grid.Cores, func(c Cores) bool { return c.AsThreads })
		if asCores && r.High > sched.MaxCores {
			return fieldError(fmt.Sprintf("grid.threads[%d]", i), r.String(), fmt.Sprintf("1 to %d, because cores is threads", sched.MaxCores))
		}
	}
	for i, p := range x.Grid.Policy {
		o := x.Machine.Sched
		o.Policy = p
		var field *sched.FieldError
		if err := o.Validate(); errors.As(err, &field) {
			return fieldError(fmt.Sprintf("grid.policy[%d]", i), p, field.Error())
		}
	}
	for name, values := range x.Grid.Arguments {
		if name == "threads" || len(values) == 0 {
			return fieldError("grid.arguments."+name, name, "a name besides threads, with at least one value")
		}
	}
	if n := x.Size(); n > maxRuns {
		return fieldError("grid", fmt.Sprintf("%.0f runs", n), fmt.Sprintf("at most %d", maxRuns))
	}
	return nil
}

// Size is the number of runs, repetitions included. It is a float because a
// slip in a range can make it larger than any integer type.
func (x *Experiment) Size() float64 {
	total := 0.0
	for _, p := range x.Programs {
		n := float64(max(len(x.Grid.Cores), 1) * len(x.gridMemories()))
		policies := 0.0
		for _, policy := range x.policies() {
			policies += x.schedulingOf(p).size(policy)
		}
		n *= policies
		n *= countValues(x.Grid.Seeds)
		if x.usesParameter(p, "threads") {
			n *= countValues(x.Grid.Threads)
		}
		for name, values := range x.Grid.Arguments {
			if x.usesParameter(p, name) {
				n *= float64(len(values))
			}
		}
		total += n
	}
	return total * float64(x.Repetitions)
}

// usesParameter reports whether a parameter makes a difference to a program: one that
// does not is not swept for it.
func (x *Experiment) usesParameter(p Program, name string) bool {
	if name == "threads" && slices.ContainsFunc(x.Grid.Cores, func(c Cores) bool { return c.AsThreads }) {
		return true
	}
	if p.server != nil && p.server.Uses(name) {
		return true
	}
	in := func(word string) bool { return strings.Contains(word, "{"+name+"}") }
	return slices.ContainsFunc(p.Command, in) || slices.ContainsFunc(x.Machine.Env, in)
}

// Cores is a number of cores in a grid.
type Cores struct {
	Count     int
	AsThreads bool // as many as threads
}

// UnmarshalText reads a number or "threads".
func (c *Cores) UnmarshalText(text []byte) error {
	if string(text) == "threads" {
		c.AsThreads = true
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > sched.MaxCores {
		return form(fmt.Sprintf("1 to %d, or threads", sched.MaxCores))
	}
	c.Count = n
	return nil
}

func (c Cores) String() string {
	if c.AsThreads {
		return "threads"
	}
	return strconv.Itoa(c.Count)
}

// Range is one number or all from Low to High.
type Range struct{ Low, High uint64 }

// UnmarshalText reads "7" or "1-10".
func (r *Range) UnmarshalText(text []byte) error {
	low, high, isRange := strings.Cut(string(text), "-")
	if !isRange {
		high = low
	}
	var errLow, errHigh error
	r.Low, errLow = strconv.ParseUint(strings.TrimSpace(low), 10, 64)
	r.High, errHigh = strconv.ParseUint(strings.TrimSpace(high), 10, 64)
	if errLow != nil || errHigh != nil || r.Low > r.High {
		return form("a number or a range like 1-10")
	}
	return nil
}

func (r Range) String() string {
	if r.Low == r.High {
		return strconv.FormatUint(r.Low, 10)
	}
	return fmt.Sprintf("%d-%d", r.Low, r.High)
}

// countValues is the number of values of a list of ranges; an absent list has one.
func countValues(ranges []Range) float64 {
	if len(ranges) == 0 {
		return 1
	}
	n := 0.0
	for _, r := range ranges {
		n += float64(r.High) - float64(r.Low) + 1
	}
	return n
}

// Duration is a time of the host, in text like 90s or 10m.
type Duration time.Duration

// UnmarshalText reads the text form.
func (d *Duration) UnmarshalText(text []byte) error {
	n, err := time.ParseDuration(string(text))
	if err != nil || n < 0 {
		return form("a duration like 90s or 10m")
	}
	*d = Duration(n)
	return nil
}

// form is the error of a text that is not of the allowed form, which it
// describes.
type form string

func (f form) Error() string { return string(f) }
