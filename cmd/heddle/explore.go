package main

import (
	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/cmd/heddle/exploration"
)

func (a *app) exploreCommand() *cobra.Command {
	var f runFlags
	c, x := exploration.New()
	addMachineFlags(c.Flags(), groupMachine, groupFiles, groupLimits)
	addInputFlags(c.Flags(), &f)
	c.RunE = func(c *cobra.Command, args []string) error {
		j, stdin, err := a.open(c.Context(), c.Flags(), f, args)
		if err != nil {
			return err
		}
		defer stdin.Close()
		progress := &liveLine{app: a, terminal: a.onTerminal()}
		err = x.Run(c.Context(), j.Config(), stdin.Reader, a.stdout, progress.print, progress.end)
		a.status = x.Status(interrupted(c.Context()))
		return err
	}
	return c
}
