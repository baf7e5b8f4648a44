package sched

import (
	"strconv"
	"strings"
)

// ParseFlagWords makes options of the flags of `heddle run` that choose them, each
// with its value after it, as a program of the suite lists them in its
// program.yaml. Flags are named like the fields in YAML, with "--" and hyphens,
// and policy is "--sched". The error is a *FieldError that names the word; values
// are checked as by Validate.
func ParseFlagWords(words []string) (Options, error) {
	var o Options
	for i := 0; i < len(words); i += 2 {
		field, isFlag := strings.CutPrefix(words[i], "--")
		if !isFlag || i+1 == len(words) {
			return Options{}, &FieldError{strconv.Quote(words[i]), "alone", "pairs of a flag and its value"}
		}
		if err := o.setFromWord(strings.ReplaceAll(field, "-", "_"), words[i+1]); err != nil {
			return Options{}, err
		}
	}
	return o, o.Validate()
}

// setFromWord gives a field the value that a word holds.
func (o *Options) setFromWord(field, word string) error {
	var err error
	switch field {
	case "sched":
		o.Policy = word
	case "granularity":
		o.Granularity = word
	case "depth":
		o.Depth, err = strconv.Atoi(word)
	case "delay_rate":
		o.DelayRate, err = strconv.ParseFloat(word, 64)
	case "jitter":
		o.Jitter = new(float64)
		*o.Jitter, err = strconv.ParseFloat(word, 64)
	default:
		to := map[string]*uint64{
			"quantum": &o.Quantum, "time_slice": &o.TimeSlice, "delay_cycles": &o.DelayCycles, "length": &o.Length,
			"fairness": &o.Fairness,
		}[field]
		if to == nil {
			return &FieldError{field, strconv.Quote(word), "the fields of Options"}
		}
		*to, err = strconv.ParseUint(word, 10, 64)
	}
	if err != nil {
		return &FieldError{field, strconv.Quote(word), "a number"}
	}
	return nil
}
