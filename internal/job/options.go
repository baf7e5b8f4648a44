package job

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/machine/publish"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/recorder/region"
	"github.com/heddle-dmt/heddle/recorder/syncops"
	"github.com/heddle-dmt/heddle/sched"
)

// The values of Options.UnknownSyscalls: the effects of an unknown system call.
const (
	UnknownStop   = "stop"
	UnknownENOSYS = "enosys"
)

// Options configures a machine; the same options serve every run of a sweep. DefaultOptions gives
// the usual values; the JSON form is canonical, so that its digest identifies the configuration.
type Options struct {
	// Cores is the number of emulated cores, 1 to sched.MaxCores.
	Cores int `json:"cores" mapstructure:"cores"`
	// Seed chooses the run among all possible ones.
	Seed uint64 `json:"seed" mapstructure:"seed"`
	// Sched chooses and tunes the scheduling policy.
	Sched sched.Options `json:"sched" mapstructure:"sched"`
	// Operations are synchronization operations besides the known ones, for controllers that
	// order operations (docs/sync.md).
	Operations []syncops.Custom `json:"operations,omitempty" mapstructure:"operations"`
	// Memory chooses the memory model, and when stores become visible.
	Memory storebuffer.Options `json:"memory" mapstructure:"memory"`
	// Engine is the engine that executes instructions, and CPU the level of the emulated
	// processor: x86-64-v2.
	Engine string `json:"engine" mapstructure:"engine"`
	CPU    string `json:"cpu" mapstructure:"cpu"`
	// Costs is the timing model.
	Costs arch.Costs `json:"costs" mapstructure:"costs"`
	// RandomizeLayout derives guest addresses from the seed.
	RandomizeLayout bool `json:"randomize_layout" mapstructure:"randomize_layout"`
	// Dir is the guest's working folder; empty means the current folder.
	Dir string `json:"dir" mapstructure:"dir"`
	// RootFS is a host folder to use as the guest's root.
	RootFS string `json:"rootfs" mapstructure:"rootfs"`
	// Mounts are further host folders that the guest sees.
	Mounts []Mount `json:"mounts" mapstructure:"mounts"`
	// Publish are ports of the guest that clients on the host can connect to.
	Publish []publish.Port `json:"publish,omitempty" mapstructure:"publish"`
	// Requests are TCP ports of the guest whose requests are observed and summarized.
	Requests []uint16 `json:"requests,omitempty" mapstructure:"requests"`
	// Env are variables, K=V, added to the guest's default environment.
	Env []string `json:"env" mapstructure:"env"`
	// UID and GID are the guest's user and group; nil means the caller's.
	UID *uint32 `json:"uid,omitempty" mapstructure:"uid"`
	GID *uint32 `json:"gid,omitempty" mapstructure:"gid"`
	// HostTimes shows files with their host's modification times.
	HostTimes bool `json:"host_times" mapstructure:"host_times"`
	// MaxMemory bounds the guest's memory.
	MaxMemory Size `json:"max_memory" mapstructure:"max_memory"`
	// MaxInstructions ends the run after this number of instructions; 0 means no bound.
	MaxInstructions uint64 `json:"max_instructions" mapstructure:"max_instructions"`
	// Region is the region of interest of each run, in one of region.Forms; empty: none.
	Region string `json:"region,omitempty" mapstructure:"region"`
	// UnknownSyscalls is UnknownStop or UnknownENOSYS.
	UnknownSyscalls string `json:"unknown_syscalls" mapstructure:"unknown_syscalls"`
}

// DefaultOptions returns the options of machine.DefaultConfig.
func DefaultOptions() Options {
	c := machine.DefaultConfig()
	return Options{
		Cores: c.Cores, Seed: c.Seed, Sched: c.Sched, Memory: c.Memory, Engine: c.Engine, CPU: c.CPU.String(), Costs: c.Costs,
		MaxMemory: Size(c.MaxMemory), MaxInstructions: c.MaxInstructions, UnknownSyscalls: UnknownStop,
	}
}

// A FieldError is a field with a wrong value, the value that was found and the allowed ones.
// Field is a path of the fields' names, "sched.quantum".
type FieldError struct {
	Field   string
	Found   any
	Allowed string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s is %v; allowed: %s", e.Field, e.Found, e.Allowed)
}

// Check returns the first field that is wrong as a *FieldError.
func (o Options) Check() error {
	if o.Cores < 1 || o.Cores > sched.MaxCores {
		return &FieldError{"cores", o.Cores, "1 to " + strconv.Itoa(sched.MaxCores)}
	}
	if err := checkSched(o.Sched); err != nil {
		return err
	}
	if err := checkMemory(o.Memory); err != nil {
		return err
	}
	if err := checkEngine(o.Engine, o.CPU); err != nil {
		return err
	}
	for i := range o.Operations {
		if name, found, allowed := o.Operations[i].Wrong(); name != "" {
			return &FieldError{fmt.Sprintf("operations[%d].%s", i, name), found, allowed}
		}
	}
	if err := CheckCosts(o.Costs); err != nil {
		return err
	}
	if o.MaxMemory < machine.MinMemory || o.MaxMemory > machine.MaxMemory {
		return &FieldError{"max_memory", o.MaxMemory, Size(machine.MinMemory).String() + " to " + Size(machine.MaxMemory).String()}
	}
	if o.Dir != "" && !strings.HasPrefix(o.Dir, "/") {
		return &FieldError{"dir", strconv.Quote(o.Dir), "an absolute path"}
	}
	if o.UID != nil && *o.UID == noID {
		return &FieldError{"uid", *o.UID, allowedID}
	}
	if o.GID != nil && *o.GID == noID {
		return &FieldError{"gid", *o.GID, allowedID}
	}
	for i, variable := range o.Env {
		if name, _, found := strings.Cut(variable, "="); !found || name == "" {
			return &FieldError{fmt.Sprintf("env[%d]", i), strconv.Quote(variable), "NAME=VALUE"}
		}
	}
	for i, p := range o.Publish {
		if p.Host != 0 && slices.Contains(o.Publish[:i], p) {
			return &FieldError{fmt.Sprintf("publish[%d]", i), strconv.Quote(p.String()), "each port once"}
		}
	}
	for i, p := range o.Requests {
		if p == 0 || slices.Contains(o.Requests[:i], p) {
			return &FieldError{fmt.Sprintf("requests[%d]", i), p, "a port, 1 to 65535, each once"}
		}
	}
	if _, ok := region.Parse(o.Region); o.Region != "" && !ok {
		return &FieldError{"region", o.Region, region.Forms}
	}
	if o.UnknownSyscalls != UnknownStop && o.UnknownSyscalls != UnknownENOSYS {
		return &FieldError{"unknown_syscalls", strconv.Quote(o.UnknownSyscalls), UnknownStop + ", " + UnknownENOSYS}
	}
	return nil
}

// noID is the id that stands for none.
const noID = 1<<32 - 1

const allowedID = "0 to 4294967294"

func checkSched(o sched.Options) error {
	err := o.Validate()
	var field *sched.FieldError
	if errors.As(err, &field) {
		return &FieldError{"sched." + field.Field, field.Found, field.Allowed}
	}
	return err
}

func checkMemory(o storebuffer.Options) error {
	err := o.Validate()
	var field *storebuffer.FieldError
	if errors.As(err, &field) {
		return &FieldError{"memory." + field.Field, field.Found, field.Allowed}
	}
	return err
}

func checkEngine(engine, cpu string) error {
	level, known := arch.ParseLevel(cpu)
	if !known {
		return &FieldError{"cpu", strconv.Quote(cpu), strings.Join(arch.Levels(), ", ")}
	}
	if p := engines.Check(engine, level); p != nil {
		return &FieldError{p.Field, p.Found, p.Allowed}
	}
	return nil
}

// CheckCosts returns the first field of the timing model that is out of range as
// a *FieldError.
func CheckCosts(c arch.Costs) error {
	var cost *arch.CostError
	if errors.As(c.Validate(), &cost) {
		return &FieldError{"costs." + cost.Field, cost.Found, cost.Allowed}
	}
	return nil
}

// Resolve makes the host's paths absolute; relative ones are taken from base.
func (o *Options) Resolve(base string) {
	absolute := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(base, path)
	}
	o.RootFS = absolute(o.RootFS)
	o.Mounts = slices.Clone(o.Mounts)
	for i := range o.Mounts {
		o.Mounts[i].Host = absolute(o.Mounts[i].Host)
	}
}

// Config translates the options; the caller sets the fields of one run (program, streams, logs).
func (o Options) Config() machine.Config {
	c := machine.DefaultConfig()
	c.Cores, c.Seed, c.Sched, c.Memory, c.Costs = o.Cores, o.Seed, o.Sched, o.Memory, o.Costs
	c.Engine = o.Engine
	c.CPU, _ = arch.ParseLevel(o.CPU) // Check has accepted it
	c.CustomSync = o.Operations
	c.RandomizeLayout, c.HostTimes = o.RandomizeLayout, o.HostTimes
	c.RootFS, c.Dir = o.RootFS, o.Dir
	if o.UID != nil {
		c.UID = *o.UID
	}
	if o.GID != nil {
		c.GID = *o.GID
	}
	c.MaxMemory, c.MaxInstructions = uint64(o.MaxMemory), o.MaxInstructions
	c.UnknownENOSYS = o.UnknownSyscalls == UnknownENOSYS
	c.Publish, c.Requests = o.Publish, o.Requests
	c.Env = mergeEnv(c.Env, o.Env)
	for _, m := range o.Mounts {
		c.Mounts = append(c.Mounts, machine.Mount(m))
	}
	return c
}

// mergeEnv returns base with the variables of more set: in place where base
// has them, at the end otherwise.
func mergeEnv(base, more []string) []string {
	env := slices.Clone(base)
	for _, variable := range more {
		name, _, _ := strings.Cut(variable, "=")
		i := slices.IndexFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		if i < 0 {
			env = append(env, variable)
		} else {
			env[i] = variable
		}
	}
	return env
}

// Mount is a host folder or file that the guest sees, in text
// HOST:GUEST or HOST:GUEST:rw.
type Mount struct {
	Host, Guest string
	Writable    bool
}

// UnmarshalText reads the text form.
func (m *Mount) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), ":")
	switch {
	case len(parts) == 3 && parts[2] == "rw":
		m.Writable = true
	case len(parts) == 3 && parts[2] == "ro":
		m.Writable = false
	case len(parts) != 2:
		return errMountForm
	}
	m.Host, m.Guest = parts[0], parts[1]
	if m.Host == "" || !strings.HasPrefix(m.Guest, "/") {
		return errMountForm
	}
	return nil
}

// MarshalText gives the text form.
func (m Mount) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

func (m Mount) String() string {
	if m.Writable {
		return m.Host + ":" + m.Guest + ":rw"
	}
	return m.Host + ":" + m.Guest
}

// formError is the description of an allowed form; the caller puts the field and its value before
// it.
type formError string

func (e formError) Error() string { return string(e) }

const (
	errMountForm = formError("HOST:GUEST or HOST:GUEST:rw with an absolute GUEST")
	errSizeForm  = formError("a number of bytes, or one with K, M, G or T (powers of 1024)")
)
