package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/outfile"
)

// manCommand writes the man pages: `make man`.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write man pages of all commands to a folder",
		Args:  func(c *cobra.Command, args []string) error { return command.OneName(c, args, "folder") },
		RunE: func(c *cobra.Command, args []string) error {
			paths, err := cli.WriteManPages(args[0], c.Root(), versionLine(), outfile.WriteBytes)
			if err != nil {
				return command.ErrWriteFile.Wrap(command.Reason(err), args[0])
			}
			fmt.Fprintf(a.stdout, "%d man pages in %s\n", len(paths), args[0])
			return nil
		},
	}
}
