// Package job is a run as users describe it, and its execution in this process or in a fresh one.
//
// Options is the machine as users write it, on a command line or in the machine section of an
// experiment file. A Job adds a program and its input: it is all that the run depends on, as plain
// data. A Report is the result.
package job

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/output"
	"github.com/heddle-dmt/heddle/internal/worker"
	"github.com/heddle-dmt/heddle/recorder/region"
)

var errHost = errs.Define("host-failure",
	"the host refused a request of heddle",
	"A resource of the host is missing or used up: memory, address space, file handles, disk. The rest of the sentence is the host's own.",
	"Run `heddle doctor`, which checks limits and libraries and says how to fix them; heddle run --max-memory lowers the memory that a run asks for.")

// Explained makes sure that an error that will be printed is a catalogued
// sentence.
func Explained(err error) error {
	var known *errs.Error
	if errors.As(err, &known) {
		return err
	}
	return errHost.Wrap(err)
}

var errStdin = errs.Define("stdin-unreadable",
	"cannot read {file} as standard input",
	"The file named with --stdin, or as an experiment's standard input, does not exist or may not be read.",
	"Check the file's name and permissions.")

// Job is one run of a program on a machine.
type Job struct {
	Options Options `json:"options"`
	// Args is the program and its arguments.
	Args []string `json:"args"`
	// Stdin is the host file that the program reads; empty means no input.
	Stdin string `json:"stdin"`
	// StdinIsPipe shows that file to the guest as a pipe.
	StdinIsPipe bool `json:"stdin_is_pipe,omitempty"`
	// ExportDir receives the files that the guest left in the overlay.
	ExportDir string `json:"export_dir,omitempty"`
	// Closed and Faults are those of machine.Config.
	Closed [3]bool               `json:"closed"`
	Faults []machine.StreamFault `json:"faults,omitempty"`
	// Hidden are host files that the program does not see (machine.Config.Hidden).
	Hidden []string `json:"hidden,omitempty"`
	// KeepOutput asks for the texts in the Report.
	KeepOutput bool `json:"keep_output,omitempty"`
	// Filter is applied to standard output for Report.Compared.
	Filter output.Filter `json:"filter,omitempty"`
}

// MaxKept is the largest number of bytes of an output that a Report keeps.
const MaxKept = 4 << 20

// Report is the result of a Job.
type Report struct {
	// Result is nil when heddle could not carry out the run.
	Result *machine.Result `json:"result,omitempty"`
	// Failure is heddle's sentence when Result is nil.
	Failure string `json:"failure,omitempty"`
	// Region is that of Options.Region.
	Region *region.Result `json:"region,omitempty"`
	// Compared is the sum of standard output after Job.Filter, nil without one.
	Compared *output.Sum `json:"compared,omitempty"`
	Stdout   output.Sum  `json:"stdout"`
	Stderr   output.Sum  `json:"stderr"`
	// StdoutText and StderrText are the outputs if Job.KeepOutput asks for them; of one of more than
	// MaxKept bytes, its beginning.
	StdoutText []byte `json:"stdout_text,omitempty"`
	StderrText []byte `json:"stderr_text,omitempty"`
}

// Config translates the job. The caller sets the streams.
func (j Job) Config() machine.Config {
	c := j.Options.Config()
	c.Args = j.Args
	c.ExportDir, c.Hidden, c.Closed, c.Faults = j.ExportDir, j.Hidden, j.Closed, j.Faults
	return c
}

// Run carries out the job in this process. Of its output only the sums are kept; events may be
// nil.
func (j Job) Run(ctx context.Context, events io.Writer) Report { return j.RunWith(ctx, events, nil) }

// RunWith is Run with further options of the machine: those that extend returns, which may change the configuration. It may
// be nil.
func (j Job) RunWith(ctx context.Context, events io.Writer, extend func(*machine.Config) []machine.Option) Report {
	stdout, stderr := output.NewMeter(), output.NewMeter()
	var kept [2]beginning
	var filtered output.Filtered
	to := [2][]io.Writer{{stdout}, {stderr}}
	if j.KeepOutput {
		to[0], to[1] = append(to[0], &kept[0]), append(to[1], &kept[1])
	}
	if len(j.Filter) > 0 {
		to[0] = append(to[0], &filtered)
	}
	result, measured, err := j.run(ctx, io.MultiWriter(to[0]...), io.MultiWriter(to[1]...), events, extend)
	report := Report{
		Result: result, Region: measured, Stdout: stdout.Sum(), Stderr: stderr.Sum(), StdoutText: kept[0], StderrText: kept[1],
	}
	if err == nil && len(j.Filter) > 0 {
		var sum output.Sum
		sum, err = filtered.Sum(ctx, j.Filter)
		report.Compared = &sum
	}
	if err != nil {
		report.Compared = nil
		report.Result, report.Region, report.Failure = nil, nil, Explained(err).Error()
	}
	return report
}

// beginning keeps the first MaxKept bytes that are written to it.
type beginning []byte

func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), MaxKept-len(*b))]...)
	return len(p), nil
}

func (j Job) run(ctx context.Context, stdout, stderr, events io.Writer, extend func(*machine.Config) []machine.Option) (*machine.Result, *region.Result, error) {
	stdin, err := j.OpenStdin()
	if err != nil {
		return nil, nil, err
	}
	defer stdin.Close()
	c := j.Config()
	c.Stdin, c.Stdout, c.Stderr, c.EventLog = stdin.Reader, stdout, stderr, events
	var options []machine.Option
	if extend != nil {
		options = extend(&c)
	}
	w := j.Options.WatchRegion()
	if w == nil {
		result, err := machine.Run(ctx, c, options...)
		return result, nil, err
	}
	result, err := machine.Run(ctx, c, append(options, WithRegion(w))...)
	if err == nil {
		err = w.Check()
	}
	return result, w.Result(), err
}

// WorkerCommand is the hidden command under which heddle carries out a job for Spawn.
const WorkerCommand = "worker"

// request is the message from Spawn to the worker.
type request struct {
	Job Job `json:"job"`
	// Events asks for the event log on worker.EventsDescriptor.
	Events bool `json:"events"`
}

// Spawn carries out the job in a fresh process with the extra environment variables. The error
// says that the process failed, not that the run did. The event log is written to events, unless
// that is nil.
func (j Job) Spawn(ctx context.Context, env []string, events io.Writer) (report Report, err error) {
	err = worker.Spawn(ctx, WorkerCommand, request{j, events != nil}, &report, env, events)
	return report, err
}

// ServeWorker is the worker's side of Spawn.
func ServeWorker(stdin io.Reader, stdout io.Writer) error {
	return worker.Serve(stdin, stdout, func(r request) Report {
		if !r.Events {
			return r.Job.Run(context.Background(), nil)
		}
		pipe := os.NewFile(worker.EventsDescriptor, "events")
		defer pipe.Close()
		buffer := bufio.NewWriterSize(pipe, 1<<16)
		defer buffer.Flush()
		return r.Job.Run(context.Background(), buffer)
	})
}

// Stdin is an opened standard input. The Reader is nil without one.
type Stdin struct {
	io.Reader
	file *os.File
}

// NewStdin is a standard input that reads r and closes the file.
func NewStdin(r io.Reader, file *os.File) Stdin { return Stdin{r, file} }

// Close closes the file, if there is one.
func (s Stdin) Close() {
	if s.file != nil {
		s.file.Close()
	}
}

// OpenStdin opens the job's standard input.
func (j Job) OpenStdin() (Stdin, error) {
	if j.Stdin == "" {
		return Stdin{}, nil
	}
	file, err := os.Open(j.Stdin)
	if err != nil {
		return Stdin{}, errStdin.Wrap(err, j.Stdin)
	}
	if j.StdinIsPipe {
		// Without the methods of a file the machine takes it for a stream.
		return Stdin{struct{ io.Reader }{file}, file}, nil
	}
	return Stdin{file, file}, nil
}
