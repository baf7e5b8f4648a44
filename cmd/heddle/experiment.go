package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/experiments/find"
	"github.com/heddle-dmt/heddle/experiments/sweep"
	"github.com/heddle-dmt/heddle/experiments/sweep/table"
	"github.com/heddle-dmt/heddle/internal/errs"
)

var errTableFormat = errs.Define("table-format",
	"--format is {found}; allowed: {allowed}",
	"heddle experiment table was asked for a format that it does not have.",
	"Use one of the formats in the sentence.")

func (a *app) experimentCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "experiment",
		Short: "Sweep programs over a grid of parameters",
		Args:  ofCommands,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.experimentRunCommand(), a.experimentTableCommand(), a.experimentValidateCommand(), a.experimentInitCommand(), a.campaignCommand())
	return c
}

func (a *app) experimentRunCommand() *cobra.Command {
	var o sweep.Options
	c := &cobra.Command{
		Use:   "run FILE.yaml",
		Short: "Carry out the runs of an experiment that are not stored yet",
		Long: `Carry out the runs of an experiment that are not stored yet, each in a process of
its own, and store results as they finish. After an interruption the same
command continues where it stopped.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error { return a.experimentRun(c.Context(), args[0], o) },
	}
	addStoreFlag(c, &o)
	c.Flags().IntVar(&o.Workers, "workers", 0, "`N` runs at a time (default: the file's value, or one for each processor)")
	c.Flags().BoolVar(&o.Again, "again", false, "carry out what is stored too, and compare")
	return c
}

func (a *app) campaignCommand() *cobra.Command {
	var plot string
	c := &cobra.Command{
		Use:   "campaign FILE.yaml",
		Short: "Compare strategies of heddle find on programs that fail",
		Long: `Compare strategies of heddle find: each searches each program several times. Results
are stored as searches end, and the same command continues where it stopped. Tables
of the schedules to the first failure and of log-rank tests are printed.`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			err := find.Campaign(c.Context(), args[0], plot, a.stdout, a.stderr)
			if status, ok := interrupted(c.Context()); ok && errors.Is(err, context.Canceled) {
				a.status, err = status, nil
			}
			return err
		},
	}
	c.Flags().StringVar(&plot, "plot", "", "write a plot of the failures found over schedules to `FILE.svg`")
	return c
}

func addStoreFlag(c *cobra.Command, o *sweep.Options) {
	c.Flags().StringVar(&o.Store, "store", "", "`FILE` of the results (default: the experiment's, or results/NAME.sqlite)")
}

func (a *app) experimentRun(ctx context.Context, path string, o sweep.Options) error {
	x, err := sweep.Load(path)
	if err != nil {
		return err
	}
	o.Progress = sweep.NewProgress(a.stderr)
	summary, err := x.Sweep(ctx, o)
	for _, row := range summary.Damaged {
		a.say("%s; its run is carried out again", row)
	}
	if status, ok := interrupted(ctx); ok && errors.Is(err, context.Canceled) {
		a.say("interrupted; %d of %d runs are stored, and the same command continues from there",
			summary.Stored+summary.Ran-summary.Failed, summary.Total)
		a.status = status
		return nil
	}
	if err != nil {
		return err
	}
	return summary.Err()
}

func (a *app) experimentTableCommand() *cobra.Command {
	var o sweep.Options
	var format string
	c := &cobra.Command{
		Use:   "table FILE.yaml",
		Short: "Print the stored results of an experiment, grouped over seeds",
		Args:  oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(table.Formats(), format) {
				return errTableFormat.New(fmt.Sprintf("%q", format), strings.Join(table.Formats(), ", "))
			}
			x, err := sweep.Load(args[0])
			if err != nil {
				return err
			}
			t, err := x.Table(o)
			if err != nil {
				return err
			}
			return t.Write(a.stdout, format)
		},
	}
	addStoreFlag(c, &o)
	c.Flags().StringVar(&format, "format", table.Text, "`FORMAT` of the table: "+strings.Join(table.Formats(), ", "))
	return c
}

func (a *app) experimentValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE.yaml...",
		Short: "Check experiment files without running anything",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errUsage.New("no file is named", c.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			for _, path := range args {
				x, err := sweep.Load(path)
				if err != nil {
					return err
				}
				fmt.Fprintln(a.stdout, x.Describe())
			}
			return nil
		},
	}
}

func (a *app) experimentInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init FILE.yaml",
		Short: "Write a commented example of an experiment file",
		Args:  oneFile,
		RunE:  func(_ *cobra.Command, args []string) error { return sweep.WriteExample(args[0]) },
	}
}
