package main

import (
	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder"
)

var errStretchAlone = errs.Define("stretch-with-region",
	"--from and --to cannot be combined with --region",
	"A stretch and a region of interest stop the engine at places of their own.",
	"Record the stretch first, and measure the region in a run of its own.")

// addStretchFlags defines the flags of commands that record a part of a run.
func addStretchFlags(flags *pflag.FlagSet, from, to *string) {
	flags.StringVar(from, "from", "", "record the events from `PLACE` of the run on: "+recorder.PlaceForms)
	flags.StringVar(to, "to", "", "record the events up to `PLACE` of the run, counted from its start as with --from")
}

// stretchOf reads the places of the flags.
func stretchOf(from, to string) (s recorder.Stretch, err error) {
	for _, x := range []struct {
		flag, text string
		place      *recorder.Place
	}{{"from", from, &s.From}, {"to", to, &s.To}} {
		place, ok := recorder.ParsePlace(x.text)
		if x.text != "" && !ok {
			return s, command.ErrFlag.New(x.flag, quote(x.text), "one of "+recorder.PlaceForms)
		}
		*x.place = place
	}
	return s, nil
}
