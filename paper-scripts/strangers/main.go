// Command strangers runs every analysis over the programs of configs/strangers/programs.yaml, none of which was
// written for heddle, and prints a matrix of programs and analyses (docs/strangers.md).
//
//	go run ./paper-scripts/strangers
//	go run ./paper-scripts/strangers --program pigz --column races,frost
//	go run ./paper-scripts/strangers --stored --write docs/strangers.md
//
// Cells that are stored are not run again. After Ctrl-C the same command continues with the others.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/experiments/strangers"
	"github.com/heddle-dmt/heddle/internal/outfile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	c := newCommand(os.Stdout, os.Stderr)
	err := c.ExecuteContext(ctx)
	stop()
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted; finished cells are stored, and the same command continues with the others")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "strangers:", err)
		os.Exit(1)
	}
}

func newCommand(stdout, stderr io.Writer) *cobra.Command {
	var config, write string
	var stored, detectors bool
	o := strangers.Options{Progress: stderr}
	c := &cobra.Command{
		Use:   "strangers",
		Short: "Run every analysis over programs of Debian, and print a matrix",
		Args:  cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			corpus, err := strangers.Load(config)
			if err != nil {
				return err
			}
			if o.Heddle, err = filepath.Abs(o.Heddle); err != nil {
				return err
			}
			if detectors {
				list, err := corpus.CompareDetectors(c.Context(), o)
				if err != nil {
					return err
				}
				return strangers.WriteComparisons(stdout, list, true)
			}
			var m *strangers.Matrix
			if stored {
				m, err = corpus.Stored(o.Store, o.Published)
			} else {
				m, err = corpus.Run(c.Context(), o)
			}
			if err != nil {
				return err
			}
			if write != "" {
				if err := outfile.Write(o.Published, m.Publish); err != nil {
					return err
				}
				return outfile.Write(write, m.WriteDocument)
			}
			return m.Write(stdout)
		},
	}
	c.SetOut(stdout)
	c.SetErr(stderr)
	f := c.Flags()
	f.StringVar(&config, "config", "configs/strangers/programs.yaml", "`FILE` with the programs")
	f.StringVar(&o.Heddle, "heddle", "bin/heddle", "the `FILE` of heddle")
	f.StringVar(&o.Store, "store", "results/strangers", "`FOLDER` of the results")
	f.StringVar(&o.Published, "published", "docs/strangers.json", "`FILE` of published results, for those that the store does not have; --write writes it")
	f.StringSliceVar(&o.Programs, "program", nil, "`NAMES` of programs to run, and no others")
	f.StringSliceVar(&o.Columns, "column", nil, "`NAMES` of columns to run, and no others")
	f.BoolVar(&o.Again, "again", false, "run stored cells again")
	f.BoolVar(&o.Failed, "failed", false, "run stored cells that do not work again")
	f.IntVar(&o.Workers, "workers", 1, "`N` cells at a time; times are longer then")
	f.BoolVar(&stored, "stored", false, "run nothing: print what is stored")
	f.BoolVar(&detectors, "detectors", false, "compare heddle races with helgrind and drd on the installed programs instead, and print a table (docs/races.md)")
	f.StringVar(&write, "write", "", "write the page of the documentation to `FILE` instead of the matrix")
	return c
}
