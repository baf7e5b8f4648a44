package main

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/experiments/h3"
	"github.com/heddle-dmt/heddle/experiments/peregrine"
	"github.com/heddle-dmt/heddle/experiments/windows"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/recorder"
	"github.com/heddle-dmt/heddle/recorder/pt"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

var errNeedsOutput = errs.Define("recording-without-output",
	"--{flag} is an option of recording, and no trace is named: -o TRACE is needed",
	"heddle replay was called with an option of recording, but without a file for the trace.",
	"Name a file with -o, or leave the flag out.")

// recordFlags are the flags of `heddle record` and `heddle replay` that choose the recordings.
type recordFlags struct {
	output           string
	listener         trace.Listener // takes the events in place of a trace
	inputs, all      bool
	sync, atomics    bool
	syncList         string
	heap, races      bool
	pt               bool
	ptPeriod, ptMTC  uint64
	ptTSC, ptCYC     bool
	ptRetCompression bool
	files            bool
	memory           string // "", memoryStored or memoryReplay, which is what --races and --all alone have
	from, to         string // places of the run
	serial           bool   // operations one at a time, for a schedule
	memoryThreads    []int32
	memoryData       []string
	memoryCode       []string
}

// Where the accesses to memory are read from, the values of --memory.
const (
	memoryStored = "stored"
	memoryReplay = "replay"
)

// recordings names the flags that ask for a recording.
var recordings = []string{"all", "inputs", "sync", "atomics", "sync-list", "heap", "races", "pt", "pt-period", "pt-ret-compression", "pt-tsc", "pt-mtc", "pt-cyc", "memory", "memory-thread", "memory-data", "memory-code", "files", "from", "to"}

func addRecordFlags(flags *pflag.FlagSet, f *recordFlags) {
	cli.GroupNew(flags, groupRecording, func() { f.define(flags) })
}

func (f *recordFlags) define(flags *pflag.FlagSet) {
	flags.StringVarP(&f.output, "output", "o", "", "write the trace to `FILE`")
	flags.BoolVar(&f.all, "all", false, "record inputs, sync operations with atomics, calls of allocators, branches, and memory")
	flags.BoolVar(&f.inputs, "inputs", false, "record the data that the program gets from outside, with the bytes")
	flags.BoolVar(&f.sync, "sync", false, "record synchronization operations")
	flags.BoolVar(&f.atomics, "atomics", false, "with --sync, atomic instructions and fences too")
	flags.StringVar(&f.syncList, "sync-list", "", "with --sync, the operations that the YAML `FILE` lists too")
	flags.BoolVar(&f.heap, "heap", false, "with --sync, calls of malloc and its kin too")
	flags.BoolVar(&f.races, "races", false, "record the events that heddle races needs: --sync, --heap and --memory")
	flags.BoolVar(&f.pt, "pt", false, "record each core's branches as Intel PT packets")
	flags.Uint64Var(&f.ptPeriod, "pt-period", 4096, "`BYTES` of packets after which a PSB comes; 0: only one, at the beginning")
	flags.BoolVar(&f.ptRetCompression, "pt-ret-compression", true, "write a bit instead of an address for a return to its call")
	flags.BoolVar(&f.ptTSC, "pt-tsc", true, "write virtual time at each PSB and each start of tracing")
	flags.Uint64Var(&f.ptMTC, "pt-mtc", 0, "`TICKS` of the crystal clock from one MTC packet to the next, a power of two; 0: none")
	flags.StringVar(&f.memory, "memory", "", "record every load and store, with values: `replay`: the trace has what repeats the run, and whoever reads them repeats it, or stored: the trace has them")
	flags.Lookup("memory").NoOptDefVal = memoryReplay
	flags.Int32SliceVar(&f.memoryThreads, "memory-thread", nil, "with --memory, only those of the threads `IDS`")
	flags.StringSliceVar(&f.memoryData, "memory-data", nil, "with --memory, only those of the addresses `FROM-TO`, TO excluded")
	flags.StringSliceVar(&f.memoryCode, "memory-code", nil, "with --memory, only those by instructions at `FROM-TO`, TO excluded")
	flags.BoolVar(&f.files, "files", false, "store the files that the run reads, for replays when they have changed; --memory does, too, unless it is stored")
	addStretchFlags(flags, &f.from, &f.to)
	flags.BoolVar(&f.ptCYC, "pt-cyc", false, "write CYC packets: the cycles before each packet")
}

// recording returns the recordings of the flags.
func (f *recordFlags) recording(to io.Writer) (*machine.Record, error) {
	r := &machine.Record{To: to, Listener: f.listener, Inputs: f.inputs || f.all, Files: f.files}
	var err error
	if r.Stretch, err = stretchOf(f.from, f.to); err != nil {
		return nil, err
	}
	if f.pt || f.all {
		if f.ptMTC&(f.ptMTC-1) != 0 || f.ptMTC > 32768 {
			return nil, command.ErrFlag.New("pt-mtc", f.ptMTC, "0, or a power of two up to 32768")
		}
		r.PT = &pt.Config{
			PSBPeriod: f.ptPeriod, RetCompression: f.ptRetCompression,
			Timing: pt.Timing{TSC: f.ptTSC, MTCPeriod: f.ptMTC, CYC: f.ptCYC},
		}
	}
	if f.memory != "" || f.races || f.all {
		if r.Memory, err = f.memoryConfig(); err != nil {
			return nil, err
		}
		r.Files = r.Files || r.Memory.Repeated
	}
	if f.sync || f.races || f.all {
		r.Sync = &machine.SyncRecord{Atomics: f.atomics || f.all, Heap: f.heap || f.races || f.all}
		if f.syncList != "" {
			custom, err := syncops.LoadCustom(f.syncList)
			if err != nil {
				return nil, err
			}
			r.Sync.Custom = custom
		}
	}
	return r, nil
}

func (f *recordFlags) memoryConfig() (*recorder.MemoryConfig, error) {
	if f.memory != "" && f.memory != memoryStored && f.memory != memoryReplay {
		return nil, command.ErrFlag.New("memory", quote(f.memory), memoryReplay+", "+memoryStored)
	}
	c := &recorder.MemoryConfig{Repeated: f.memory != memoryStored && f.listener == nil}
	for _, t := range f.memoryThreads {
		c.Threads = append(c.Threads, arch.ThreadID(t))
	}
	var err error
	if c.Data, err = command.Addresses("memory-data", f.memoryData); err != nil {
		return nil, err
	}
	c.Code, err = command.Addresses("memory-code", f.memoryCode)
	return c, err
}

// check finds flags that have no effect.
func (f *recordFlags) check(flags *pflag.FlagSet) error {
	if f.output != "" {
		return nil
	}
	for _, name := range recordings {
		if flags.Changed(name) {
			return errNeedsOutput.New(name)
		}
	}
	return nil
}

// sayDamage lists the damage of a trace whose undamaged part is used.
func (a *app) sayDamage(path string) error {
	r, err := trace.Open(path)
	if err != nil {
		return err
	}
	for _, damage := range r.Damage() {
		a.damaged = true
		a.say("%v", damage)
	}
	return r.Close()
}

func (a *app) recordCommand() *cobra.Command {
	var f runFlags
	var rec recordFlags
	c := &cobra.Command{
		Use:   "record -o TRACE [flags] [--] PROGRAM [ARGUMENTS]",
		Short: "Run a program and record the run",
		Long: `Run a program on the emulated machine and record the run in a file. The trace
has threads, context switches, system calls and signals, and all that repeats
the run (heddle replay); the flags add more. The run is the same as without,
bit for bit. heddle trace shows, checks and exports traces.`,
		Example: `  heddle record -o run.trace -- pigz -p 4 -k file
  heddle record -o run.trace --sync --pt --cores 8 -- ./racy
  heddle record -o run.trace --memory --enforce run.schedule -- ./racy
  heddle replay run.trace -o more.trace --all`,
		RunE: func(c *cobra.Command, args []string) error {
			_, err := a.record(c.Context(), c.Flags(), f, rec, args)
			return err
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	addRecordFlags(flags, &rec)
	addMachineFlags(flags)
	addRunFlags(flags, &f)
	addScheduleFlags(flags, &f.schedule)
	addRegionFlag(flags, &f.region)
	addWindowFlags(flags, &f.windows)
	return c
}

// record carries out `heddle record`.
func (a *app) record(ctx context.Context, flags *pflag.FlagSet, f runFlags, rec recordFlags, args []string) (*machine.Result, error) {
	if rec.output == "" && rec.listener == nil {
		return nil, command.ErrNoOutput.New()
	}
	if err := checkTimeLimit(f.timeLimit); err != nil {
		return nil, err
	}
	if err := f.schedule.check(flags, false); err != nil {
		return nil, err
	}
	if s := rec.from + rec.to; s != "" && f.region != "" {
		return nil, errStretchAlone.New()
	}
	if err := f.windows.checkRecording(rec); err != nil {
		return nil, err
	}
	limited, cancel := machine.WithTimeLimit(ctx, f.timeLimit)
	defer cancel()
	j, stdin, err := a.open(limited, flags, f, args)
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	if !f.quiet {
		a.output().SayMissing(flags, recordDependences)
	}
	c := j.Config()
	c.Stdin = stdin.Reader
	if rec.serial {
		if err := c.Schedulable(); err != nil {
			return nil, err
		}
		c.Control = peregrine.ControlConfig()
		peregrine.BindNow(&c)
	}
	plan, err := f.schedule.apply(&c)
	if err != nil {
		return nil, err
	}
	if plan != nil {
		if _, err := plan(); err != nil {
			return nil, err // before a file of the trace's name is replaced
		}
	}
	record := func(c machine.Config, options []machine.Option) (*machine.Result, error) {
		return a.recorded(limited, f, rec, c, options...)
	}
	options := []machine.Option{machine.WithPlan(plan), a.withClients()}
	var result *machine.Result
	if f.windows.isGiven() {
		result, err = a.runInWindows(c, f, options, windows.NewRecorded, record)
	} else {
		result, err = record(c, options)
	}
	if err != nil {
		return nil, err
	}
	return result, a.finish(ctx, flags, f, j, result)
}

// recorded runs a configuration on heddle's own streams, and records it if a
// trace is named.
func (a *app) recorded(ctx context.Context, f runFlags, rec recordFlags, c machine.Config, options ...machine.Option) (*machine.Result, error) {
	events, err := newLog(f.eventLog)
	if err != nil {
		return nil, err
	}
	defer events.discard()
	c.Outputs = append(c.Outputs, events.names()...)
	c.EventLog = events.writer()
	a.setOutputs(ctx, &c)
	if f.strace {
		c.Strace = a.stderr
	}
	var to *command.TraceFile
	if rec.output != "" {
		if to, err = command.CreateTrace(rec.output); err != nil {
			return nil, err
		}
		defer to.File.Discard()
		c.Outputs = append(c.Outputs, to.File.Names()...)
		if c.Record, err = rec.recording(to.File); err != nil {
			return nil, err
		}
	} else if rec.listener != nil {
		if c.Record, err = rec.recording(nil); err != nil {
			return nil, err
		}
	}
	result, err := a.carryOut(ctx, c, f.gdb, options...)
	a.noteGivenUp(ctx, result)
	if result == nil {
		return nil, err
	}
	if s := result.Stretch; s != nil && (!f.quiet || s.Why != "") {
		a.say("%s", s)
	}
	err = errors.Join(err, events.finish())
	if to == nil {
		return result, err
	}
	size, traceErr := to.Finish()
	if err = errors.Join(err, traceErr); err == nil && !f.quiet {
		a.say("recorded in %s, %d bytes", rec.output, size)
	}
	return result, err
}

func (a *app) replayCommand() *cobra.Command {
	var f runFlags
	var rec recordFlags
	var schedule string
	c := &cobra.Command{
		Use:   "replay [flags] TRACE",
		Short: "Repeat a recorded run",
		Long: `Repeat a recorded run: the same program on the same files, with the same
standard input and the same interleaving, to the same output and digest. It takes
every decision as the recording has it, not as the seed would give it. With -o
the replay is recorded too, with more switched on than the first time.

A replay is refused when the program, a library or another file that the run
read is not what it was. It ends at the first decision that cannot be taken as
recorded, and says which. Writable mounts are not written to.

With --schedule the program of the trace runs on its inputs under a schedule that
heddle reproduce has computed, and not as it was recorded.`,
		Example: `  heddle replay run.trace
  heddle replay --schedule failing.schedule failing.trace
  heddle replay -o more.trace --sync --pt run.trace`,
		Args: command.OneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return a.replay(c.Context(), c.Flags(), f, rec, schedule, args[0])
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	addRecordFlags(flags, &rec)
	addReplayFlags(flags, &f)
	flags.StringVar(&f.gdb, "gdb", "", gdbUsage)
	flags.StringVar(&schedule, "schedule", "", "run under the schedule in `FILE`, of heddle reproduce")
	return c
}

// replay carries out `heddle replay`.
func (a *app) replay(ctx context.Context, flags *pflag.FlagSet, f runFlags, rec recordFlags, schedule, path string) error {
	if err := cmp.Or(rec.check(flags), checkTimeLimit(f.timeLimit)); err != nil {
		return err
	}
	if f.gdb != "" && f.timeLimit > 0 {
		return errGDBAlone.New("--time-limit")
	}
	if (rec.output != "" || rec.from != "" || rec.to != "") && f.gdb != "" {
		return errGDBAlone.New("-o")
	}
	if err := checkWritable(f.summary); err != nil {
		return err
	}
	if err := a.sayDamage(path); err != nil {
		return err
	}
	r, err := machine.OpenReplay(path)
	if err != nil {
		return err
	}
	defer r.Close()
	if r.Cut() {
		a.say("the recording does not reach the end of the run, and does not say which files the run read")
	}
	if !f.quiet {
		a.output().SayMissing(flags, recordDependences)
	}
	limited, cancel := machine.WithTimeLimit(ctx, f.timeLimit)
	defer cancel()
	if schedule != "" {
		return a.replaySchedule(limited, f, rec, r, schedule)
	}
	c, err := r.Config()
	if err != nil {
		return err
	}
	d, err := windows.Repeat(&c, path)
	if err != nil {
		return err
	}
	var options []machine.Option
	if d != nil {
		if f.gdb != "" {
			return errWindowsAlone.New("--gdb")
		}
		options = d.Options()
	}
	result, err := a.recorded(limited, f, rec, c, options...)
	if err != nil {
		return err
	}
	return a.finishReplay(ctx, f, result)
}

// replaySchedule runs the program of a trace under a schedule.
func (a *app) replaySchedule(ctx context.Context, f runFlags, rec recordFlags, r *machine.Replay, file string) error {
	s, err := h3.ReadFile(file)
	if err != nil {
		return err
	}
	c, options, g, err := s.Config(r, file)
	if err != nil {
		return err
	}
	result, err := a.recorded(ctx, f, rec, c, options...)
	if err != nil {
		return err
	}
	if why := g.Why(); why != "" {
		a.say("the run left the schedule: %s", why)
	}
	return a.finishReplay(ctx, f, result)
}

// finishReplay writes the summary, says how the replay ended unless the program
// ended it, and sets the status.
func (a *app) finishReplay(ctx context.Context, f runFlags, result *machine.Result) error {
	if f.summary != "" {
		if err := writeSummary(f.summary, result); err != nil {
			return err
		}
	}
	a.status = result.ExitCode
	if result.Outcome == machine.OutcomeInterrupted {
		if status, ok := interrupted(ctx); ok {
			a.status = status
		}
	}
	if result.Message != "" {
		a.say("%s", result.Message)
	}
	return nil
}
