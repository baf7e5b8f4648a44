package peregrine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/infile"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/recorder/trace"
	"github.com/heddle-dmt/heddle/sched/enforce"
)

var (
	errRead = errs.Define("schedule-cannot-be-read",
		"the schedule {file} cannot be read",
		"The file is missing, is no schedule, is of another version, or was changed or cut: its checksum covers every line. The rest of the sentence says where.",
		"Make the schedule again: heddle schedule compute TRACE -o FILE.")
	errWrite = errs.Define("schedule-cannot-be-written",
		"the schedule {file} cannot be written",
		"The folder is missing, the disk is full, or permission is lacking.",
		"Name a file in a folder that you may write to.")
	errOther = errs.Define("schedule-of-another-run",
		"the schedule {file} is of another run: {property} is {found}, and was {expected}",
		"A schedule without preconditions holds for one program with the same arguments, environment and folder on the same files, in the same version.",
		"Run the recorded program, put the file back as it was, or record the run again.")
)

// ComputeFile makes the schedule file of a recorded run.
func ComputeFile(ctx context.Context, path string, o Options) (*hybrid.File, error) {
	made, err := Make(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return NewFile(made, path, o)
}

// NewFile makes the schedule file of a schedule that was made of a recorded run.
func NewFile(made *Schedule, path string, o Options) (f *hybrid.File, err error) {
	f = &hybrid.File{Kind: o.fileKind(), Prune: o.Prune, Counts: made.Counts, Schedule: made.Schedule, SpinLoops: made.SpinLoops}
	if err := addNotes(path, f); err != nil {
		return nil, err
	}
	return f, describeRun(f, path)
}

func (o Options) fileKind() string {
	switch {
	case o.SyncOnly:
		return "sync"
	case o.Every:
		return "mem"
	}
	return "hybrid"
}

// describeRun describes the recorded run in a file.
func describeRun(f *hybrid.File, path string) error {
	r, err := machine.OpenReplay(path)
	if err != nil {
		return err
	}
	defer r.Close()
	c, err := r.Config()
	if err != nil {
		return err
	}
	f.Args, f.Env, f.Dir, f.Seed, f.Cores = c.Args, c.Env, c.Dir, c.Seed, c.Cores
	f.Layout, f.Model = c.RandomizeLayout, c.Memory.MemoryModel().String()
	inputs, err := inputsOfRun(path)
	for _, in := range inputs {
		f.Inputs = append(f.Inputs, hybrid.Input{SHA256: in.SHA256, Path: in.Path})
	}
	return err
}

// inputsOfRun are the files that the recorded run read.
func inputsOfRun(path string) ([]machine.Input, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := r.Summary()
	if err != nil || text == nil {
		return nil, errors.Join(err, errLacks.New(path, "end"))
	}
	var s struct {
		Result machine.Result `json:"result"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, errLacks.Wrap(err, path, "summary")
	}
	return s.Result.Inputs, nil
}

// Save writes a schedule file.
func Save(f *hybrid.File, path string) error {
	if err := outfile.Write(path, f.Write); err != nil {
		return errWrite.Wrap(err, path)
	}
	return nil
}

// Load reads a schedule file.
func Load(path string) (*hybrid.File, error) {
	text, err := infile.ReadStarting(path, hybrid.FileStart)
	if err != nil {
		return nil, errRead.Wrap(errors.Unwrap(err), path)
	}
	f, err := hybrid.Parse(text)
	if err != nil {
		return nil, errRead.Wrap(err, path)
	}
	return f, nil
}

// Enforce sets a configuration up to follow a schedule. It fails if the schedule is
// of another program, input or version. name is the file's, for the sentence.
func Enforce(c *machine.Config, f *hybrid.File, name string, o enforce.Options) error {
	prepareEnforcement(c, f, &o)
	return checkRun(c, f, name)
}

// EnforceDeferred is Enforce that compares the inputs and makes the plan at the same time as the
// machine is built. It returns a function that waits for the plan, or the error, for
// machine.WithPlan.
func EnforceDeferred(c *machine.Config, f *hybrid.File, name string, o enforce.Options) func() (*enforce.Plan, error) {
	prepareEnforcement(c, f, &o)
	run := *c
	plan := sync.OnceValues(func() (*enforce.Plan, error) {
		if err := checkRun(&run, f, name); err != nil {
			return nil, err
		}
		return enforce.NewPlan(f.Schedule, o.SyncOnly), nil
	})
	go func() { _, _ = plan() }() // the machine asks for both results
	return plan
}

// prepareEnforcement has a configuration follow a schedule, and completes the options by the kind
// of the schedule.
func prepareEnforcement(c *machine.Config, f *hybrid.File, o *enforce.Options) {
	if slices.Contains(f.Env, bindNow) {
		BindNow(c)
	}
	o.SyncOnly = o.SyncOnly || f.Kind == "sync"
	c.Enforce = &machine.Enforce{Schedule: f.Schedule, Options: *o, Seed: f.Seed, Cores: f.Cores}
}

func checkRun(c *machine.Config, f *hybrid.File, name string) error {
	for _, x := range []struct {
		property        string
		found, expected any
		same            bool
	}{
		{"the command", c.Args, f.Args, slices.Equal(c.Args, f.Args)},
		{"the environment", c.Env, f.Env, slices.Equal(c.Env, f.Env)},
		{"the working folder", c.Dir, f.Dir, c.Dir == f.Dir},
		{"randomize_layout", c.RandomizeLayout, f.Layout, c.RandomizeLayout == f.Layout},
		{"the memory model", c.Memory.MemoryModel().String(), f.Model, c.Memory.MemoryModel().String() == f.Model},
	} {
		if !x.same {
			return errOther.New(name, x.property, fmt.Sprintf("%q", x.found), fmt.Sprintf("%q", x.expected))
		}
	}
	for _, in := range f.Inputs {
		sum, err := inputDigest(c, in.Path)
		if err != nil {
			return errOther.Wrap(err, name, in.Path, "not readable", in.SHA256)
		}
		if sum != "" && sum != in.SHA256 {
			return errOther.New(name, in.Path, "of SHA-256 "+sum, in.SHA256)
		}
	}
	return nil
}

// inputDigest is the SHA-256 of an input, or empty if it is a stream.
func inputDigest(c *machine.Config, path string) (string, error) {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer file.Close()
		return sha256Of(file)
	}
	file, ok := c.Stdin.(*os.File)
	if !ok {
		return "", nil
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	return sha256Of(io.NewSectionReader(file, 0, info.Size()))
}

func sha256Of(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
