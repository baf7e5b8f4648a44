package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of heddle and of what it was built with",
		Args:  command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(a.stdout, "heddle %s\ngo %s\n", version(), runtime.Version())
			return nil
		},
	}
}

// versionLine is the text of --version.
func versionLine() string { return "heddle " + version() }

// version is the release, or the commit that heddle was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "built from source"
}

// workerCommand is a hidden command for a worker process: package worker.
func (a *app) workerCommand(name string, serve func(stdin io.Reader, stdout io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use:    name,
		Hidden: true,
		Args:   command.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return serve(a.stdin, a.stdout) },
	}
}
