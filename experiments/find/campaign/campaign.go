// Package campaign compares strategies of package find: each searches each program several times, with seeds
// of their own, until a schedule fails.
//
// A YAML file names programs, strategies, memory models and numbers of trials and schedules. Results are
// stored in a file as searches end, so that an interrupted campaign continues. From them are made a table
// of schedules to the first failure, a comparison of strategies by survival analysis, and a plot of the
// searches that have found a failure over schedules.
//
// Invariants:
//
//  1. Results depend on the file and the programs, and not on the number of workers or on interruptions.
//  2. A stored result is used again only for the same program, arguments, strategy, models, schedules and seed.
package campaign

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/guest/programs/bugs"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched/points"
)

var (
	errProgram = errs.Define("campaign-program",
		"cannot use the program {program} of a campaign",
		"It cannot be read, or it is no bug of guest/programs/bugs, which gcc compiles.",
		"Check the name; a path is relative to the campaign's file.")
	errPlot = errs.Define("campaign-plot",
		"cannot write the plot {file}",
		"Its name ends in no known format, or its folder cannot be written.",
		"Name a file that ends in .svg.")
	errResults = errs.Define("campaign-results",
		"cannot use the file of results {file}",
		"The file or its folder cannot be read or written, or a line in it is no result.",
		"Make room, name another file with results, or remove the file.")
)

// Campaign is a campaign's file.
type Campaign struct {
	// Programs are searched.
	Programs []Program `mapstructure:"programs"`
	// Strategies are those of package points; "all" is the search in which all take turns.
	Strategies []string `mapstructure:"strategies"`
	// Models are memory models; several that take turns are joined by plus signs.
	Models []string `mapstructure:"models"`
	// Trials is the number of searches of each program by each strategy.
	Trials int `mapstructure:"trials"`
	// Schedules is the greatest number of schedules of a search.
	Schedules int `mapstructure:"schedules"`
	// Seed is that of the first trial; others follow.
	Seed uint64 `mapstructure:"seed"`
	// Outputs: a wrong output is a failure as well.
	Outputs bool `mapstructure:"outputs"`
	// Workers is the number of schedules that are executed at the same time.
	Workers int `mapstructure:"workers"`
	// Results is the file of the results, relative to the campaign's; the default is its name with the ending
	// .jsonl.
	Results string `mapstructure:"results"`

	dir    string
	search Searcher
}

// Search is a search to carry out.
type Search struct {
	Args       []string
	Strategies []string // none: all take turns
	Models     []memmodel.Model
	Seed       uint64
	Schedules  int // at most
	Workers    int
	Outputs    bool // a wrong output is a failure as well
}

// Searcher carries out a search. It returns the number of schedules that were tried, and the class of the failure of the
// last of them, or nothing if none failed.
type Searcher func(ctx context.Context, s Search) (tried int, failure string, err error)

// Program is a program that is searched: a bug of guest/programs/bugs with its argument N, or a command.
type Program struct {
	Name    string   `mapstructure:"name"`
	Bug     string   `mapstructure:"bug"`
	N       int      `mapstructure:"n"`
	Command []string `mapstructure:"command"`
}

// Result is the result of a search.
type Result struct {
	Program  string `json:"program"`
	Digest   string `json:"digest"` // of the program and its arguments
	Strategy string `json:"strategy"`
	Models   string `json:"models"`
	Seed     uint64 `json:"seed"`
	Outputs  bool   `json:"outputs"`
	// Limit is the number of schedules that were allowed, Schedules that of the first that failed, or of all.
	Limit     int    `json:"limit"`
	Schedules int    `json:"schedules"`
	Found     bool   `json:"found"`
	Failure   string `json:"failure,omitempty"`
}

// key sets searches apart.
func (r Result) key() Result {
	r.Schedules, r.Found, r.Failure = 0, false, ""
	return r
}

// all is the name of the search in which all strategies take turns.
const all = "all"

// Load reads and checks the file of a campaign whose searches a function carries out.
func Load(path string, search Searcher) (*Campaign, error) {
	c := &Campaign{search: search, Strategies: []string{all}, Models: []string{"sc"}, Trials: 20, Schedules: 10_000, Seed: 1, Workers: 1}
	file, err := yamlfile.Load(path, c)
	if err != nil {
		return nil, err
	}
	c.dir = filepath.Dir(path)
	if c.Results == "" {
		c.Results = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + ".jsonl"
	}
	c.Results = c.resolve(c.Results)
	switch {
	case len(c.Programs) == 0:
		return nil, file.Wrong("programs", "empty", "at least one program")
	case c.Trials < 1:
		return nil, file.Wrong("trials", c.Trials, "a whole number from 1 on")
	case c.Schedules < 1:
		return nil, file.Wrong("schedules", c.Schedules, "a whole number from 1 on")
	case c.Workers < 1:
		return nil, file.Wrong("workers", c.Workers, "a whole number from 1 on")
	}
	for i, name := range c.Strategies {
		if name != all && !slices.Contains(points.Names(), name) {
			return nil, file.Wrong(fmt.Sprintf("strategies[%d]", i), name, all+", "+strings.Join(points.Names(), ", "))
		}
	}
	for i, list := range c.Models {
		if _, known := parseModels(list); !known {
			return nil, file.Wrong(fmt.Sprintf("models[%d]", i), list, strings.Join(memmodel.Names(), ", ")+", or several joined by +")
		}
	}
	for i, p := range c.Programs {
		if (p.Bug == "") == (len(p.Command) == 0) {
			return nil, file.Wrong(fmt.Sprintf("programs[%d]", i), p.Name, "a program with either bug or command")
		}
	}
	return c, nil
}

// Main carries out a campaign's file, writes its tables, and, if plot names a file, its plot. A line on each search that ends
// goes to progress.
func Main(ctx context.Context, path, plot string, search Searcher, out, progress io.Writer) error {
	c, err := Load(path, search)
	if err != nil {
		return err
	}
	list, err := c.Run(ctx, func(line string) { fmt.Fprintln(progress, line) })
	if err != nil {
		return err
	}
	if err := WriteTable(out, list); err != nil {
		return err
	}
	if len(c.Strategies) > 1 {
		fmt.Fprintln(out)
		if err := WriteComparison(out, list); err != nil {
			return err
		}
	}
	if plot == "" {
		return nil
	}
	if err := Plot(plot, list); err != nil {
		return errPlot.Wrap(err, plot)
	}
	return nil
}

func (c *Campaign) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.dir, path)
}

// parseModels parses names of memory models that are joined by plus signs.
func parseModels(text string) (list []memmodel.Model, known bool) {
	for _, name := range strings.Split(text, "+") {
		m, known := memmodel.Parse(name)
		if !known {
			return nil, false
		}
		list = append(list, m)
	}
	return list, true
}

// prepare returns the name of a program, its arguments, and a digest of both and of its file.
func (c *Campaign) prepare(p Program) (name string, args []string, digest string, err error) {
	name = p.Name
	args = slices.Clone(p.Command)
	if p.Bug != "" {
		if args, err = buildBug(p.Bug); err != nil || args == nil {
			return "", nil, "", errProgram.Wrap(cmp.Or(err, fs.ErrNotExist), p.Bug)
		}
		if p.N > 0 {
			args = append(args, fmt.Sprint(p.N))
		}
		if name == "" {
			name = strings.Join(append([]string{p.Bug}, args[1:]...), " ")
		}
	} else if args[0] = c.resolve(args[0]); name == "" {
		name = filepath.Base(args[0])
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return "", nil, "", errProgram.Wrap(err, args[0])
	}
	h := sha256.New()
	h.Write(text)
	fmt.Fprintf(h, "%q", args[1:])
	return name, args, hex.EncodeToString(h.Sum(nil)[:8]), nil
}

func buildBug(name string) ([]string, error) {
	list, err := bugs.All()
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if p.Name == name {
			path, err := p.Build(true, "-static")
			return []string{path}, err
		}
	}
	return nil, nil
}

// Run carries out the searches of which no result is stored, and returns all results. Say is called with a line
// for each.
func (c *Campaign) Run(ctx context.Context, say func(string)) ([]Result, error) {
	known, text, err := c.stored()
	if err != nil {
		return nil, err
	}
	var list []Result
	for _, p := range c.Programs {
		name, args, digest, err := c.prepare(p)
		if err != nil {
			return list, err
		}
		for _, x := range c.searches(name, digest) {
			r, stored := known[x]
			if !stored {
				if r, err = c.searchFor(ctx, args, x); err != nil {
					return list, err
				}
				line, _ := json.Marshal(r) // plain data
				text = append(append(text, line...), '\n')
				if err := outfile.WriteBytes(c.Results, text); err != nil {
					return list, errResults.Wrap(err, c.Results)
				}
				say(r.String())
			}
			list = append(list, r)
		}
	}
	return list, nil
}

// String describes a result in a line.
func (r Result) String() string {
	text := "no failure in"
	if r.Found {
		text = r.Failure + " in"
	}
	return fmt.Sprintf("%s, %s under %s, seed %d: %s %d schedules", r.Program, r.Strategy, r.Models, r.Seed, text, r.Schedules)
}

// searches lists the searches of a program.
func (c *Campaign) searches(name, digest string) (list []Result) {
	for _, models := range c.Models {
		for _, strategy := range c.Strategies {
			for trial := range c.Trials {
				list = append(list, Result{
					Program: name, Digest: digest, Strategy: strategy, Models: models, Seed: c.Seed + uint64(trial),
					Limit: c.Schedules, Outputs: c.Outputs,
				})
			}
		}
	}
	return list
}

// searchFor carries out the search of a result.
func (c *Campaign) searchFor(ctx context.Context, args []string, x Result) (Result, error) {
	o := Search{Args: args, Seed: x.Seed, Schedules: x.Limit, Outputs: x.Outputs, Workers: c.Workers}
	o.Models, _ = parseModels(x.Models) // Load has checked them
	if x.Strategy != all {
		o.Strategies = []string{x.Strategy}
	}
	tried, failure, err := c.search(ctx, o)
	x.Schedules, x.Found, x.Failure = max(1, tried), failure != "", failure
	return x, err
}

// stored reads the results that are stored, and the text of their file.
func (c *Campaign) stored() (known map[Result]Result, text []byte, err error) {
	known = map[Result]Result{}
	text, err = os.ReadFile(c.Results)
	if os.IsNotExist(err) {
		return known, nil, nil
	}
	if err != nil {
		return nil, nil, errResults.Wrap(err, c.Results)
	}
	for line := range bytes.Lines(text) {
		var r Result
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, nil, errResults.Wrap(err, c.Results)
		}
		known[r.key()] = r
	}
	return known, text, nil
}
