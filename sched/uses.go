package sched

import "slices"

// timedAndOver are timed and the policies over it.
var timedAndOver = []string{Timed, RRSync, FCFSSync, Kendo, Parrot, DThreads, Consequence}

// usedBy has, for each option besides the policy, the policies that it changes. An option of
// timed is one of the policies that order operations over it, too.
var usedBy = map[string][]string{
	"quantum":      append([]string{RR, Random, CoreDet}, timedAndOver...),
	"time_slice":   PolicyNames(),
	"jitter":       append([]string{CoreDet}, timedAndOver...),
	"delay_rate":   append([]string{CoreDet}, timedAndOver...),
	"delay_cycles": append([]string{CoreDet}, timedAndOver...),
	"granularity":  {RR, Random},
	"depth":        {PCT},
	"length":       {PCT},
	"fairness":     {RR, Random, PCT, RRSync, Parrot, DThreads, Consequence},
}

// UsedBy lists the policies that an option, by its name in YAML and JSON, has an effect on.
func UsedBy(option string) []string { return slices.Clone(usedBy[option]) }
