// Command papers measures all tables and figures of PEREGRINE, TERN, Frost and H3 and makes one report of them, as an
// HTML page and a PDF, with the papers' own numbers beside ours, the ratios, and the reasons for differences.
//
//	make papers
//	heddle papers --quick
//	heddle papers peregrine/table4 frost
//
// configs/papers/steps.yaml lists the steps: each is a call of a program under paper-scripts, which stores its rows as they
// are finished. Steps that measure the host's time run alone, all others side by side; one that fails does not stop
// the others.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/paper-scripts/papers/report"
)

// The exit statuses: steps failed, heddle itself failed or was used wrongly, an interruption.
const (
	exitSteps       = 1
	exitFailure     = 125
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Stderr, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "heddle: %v\n", err)
	}
	os.Exit(statusOf(err))
}

func statusOf(err error) int {
	switch failed := (failedSteps{}); {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &failed):
		return exitSteps
	}
	return exitFailure
}

// failedSteps are the failures of steps of a report that was made.
type failedSteps struct {
	failures []string
	of       int
}

func (f failedSteps) Error() string {
	return fmt.Sprintf("%d of %d steps failed:\n  %s", len(f.failures), f.of, strings.Join(f.failures, "\n  "))
}

var errInterrupted = errors.New("interrupted; the finished rows are stored, and the same command continues with the others")

// options are those of the command line.
type options struct {
	quick, paper, stored, keep, documents bool
	store, output                         string
	parallel                              int
}

// run runs a command line.
func run(ctx context.Context, out, progress io.Writer, args []string) error {
	o := &options{}
	c := &cobra.Command{
		Use:   "heddle papers [flags] [PAPER|PAPER/TABLE]...",
		Short: "Measure all tables and figures of the papers, and make a report of them",
		Long: `Measure the tables and figures of PEREGRINE, TERN, Frost and H3, and a comparison of systems for
deterministic multithreading (dmt), all or those that are named, and make a report of them: report.html, one
page that needs no other file, and report.pdf. Each has the paper's own numbers beside ours, the ratio of the
two, and the reasons for what differs by more than two times.

Steps run side by side, but for those that measure the host's time. Finished rows are stored: after an
interruption the same command continues. A step that fails does not stop the others; the report says so,
and the exit status is 1; it is 125 if the command line or a file is wrong.`,
		Example: `  heddle papers --quick
  heddle papers peregrine/table4 frost
  heddle papers --stored`,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(_ *cobra.Command, args []string) error { return o.run(ctx, out, progress, args) },
	}
	f := c.Flags()
	f.BoolVar(&o.quick, "quick", false, "fewer and smaller runs: less than 20 minutes on two cores")
	f.BoolVar(&o.paper, "paper", false, "as many and as large runs as the papers have: many hours")
	f.StringVar(&o.store, "store", "", "`FOLDER` of results, logs and the report (default results/papers/SIZE)")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` of the report, whose name ends in .html; the PDF is beside it (default report.html in the folder of results)")
	f.IntVar(&o.parallel, "parallel", runtime.NumCPU(), "`N` steps at the same time")
	f.BoolVar(&o.stored, "stored", false, "make the report of what is stored, and run nothing")
	f.BoolVar(&o.keep, "keep", false, "also write the results to paper-scripts/results and the tables of docs")
	f.BoolVar(&o.documents, "documents", false, "only write the tables of docs, from paper-scripts/results")
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		problem := cli.ExplainFlagError(c, err)
		if problem.Flag != "" {
			return fmt.Errorf("--%s is %s; allowed: %s", problem.Flag, problem.Found, problem.Allowed)
		}
		return fmt.Errorf("%s; see `heddle papers --help`", problem.Text)
	})
	c.SetHelpFunc(func(c *cobra.Command, _ []string) { cli.WriteHelp(c.OutOrStdout(), c) })
	c.SetArgs(args)
	c.SetOut(out)
	c.SetErr(progress)
	err := c.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

func (o *options) size() string {
	switch {
	case o.quick:
		return sizeQuick
	case o.paper:
		return sizePaper
	}
	return sizeDefault
}

// check returns the first error of the command line.
func (o *options) check() error {
	switch {
	case o.quick && o.paper:
		return errors.New("--quick and --paper are two sizes: use one of them")
	case o.parallel < 1:
		return fmt.Errorf("--parallel is %d; allowed: at least 1", o.parallel)
	case o.output != "" && filepath.Ext(o.output) != ".html":
		return fmt.Errorf("--output is %s; allowed: a name that ends in .html", o.output)
	}
	return nil
}

func (o *options) run(ctx context.Context, out, to io.Writer, wanted []string) error {
	if err := o.check(); err != nil {
		return err
	}
	root, err := findRoot()
	if err != nil {
		return err
	}
	if o.documents {
		return writeDocuments(root, out)
	}
	p, err := load(root, wanted)
	if err != nil {
		return err
	}
	programs, err := findPrograms(p)
	if err != nil {
		return err
	}
	if o.store == "" {
		o.store = filepath.Join("results", "papers", o.size())
	}
	if o.store, err = filepath.Abs(o.store); err != nil {
		return err
	}
	if o.output == "" {
		o.output = filepath.Join(o.store, "report.html")
	}
	if err := os.MkdirAll(o.store, 0o755); err != nil {
		return fmt.Errorf("the folder of results: %w", err)
	}
	r := &runner{
		root: root, programs: programs, store: o.store, size: o.size(), parallel: o.parallel, stored: o.stored,
		progress: &progress{to: to, terminal: isTerminal(to)},
	}
	about := describeHost(o.size(), o.parallel, time.Now())
	tasks := p.tasks(o.size(), wanted)
	if err := r.runAll(ctx, tasks); err != nil {
		return err
	}
	made := p.report(o.size(), about, tasks)
	if err := o.write(made, out); err != nil {
		return err
	}
	if o.keep {
		if err := keepResults(root, tasks); err != nil {
			return err
		}
		if err := writeDocuments(root, out); err != nil {
			return err
		}
	}
	if failed := made.Failures(); len(failed) > 0 {
		return failedSteps{failed, len(tasks)}
	}
	return nil
}

// report has the results of tasks.
func (p *plan) report(size string, about []string, tasks []*task) *report.Report {
	made := &report.Report{Size: size, About: about}
	for i := range p.Papers {
		x := &p.Papers[i]
		section := &report.Paper{Program: x.Program, Title: x.Title, Citation: x.Citation, Why: x.Why}
		for _, t := range tasks {
			if t.paper == x && t.result != nil {
				section.Results = append(section.Results, t.result)
			}
		}
		if len(section.Results) > 0 {
			made.Papers = append(made.Papers, section)
		}
	}
	return made
}

// write writes the report's files.
func (o *options) write(made *report.Report, out io.Writer) error {
	pdf := strings.TrimSuffix(o.output, ".html") + ".pdf"
	for _, x := range []struct {
		file  string
		write func(io.Writer) error
	}{{o.output, made.WriteHTML}, {pdf, made.WritePDF}} {
		if err := outfile.Write(x.file, x.write); err != nil {
			return fmt.Errorf("the report %s: %w; `--stored` makes it again of the stored results", x.file, err)
		}
		fmt.Fprintln(out, x.file)
	}
	return nil
}

// describeHost has the sentences about a report's runs.
func describeHost(size string, parallel int, now time.Time) []string {
	list := []string{fmt.Sprintf("Made on %s with heddle, at the size %s, on a host with %d cores, up to %d steps at the same time.", now.Format("2 January 2006"), size, runtime.NumCPU(), parallel)}
	if size == sizeQuick {
		list = append(list, "This is the quick size: fewer and smaller runs than the papers have, so that rates are coarse.")
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 0 {
			list = append(list, fmt.Sprintf("The host's load average was %s at the start. Virtual times and counts do not depend on it; the host's times do.", fields[0]))
		}
	}
	return list
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
