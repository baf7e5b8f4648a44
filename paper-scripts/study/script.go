package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/plots/draw"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/paper-scripts/sheet"
)

// Script is the command line of a paper's tables and figures.
type Script struct {
	Name, Short string
	Artefacts   []Artefact
	// Progress gets a line for each step of long work; nil is standard error.
	Progress io.Writer

	format, store, config string
	stored, again         bool
	done                  map[*Artefact]*table.Table // by the artefact that others are laid out from
}

// Artefact is a table or figure of the paper. It has a Plan, or a Measure, or is laid out
// from the table of another artefact.
type Artefact struct {
	Name, Title string
	// Config is the configuration file that Plan reads unless --config names
	// another.
	Config string
	// Plan lays the table out; its rows are measured and stored one by one.
	Plan func(*Options) (*Plan, error)
	// Measure makes the table in one piece.
	Measure func(context.Context) (*table.Table, error)
	// Of is the artefact that Lay lays it out from. It is measured and stored once, for
	// all that are.
	Of  *Artefact
	Lay func(*Options, *table.Table) (*table.Table, error)
	// Pairs are columns to compare besides those whose keys are KEY and paper_KEY.
	Pairs []sheet.Pair
	// Chart draws the table, if it is a figure.
	Chart *sheet.Chart
}

// JSON is the format of sheets, besides those of tables.
const JSON = "json"

// outputFormats lists the formats, the default first.
func outputFormats() []string { return append(table.Formats(), JSON) }

// Options are the parts of the command line that a Plan gets.
type Options struct {
	// Config is the name of the configuration file, and Flags the command line's,
	// which override its fields.
	Config string
	Flags  *pflag.FlagSet
	// Progress gets a line for each step of long work.
	Progress io.Writer
}

// Say reports progress.
func (o *Options) Say(format string, args ...any) { fmt.Fprintf(o.Progress, format+"\n", args...) }

// Main runs the command line of the process, with flags besides the script's own.
func (s *Script) Main(flags func(*pflag.FlagSet)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := s.Run(ctx, os.Stdout, os.Args[1:], flags)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
		os.Exit(1)
	}
}

// Run runs a command line.
func (s *Script) Run(ctx context.Context, out io.Writer, args []string, flags func(*pflag.FlagSet)) error {
	c := s.newCommand(out)
	flags(c.Flags())
	c.SetArgs(args)
	err := c.ExecuteContext(ctx)
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted; the finished rows are stored, and the same command continues with the others")
	}
	return err
}

func (s *Script) artefactNames() []string {
	list := []string{"all"}
	for _, a := range s.Artefacts {
		list = append(list, a.Name)
	}
	return list
}

func (s *Script) newCommand(out io.Writer) *cobra.Command {
	if s.Progress == nil {
		s.Progress = os.Stderr
	}
	c := &cobra.Command{
		Use:   s.Name + " [flags] " + strings.Join(s.artefactNames(), "|") + " ...",
		Short: s.Short,
		Long:  s.Short + ", and print the paper's numbers beside ours.\n\n" + s.helpText(),
		Args:  cobra.MatchAll(cobra.MinimumNArgs(1), cobra.OnlyValidArgs), ValidArgs: s.artefactNames(),
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error { return s.runCommand(c, out, args) },
	}
	c.SetOut(out)
	f := c.Flags()
	f.StringVar(&s.format, "format", table.Text, "`FORMAT` of the output: "+strings.Join(outputFormats(), ", "))
	f.StringVar(&s.store, "store", filepath.Join("results", s.Name), "`FOLDER` of results and figures")
	f.BoolVar(&s.stored, "stored", false, "print the stored rows and run nothing")
	f.BoolVar(&s.again, "again", false, "measure stored rows anew")
	f.StringVar(&s.config, "config", "", "`FILE` to read instead of the configuration file of what is measured")
	return c
}

// helpText lists the artefacts.
func (s *Script) helpText() string {
	var b strings.Builder
	for _, a := range s.Artefacts {
		fmt.Fprintf(&b, "  %-10s %s", a.Name, a.Title)
		if config := a.measuredArtefact().Config; config != "" {
			fmt.Fprintf(&b, " (%s)", config)
		}
		b.WriteByte('\n')
	}
	b.WriteString("\nEach row is stored when it is finished; a stored row is measured again only if the\n" +
		"program, the configuration or this command has changed. Figures are drawn beside the results,\n" +
		"as SVG and PNG.")
	return b.String()
}

func (s *Script) runCommand(c *cobra.Command, out io.Writer, wanted []string) error {
	switch {
	case !slices.Contains(outputFormats(), s.format):
		return fmt.Errorf("--format %s: one of %s", s.format, strings.Join(outputFormats(), ", "))
	case s.stored && s.again:
		return errors.New("--stored prints the stored rows, and --again measures them anew: use one of them")
	}
	s.done = map[*Artefact]*table.Table{}
	var sheets []*sheet.Sheet
	for _, a := range s.Artefacts {
		if !slices.Contains(wanted, a.Name) && !slices.Contains(wanted, "all") {
			continue
		}
		t, err := s.artefactTable(c, &a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		made := sheet.New(a.Name, a.Title, t, a.Pairs, a.Chart)
		made.Config = s.optionsFor(c, &a).Config
		if s.format == JSON {
			sheets = append(sheets, made)
			continue
		}
		if s.format == table.Text {
			fmt.Fprintf(out, "\n%s\n\n", a.Title)
		}
		if err := t.Write(out, s.format); err != nil {
			return err
		}
		if err := s.drawFigure(&a, made); err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
	}
	if s.format == JSON {
		return sheet.Write(out, sheets)
	}
	return nil
}

// measuredArtefact is the artefact that is measured for another.
func (a *Artefact) measuredArtefact() *Artefact {
	if a.Of != nil {
		return a.Of
	}
	return a
}

// optionsFor are the options that an artefact gets.
func (s *Script) optionsFor(c *cobra.Command, a *Artefact) *Options {
	o := &Options{Config: a.measuredArtefact().Config, Flags: c.Flags(), Progress: s.Progress}
	if s.config != "" {
		o.Config = s.config
	}
	return o
}

// artefactTable is the table of an artefact.
func (s *Script) artefactTable(c *cobra.Command, a *Artefact) (*table.Table, error) {
	if a.Of == nil {
		return s.measureTable(c, a)
	}
	if s.done[a.Of] == nil {
		t, err := s.measureTable(c, a.Of)
		if err != nil {
			return nil, err
		}
		s.done[a.Of] = t
	}
	return a.Lay(s.optionsFor(c, a), s.done[a.Of])
}

// measureTable is the stored table of an artefact, or one that is measured as far as it is
// not stored.
func (s *Script) measureTable(c *cobra.Command, a *Artefact) (*table.Table, error) {
	file := s.resultFile(a, "json")
	old, err := loadTable(file)
	switch {
	case s.stored && errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("nothing is stored in %s: measure it without --stored", file)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, err
	case s.stored:
		return old.toTable(), nil
	case s.again:
		old = &storedTable{}
	}
	if a.Plan == nil {
		return s.measureWhole(c, a, old, file)
	}
	o := s.optionsFor(c, a)
	plan, err := a.Plan(o)
	if err != nil {
		return nil, err
	}
	return plan.measureRows(c.Context(), o, old, file)
}

// measureWhole measures an artefact in one piece, unless it is stored.
func (s *Script) measureWhole(c *cobra.Command, a *Artefact, old *storedTable, file string) (*table.Table, error) {
	var given []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"format", "store", "again"}, f.Name) {
			given = append(given, f.Name+"="+f.Value.String())
		}
	})
	id, err := resultIdentity(given)
	if err != nil {
		return nil, err
	}
	if len(old.Rows) > 0 && old.Rows[0].Key == id {
		return old.toTable(), nil
	}
	t, err := a.Measure(c.Context())
	if err != nil {
		return nil, err
	}
	r := &storedTable{Head: t.Head, Notes: t.Notes}
	for _, cells := range t.Rows {
		r.Rows = append(r.Rows, storedRow{Key: id, Cells: cells})
	}
	return t, r.saveTo(file)
}

// drawFigure draws a figure beside its result.
func (s *Script) drawFigure(a *Artefact, made *sheet.Sheet) error {
	p, err := made.Plot()
	if p == nil || err != nil {
		return err
	}
	for _, form := range []string{"svg", "png"} {
		file := s.resultFile(a, form)
		if err := outfile.Write(file, func(w io.Writer) error { return draw.Write(w, *p, form) }); err != nil {
			return fmt.Errorf("draw %s: %w", file, err)
		}
		fmt.Fprintf(s.Progress, "drawn: %s\n", file)
	}
	return nil
}

func (s *Script) resultFile(a *Artefact, ending string) string {
	return filepath.Join(s.store, a.Name+"."+ending)
}
