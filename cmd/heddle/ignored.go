package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
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

// recordDependences are the dependences of the flags of recordings.
var recordDependences = []command.Dependence{
	{Flag: "atomics", On: []string{"sync", "races", "all"}},
	{Flag: "heap", On: []string{"sync", "races", "all"}},
	{Flag: "sync-list", On: []string{"sync", "races", "all"}},
	{Flag: "pt-period", On: []string{"pt", "all"}},
	{Flag: "pt-ret-compression", On: []string{"pt", "all"}},
	{Flag: "pt-tsc", On: []string{"pt", "all"}},
	{Flag: "pt-mtc", On: []string{"pt", "all"}},
	{Flag: "pt-cyc", On: []string{"pt", "all"}},
	{Flag: "memory-thread", On: []string{"memory", "races", "all"}},
	{Flag: "memory-data", On: []string{"memory", "races", "all"}},
	{Flag: "memory-code", On: []string{"memory", "races", "all"}},
}

// reproduceDependences are those of heddle reproduce.
var reproduceDependences = []command.Dependence{{Flag: "checkpoint-every", On: []string{"checkpoint"}}}

// sayForeign says that the flags of the command line that are not among those of own have no effect
// on the object of the command.
func (a *app) sayForeign(flags, own *pflag.FlagSet, object string) {
	flags.Visit(func(f *pflag.Flag) {
		if own.Lookup(f.Name) == nil {
			a.say("--%s has no effect on %s", f.Name, object)
		}
	})
}
