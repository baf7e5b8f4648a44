package main

import (
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/recorder/region"
)

// addRegionFlag defines the flag of commands that measure a region of interest.
func addRegionFlag(flags *pflag.FlagSet, text *string) {
	flags.StringVar(text, "region", "", "measure the `REGION` of interest, too: "+region.Forms)
	cli.Group(flags, groupOutput, "region")
}

// watchRegion has the run measure its region of interest, if it has one.
func (a *app) watchRegion(options *job.Options, f runFlags) error {
	if f.region != "" {
		options.Region = f.region
	}
	if _, ok := region.Parse(options.Region); options.Region != "" && !ok {
		return command.ErrFlag.New("region", quote(options.Region), region.Forms)
	}
	a.region = options.WatchRegion()
	if a.region != nil && f.gdb != "" {
		return errGDBAlone.New("--region")
	}
	return nil
}

// sayRegion prints what was measured.
func (a *app) sayRegion(f runFlags) {
	switch {
	case a.region == nil:
	case a.region.Check() != nil:
		a.say("%v", a.region.Check())
	case !f.quiet:
		a.say("%s", a.region.Result())
	}
}

// isInRegion reports whether the run is in its region of interest now, or has none.
func (a *app) isInRegion() bool { return a.region == nil || a.region.IsInside() }
