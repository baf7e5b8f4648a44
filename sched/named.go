package sched

import (
	"slices"
	"strconv"
)

// OptionNames lists the fields of Options by their names in YAML, the policy left out.
func OptionNames() []string {
	return []string{"quantum", "time_slice", "jitter", "delay_rate", "delay_cycles", "granularity", "depth", "length", "fairness"}
}

// Uses reports whether the policy of o makes use of an option.
func (o Options) Uses(name string) bool {
	policy := o.WithDefaults().Policy
	isOneOf := func(names ...string) bool { return slices.Contains(names, policy) }
	switch name {
	case "quantum":
		return !isOneOf(PCT)
	case "time_slice":
		return true
	case "jitter", "delay_rate", "delay_cycles":
		return !isOneOf(RR, Random, PCT, CoreDet)
	case "granularity":
		return isOneOf(RR, Random)
	case "depth", "length":
		return isOneOf(PCT)
	case "fairness":
		return !isOneOf(Timed, FCFSSync, Kendo, CoreDet)
	}
	return false
}

// Set sets an option by its name to a value in the notation of YAML. The error is a *FieldError; Validate checks the
// value's range.
func (o *Options) Set(name, value string) error {
	var err error
	switch name {
	case "quantum":
		o.Quantum, err = parsePositive(value)
	case "time_slice":
		o.TimeSlice, err = parsePositive(value)
	case "delay_cycles":
		o.DelayCycles, err = parsePositive(value)
	case "length":
		o.Length, err = parsePositive(value)
	case "fairness":
		o.Fairness, err = parsePositive(value)
	case "depth":
		var depth uint64
		depth, err = parsePositive(value)
		o.Depth = int(min(depth, maxDepth+1))
	case "jitter":
		var jitter float64
		jitter, err = strconv.ParseFloat(value, 64)
		o.Jitter = &jitter
	case "delay_rate":
		o.DelayRate, err = strconv.ParseFloat(value, 64)
	case "granularity":
		o.Granularity = value
	default:
		return CheckOneOf("option", name, OptionNames())
	}
	if err != nil {
		return &FieldError{name, strconv.Quote(value), "a number"}
	}
	return nil
}

// parsePositive parses a whole number from 1 on: 0 would stand for the default.
func parsePositive(value string) (uint64, error) {
	n, err := strconv.ParseUint(value, 10, 64)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return n, err
}
