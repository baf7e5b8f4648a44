// Package worker carries out single runs, in this process or in a fresh one.
//
// A Job is all that a run depends on, a Report all that it gave. A fresh
// process is heddle itself, started with a hidden command that reads a Job as
// JSON from standard input and writes a Report to standard output, so that a
// crash of one run takes nothing else with it.
package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"

	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/runoptions"
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
	Options runoptions.Options `json:"options"`
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
	// Events asks a fresh process for the event log on descriptor 3.
	Events bool `json:"events,omitempty"`
	// Shortest, when set, looks for the shortest schedule under which the job fails
	// instead of running it.
	Shortest *Shortest `json:"shortest,omitempty"`
}

// Report is the result of a run.
type Report struct {
	// Result is nil when heddle could not carry out the run.
	Result *machine.Result `json:"result,omitempty"`
	// Failure is heddle's sentence when Result is nil.
	Failure string `json:"failure,omitempty"`
	Stdout  Output `json:"stdout"`
	Stderr  Output `json:"stderr"`
	// Shortest is the result of Job.Shortest; Result is nil then.
	Shortest *minimize.Report `json:"shortest,omitempty"`
}

// Output identifies a program's output to a stream.
type Output struct {
	SHA256 string `json:"sha256"`
	Bytes  uint64 `json:"bytes"`
}

// Config translates the job. The caller sets the streams.
func (j Job) Config() machine.Config {
	c := j.Options.Config()
	c.Args = j.Args
	c.ExportDir, c.Hidden, c.Closed, c.Faults = j.ExportDir, j.Hidden, j.Closed, j.Faults
	return c
}

// Run carries out the job in this process. Output goes to no place but the
// report; events may be nil.
func Run(ctx context.Context, job Job, events io.Writer) Report {
	if job.Shortest != nil {
		shortest, err := shortenSchedule(ctx, job)
		if err != nil {
			return Report{Failure: Explained(err).Error()}
		}
		return Report{Shortest: shortest}
	}
	stdout, stderr := NewMeter(), NewMeter()
	result, err := runJob(ctx, job, stdout, stderr, events)
	report := Report{Result: result, Stdout: stdout.Output(), Stderr: stderr.Output()}
	if err != nil {
		report.Result, report.Failure = nil, Explained(err).Error()
	}
	return report
}

func runJob(ctx context.Context, job Job, stdout, stderr, events io.Writer) (*machine.Result, error) {
	stdin, err := job.OpenStdin()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	c := job.Config()
	c.Stdin, c.Stdout, c.Stderr, c.EventLog = stdin.Reader, stdout, stderr, events
	return machine.Run(ctx, c)
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
		return Stdin{}, errStdin.Wrap(withoutPath(err), j.Stdin)
	}
	if j.StdinIsPipe {
		// Without the methods of a file the machine takes it for a stream.
		return Stdin{struct{ io.Reader }{file}, file}, nil
	}
	return Stdin{file, file}, nil
}

// withoutPath is an error without the name of the file, which the sentence has.
func withoutPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Meter is a writer that keeps the digest and length of its input.
type Meter struct {
	hash  hash.Hash
	bytes uint64
}

// NewMeter returns a Meter that has been given nothing.
func NewMeter() *Meter { return &Meter{hash: sha256.New()} }

func (m *Meter) Write(p []byte) (int, error) {
	m.bytes += uint64(len(p))
	return m.hash.Write(p)
}

// Output identifies the text that was written so far.
func (m *Meter) Output() Output {
	return Output{SHA256: hex.EncodeToString(m.hash.Sum(nil)), Bytes: m.bytes}
}
