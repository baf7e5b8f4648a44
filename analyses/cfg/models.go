package cfg

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"

	"gopkg.in/yaml.v3"
)

// A Model says what a function does that is looked at as a whole: one of a library,
// or, by its name, one of the program.
type Model struct {
	// Function is its name.
	Function string `yaml:"function"`
	// Result is "number", "fresh" (memory that nobody else has: an allocator),
	// "argument" (the first one), "library" (memory of libraries), or "unknown".
	Result string `yaml:"result"`
	// Writes are the arguments, from 1, through which it may write.
	Writes []int `yaml:"writes"`
	// Copies tells that what it writes to the first argument may be what is at the
	// second.
	Copies bool `yaml:"copies"`
	// Event tells that it may be, or make, an event of a schedule.
	Event bool `yaml:"event"`
	// Uses are the arguments, from 1, that say what the event is about.
	Uses []int `yaml:"uses"`
	// Opaque tells that what happens within concerns nobody, whatever it is.
	Opaque bool `yaml:"opaque"`
	// Pure tells that it reads and writes no memory of the program: its result is
	// one of its arguments alone.
	Pure bool `yaml:"pure"`
	// Never tells that it does not return.
	Never bool `yaml:"never"`
	// Forks tells that it may make threads, or processes.
	Forks bool `yaml:"forks"`
	// Unknown tells that there is no model.
	Unknown bool `yaml:"-"`
}

// Models are models by name.
type Models map[string]*Model

//go:embed models.yaml
var defaultModels []byte

// DefaultModels are those of the C library's functions.
func DefaultModels() Models {
	m, err := ReadModels(bytes.NewReader(defaultModels))
	if err != nil {
		panic(fmt.Sprintf("bug: models.yaml: %v", err))
	}
	return m
}

// ReadModels reads a list of models as YAML.
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
		if !slices.Contains([]string{"number", "fresh", "argument", "library", "unknown"}, m.Result) {
			return nil, fmt.Errorf("model of %s: result %q, expected number, fresh, argument, library or unknown", m.Function, m.Result)
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

// With are the models with others added, which come first.
func (m Models) With(others Models) Models {
	all := Models{}
	for _, list := range []Models{m, others} {
		for name, model := range list {
			all[name] = model
		}
	}
	return all
}

// Of is what is known of a function: of one without a model, nothing.
func (m Models) Of(name string) *Model {
	if model := m[name]; model != nil {
		return model
	}
	return &Model{Function: name, Result: "unknown", Writes: []int{1, 2, 3, 4, 5, 6}, Event: true, Forks: true, Unknown: true}
}
