package traces

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/recorder/flow"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var (
	errOneOf = errs.Define("flow-of-what",
		"either --core or --thread is needed, and not both",
		"The flow of instructions is that of one core or of one thread.",
		"Give one of the two flags.")
	errNoCore = errs.Define("trace-no-such-core",
		"the trace {file} has no branches of core {core}; it has those of the cores {cores}",
		"The machine of the recorded run has no core of that number, or the core ran no thread.",
		"Name a core that the sentence lists.")
	errNoThread = errs.Define("trace-no-such-thread",
		"the trace {file} has no thread {thread}; it has: {threads}",
		"The recorded run has no thread of that number.",
		"Name a thread that the sentence lists.")
)

func flowCommand(o command.Output) *cobra.Command {
	core, thread, form := int32(-1), int32(0), flowForm{}
	c := &cobra.Command{
		Use: "flow --core N|--thread ID [flags] TRACE", Short: "Print the instructions that a core or a thread executed", Args: command.OneFile,
		Long: `Print the instructions that a core or a thread executed, as the branch trace
has them: a line for each straight run, with core, thread, address and number of
instructions, or with --instructions a line for each address.`,
		Example: `  heddle trace flow --thread 1001 run.trace | head`,
		RunE: func(_ *cobra.Command, args []string) error {
			if (core < 0) == (thread == 0) {
				return errOneOf.New()
			}
			return command.WithTrace(args[0], func(r *trace.Reader) error {
				if core >= 0 {
					if ids := r.IDs(trace.PT); len(ids) > 0 && !slices.Contains(ids, uint32(core)) {
						return errNoCore.New(args[0], core, listNumbers(ids))
					}
					return printFlow(o.Stdout, flow.Core(r, arch.CoreID(core)), form)
				}
				if err := checkThread(r, args[0], thread); err != nil {
					return err
				}
				return printFlow(o.Stdout, flow.Thread(r, arch.ThreadID(thread)), form)
			})
		},
	}
	c.Flags().Int32Var(&core, "core", -1, "the core `N`")
	c.Flags().Int32Var(&thread, "thread", 0, "the thread `ID`")
	for _, name := range []string{"core", "thread"} {
		cli.SetDefault(c.Flags(), name, "none")
	}
	c.Flags().BoolVar(&form.each, "instructions", false, "a line for each instruction")
	c.Flags().BoolVar(&form.count, "count", false, "only how many instructions there are")
	return c
}

// checkThread returns an error if a recorded run has no such thread.
func checkThread(r *trace.Reader, file string, thread int32) error {
	var threads []arch.ThreadID
	for start, err := range trace.Get[event.Start](r, trace.Key{Kind: trace.Threads}, trace.Where{}) {
		if err != nil {
			return err
		}
		if start.Thread == arch.ThreadID(thread) {
			return nil
		}
		threads = append(threads, start.Thread)
	}
	return errNoThread.New(file, thread, listNumbers(threads))
}

// listNumbers lists numbers in a sentence; of many only the first.
func listNumbers[T ~uint32 | ~int32](numbers []T) string {
	const most = 20
	var list []string
	for _, n := range numbers[:min(len(numbers), most)] {
		list = append(list, fmt.Sprint(n))
	}
	if len(numbers) > most {
		list = append(list, "...")
	}
	return strings.Join(list, ", ")
}

// flowForm is how a flow is printed.
type flowForm struct{ each, count bool }

func printFlow(to io.Writer, pieces iter.Seq2[flow.Piece, error], form flowForm) error {
	if form.count {
		return countFlow(to, pieces)
	}
	out := bufio.NewWriterSize(to, 1<<16)
	var addresses []uint64
	for p, err := range pieces {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		if !form.each {
			fmt.Fprintf(out, "core %d thread %d %#x %d\n", p.Core, p.Thread, p.Addr, p.Count)
			continue
		}
		addresses = p.AppendAddresses(addresses[:0])
		for _, addr := range addresses {
			fmt.Fprintf(out, "core %d thread %d %#x\n", p.Core, p.Thread, addr)
		}
	}
	return out.Flush()
}

func countFlow(to io.Writer, pieces iter.Seq2[flow.Piece, error]) error {
	n := uint64(0)
	for p, err := range pieces {
		if err != nil {
			return err
		}
		n += uint64(p.Count)
	}
	fmt.Fprintln(to, n)
	return nil
}
