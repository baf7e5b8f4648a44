package find

import (
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/sched/points"
)

// AddFlags adds the flags of a search to a command's.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&o.Trace, "output", "o", DefaultTrace, "write the trace of the failing run to `FILE`")
	flags.IntVar(&o.Schedules, "schedules", DefaultSchedules, "try at most `N` schedules")
	flags.DurationVar(&o.Time, "time", 0, "end the search after `DURATION`, like 90s or 2h; where it ends depends on the host's speed; 0: no limit")
	flags.StringSliceVar(&o.modelNames, "model", []string{memmodel.SC.String(), memmodel.TSO.String()}, "memory `MODELS` that take turns: "+strings.Join(memmodel.Names(), ", "))
	flags.StringSliceVar(&o.Strategies, "strategy", nil, "`STRATEGIES` that take turns (default all): "+strings.Join(points.Names(), ", "))
	o.AddNativeFlag(flags)
	flags.BoolVar(&o.AnyOutput, "any-output", false, "no output is a failure")
	flags.BoolVar(&o.HeapCheck, "heap-check", false, "fail at overflows of allocated memory, uses of freed memory and double frees")
	flags.BoolVar(&o.All, "all", false, "find all failures that differ in how or where the program fails")
	flags.IntVar(&o.Minimize, "minimize", DefaultMinimize, "look for a shorter failing schedule in at most `N` runs; 0: do not")
	flags.IntVar(&o.Workers, "workers", runtime.NumCPU(), "execute `N` schedules at the same time; no result depends on it")
}

// AddNativeFlag adds the flag that compares outputs with those on the host.
func (o *Options) AddNativeFlag(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Native, "native", false, "run the program on the host, twice: a run under heddle that prints something else fails")
}

// Check completes options that flags have set, and returns the first wrong flag with its value and the allowed
// ones, or empty strings.
func (o *Options) Check() (flag string, found any, allowed string) {
	switch {
	case o.Schedules < 1:
		return "schedules", o.Schedules, "a whole number from 1 on"
	case o.Workers < 1:
		return "workers", o.Workers, "a whole number from 1 on"
	case o.Minimize < 0:
		return "minimize", o.Minimize, "a whole number, not negative"
	case o.Time < 0:
		return "time", o.Time, "a duration that is not negative, such as 90s; 0 means no limit"
	case o.Native && o.AnyOutput:
		return "native", true, "left out where --any-output is given"
	case len(o.modelNames) == 0:
		return "model", strconv.Quote(""), "memory models: " + strings.Join(memmodel.Names(), ", ")
	}
	for _, name := range o.modelNames {
		model, known := memmodel.Parse(name)
		if !known {
			return "model", strconv.Quote(name), strings.Join(memmodel.Names(), ", ")
		}
		o.Models = append(o.Models, model)
	}
	for _, name := range o.Strategies {
		if !slices.Contains(points.Names(), name) {
			return "strategy", strconv.Quote(name), strings.Join(points.Names(), ", ")
		}
	}
	return "", nil, ""
}
