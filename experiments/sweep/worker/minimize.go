package worker

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
)

var errShortest = errs.Define("shortest-run-files",
	"cannot write the files {file} of the shortest failing run",
	"The folder for shortest runs cannot be made or written, or the disk is full.",
	"Make room, or name another folder with failures.folder in the experiment file.")

// Shortest asks for the shortest schedule under which the job fails as it does.
type Shortest struct {
	// Base is the path of the files, to which .trace, .json (a timeline for
	// Perfetto) and .txt (a report) are appended.
	Base string `json:"base"`
	// Runs bounds how many schedules are tried; 0 means no bound.
	Runs int `json:"runs"`
}

// shortenSchedule records the job, and makes the recording shorter.
func shortenSchedule(ctx context.Context, job Job) (*minimize.Report, error) {
	base := job.Shortest.Base
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return nil, errShortest.Wrap(withoutPath(err), base)
	}
	recording, err := recordJob(ctx, job, filepath.Dir(base))
	defer os.Remove(recording)
	if err != nil {
		return nil, err
	}
	p, err := minimize.Minimize(ctx, recording, base+".trace", minimize.Options{Runs: job.Shortest.Runs, Perfetto: base + ".json"})
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		return nil, err
	}
	if err := outfile.WriteBytes(base+".txt", text.Bytes()); err != nil {
		return nil, errShortest.Wrap(err, base)
	}
	return p, nil
}

// recordJob runs the job and records it in a temporary file of the folder.
func recordJob(ctx context.Context, job Job, dir string) (name string, err error) {
	file, err := os.CreateTemp(dir, ".recording-")
	if err != nil {
		return "", errShortest.Wrap(withoutPath(err), dir)
	}
	stdin, err := job.OpenStdin()
	if err != nil {
		return file.Name(), errors.Join(err, file.Close())
	}
	defer stdin.Close()
	c := job.Config()
	c.Stdin, c.Record = stdin.Reader, &machine.Record{To: file}
	_, err = machine.Run(ctx, c)
	return file.Name(), errors.Join(err, file.Close())
}
