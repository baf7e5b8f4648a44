// Package command has what all of heddle's commands share: their output, the errors of the command
// line and of the files that it names, and checks of arguments.
package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/memlog"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/infile"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/internal/shellword"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Errors of the command line and of the files that it names.
var (
	ErrFlag = errs.Define("flag-wrong-value",
		"--{flag} is {found}; allowed: {allowed}",
		"A flag was given a value that it does not take.",
		"Use a value that the sentence allows.")
	ErrUsage = errs.Define("usage",
		"{problem}; see `{command} --help`",
		"The command line has an unknown flag, a value that its flag does not take, or a missing or superfluous argument.",
		"Correct the command line; the help lists flags and their values. The arguments of the guest program come after `--`.")
	ErrReadFile = errs.Define("cannot-read",
		"cannot read {file}",
		"The file named on the command line does not exist, is a folder, may not be read, or is larger than any such file.",
		"Correct the name or the file's permissions.")
	ErrWriteFile = errs.Define("cannot-write",
		"cannot write {file}",
		"A file that the command line names for output cannot be created or written: its folder is missing, the disk is full, or permission is lacking.",
		"Name a file in a folder that you may write to.")
	ErrNoOutput = errs.Define("record-without-output",
		"no trace is named: -o TRACE is needed",
		"heddle record was called without saying where the trace goes.",
		"Name a file with -o.")
)

var errPartOfTrace = errs.Define("part-of-trace",
	"the part that was recorded until then is in {file}",
	"The trace could not be written to its end, as the sentence before says. The file that had the trace's name was left as it was.",
	"Read the part as any trace that is cut, or remove it.")

// DescriptorNames are the first three descriptors in sentences.
var DescriptorNames = [3]string{"standard input", "standard output", "standard error"}

// Output is where a command's results go.
type Output struct {
	Stdout io.Writer
	// Say prints a sentence of heddle's own.
	Say func(format string, args ...any)
	// Exit sets the exit status of a command that ends without an error.
	Exit func(status int)
}

// Dependence is a flag that has an effect only with one of other flags.
type Dependence struct {
	Flag string
	On   []string
}

// SayMissing says which flags have no effect because none of the flags that they depend on is given.
func (o Output) SayMissing(flags *pflag.FlagSet, dependences []Dependence) {
	for _, d := range dependences {
		if flags.Changed(d.Flag) && !slices.ContainsFunc(d.On, flags.Changed) {
			o.Say("--%s has no effect without --%s", d.Flag, d.On[0])
		}
	}
}

// ExportTo calls write with the file of a name, or with heddle's own output if the name is empty. What
// is written before an error that is a trace's damage is kept.
func (o Output) ExportTo(path string, write func(io.Writer) error) error {
	if path == "" {
		return write(o.Stdout)
	}
	file, err := outfile.Create(path)
	if err != nil {
		return ErrWriteFile.Wrap(err, path)
	}
	defer file.Discard()
	err = write(file)
	if file.Err() != nil {
		return ErrWriteFile.Wrap(file.Err(), path)
	}
	if err != nil && !trace.IsDamage(err) {
		return err
	}
	if commitErr := file.Commit(); commitErr != nil {
		err = errors.Join(err, ErrWriteFile.Wrap(commitErr, path))
	}
	return err
}

// WithTrace opens a trace for f. Its damage is an error, also where f does not need the damaged
// part.
func WithTrace(path string, f func(*trace.Reader) error) error {
	r, err := trace.Open(path)
	if err != nil {
		return err
	}
	err = f(r)
	for _, damage := range r.Damage() {
		if !errors.Is(err, damage) {
			err = errors.Join(err, damage)
		}
	}
	return errors.Join(err, r.Close())
}

// TraceFile is the file that a trace goes to.
type TraceFile struct {
	path string
	File *outfile.File
}

// CreateTrace creates the file for a trace of a name.
func CreateTrace(path string) (*TraceFile, error) {
	file, err := outfile.Create(path)
	if err != nil {
		return nil, ErrWriteFile.Wrap(err, path)
	}
	return &TraceFile{path, file}, nil
}

// Finish completes the trace of a run that took place, and returns its size. A trace
// that could not be written to its end is kept beside the name that it was to have.
func (t *TraceFile) Finish() (size int64, err error) {
	size = t.File.Size()
	if t.File.Err() != nil {
		if kept := t.File.Keep(); kept != "" {
			return 0, errPartOfTrace.New(kept)
		}
		return 0, nil // the writer of the trace has reported it
	}
	if err := t.File.Commit(); err != nil {
		return 0, ErrWriteFile.Wrap(err, t.path)
	}
	return size, nil
}

// ReadText returns the text of a small file.
func ReadText(path string) (string, error) {
	text, err := infile.ReadSmall(path)
	if err != nil {
		return "", ErrReadFile.Wrap(Reason(err), path)
	}
	return string(text), nil
}

// Reason is an error without the name of the file, which the sentence has.
func Reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// OfCommands checks the arguments of a command that has commands: an argument is an unknown one.
func OfCommands(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return ErrUsage.New(cli.UnknownCommand(c, args[0]), c.CommandPath())
	}
	return nil
}

// NoArgs checks that there are no arguments.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return ErrUsage.New(fmt.Sprintf("unexpected argument %q", args[0]), c.CommandPath())
	}
	return nil
}

// OneName checks that there is one argument, which names a thing.
func OneName(c *cobra.Command, args []string, thing string) error {
	switch len(args) {
	case 0:
		return ErrUsage.New("no "+thing+" is named", c.CommandPath())
	case 1:
		return nil
	}
	return ErrUsage.New(fmt.Sprintf("%d %ss are named where one is needed", len(args), thing), c.CommandPath())
}

// OneFile checks that there is one argument, which names a file.
func OneFile(c *cobra.Command, args []string) error {
	return OneName(c, args, "file")
}

// Addresses are ranges of addresses as flags have them.
func Addresses(flag string, texts []string) ([]memlog.Range, error) {
	var list []memlog.Range
	for _, text := range texts {
		from, to, _ := strings.Cut(text, "-")
		start, err := strconv.ParseUint(from, 0, 64)
		end, endErr := strconv.ParseUint(to, 0, 64)
		if err != nil || endErr != nil || start >= end {
			return nil, ErrFlag.New(flag, shellword.Quote(text), "FROM-TO, two addresses such as 0x401000-0x402000")
		}
		list = append(list, memlog.Range{Start: arch.Addr(start), End: arch.Addr(end)})
	}
	return list, nil
}
