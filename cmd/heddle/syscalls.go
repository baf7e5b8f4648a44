package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/guest/kernel"
)

func (a *app) syscallsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "syscalls",
		Short: "Print which Linux system calls the machine has",
		Long: `Print the table of system calls: number, name, how much of it the machine has
(full, partial, unsupported, missing) and, where partial, what is left out.
Unsupported calls answer ENOSYS, as on a Linux without them, which libc and
programs know; one that is missing stops the run. Numbers that are not in the
table are none of Linux's and answer ENOSYS.`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			counts := map[string]int{}
			table := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
			fmt.Fprintln(table, "NUMBER\tNAME\tSUPPORT\tNOTE")
			for _, call := range kernel.Syscalls() {
				support := fmt.Sprint(call.Support)
				counts[support]++
				fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", call.Number, call.Name, support, call.Note)
			}
			fmt.Fprintf(table, "\n%d full, %d partial, %d unsupported, %d missing\n",
				counts["full"], counts["partial"], counts["unsupported"], counts["missing"])
			return table.Flush()
		},
	}
}
