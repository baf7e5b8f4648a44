package concolic

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"

	"gopkg.in/yaml.v3"
)

// Summary stands for the effects of a function: its code runs on recorded values alone, it
// yields no constraints, and its result is the summary's.
type Summary struct {
	// Function is its name.
	Function string `yaml:"function"`
	// Result is the kind of the result.
	//
	// "number" is a symbol for the number at the beginning of the string in the first
	// argument, as strtol(3) reads it, "unsigned" one as strtoul(3) does, "real" one for a
	// floating-point number, and "length" one for the length of that string. They apply to
	// strings whose bytes are those of an input, from whichever on.
	//
	// "compare", "find" and "search" are expressions over bytes, as is "length" for other
	// strings: the comparison of the first two arguments, or the position in the first of
	// the byte or string in the second. They are valid up to the ends of the recorded
	// strings (Bound).
	//
	// "copy": the first three arguments are fixed, and the code runs normally.
	//
	// "lower" and "upper" are expressions: the result of tolower(3) and toupper(3) in the C
	// locale, for arguments below 128.
	//
	// "opaque": the result, and the bytes stored from the addresses in the arguments Writes
	// on, are symbols of their own if the function read anything that depends on inputs
	// (Executor.IsOpaque). It stores nothing else that is read later.
	//
	// "none": it depends on no input.
	Result string `yaml:"result"`
	// Bits is the size of the result.
	Bits int `yaml:"bits"`
	// Null is the number of an argument, from 1, that must be a null pointer for the
	// summary to apply; 0: no argument.
	Null int `yaml:"if null"`
	// End is the number of an argument that, if it is no null pointer, receives the address
	// after the number: then the number must be as long as recorded (Bound). Base is the
	// number of an argument that must be 10.
	End  int `yaml:"end"`
	Base int `yaml:"base"`
	// Size is the number of the argument that limits the bytes of the search; 0: no
	// argument. Memory is set if a zero does not end the search.
	Size   int  `yaml:"size"`
	Memory bool `yaml:"memory"`
	// Writes are the numbers of the arguments, from 1, through which an opaque function
	// returns results.
	Writes []int `yaml:"writes"`
}

// summaryResults are the valid values of Summary.Result.
var summaryResults = []string{"number", "unsigned", "real", "length", "compare", "find", "search", "lower", "upper", "copy", "opaque", "none"}

//go:embed summaries.yaml
var defaultSummaries []byte

// DefaultSummaries are the summaries of the C library's functions.
func DefaultSummaries() []Summary {
	s, err := ReadSummaries(bytes.NewReader(defaultSummaries))
	if err != nil {
		panic(fmt.Sprintf("bug: summaries.yaml: %v", err))
	}
	return s
}

// ReadSummaries reads a list of summaries as YAML. It returns an error for unknown results
// and for numbers out of range.
func ReadSummaries(from io.Reader) ([]Summary, error) {
	d := yaml.NewDecoder(from)
	d.KnownFields(true)
	var list []Summary
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	for i, s := range list {
		if s.Function == "" || !slices.Contains(summaryResults, s.Result) {
			return nil, fmt.Errorf("summary %d: result %q of function %q; known results are %v", i+1, s.Result, s.Function, summaryResults)
		}
		if s.Result != "none" && s.Result != "copy" && s.Bits != 32 && s.Bits != 64 {
			return nil, fmt.Errorf("summary of %s: bits: %d; a result has 32 or 64", s.Function, s.Bits)
		}
		for name, n := range map[string]int{"if null": s.Null, "size": s.Size, "end": s.End, "base": s.Base} {
			if n < 0 || n > len(argumentRegisters) {
				return nil, fmt.Errorf("summary of %s: %s: %d; arguments have the numbers 1 to %d", s.Function, name, n, len(argumentRegisters))
			}
		}
		if slices.ContainsFunc(s.Writes, func(n int) bool { return n < 1 || n > len(argumentRegisters) }) {
			return nil, fmt.Errorf("summary of %s: writes: %v; arguments have the numbers 1 to %d", s.Function, s.Writes, len(argumentRegisters))
		}
	}
	return list, nil
}

// Summarize gives the function at an address a summary. If a function has several names,
// the first summary stays.
func (x *Executor) Summarize(space, addr uint64, s Summary) {
	if k := (location{space, addr}); x.summaries[k].Function == "" {
		x.summaries[k] = s
		x.functions++
	}
}

// SummarizeChosen gives a summary to the function that a resolver at an address chooses
// when the program is linked (IFUNC): the resolver returns its address.
func (x *Executor) SummarizeChosen(space, resolver uint64, s Summary) {
	if k := (location{space, resolver}); x.resolvers[k].Function == "" {
		x.resolvers[k] = s
		x.functions++
	}
}

// Derived returns the symbols of functions' results, by name.
func (x *Executor) Derived() map[string]*Derived { return x.derived }
