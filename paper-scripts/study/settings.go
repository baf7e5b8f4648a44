package study

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/guest/programs/suite"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/sched"
)

// Settings are those of a configuration file about programs of the suite, as the
// command line overrides them.
type Settings struct {
	// Threads are the worker threads of each program, Cores those of the machine
	// of recorded runs (0: as many as threads), and Seed that of the first one. With
	// BindNow functions are looked up before the run.
	Threads int    `mapstructure:"threads"`
	Cores   int    `mapstructure:"cores"`
	BindNow bool   `mapstructure:"bind_now"`
	Seed    uint64 `mapstructure:"seed"`
	// Runs and SyncRuns are under hybrid schedules and sync-schedules; a time is
	// the mean of Times.
	Runs     int            `mapstructure:"runs"`
	SyncRuns int            `mapstructure:"sync_runs"`
	Times    int            `mapstructure:"times"`
	Programs []ProgramStudy `mapstructure:"programs"`

	*Options `mapstructure:"-"`
}

// ProgramStudy is a program of ours in place of one of a paper's.
type ProgramStudy struct {
	Name  string `mapstructure:"name"`
	Paper string `mapstructure:"paper"`
	// Form, Arguments (a size or a command line) and Threads, if not the settings', say how the
	// program is run. Long are the arguments that --long asks for.
	Form      suite.Form `mapstructure:"form"`
	Arguments string     `mapstructure:"arguments"`
	Long      string     `mapstructure:"long"`
	Threads   int        `mapstructure:"threads"`
	// Sched is how the recorded run is scheduled, and Record which run is taken.
	Sched  sched.Options `mapstructure:"sched"`
	Record Choice        `mapstructure:"record"`
	// Reported are the paper's values, by the keys of columns; Why is why ours differs.
	Reported map[string]string `mapstructure:"reported"`
	Why      string            `mapstructure:"why"`
}

// PaperValue is the paper's value for a program in a column, or "-".
func (p *ProgramStudy) PaperValue(key string) string {
	if text := p.Reported[key]; text != "" {
		return text
	}
	return "-"
}

// PlanWithSettings lays a table out with settings from a file. The command line's flags that are
// named override the fields of their names, and --only leaves programs out.
func PlanWithSettings(lay func(*Settings) (*Plan, error), flags ...string) func(*Options) (*Plan, error) {
	return func(o *Options) (*Plan, error) {
		s, err := o.Settings(flags...)
		if err != nil {
			return nil, err
		}
		return lay(s)
	}
}

// Settings reads the configuration file.
func (o *Options) Settings(flags ...string) (*Settings, error) {
	s := &Settings{Seed: 1, Runs: 1, SyncRuns: 1, Times: 1, Options: o}
	file, err := o.Load(s, flags...)
	if err != nil {
		return nil, err
	}
	if err := s.checkRanges(file); err != nil {
		return nil, err
	}
	var names []string
	for _, p := range s.Programs {
		names = append(names, p.Name)
	}
	for i := range s.Programs {
		if p := &s.Programs[i]; o.wantsLong() && p.Long != "" {
			p.Arguments = p.Long
		}
	}
	wanted, err := o.Only(names)
	if err != nil {
		return nil, err
	}
	s.Programs = slices.DeleteFunc(s.Programs, func(p ProgramStudy) bool { return !wanted(p.Name) })
	return s, nil
}

// wantsLong reports whether the flag --long is given.
func (o *Options) wantsLong() bool {
	f := o.Flags.Lookup("long")
	return f != nil && f.Value.String() == "true"
}

// checkRanges returns the first field that is out of range.
func (s *Settings) checkRanges(f *yamlfile.File) error {
	for _, x := range []struct {
		field              string
		found, least, most int
	}{
		{"threads", s.Threads, 1, 64},
		{"cores", s.Cores, 0, 64},
		{"runs", s.Runs, 1, 1_000_000},
		{"sync_runs", s.SyncRuns, 1, 1_000_000},
		{"times", s.Times, 1, 1_000_000},
	} {
		if x.found < x.least || x.found > x.most {
			return f.Wrong(x.field, x.found, fmt.Sprintf("%d to %d", x.least, x.most))
		}
	}
	if len(s.Programs) == 0 {
		return f.Wrong("programs", "missing", "a list of programs")
	}
	for i, p := range s.Programs {
		known, err := suite.Find(p.Name)
		if err != nil {
			return f.Wrong(fmt.Sprintf("programs[%d].name", i), p.Name, "a program of guest/programs/suite")
		}
		if !known.Has(p.Form) {
			return f.Wrong(fmt.Sprintf("programs[%d].form", i), p.Form, fmt.Sprint(known.Forms))
		}
	}
	return nil
}

// Only returns which of some names the flag --only asks for: all if it is not given.
func (o *Options) Only(names []string) (wanted func(name string) bool, err error) {
	only, err := o.Flags.GetStringSlice("only")
	if err != nil {
		return nil, err
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			err = fmt.Errorf("--only %s: one of %s", name, strings.Join(names, ", "))
		}
	}
	return func(name string) bool { return len(only) == 0 || slices.Contains(only, name) }, err
}

// Key is everything that a row about a program depends on, besides how often it is run.
func (s *Settings) Key(p ProgramStudy, repetitions ...int) any {
	return struct {
		Program     ProgramStudy
		Threads     int
		Cores       int
		BindNow     bool
		Seed        uint64
		Repetitions []int
	}{p, s.Threads, s.Cores, s.BindNow, s.Seed, repetitions}
}

// Subject builds a program.
func (s *Settings) Subject(p *ProgramStudy) (*Subject, error) {
	threads := s.Threads
	if p.Threads > 0 {
		threads = p.Threads
	}
	subject, err := New(p.Paper, p.Name, p.Form, Size(p.Arguments), threads)
	if err != nil {
		return nil, err
	}
	subject.Sched, subject.Cores, subject.BindNow = p.Sched, s.Cores, s.BindNow
	return subject, nil
}

// Row plans the row of a program: of the given number of columns, measured on one that is built,
// with a folder for traces that is removed afterwards.
func (s *Settings) Row(p ProgramStudy, columns int, measure func(ctx context.Context, subject *Subject, dir string) ([]string, error), repetitions ...int) Row {
	return Row{
		Name: p.Name, Key: s.Key(p, repetitions...),
		Measure: InFolder(p.Name, columns, func(ctx context.Context, dir string) ([]string, error) {
			subject, err := s.Subject(&p)
			if err != nil {
				return nil, err
			}
			return measure(ctx, subject, dir)
		}),
	}
}

// Unmeasurable is the error of a program that cannot be measured.
type Unmeasurable struct{ Reason string }

func (u Unmeasurable) Error() string { return u.Reason }

// InFolder is a Row's Measure that has a folder for itself, which is removed afterwards. A row that
// is Unmeasurable is blank but for its name and, in the last column, the reason.
func InFolder(name string, columns int, measure func(ctx context.Context, dir string) ([]string, error)) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		dir, err := os.MkdirTemp("", "heddle-study-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		cells, err := measure(ctx, dir)
		var none Unmeasurable
		if !errors.As(err, &none) {
			return cells, err
		}
		cells = slices.Repeat([]string{"-"}, columns)
		cells[0], cells[columns-1] = name, none.Reason
		return cells, nil
	}
}
