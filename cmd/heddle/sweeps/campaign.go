package sweeps

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/experiments/find"
)

func (p *Program) campaignCommand() *cobra.Command {
	var plot string
	c := &cobra.Command{
		Use:   "campaign FILE.yaml",
		Short: "Compare strategies of heddle find on programs that fail",
		Long: `Compare strategies of heddle find: each searches each program several times. Results
are stored as searches end, and the same command continues where it stopped. Tables
of the schedules to the first failure and of log-rank tests are printed.`,
		Args: p.OneFile,
		RunE: func(c *cobra.Command, args []string) error {
			err := find.Campaign(c.Context(), args[0], plot, p.Stdout, p.Stderr)
			if status, ok := p.Interrupted(c.Context()); ok && errors.Is(err, context.Canceled) {
				p.SetStatus(status)
				err = nil
			}
			return err
		},
	}
	c.Flags().StringVar(&plot, "plot", "", "write a plot of the failures found over schedules to `FILE.svg`")
	return c
}
