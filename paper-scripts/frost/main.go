// Command frost measures what Frost's table 2 and figures 4 and 7 show, with the
// suite's programs in place of the paper's, and prints the paper's numbers beside
// ours (K. Veeraraghavan and others, Detecting and surviving data races using
// complementary schedules, SOSP 2011).
//
//	go run ./paper-scripts/frost all
//	go run ./paper-scripts/frost --trials 100 table2
//
// Execution times are virtual: cycles of the timing model (docs/scheduling.md), and
// the pipeline of epochs is modelled (docs/frost.md).
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/experiments/table"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(os.Stdout, os.Stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "frost:", err)
		os.Exit(1)
	}
}

// settings are the command line's.
type settings struct {
	trials   int
	format   string
	only     []string
	progress io.Writer
}

// artefact is a table or figure of the paper.
type artefact struct {
	name, title string
	measure     func(context.Context, *settings) (*table.Table, error)
}

var artefacts = []artefact{
	{"table2", "Table 2: data race detection and survival", table2},
	{"figure4", "Figure 4: execution time with cores to spare, more than without Frost", figure4},
	{"figure7", "Figure 7: work of all replicas by sampling rate, more than without Frost", figure7},
}

func names() []string {
	list := []string{"all"}
	for _, a := range artefacts {
		list = append(list, a.name)
	}
	return list
}

func command(out, progress io.Writer) *cobra.Command {
	s := &settings{progress: progress}
	c := &cobra.Command{
		Use:   "frost [flags] " + strings.Join(names(), "|") + " ...",
		Short: "Measure Frost's table 2 and figures 4 and 7",
		Args:  cobra.MatchAll(cobra.MinimumNArgs(1), cobra.OnlyValidArgs), ValidArgs: names(),
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error { return run(c.Context(), out, s, args) },
	}
	f := c.Flags()
	f.IntVar(&s.trials, "trials", 5, "`N` seeds for each program, as many as in the paper (table2)")
	f.StringVar(&s.format, "format", table.Text, "`FORMAT` of the output: "+strings.Join(table.Formats(), ", "))
	f.StringSliceVar(&s.only, "only", nil, "`PROGRAMS` of the suite to take, and no others")
	return c
}

func run(ctx context.Context, out io.Writer, s *settings, wanted []string) error {
	if !slices.Contains(table.Formats(), s.format) {
		return fmt.Errorf("--format %s: one of %s", s.format, strings.Join(table.Formats(), ", "))
	}
	for _, a := range artefacts {
		if !slices.Contains(wanted, a.name) && !slices.Contains(wanted, "all") {
			continue
		}
		t, err := a.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		if s.format == table.Text {
			fmt.Fprintf(out, "\n%s\n\n", a.title)
		}
		if err := t.Write(out, s.format); err != nil {
			return err
		}
	}
	return nil
}

// wants tells whether a program is to be measured.
func (s *settings) wants(name string) bool { return len(s.only) == 0 || slices.Contains(s.only, name) }
