package find

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/heddle-dmt/heddle/experiments/find/campaign"
	"github.com/heddle-dmt/heddle/internal/machine"
)

// Campaign carries out a campaign's file; see campaign.Main.
func Campaign(ctx context.Context, path, plot string, out, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "heddle-campaign")
	if err != nil {
		return errFile.Wrap(err, os.TempDir())
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	search := func(ctx context.Context, x campaign.Search) (tried int, failure string, err error) {
		c := machine.DefaultConfig()
		c.Args, c.Seed = x.Args, x.Seed
		r, err := Find(ctx, c, nil, Options{
			Schedules: x.Schedules, Models: x.Models, Strategies: x.Strategies, Workers: x.Workers, AnyOutput: !x.Outputs,
			Trace: filepath.Join(dir, "failure.trace"),
		})
		switch {
		case err != nil:
			return 0, "", err
		case r.Ended != "":
			return 0, "", ctx.Err()
		case len(r.Failures) > 0:
			failure = r.Failures[0].Failure.Class
		}
		return r.Tried, failure, nil
	}
	return campaign.Main(ctx, path, plot, search, out, progress)
}
