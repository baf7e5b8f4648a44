// Package traces has the commands of `heddle trace`.
package traces

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/clap"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/accesses"
	"github.com/heddle-dmt/heddle/internal/shellword"
	"github.com/heddle-dmt/heddle/recorder/export"
	"github.com/heddle-dmt/heddle/recorder/memtrace"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var (
	errStream = errs.Define("trace-no-such-stream",
		"the trace {file} has no stream {kind}; it has: {kinds}",
		"The stream was not recorded.",
		"Name one that the sentence lists, or record it: heddle replay -o NEW --all TRACE.")
	errNoStream = errs.Define("trace-no-stream-named",
		"no stream is named for the table: --stream is needed, with one of {kinds}",
		"A table in the format csv has the events of one stream.",
		"Name one that the sentence lists: heddle trace export --format csv --stream sync TRACE.")
	errNoTable = errs.Define("trace-no-table",
		"stream {kind} has no table; allowed: {kinds}",
		"The records of the stream are not events with fields.",
		"Name one that the sentence lists; heddle trace dump shows the others.")
)

// Command returns `heddle trace`.
func Command(o command.Output) *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Show, check and export recorded traces",
		Args:  command.OfCommands,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(infoCommand(o), checkCommand(o), dumpCommand(o), loadCommand(), exportCommand(o), flowCommand(o))
	return c
}

func infoCommand(o command.Output) *cobra.Command {
	return &cobra.Command{
		Use: "info TRACE", Short: "Describe the contents of a trace", Args: command.OneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			return command.WithTrace(args[0], func(r *trace.Reader) error {
				return info(o.Stdout, r)
			})
		},
	}
}

// info prints the program of a run, how the run ended, and the streams.
func info(out io.Writer, r *trace.Reader) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	text, err := r.Manifest()
	if err != nil {
		return err
	}
	var run struct {
		Args   []any  `json:"args"`
		Cores  int    `json:"cores"`
		Seed   uint64 `json:"seed"`
		Engine string `json:"engine"`
	}
	if text != nil && json.Unmarshal(text, &run) == nil {
		fmt.Fprintf(w, "program\t%s\nmachine\t%d cores, seed %d, %s\n", words(run.Args), run.Cores, run.Seed, run.Engine)
	}
	if text, err = r.Summary(); err != nil {
		return err
	}
	printSummary(w, text)
	if n := r.Timelines(); n > 1 {
		fmt.Fprintf(w, "timelines\t%d; the last is shown\n", n)
	}
	printTracingCost(w, r)
	fmt.Fprintf(w, "\nstream\trecords\tbytes\tin the file\n")
	for _, key := range r.Streams() {
		printStream(w, key, r.Chunks(key))
	}
	if accesses.AreRepeated(r) {
		fmt.Fprintf(w, "%s 0\tof a replay\n", trace.Memory)
	}
	return w.Flush()
}

// words returns arguments as a shell takes them.
func words(args []any) string {
	var list []string
	for _, arg := range args {
		list = append(list, shellword.Quote(fmt.Sprint(arg)))
	}
	return strings.Join(list, " ")
}

func printSummary(w io.Writer, text []byte) {
	var end struct {
		Result struct {
			Outcome      string `json:"outcome"`
			ExitCode     int    `json:"exit_code"`
			Instructions uint64 `json:"instructions"`
			Cycles       uint64 `json:"cycles"`
			Threads      int    `json:"threads"`
			Digest       string `json:"digest"`
			Inputs       []any  `json:"inputs"`

			Faults []machine.StreamFault `json:"stream_faults"`
		} `json:"result"`
	}
	if text == nil || json.Unmarshal(text, &end) != nil {
		fmt.Fprintf(w, "outcome\tunknown: the recording does not reach the end of the run\n")
		return
	}
	e := &end.Result
	fmt.Fprintf(w, "outcome\t%s, status %d\ninstructions\t%d\ncycles\t%d\nthreads\t%d\nfiles read\t%d\ndigest\t%s\n",
		e.Outcome, e.ExitCode, e.Instructions, e.Cycles, e.Threads, len(e.Inputs), e.Digest)
	for _, f := range e.Faults {
		fmt.Fprintf(w, "%s\tfailed after %d bytes with %v\n", command.DescriptorNames[f.FD], f.Bytes, f.Errno)
	}
}

func printStream(w io.Writer, key trace.Key, chunks []trace.Chunk) {
	records, raw, stored := uint64(0), 0, 0
	for _, c := range chunks {
		records += c.Records
		raw += c.Raw
		stored += c.Stored
	}
	count := fmt.Sprint(records)
	if len(chunks) > 0 && chunks[0].Bytes {
		count = "-"
	}
	fmt.Fprintf(w, "%s %d\t%s\t%d\t%d\n", key.Kind, key.ID, count, raw, stored)
}

func checkCommand(o command.Output) *cobra.Command {
	return &cobra.Command{
		Use: "check TRACE", Short: "Read all of a trace and list its damage", Args: command.OneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			return command.WithTrace(args[0], func(r *trace.Reader) error {
				if damage := r.Check(); len(damage) > 0 {
					return errors.Join(damage...)
				}
				fmt.Fprintf(o.Stdout, "%s is whole\n", args[0])
				return nil
			})
		},
	}
}

// selection are the flags that select records.
type selection struct {
	streams []string
	thread  int32
	from    uint64
	to      uint64
	sync    [2]uint64
	data    []string
	code    []string
}

func (s *selection) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.streams, "stream", nil, "only the streams of these `KINDS`")
	flags.Int32Var(&s.thread, "thread", 0, "only events of the thread `ID`")
	flags.Uint64Var(&s.from, "from", 0, "only events from `CYCLE` of virtual time on")
	flags.Uint64Var(&s.to, "to", 0, "only events up to `CYCLE` of virtual time")
	flags.Uint64Var(&s.sync[0], "from-sync", 0, "only events after `N` sync operations")
	flags.Uint64Var(&s.sync[1], "to-sync", 0, "only events before more than `N` sync operations")
	for _, name := range []string{"thread", "stream"} {
		cli.SetDefault(flags, name, "all")
	}
	for _, name := range []string{"from", "from-sync"} {
		cli.SetDefault(flags, name, "the beginning")
	}
	for _, name := range []string{"to", "to-sync"} {
		cli.SetDefault(flags, name, "the end")
	}
}

// addMemory defines the flags that select accesses.
func (s *selection) addMemory(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.data, "data", nil, "of stream memory only accesses of the addresses `FROM-TO`, TO excluded")
	flags.StringSliceVar(&s.code, "code", nil, "of stream memory only accesses by instructions at `FROM-TO`, TO excluded")
}

func (s *selection) where() trace.Where {
	return trace.Where{
		Thread: arch.ThreadID(s.thread), FromTime: arch.Cycles(s.from), ToTime: arch.Cycles(s.to),
		FromSync: s.sync[0], ToSync: s.sync[1],
	}
}

// memory is the text form of memory accesses, as far as they are selected.
func (s *selection) memory() (memtrace.Text, error) {
	var t memtrace.Text
	var err error
	if t.Select.Data, err = command.Addresses("data", s.data); err != nil {
		return t, err
	}
	t.Select.Code, err = command.Addresses("code", s.code)
	return t, err
}

// kinds are the streams that are selected. The trace must have them and the thread.
func (s *selection) kinds(r *trace.Reader, file string) ([]trace.Kind, error) {
	if s.thread != 0 {
		if err := checkThread(r, file, s.thread); err != nil {
			return nil, err
		}
	}
	if s.to != 0 && s.to < s.from {
		return nil, command.ErrFlag.New("to", s.to, fmt.Sprintf("a cycle from --from on, which is %d", s.from))
	}
	if s.sync[1] != 0 && s.sync[1] < s.sync[0] {
		return nil, command.ErrFlag.New("to-sync", s.sync[1], fmt.Sprintf("a number from --from-sync on, which is %d", s.sync[0]))
	}
	var kinds []trace.Kind
	for _, name := range s.streams {
		if kind := trace.Kind(name); !r.Has(kind) && (kind != trace.Memory || !accesses.AreRepeated(r)) {
			return nil, errStream.New(file, name, streamNames(r))
		}
		kinds = append(kinds, trace.Kind(name))
	}
	return kinds, nil
}

func streamNames(r *trace.Reader) string {
	var names []string
	for _, key := range r.Streams() {
		if name := string(key.Kind); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func dumpCommand(o command.Output) *cobra.Command {
	var s selection
	events := false
	c := &cobra.Command{
		Use: "dump [flags] TRACE", Short: "Print a trace as text", Args: command.OneFile,
		Long: `Print a trace as text: chunk by chunk in the order of the file, which heddle
trace load turns into the same file again; or with --events, or with a flag that
selects, a line for each record, stream by stream.`,
		Example: `  heddle trace dump run.trace > run.txt
  heddle trace dump --stream sync,signals --thread 1001 run.trace`,
		RunE: func(c *cobra.Command, args []string) error {
			return command.WithTrace(args[0], func(r *trace.Reader) error {
				kinds, err := s.kinds(r, args[0])
				if err != nil {
					return err
				}
				memory, err := s.memory()
				if err != nil {
					return err
				}
				options := trace.DumpOptions{
					Kinds: kinds, Where: s.where(), Events: events || len(kinds) > 0 || s.where() != trace.Where{},
					Twins: map[trace.Kind]trace.Twin{trace.Memory: memory},
				}
				err = errors.Join(trace.Dump(o.Stdout, r, options)...)
				if err != nil || !options.Events || !accesses.AreRepeated(r) || len(kinds) > 0 && !slices.Contains(kinds, trace.Memory) {
					return err
				}
				memory.Select.Where = options.Where
				return dumpRepeated(c.Context(), o.Stdout, args[0], r, memory.Select)
			})
		},
	}
	s.add(c.Flags())
	s.addMemory(c.Flags())
	c.Flags().BoolVar(&events, "events", false, "a line for each record, stream by stream, without the heads of chunks")
	return c
}

// dumpRepeated prints the accesses of a replay.
func dumpRepeated(ctx context.Context, out io.Writer, path string, r *trace.Reader, s memtrace.Select) error {
	w := bufio.NewWriterSize(out, 1<<16)
	for m, err := range accesses.Read(ctx, path, r, s) {
		if err != nil {
			return errors.Join(w.Flush(), err)
		}
		if _, err := fmt.Fprintf(w, "%s 0 %s\n", trace.Memory, memtrace.Format(m)); err != nil {
			return err
		}
	}
	return w.Flush()
}

func loadCommand() *cobra.Command {
	output := ""
	c := &cobra.Command{
		Use: "load -o TRACE TEXT", Short: "Make a trace of the output of dump", Args: command.OneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			if output == "" {
				return command.ErrNoOutput.New()
			}
			in, err := os.Open(args[0])
			if err != nil {
				return command.ErrReadFile.Wrap(command.Reason(err), args[0])
			}
			defer in.Close()
			if info, err := in.Stat(); err == nil && info.IsDir() {
				return command.ErrReadFile.Wrap(unix.EISDIR, args[0])
			}
			out, err := command.CreateTrace(output)
			if err != nil {
				return err
			}
			defer out.File.Discard()
			if err := trace.Load(out.File, args[0], in); err != nil {
				return err
			}
			_, err = out.Finish()
			return err
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write the trace to `FILE`")
	return c
}

// The formats of heddle trace export.
const (
	formatPerfetto = "perfetto"
	formatCSV      = "csv"
)

func exportCommand(o command.Output) *cobra.Command {
	var s selection
	selecting := pflag.NewFlagSet("selecting", pflag.ContinueOnError)
	format, output := "", ""
	c := &cobra.Command{
		Use: "export --format perfetto|csv [flags] TRACE", Short: "Write a trace for another tool", Args: command.OneFile,
		Long: `Write a trace for another tool. The format perfetto opens in ui.perfetto.dev:
cores and threads are tracks, system calls and sync operations slices, and arrows
go from each release of an object to the acquisition that followed. The format
csv is a table of the events of one stream.`,
		Example: `  heddle trace export --format perfetto -o run.json run.trace
  heddle trace export --format csv --stream sync run.trace`,
		RunE: func(_ *cobra.Command, args []string) error {
			selecting.VisitAll(func(f *pflag.Flag) {
				if f.Changed && format == formatPerfetto {
					o.Say("--%s has no effect with the format %s, which has the whole run", f.Name, format)
				}
			})
			return command.WithTrace(args[0], func(r *trace.Reader) error {
				return o.ExportTo(output, func(out io.Writer) error { return exportTrace(out, r, args[0], format, s) })
			})
		},
	}
	s.add(selecting)
	c.Flags().AddFlagSet(selecting)
	c.Flags().StringVar(&format, "format", formatPerfetto, "`FORMAT`: "+formatPerfetto+" or "+formatCSV)
	c.Flags().StringVarP(&output, "output", "o", "", "write to `FILE` (default: standard output)")
	return c
}

func exportTrace(out io.Writer, r *trace.Reader, file, format string, s selection) error {
	kinds, err := s.kinds(r, file)
	if err != nil {
		return err
	}
	switch format {
	case formatPerfetto:
		return errors.Join(export.Perfetto(out, r, clap.CostTable(r).MHz)...)
	case formatCSV:
		if len(kinds) == 0 {
			return errNoStream.New(tableNames())
		}
		if len(kinds) != 1 || !slices.Contains(trace.Tables(), kinds[0]) {
			return errNoTable.New(shellword.Quote(strings.Join(s.streams, ",")), tableNames())
		}
		return errors.Join(export.CSV(out, r, kinds[0], s.where())...)
	}
	return command.ErrFlag.New("format", shellword.Quote(format), formatPerfetto+", "+formatCSV)
}

func tableNames() string {
	var names []string
	for _, k := range trace.Tables() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}
