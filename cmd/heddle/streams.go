package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// openStdin opens the job's standard input, or heddle's own when it names none.
func (a *app) openStdin(ctx context.Context, j job.Job) (job.Stdin, error) {
	switch {
	case j.Stdin != "":
		return j.OpenStdin()
	case j.Closed[0]:
		return job.Stdin{}, nil
	}
	return job.Stdin{Reader: a.ownStdin(ctx)}, nil
}

// ownStdin is heddle's standard input for the guest. A regular file is one to
// the guest too, and so is /dev/null; anything else is read in a way that Ctrl-C ends even when
// nothing comes, and looks like a pipe.
func (a *app) ownStdin(ctx context.Context) io.Reader {
	if isRegular(a.stdin) || vfs.IsNull(a.stdin) {
		return a.stdin
	}
	return &interruptibleReader{a.newInterruptible(ctx, 0), a.stdin}
}

var errOwnStdin = errs.Define("own-stdin-unreadable",
	"standard input cannot be read",
	"It is read to its end before the run, and is a folder, or is not open for reading, or its device fails.",
	"Redirect standard input from a file, or name one with --stdin.")

// failingReader keeps the failure of a reader apart from others.
type failingReader struct {
	from io.Reader
	err  error
}

// Read implements io.Reader.
func (r *failingReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// keptReader is a reader that keeps the bytes that it has read.
type keptReader struct {
	from io.Reader
	to   io.Writer
	err  error // why something was not kept
}

// Read implements io.Reader.
func (r *keptReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if r.err == nil {
		_, r.err = r.to.Write(p[:n])
	}
	return n, err
}

// setOutputs gives the guest heddle's own standard output and error. A broken pipe is
// then a failure of the guest's write: Go would end this process.
func (a *app) setOutputs(ctx context.Context, c *machine.Config) {
	c.Stdout, c.Stderr = a.guestOutput(ctx, a.guestStdout), a.guestOutput(ctx, a.stderr)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// guestOutput is a stream for the guest to write to. A write that may never end, as
// to a pipe that no process reads, ends with Ctrl-C.
func (a *app) guestOutput(ctx context.Context, w io.Writer) io.Writer {
	file, ok := w.(*os.File)
	if !ok || isRegular(file) {
		return w
	}
	return &interruptibleWriter{a.newInterruptible(ctx, writeGrace), file}
}

func isRegular(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// writeGrace is how long a write that is under way when a context ends may still take.
// One to a pipe that is read needs less.
const writeGrace = 200 * time.Millisecond

// interruptible carries out reads or writes that end soon after a context does. One that
// was given up keeps its buffer to itself, so that a late answer changes nothing.
type interruptible struct {
	ctx    context.Context
	grace  time.Duration
	done   chan transferred
	stuck  bool // a transfer was given up: no other can begin
	gaveUp *bool
}

type transferred struct {
	n   int
	err error
}

func (a *app) newInterruptible(ctx context.Context, grace time.Duration) interruptible {
	return interruptible{ctx: ctx, grace: grace, done: make(chan transferred, 1), gaveUp: &a.gaveUp}
}

func (i *interruptible) do(transfer func() (int, error)) (int, error) {
	if i.stuck {
		return 0, i.end()
	}
	go func() {
		n, err := transfer()
		i.done <- transferred{n, err}
	}()
	select {
	case result := <-i.done:
		return result.n, result.err
	case <-i.ctx.Done():
	}
	select {
	case result := <-i.done:
		return result.n, result.err
	case <-time.After(i.grace):
		i.stuck, *i.gaveUp = true, true
		return 0, i.end()
	}
}

// end is why the context is done.
func (i *interruptible) end() error {
	if limit, reached := machine.ReachedTimeLimit(i.ctx); reached {
		return limit
	}
	return i.ctx.Err()
}

// interruptibleReader is a reader whose reads end when a context does.
type interruptibleReader struct {
	interruptible
	from io.Reader
}

// Read implements io.Reader.
func (r *interruptibleReader) Read(p []byte) (int, error) {
	own := make([]byte, len(p))
	n, err := r.do(func() (int, error) { return r.from.Read(own) })
	return copy(p, own[:n]), err
}

// interruptibleWriter is a writer whose writes end when a context does.
type interruptibleWriter struct {
	interruptible
	to io.Writer
}

// Write implements io.Writer.
func (w *interruptibleWriter) Write(p []byte) (int, error) {
	own := bytes.Clone(p)
	return w.do(func() (int, error) { return w.to.Write(own) })
}
