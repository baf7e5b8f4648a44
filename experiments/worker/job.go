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
	"hash"
	"io"
	"os"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/machine"
	"github.com/heddle-dmt/heddle/internal/errs"
)

var errStdin = errs.Define("stdin-unreadable",
	"cannot read {file} as standard input",
	"The file named with --stdin, or as an experiment's standard input, does not exist or may not be read.",
	"Check the file's name and permissions.")

// Job is one run of a program on a machine.
type Job struct {
	Options machine.Options `json:"options"`
	// Args is the program and its arguments.
	Args []string `json:"args"`
	// Stdin is the host file that the program reads; empty means no input.
	Stdin string `json:"stdin"`
	// ExportDir receives the files that the guest left in the overlay.
	ExportDir string `json:"export_dir,omitempty"`
	// Events asks a fresh process for the event log on descriptor 3.
	Events bool `json:"events,omitempty"`
}

// Report is what a run gave.
type Report struct {
	// Result is nil when heddle could not carry out the run.
	Result *heddle.Result `json:"result,omitempty"`
	// Failure is heddle's sentence when Result is nil.
	Failure string `json:"failure,omitempty"`
	Stdout  Output `json:"stdout"`
	Stderr  Output `json:"stderr"`
}

// Output identifies what a program wrote to a stream.
type Output struct {
	SHA256 string `json:"sha256"`
	Bytes  uint64 `json:"bytes"`
}

// Config translates the job. The caller sets the streams.
func (j Job) Config() heddle.Config {
	c := j.Options.Config()
	c.Args = j.Args
	c.ExportDir = j.ExportDir
	return c
}

// Run carries out the job in this process. Output goes to no place but the
// report; events may be nil.
func Run(ctx context.Context, job Job, events io.Writer) Report {
	stdout, stderr := NewMeter(), NewMeter()
	result, err := run(ctx, job, stdout, stderr, events)
	report := Report{Result: result, Stdout: stdout.Output(), Stderr: stderr.Output()}
	if err != nil {
		report.Result, report.Failure = nil, err.Error()
	}
	return report
}

func run(ctx context.Context, job Job, stdout, stderr, events io.Writer) (*heddle.Result, error) {
	c := job.Config()
	if job.Stdin != "" {
		stdin, err := os.Open(job.Stdin)
		if err != nil {
			return nil, errStdin.Wrap(err, job.Stdin)
		}
		defer stdin.Close()
		c.Stdin = stdin
	}
	c.Stdout, c.Stderr, c.EventLog = stdout, stderr, events
	return heddle.Run(ctx, c)
}

// Meter is a writer that keeps the digest and length of what it is given.
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

// Output identifies what was written so far.
func (m *Meter) Output() Output {
	return Output{SHA256: hex.EncodeToString(m.hash.Sum(nil)), Bytes: m.bytes}
}
