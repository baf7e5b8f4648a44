package sweep

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/outfile"
	"github.com/heddle-dmt/heddle/internal/worker"
)

var errShortest = errs.Define("shortest-run-files",
	"cannot write the files {file} of the shortest failing run",
	"The folder for shortest runs cannot be made or written, or the disk is full.",
	"Make room, or name another folder with failures.folder in the experiment file.")

// ShortenCommand is the hidden command under which heddle looks for a shortest schedule for a
// sweep.
const ShortenCommand = "worker-shorten"

// shortening is a request for the shortest schedule under which a job fails as it does.
type shortening struct {
	Job job.Job `json:"job"`
	// Base is the path of the files, to which .trace, .json (a timeline for
	// Perfetto) and .txt (a report) are appended.
	Base string `json:"base"`
	// Runs bounds how many schedules are tried; 0 means no bound.
	Runs int `json:"runs"`
}

// shortened is the reply.
type shortened struct {
	Report *minimize.Report `json:"report,omitempty"`
	// Failure is heddle's sentence when Report is nil.
	Failure string `json:"failure,omitempty"`
}

// spawn carries out the request in a fresh process.
func (s *shortening) spawn(ctx context.Context) (reply shortened, err error) {
	err = worker.Spawn(ctx, ShortenCommand, s, &reply, nil, nil)
	return reply, err
}

// ServeShortening is the worker's side of it.
func ServeShortening(stdin io.Reader, stdout io.Writer) error {
	return worker.Serve(stdin, stdout, func(s shortening) shortened {
		report, err := s.carryOut(context.Background())
		if err != nil {
			return shortened{Failure: job.Explained(err).Error()}
		}
		return shortened{Report: report}
	})
}

// carryOut records the job, and makes the recording shorter.
func (s *shortening) carryOut(ctx context.Context) (*minimize.Report, error) {
	if err := os.MkdirAll(filepath.Dir(s.Base), 0o755); err != nil {
		return nil, errShortest.Wrap(withoutPath(err), s.Base)
	}
	recording, err := recordJob(ctx, s.Job, filepath.Dir(s.Base))
	defer os.Remove(recording)
	if err != nil {
		return nil, err
	}
	p, err := minimize.Minimize(ctx, recording, s.Base+".trace", minimize.Options{Runs: s.Runs, Perfetto: s.Base + ".json"})
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		return nil, err
	}
	if err := outfile.WriteBytes(s.Base+".txt", text.Bytes()); err != nil {
		return nil, errShortest.Wrap(err, s.Base)
	}
	return p, nil
}

// recordJob runs the job and records it in a temporary file of the folder.
func recordJob(ctx context.Context, j job.Job, dir string) (name string, err error) {
	file, err := os.CreateTemp(dir, ".recording-")
	if err != nil {
		return "", errShortest.Wrap(withoutPath(err), dir)
	}
	stdin, err := j.OpenStdin()
	if err != nil {
		return file.Name(), errors.Join(err, file.Close())
	}
	defer stdin.Close()
	c := j.Config()
	c.Stdin, c.Record = stdin.Reader, &machine.Record{To: file}
	_, err = machine.Run(ctx, c)
	return file.Name(), errors.Join(err, file.Close())
}

// withoutPath is an error without the name of the file, which the sentence has.
func withoutPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
