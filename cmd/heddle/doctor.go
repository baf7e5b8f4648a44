package main

import (
	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/cmd/heddle/doctor"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the host's libraries, versions and limits",
		Long: `Check the host's libraries, versions and limits, and say what to do about each
that is not as it should be. The status is 1 when heddle cannot work.`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			works, err := doctor.Report(a.stdout, doctor.ThisHost())
			if !works {
				a.status = 1
			}
			return err
		},
	}
}
