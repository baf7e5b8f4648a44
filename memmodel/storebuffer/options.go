package storebuffer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/memmodel"
)

// Options choose a memory model and when stores are committed. The zero value
// is SC.
type Options struct {
	// Model is "sc", "tso" or "pso"; empty means "sc".
	Model string `json:"model" yaml:"model" mapstructure:"model"`
	// Engine is how stores are kept: "exact", store by store, or "pages", for tso
	// only: each core has copies of the pages that it stored to, and its buffer is
	// committed all at once. Empty means "exact".
	Engine string `json:"engine" yaml:"engine" mapstructure:"engine"`
	// Commit is when stores are committed: "eager", at the end of each turn;
	// "random", each with probability Rate before each turn; "timed", when
	// other cores' clocks have come Latency cycles past the store; "lazy", only
	// when they must be, or after Latency cycles. Empty means "random".
	Commit string `json:"commit" yaml:"commit" mapstructure:"commit"`
	// Rate is the probability of random commits, above 0 up to 1; 0 means the
	// default.
	Rate float64 `json:"rate" yaml:"rate" mapstructure:"rate" positive:"true"`
	// Latency is in cycles; 0 means the default of the policy.
	Latency uint64 `json:"latency" yaml:"latency" mapstructure:"latency" positive:"true"`
	// Capacity is how many stores a buffer holds, or, with the engine "pages", how
	// many pages between the turns of its core; 0 means the default. With a capacity
	// that no thread reaches the buffers are unbounded.
	Capacity int `json:"capacity" yaml:"capacity" mapstructure:"capacity" positive:"true"`
}

// Values of Options.Engine.
const (
	Exact = "exact"
	Pages = "pages"
)

// Defaults of the options. The capacity is that of the Skylake cores (Intel's
// optimization manual).
const (
	DefaultCapacity = 56
	DefaultPages    = 1024
	DefaultRate     = 0.25
	timedLatency    = 200
	lazyLatency     = 1_000_000

	// MaxCapacity bounds Options.Capacity.
	MaxCapacity = 1 << 20
	maxLatency  = 1_000_000_000_000
)

// Policies lists the values of Options.Commit.
func Policies() []string { return []string{"eager", "random", "timed", "lazy"} }

// Engines lists the values of Options.Engine.
func Engines() []string { return []string{Exact, Pages} }

// A FieldError says which field of the options is wrong, the value found and
// the allowed ones.
type FieldError struct{ Field, Found, Allowed string }

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s is %s; allowed: %s", e.Field, e.Found, e.Allowed)
}

// Validate returns the first field that is wrong as a *FieldError.
func (o Options) Validate() error {
	if _, ok := memmodel.Parse(o.Model); !ok && o.Model != "" {
		return &FieldError{"model", fmt.Sprintf("%q", o.Model), strings.Join(memmodel.Names(), ", ")}
	}
	if o.Engine != "" && !slices.Contains(Engines(), o.Engine) {
		return &FieldError{"engine", fmt.Sprintf("%q", o.Engine), strings.Join(Engines(), ", ")}
	}
	if o.Engine == Pages && o.MemoryModel() != memmodel.TSO {
		return &FieldError{"engine", fmt.Sprintf("%q with the model %s", o.Engine, o.MemoryModel()), Exact + ", or the model tso"}
	}
	if o.Commit != "" && !slices.Contains(Policies(), o.Commit) {
		return &FieldError{"commit", fmt.Sprintf("%q", o.Commit), strings.Join(Policies(), ", ")}
	}
	if !(o.Rate >= 0 && o.Rate <= 1) {
		return &FieldError{"rate", fmt.Sprint(o.Rate), "0 to 1"}
	}
	if o.Latency > maxLatency {
		return &FieldError{"latency", fmt.Sprint(o.Latency), fmt.Sprintf("0 to %d", uint64(maxLatency))}
	}
	if o.Capacity < 0 || o.Capacity > MaxCapacity {
		return &FieldError{"capacity", fmt.Sprint(o.Capacity), fmt.Sprintf("0 to %d", MaxCapacity)}
	}
	return nil
}

// WithDefaults fills in the missing options.
func (o Options) WithDefaults() Options {
	if o.Model == "" {
		o.Model = memmodel.SC.String()
	}
	if o.Engine == "" {
		o.Engine = Exact
	}
	if o.Commit == "" {
		o.Commit = "random"
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.Latency == 0 {
		o.Latency = timedLatency
		if o.Commit == "lazy" {
			o.Latency = lazyLatency
		}
	}
	if o.Capacity == 0 {
		o.Capacity = DefaultCapacity
		if o.Engine == Pages {
			o.Capacity = DefaultPages
		}
	}
	return o
}

// Ignores says with which other option the option of a name, as in YAML, has no effect, or
// is empty: "the model sc", "commit eager".
func (o Options) Ignores(option string) string {
	o = o.WithDefaults()
	switch {
	case option == "model":
		return ""
	case o.MemoryModel() == memmodel.SC:
		return "the model sc"
	case option == "rate" && o.Commit != "random", option == "latency" && o.Commit != "timed" && o.Commit != "lazy":
		return "commit " + o.Commit
	}
	return ""
}

// MemoryModel is the model that the options name, which must be valid.
func (o Options) MemoryModel() memmodel.Model {
	m, _ := memmodel.Parse(o.WithDefaults().Model)
	return m
}
