package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// sayIgnored says which flags of the command line have no effect with the policy and the memory model
// of a run, unless the command is to leave remarks out.
func (a *app) sayIgnored(flags *pflag.FlagSet, run runFlags, options job.Options) {
	if run.quiet {
		return
	}
	policy := options.Sched.WithDefaults().Policy
	for _, f := range machineFlags {
		if !flags.Changed(f.name) {
			continue
		}
		if option, ok := strings.CutPrefix(f.field, "sched."); ok && option != "policy" {
			a.sayUnused(f.name, policy, sched.UsedBy(option))
		}
		if option, ok := strings.CutPrefix(f.field, "memory."); ok {
			if why := options.Memory.Ignores(option); why != "" {
				a.say("--%s has no effect with %s", f.name, why)
			}
		}
	}
	if run.syncList != "" {
		a.sayUnused("sync-list", policy, slices.DeleteFunc(sched.PolicyNames(), func(p string) bool { return !dmt.OrdersOperations(p) }))
	}
	if run.schedule.delays > 0 {
		a.sayUnused("inject-delays", policy, sched.UsedBy("delay_rate"))
		if flags.Changed("delay-rate") {
			a.say("--delay-rate has no effect with --inject-delays, which takes its place")
		}
	}
}

// sayUnused says that a flag has no effect with a policy, unless that is one of its users.
func (a *app) sayUnused(flag, policy string, users []string) {
	if !slices.Contains(users, policy) {
		a.say("--%s has no effect with the policy %s, only with %s", flag, policy, strings.Join(users, ", "))
	}
}

// A dependence is a flag that has an effect only with one of other flags.
type dependence struct {
	flag string
	on   []string
}

// recordDependences are the dependences of the flags of recordings.
var recordDependences = []dependence{
	{"atomics", []string{"sync", "races", "all"}},
	{"heap", []string{"sync", "races", "all"}},
	{"sync-list", []string{"sync", "races", "all"}},
	{"pt-period", []string{"pt", "all"}},
	{"pt-ret-compression", []string{"pt", "all"}},
	{"pt-tsc", []string{"pt", "all"}},
	{"pt-mtc", []string{"pt", "all"}},
	{"pt-cyc", []string{"pt", "all"}},
	{"memory-thread", []string{"memory", "races", "all"}},
	{"memory-data", []string{"memory", "races", "all"}},
	{"memory-code", []string{"memory", "races", "all"}},
}

// litmusDependences are those of heddle litmus.
var litmusDependences = []dependence{{"seed", []string{"random"}}}

// reproduceDependences are those of heddle reproduce.
var reproduceDependences = []dependence{{"checkpoint-every", []string{"checkpoint"}}}

// sayMissing says which flags have no effect because none of the flags that they depend on is given.
func (a *app) sayMissing(flags *pflag.FlagSet, dependences []dependence) {
	for _, d := range dependences {
		if flags.Changed(d.flag) && !slices.ContainsFunc(d.on, flags.Changed) {
			a.say("--%s has no effect without --%s", d.flag, d.on[0])
		}
	}
}

// sayForeign says that the flags of the command line that are not among those of own have no effect
// on the object of the command.
func (a *app) sayForeign(flags, own *pflag.FlagSet, object string) {
	flags.Visit(func(f *pflag.Flag) {
		if own.Lookup(f.Name) == nil {
			a.say("--%s has no effect on %s", f.Name, object)
		}
	})
}
