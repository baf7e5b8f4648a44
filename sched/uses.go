package sched

import "slices"

// usedBy has, for each option besides the policy, the policies that it changes. An option of
// timed is one of the policies that order operations over it, too.
var usedBy = map[string][]string{
	"quantum":      {Timed, RR, Random, RRSync, FCFSSync, Kendo, CoreDet},
	"time_slice":   PolicyNames(),
	"jitter":       {Timed, RRSync, FCFSSync, Kendo, CoreDet},
	"delay_rate":   {Timed, RRSync, FCFSSync, Kendo, CoreDet},
	"delay_cycles": {Timed, RRSync, FCFSSync, Kendo, CoreDet},
	"granularity":  {RR, Random},
	"depth":        {PCT},
	"length":       {PCT},
	"fairness":     {RR, Random, PCT, RRSync},
}

// UsedBy lists the policies that an option, by its name in YAML and JSON, has an effect on.
func UsedBy(option string) []string { return slices.Clone(usedBy[option]) }
