package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/analyses/slice"
	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/experiments/window"
)

func (a *app) scheduleWindowCommand() *cobra.Command {
	var o window.Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "window [flags] TRACE",
		Short: "Slice a window of a server's run",
		Long: `Find which decisions on the requests of a window the order of its operations
depends on. The trace is of a stretch that begins with a request, by heddle record
--sync --inputs --from request:N --to request:M. The run is repeated up to the
stretch, and the process that read the request is followed through it.`,
		Example: `  heddle record -o web.trace --sync --inputs --from request:8080:10 --to request:8080:18 -- sh web.sh
  heddle schedule window web.trace
  heddle schedule window --state ap_threads_per_child --terms web.trace`,
		Args: command.OneFile,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := window.Make(c.Context(), args[0], o)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(a.stdout).Encode(r)
			}
			a.printWindow(r)
			return nil
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&o.State, "state", nil, "the variables `NAMES` of the program are inputs, too: state that earlier requests may have changed")
	flags.BoolVar(&o.Terms, "terms", false, "list the constraints that slicing with simplification keeps")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printWindow(r *window.Result) {
	fmt.Fprintf(a.stdout, "%s, process %d: %d threads, %d instructions, %d synchronization operations, %d bytes of input\n",
		r.Program, r.Process, r.Threads, r.Instructions, r.Operations, r.Inputs)
	fmt.Fprintf(a.stdout, "%d branches depend on them; followed in %.2f s of processor time\n", r.Branches, r.Followed.Seconds())
	for _, mode := range []slice.Mode{slice.Plain, slice.Simplified, slice.Lower, slice.TERN} {
		name := slice.Modes()[mode]
		fmt.Fprintf(a.stdout, "%-10s keeps %d, in %.2f s\n", name, r.Kept[name], r.Sliced[name].Seconds())
	}
	for _, term := range r.Terms {
		fmt.Fprintln(a.stdout, term)
	}
}
