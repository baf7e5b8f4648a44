package find

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/memmodel"
)

// The functions of this file are the parts of a search that an exploration of all executions has, too.

// A Base is a program with the files and the failures of its runs.
type Base struct{ s *search }

// NewBase checks that a configuration can be searched. The options need Expect and Trace.
func NewBase(c machine.Config, stdin io.Reader, o Options) (*Base, error) {
	s, err := newSearch(c, stdin, o)
	if err != nil {
		return nil, err
	}
	return &Base{s}, nil
}

// RunUndisturbed runs the program once under the policy of the configuration. If that run fails it is
// recorded, and done is true.
func (b *Base) RunUndisturbed(ctx context.Context) (done bool, err error) {
	return b.s.runUndisturbed(ctx)
}

// SetCores gives the machine a number of cores from the next run on.
func (b *Base) SetCores(n int) { b.s.config.Cores = n }

// Undisturbed returns the exit status of the undisturbed run, which is no failure, its number of threads,
// and how it failed if it did.
func (b *Base) Undisturbed() (accepted, threads int, failure machine.Failure) {
	if len(b.s.report.Failures) > 0 {
		failure = b.s.report.Failures[0].Failure
	}
	return b.s.report.Accepted, b.s.report.Threads, failure
}

// Digest identifies the program, its arguments and files, what the undisturbed run did, and the right
// output.
func (b *Base) Digest() string {
	return fmt.Sprintf("%s %x", b.s.digest, sha256.Sum256(b.s.options.Expect))
}

// Config is the configuration of a machine under a memory model.
func (b *Base) Config(m memmodel.Model) machine.Config { return b.s.configFor(m) }

// Failure returns how an execution that is over has ended, and whether it failed.
func (b *Base) Failure(m *machine.Machine, stdout, stderr []byte) (machine.Failure, bool, error) {
	return b.s.failureOf(m, stdout, stderr)
}

// Limit is the number of instructions after which an execution hangs, when another one had length
// instructions.
func (b *Base) Limit(length uint64) uint64 { return hangFactor*length + hangInstructions }

// Verify writes the recording of a run that fails to the trace's file, and replays it to see that it
// fails in the same way; stdout is what the run has printed.
func (b *Base) Verify(ctx context.Context, trace, stdout []byte, want machine.Failure) error {
	return b.s.verify(ctx, trace, b.s.options.Trace, want, newPrinted(stdout))
}
