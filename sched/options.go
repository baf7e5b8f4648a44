package sched

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The names of the policies, as Options.Policy takes them.
const (
	Timed  = "timed"
	RR     = "rr"
	Random = "random"
	PCT    = "pct"

	// These but CoreDet are controllers (NewTurnController) over timed.
	RRSync      = "rr-sync"
	FCFSSync    = "fcfs-sync"
	Kendo       = "kendo"
	CoreDet     = "coredet"
	Parrot      = "parrot"
	DThreads    = "dthreads"
	Consequence = "consequence"
)

// The granularities at which rr and random end a slice, as
// Options.Granularity takes them.
const (
	Block       = "block"
	Sync        = "sync"
	Instruction = "instruction"
)

// PolicyNames lists the values of Options.Policy, the default first.
func PolicyNames() []string {
	return []string{Timed, RR, Random, PCT, RRSync, FCFSSync, Kendo, CoreDet, Parrot, DThreads, Consequence}
}

// Granularities lists the values of Options.Granularity, the default first.
func Granularities() []string { return []string{Block, Sync, Instruction} }

// Options chooses and tunes a policy. The zero value of each field stands for
// the policy's default, which WithDefaults fills in; a field that the chosen
// policy does not use is checked and otherwise ignored, so that one set of
// options can be swept over several policies.
type Options struct {
	// Policy is one of PolicyNames; empty means "timed". The statements below about
	// timed are true of the policies over it too: rr-sync, fcfs-sync, kendo, parrot, dthreads and
	// consequence.
	Policy string `json:"policy" yaml:"policy" mapstructure:"policy"`
	// Quantum is, for timed, the bound in cycles by which a core may run
	// ahead of the slowest busy one; for rr the length of a turn and for
	// random the mean length of a slice, both in instructions; for coredet the
	// instructions of a thread in a round. pct does not use it.
	Quantum uint64 `json:"quantum" yaml:"quantum" mapstructure:"quantum" positive:"true"`
	// TimeSlice is, for timed, how many cycles a thread keeps its core while
	// others wait for one. For the other policies it is the number of cycles
	// by which the clock of a core may lag behind the furthest one.
	TimeSlice uint64 `json:"time_slice" yaml:"time_slice" mapstructure:"time_slice" positive:"true"`
	// Jitter is, for timed, the noise of a core's speed: after each quantum the
	// clock advances by a further seeded amount of up to this fraction of the
	// quantum's cycles, and time slices vary by this fraction either way. With
	// jitter the seed also draws each quantum's lead (below Quantum) and each
	// wake-up's delay (below Quantum). A pointer, because 0 is a value of its
	// own: it turns all of this off, and the seed then has no effect unless
	// delays are injected. Nil means the default.
	Jitter *float64 `json:"jitter,omitempty" yaml:"jitter,omitempty" mapstructure:"jitter"`
	// DelayRate is, for timed, the probability, 0 to 1, that a delay is
	// injected after a slice. The default is 0.
	DelayRate float64 `json:"delay_rate" yaml:"delay_rate" mapstructure:"delay_rate"`
	// DelayCycles is the greatest length of an injected delay; lengths are
	// uniform from 1.
	DelayCycles uint64 `json:"delay_cycles" yaml:"delay_cycles" mapstructure:"delay_cycles" positive:"true"`
	// Granularity is where rr and random may end a slice: at the first
	// "block" boundary at or after its length, at a "sync" point (system
	// call, locked instruction, PAUSE), or exactly at an "instruction".
	Granularity string `json:"granularity" yaml:"granularity" mapstructure:"granularity"`
	// Depth is pct's bug depth d: the run has d-1 priority change points.
	Depth int `json:"depth" yaml:"depth" mapstructure:"depth" positive:"true"`
	// Length is pct's estimate k of the run's instructions, over which the
	// change points are spread.
	Length uint64 `json:"length" yaml:"length" mapstructure:"length" positive:"true"`
	// Fairness bounds, for rr, random and pct, the instructions that others
	// run while a runnable thread waits. For rr-sync and parrot it is how many
	// instructions a thread may run without an operation before it waits for
	// the turn to pass it on; for consequence, before it commits its stores; and
	// for dthreads, before it counts as spinning.
	Fairness uint64 `json:"fairness" yaml:"fairness" mapstructure:"fairness" positive:"true"`
}

// The defaults of the options, and the greatest values that Validate allows:
// room for any sensible run, and far from overflow.
const (
	defaultTimedQuantum       = 50_000
	defaultRRQuantum          = 10_000
	defaultRandomQuantum      = 2000
	defaultInstructionQuantum = 10
	defaultTimeSlice          = 1_000_000
	defaultJitter             = 0.1
	defaultDelayCycles        = 100_000
	defaultDepth              = 3
	defaultLength             = 1_000_000
	defaultFairness           = 1_000_000
	defaultTurnFairness       = 20_000_000
	defaultRoundFairness      = 1_000_000_000
	defaultChunkFairness      = 10_000_000

	maxAmount = 1_000_000_000_000
	maxDepth  = 1000
)

// Defaults returns the complete options of a policy. The name must be one of
// PolicyNames; Validate checks a name that a user gave.
func Defaults(policy string) Options { return Options{Policy: policy}.WithDefaults() }

// WithDefaults returns o with each zero field replaced by the default of the
// chosen policy.
func (o Options) WithDefaults() Options {
	fillDefault(&o.Policy, Timed)
	fillDefault(&o.Granularity, Block)
	fillDefault(&o.Quantum, o.defaultQuantum())
	fillDefault(&o.TimeSlice, defaultTimeSlice)
	fillDefault(&o.DelayCycles, defaultDelayCycles)
	fillDefault(&o.Depth, defaultDepth)
	fillDefault(&o.Length, max(defaultLength, uint64(max(o.Depth, 0))))
	switch o.Policy {
	case RRSync, Parrot:
		fillDefault(&o.Fairness, defaultTurnFairness)
	case DThreads:
		fillDefault(&o.Fairness, defaultRoundFairness)
	case Consequence:
		fillDefault(&o.Fairness, defaultChunkFairness)
	}
	fillDefault(&o.Fairness, defaultFairness)
	if o.Jitter == nil {
		jitter := defaultJitter
		o.Jitter = &jitter
	}
	return o
}

// insideSeed is the seed of the places inside instructions: rr knows no seed.
func (o Options) insideSeed(seed uint64) uint64 {
	if o.Policy == RR {
		return 0
	}
	return seed
}

func fillDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (o Options) defaultQuantum() uint64 {
	switch {
	case o.Policy == RR:
		return defaultRRQuantum
	case o.Policy == Random && o.Granularity == Instruction:
		return defaultInstructionQuantum
	case o.Policy == Random:
		return defaultRandomQuantum
	}
	return defaultTimedQuantum
}

// A FieldError says which option is wrong, what was found there and what is
// allowed. Field is the option's name in YAML and JSON.
type FieldError struct {
	Field, Found, Allowed string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("scheduling option %s is %s; allowed: %s", e.Field, e.Found, e.Allowed)
}

// Validate checks every option, also those that the policy does not use,
// and returns the first that is wrong as a *FieldError. Zero values are valid.
func (o Options) Validate() error {
	given := o
	o = o.WithDefaults()
	checks := []*FieldError{
		CheckOneOf("policy", o.Policy, PolicyNames()),
		checkRange("quantum", o.Quantum, 1, maxAmount),
		checkRange("time_slice", o.TimeSlice, 1, maxAmount),
		checkFraction("jitter", *o.Jitter),
		checkFraction("delay_rate", o.DelayRate),
		checkRange("delay_cycles", o.DelayCycles, 1, maxAmount),
		CheckOneOf("granularity", o.Granularity, Granularities()),
		checkRange("depth", o.Depth, 1, maxDepth),
		checkRange("length", o.Length, uint64(max(o.Depth, 1)), maxAmount),
		checkRange("fairness", o.Fairness, 1, maxAmount),
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	if given.Policy == Random && o.Granularity != Sync && o.Quantum > o.Fairness {
		return &FieldError{
			"quantum", strconv.FormatUint(o.Quantum, 10),
			fmt.Sprintf("at most fairness (%d) for the policy random", o.Fairness),
		}
	}
	return nil
}

func CheckOneOf(field, found string, allowed []string) *FieldError {
	for _, a := range allowed {
		if found == a {
			return nil
		}
	}
	return &FieldError{field, strconv.Quote(found), strings.Join(allowed, ", ")}
}

func checkRange[T int | uint64](field string, found, low, high T) *FieldError {
	if found >= low && found <= high {
		return nil
	}
	return &FieldError{field, fmt.Sprint(found), fmt.Sprintf("%d to %d", low, high)}
}

func checkFraction(field string, found float64) *FieldError {
	if found >= 0 && found <= 1 && !math.IsNaN(found) {
		return nil
	}
	return &FieldError{field, strconv.FormatFloat(found, 'g', -1, 64), "0 to 1"}
}
