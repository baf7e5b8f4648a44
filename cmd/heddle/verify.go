package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/guest/vfs"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
)

var (
	errDiffers = errs.Define("verify-differs",
		"repetition {n} ({how}) is not equal to the first run: {what} is {found}, was {first}; {event}",
		"The run is not a pure function of program, files, configuration and seed. Either a file that it reads was changed meanwhile, or heddle has a defect.",
		"Check that nothing changes the program's files while it runs. If nothing does, report the sentence: the event it names is where to look.")
	errTemp = errs.Define("temporary-files",
		"cannot keep the files that --verify compares in a temporary folder",
		"The folder for temporary files (TMPDIR, or /tmp) cannot be written or is full.",
		"Make room there, or set TMPDIR to another folder.")
)

// verify runs the job, then repeats it and compares. The first run is the one
// whose output is seen.
func (a *app) verify(ctx context.Context, flags *pflag.FlagSet, f runFlags, j job.Job) error {
	for _, mount := range j.Options.Mounts {
		if mount.Writable {
			return errVerifyWritable.New(mount)
		}
	}
	dir, err := os.MkdirTemp("", "heddle-verify-")
	if err != nil {
		return errTemp.Wrap(err)
	}
	defer os.RemoveAll(dir)
	j.Hidden = append(j.Hidden, dir)
	if f.eventLog == "" {
		f.eventLog = filepath.Join(dir, "events")
	}
	limited, cancel := machine.WithTimeLimit(ctx, f.timeLimit)
	defer cancel()
	stdin, err := a.keepStdin(limited, &j, dir)
	if err != nil {
		return err
	}
	first, err := a.firstRun(ctx, limited, f, j, stdin.Reader)
	stdin.Close()
	if err != nil {
		return err
	}
	if kept, ok := stdin.Reader.(*keptReader); ok && kept.err != nil {
		return errTemp.Wrap(command.Reason(kept.err))
	}
	if err := a.finish(ctx, flags, f, j, first); err != nil || !ended(first) {
		return err
	}
	j.ExportDir, j.Faults = "", first.Faults
	for n := 1; n <= f.verify; n++ {
		limit, err := repeatWithin(ctx, f, n, j, first)
		if status, ok := interrupted(ctx); ok {
			a.status = status
			return nil
		}
		if limit > 0 {
			a.say("repetition %d is not compared: %v", n, limit)
			a.status = machine.ExitTimeLimit
			return nil
		}
		if err != nil {
			return err
		}
	}
	if !f.quiet {
		a.say("repetitions with the same digest: %d; digest %s", f.verify, first.Digest)
	}
	return nil
}

// repeatWithin repeats the job within the time limit, and returns that if it was reached:
// the repetition is not compared.
func repeatWithin(ctx context.Context, f runFlags, n int, j job.Job, first *machine.Result) (machine.TimeLimit, error) {
	limited, cancel := machine.WithTimeLimit(ctx, f.timeLimit)
	defer cancel()
	err := repeat(limited, n, j, first, f.eventLog)
	if limit, reached := machine.ReachedTimeLimit(limited); reached && err != nil {
		return limit, nil
	}
	return 0, err
}

// keepStdin opens standard input for the first run, and makes the job read a
// copy: of the file, or, where it is no file, of the bytes that the first run reads.
func (a *app) keepStdin(ctx context.Context, j *job.Job, dir string) (job.Stdin, error) {
	if j.Stdin != "" {
		return j.OpenStdin()
	}
	if j.Closed[0] {
		return job.Stdin{}, nil
	}
	if vfs.IsNull(a.stdin) {
		j.Stdin = os.DevNull
		return j.OpenStdin()
	}
	kept, err := os.CreateTemp(dir, "stdin-")
	if err != nil {
		return job.Stdin{}, errTemp.Wrap(err)
	}
	j.Stdin = kept.Name()
	if !isRegular(a.stdin) {
		j.StdinIsPipe = true
		return job.NewStdin(&keptReader{from: a.ownStdin(ctx), to: kept}, kept), nil
	}
	in := &failingReader{from: a.stdin}
	_, err = io.Copy(kept, in)
	if in.err != nil {
		return job.NewStdin(nil, kept), errOwnStdin.Wrap(command.Reason(in.err))
	}
	if err := errors.Join(err, kept.Close()); err != nil {
		return job.Stdin{}, errTemp.Wrap(err)
	}
	return j.OpenStdin()
}

func (a *app) firstRun(ctx, limited context.Context, f runFlags, j job.Job, stdin io.Reader) (*machine.Result, error) {
	events, err := newLog(f.eventLog)
	if err != nil {
		return nil, err
	}
	defer events.discard()
	j.Hidden = append(j.Hidden, events.names()...)
	result, err := a.runJob(ctx, limited, j, f, stdin, events.writer())
	if result != nil {
		err = errors.Join(events.finish(), err)
	}
	return result, err
}

// repeat runs the job once more, every second time in a fresh process, with
// the Go runtime on 1, 2, 8 or all of the host's processors in turn.
func repeat(ctx context.Context, n int, j job.Job, first *machine.Result, log string) error {
	procs := []int{1, 2, 8, runtime.NumCPU()}[n%4]
	how := fmt.Sprintf("in this process, GOMAXPROCS=%d", procs)
	events, err := newComparison(log)
	if err != nil {
		return errTemp.Wrap(err)
	}
	defer events.close()
	var report job.Report
	if n%2 == 0 {
		before := runtime.GOMAXPROCS(procs)
		report = j.Run(ctx, events)
		runtime.GOMAXPROCS(before)
	} else {
		how = fmt.Sprintf("in a fresh process, GOMAXPROCS=%d", procs)
		report, err = j.Spawn(ctx, []string{"GOMAXPROCS=" + strconv.Itoa(procs)}, events)
		if err != nil {
			return err
		}
	}
	if report.Result == nil {
		return errDiffers.New(n, how, "the outcome", report.Failure, first.Outcome, events.finding())
	}
	if what, found, was, differs := difference(report.Result, first); differs {
		return errDiffers.New(n, how, what, found, was, events.finding())
	}
	return nil
}

// difference compares the results that two runs must have in common.
func difference(got, first *machine.Result) (what string, found, was any, differs bool) {
	for _, field := range []struct {
		name       string
		found, was any
	}{
		{"the outcome", got.Outcome, first.Outcome},
		{"the exit status", got.ExitCode, first.ExitCode},
		{"the number of instructions", got.Instructions, first.Instructions},
		{"the schedule digest", got.ScheduleDigest, first.ScheduleDigest},
		{"the output digest", got.OutputDigest, first.OutputDigest},
		{"the number of cycles", got.Cycles, first.Cycles},
		{"the digest", got.Digest, first.Digest},
	} {
		if field.found != field.was {
			return field.name, field.found, field.was, true
		}
	}
	return "", nil, nil, false
}

// comparison is a writer that compares the events written to it with those of
// the first run, line by line, and remembers the first that differs.
type comparison struct {
	file    *os.File
	first   *bufio.Reader
	partial []byte // an unfinished line
	line    int    // number of lines compared
	differs bool
	was     string
	found   string
}

func newComparison(path string) (*comparison, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &comparison{file: file, first: bufio.NewReaderSize(file, 1<<16)}, nil
}

func (c *comparison) close() { c.file.Close() }

// Write implements io.Writer; it never fails.
func (c *comparison) Write(p []byte) (int, error) {
	written := len(p)
	for !c.differs {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		c.partial = append(c.partial, line...)
		if !whole {
			break
		}
		c.compare(string(c.partial))
		c.partial = c.partial[:0]
		p = rest
	}
	return written, nil
}

func (c *comparison) compare(found string) {
	was, err := c.first.ReadString('\n')
	c.line++
	if err != nil {
		c.differs, c.found, c.was = true, strconv.Quote(found), "the end of the run"
	} else if was = was[:len(was)-1]; was != found {
		c.differs, c.found, c.was = true, strconv.Quote(found), strconv.Quote(was)
	}
}

// finding names the first event that differs, once all are written.
func (c *comparison) finding() string {
	if !c.differs {
		was, err := c.first.ReadString('\n')
		if err != nil {
			return fmt.Sprintf("none of the %d events differs", c.line)
		}
		c.line++
		c.found, c.was = "the end of the run", strconv.Quote(was[:len(was)-1])
	}
	return fmt.Sprintf("the first event that differs is number %d: %s, was %s", c.line, c.found, c.was)
}
