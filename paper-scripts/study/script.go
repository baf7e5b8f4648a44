package study

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/experiments/table"
)

// Script is the command line of a paper's tables and figures.
type Script struct {
	Name, Short string
	Artefacts   []Artefact
	format      string
}

// Artefact is a table or figure of the paper.
type Artefact struct {
	Name, Title string
	Measure     func(context.Context) (*table.Table, error)
}

// Main runs the command line of the process, with flags besides --format.
func (s *Script) Main(flags func(*pflag.FlagSet)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	c := s.command(os.Stdout)
	flags(c.Flags())
	err := c.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
		os.Exit(1)
	}
}

func (s *Script) names() []string {
	list := []string{"all"}
	for _, a := range s.Artefacts {
		list = append(list, a.Name)
	}
	return list
}

func (s *Script) command(out io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:   s.Name + " [flags] " + strings.Join(s.names(), "|") + " ...",
		Short: s.Short,
		Args:  cobra.MatchAll(cobra.MinimumNArgs(1), cobra.OnlyValidArgs), ValidArgs: s.names(),
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error { return s.run(c.Context(), out, args) },
	}
	c.Flags().StringVar(&s.format, "format", table.Text, "`FORMAT` of the output: "+strings.Join(table.Formats(), ", "))
	return c
}

func (s *Script) run(ctx context.Context, out io.Writer, wanted []string) error {
	if !slices.Contains(table.Formats(), s.format) {
		return fmt.Errorf("--format %s: one of %s", s.format, strings.Join(table.Formats(), ", "))
	}
	for _, a := range s.Artefacts {
		if !slices.Contains(wanted, a.Name) && !slices.Contains(wanted, "all") {
			continue
		}
		t, err := a.Measure(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		if s.format == table.Text {
			fmt.Fprintf(out, "\n%s\n\n", a.Title)
		}
		if err := t.Write(out, s.format); err != nil {
			return err
		}
	}
	return nil
}
