package cfg

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"

	"gopkg.in/yaml.v3"
)

// Model describes the effects of a function that is not analysed: one of a library, or, by
// its name, one of the program.
type Model struct {
	// Function is its name.
	Function string `yaml:"function"`
	// Result is "number", "given" (that of a system call, which the schedule gives), "fresh" (memory that no other pointer refers to: an allocator),
	// "argument" (the first one), "library" (memory of libraries), or "unknown".
	Result string `yaml:"result"`
	// Writes are the arguments, from 1, through which it may write.
	Writes []int `yaml:"writes"`
	// Copies is set if the bytes written to the first argument may come from the second.
	Copies bool `yaml:"copies"`
	// Event is set if it may be an event of a schedule, or make one.
	Event bool `yaml:"event"`
	// System is set if it makes system calls: they are events if the schedule orders system calls.
	System bool `yaml:"system"`
	// Impossible is set if it is called only when an access has left its object, which analyses assume not to happen.
	Impossible bool `yaml:"impossible"`
	// Uses are the arguments, from 1, that identify the event.
	Uses []int `yaml:"uses"`
	// Opaque is set if its internal effects matter to no other code.
	Opaque bool `yaml:"opaque"`
	// Pure is set if it neither reads nor writes memory of the program: its result depends
	// on its arguments alone.
	Pure bool `yaml:"pure"`
	// NoReturn is set if it does not return.
	NoReturn bool `yaml:"never"`
	// Configured is set if it may lock, as the program has configured it: the model holds if none of its executions in the
	// run was, or made, an event, and otherwise its code is analysed.
	Configured bool `yaml:"configured"`
	// Forks is set if it may create threads or processes.
	Forks bool `yaml:"forks"`
	// Unknown is set if there is no model.
	Unknown bool `yaml:"-"`
}

// Models are models by name.
type Models map[string]*Model

//go:embed models.yaml
var defaultModels []byte

// DefaultModels are the models of the C library's functions.
func DefaultModels() Models {
	m, err := ReadModels(bytes.NewReader(defaultModels))
	if err != nil {
		panic(fmt.Sprintf("bug: models.yaml: %v", err))
	}
	return m
}

// ReadModels reads a list of models as YAML. It returns an error for a model without a
// function and for values out of range.
func ReadModels(from io.Reader) (Models, error) {
	d := yaml.NewDecoder(from)
	d.KnownFields(true)
	var list []*Model
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	models := Models{}
	for i, m := range list {
		if m.Function == "" {
			return nil, fmt.Errorf("model %d: no function, expected its name", i+1)
		}
		if m.Result == "" {
			m.Result = "unknown"
		}
		if !slices.Contains([]string{"number", "given", "fresh", "argument", "library", "unknown"}, m.Result) {
			return nil, fmt.Errorf("model of %s: result %q, expected number, given, fresh, argument, library or unknown", m.Function, m.Result)
		}
		for _, n := range append(slices.Clone(m.Writes), m.Uses...) {
			if n < 1 || n > 6 {
				return nil, fmt.Errorf("model of %s: argument %d, expected 1 to 6", m.Function, n)
			}
		}
		models[m.Function] = m
	}
	return models, nil
}

// MayBeEvent reports whether a call may be an event of a schedule, or make one, given whether the schedule orders system calls.
func (m *Model) MayBeEvent(orderedCalls bool) bool { return m.Event || m.System && orderedCalls }

// With returns the models with others added; the others take precedence.
func (m Models) With(others Models) Models {
	all := Models{}
	for _, list := range []Models{m, others} {
		for name, model := range list {
			all[name] = model
		}
	}
	return all
}

// Without returns the models of other functions than some.
func (m Models) Without(functions map[string]bool) Models {
	rest := Models{}
	for name, model := range m {
		if !functions[name] {
			rest[name] = model
		}
	}
	return rest
}

// Of returns the model of a function; for a function without one, a model with all possible
// effects.
func (m Models) Of(name string) *Model {
	if model := m[name]; model != nil {
		return model
	}
	return &Model{Function: name, Result: "unknown", Writes: []int{1, 2, 3, 4, 5, 6}, Event: true, Forks: true, Unknown: true}
}
