package machine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/sched"
	"github.com/heddle-dmt/heddle/sched/dmt"
)

// Bounds of Config.MaxMemory, in bytes.
const (
	MinMemory = 16 << 20
	MaxMemory = 1 << 40
)

const defaultMemory = 8 << 30

// engineVariable is the environment variable with the engine of DefaultConfig: the same tests run
// on each engine.
const engineVariable = "HEDDLE_ENGINE"

// DefaultConfig is a machine of four cores with the default policy and seed 1,
// as the current user in the current folder. Args is for the caller to set.
func DefaultConfig() Config {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	return Config{
		Env: DefaultEnv(), Dir: dir, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()),
		Cores: 4, Seed: 1, Engine: cmp.Or(os.Getenv(engineVariable), engines.Auto), Costs: arch.DefaultCosts(), MaxMemory: defaultMemory,
	}
}

// DefaultEnv is the environment that a guest has unless the configuration has another one. It
// does not depend on the host's.
func DefaultEnv() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
		"USER=root", "LOGNAME=root", "SHELL=/bin/sh", "TERM=dumb",
	}
}

var (
	errNoProgram = errs.Define("no-program",
		"no program to run was named",
		"The command line ends before a program, or the configuration has none.",
		"Name the program and its arguments after --.")

	errOption = errs.Define("option-out-of-range",
		"{option} is {found}; allowed: {allowed}",
		"An option of the run has a value that the machine cannot have.",
		"Give a value of those that the sentence lists.")

	errSched = errs.Define("scheduling-option",
		"the scheduling policy cannot be set up",
		"An option of the policy is wrong; the rest of the sentence says which.",
		"Correct it; docs/scheduling.md describes all options.")

	errTwoOrders = errs.Define("policy-orders-too",
		"the policy {policy} orders synchronization operations, and so does {other}; use another policy: {allowed}",
		"A run that follows or makes a schedule, or that Frost executes, has its operations ordered by that; rr-sync, fcfs-sync, kendo, parrot, dthreads and consequence order them, too.",
		"Choose one of the policies that the sentence names with --sched.")

	errMemory = errs.Define("memory-model-option",
		"the memory model cannot be set up",
		"An option of the memory model is wrong; the rest of the sentence says which.",
		"Correct it; docs/memory-models.md describes all options.")
)

// validateOrder returns an error if two controllers would decide the order of operations, or a
// recording would need operations whose order was not controlled.
func (c *Config) validateOrder() error {
	other := c.Control.Policy != "" || c.Enforce != nil
	if other && dmt.OrdersOperations(c.Sched.Policy) {
		by := "this command"
		if c.Enforce != nil {
			by = "the schedule"
		}
		allowed := slices.DeleteFunc(sched.PolicyNames(), dmt.OrdersOperations)
		return errTwoOrders.New(c.Sched.Policy, by, strings.Join(allowed, ", "))
	}
	if c.Replay == nil || c.Record == nil || c.Record.Sync == nil || !other && !dmt.OrdersOperations(c.Sched.Policy) {
		return nil
	}
	for _, x := range c.Record.Sync.Custom {
		if !slices.Contains(c.CustomSync, x) {
			return errOption.New("sync-list", x.Name, "operations that the recorded run had, since their order was controlled")
		}
	}
	return nil
}

// Validate returns an error that names the first invalid field of c.
func (c Config) Validate() error {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return errNoProgram.New()
	}
	if err := c.Sched.Validate(); err != nil {
		return errSched.Wrap(err)
	}
	if err := c.validateOrder(); err != nil {
		return err
	}
	if err := c.Memory.Validate(); err != nil {
		return errMemory.Wrap(err)
	}
	if p := engines.Check(c.Engine, c.CPU); p != nil {
		return errOption.New(p.Field, p.Found, p.Allowed)
	}
	if c.Enforce != nil {
		if err := c.Schedulable(); err != nil {
			return err
		}
	}
	var cost *arch.CostError
	if errors.As(c.Costs.Validate(), &cost) {
		return errOption.New("costs."+cost.Field, fmt.Sprint(cost.Found), cost.Allowed)
	}
	for _, x := range []struct {
		bad                    bool
		option, found, allowed string
	}{
		{c.Cores < 1 || c.Cores > sched.MaxCores, "cores", fmt.Sprint(c.Cores), fmt.Sprintf("1 to %d", sched.MaxCores)},
		{
			c.MaxMemory < MinMemory || c.MaxMemory > MaxMemory, "max-memory",
			fmt.Sprintf("%d bytes", c.MaxMemory), "16 MiB to 1 TiB",
		},
		{!path.IsAbs(c.Dir), "working folder", fmt.Sprintf("%q", c.Dir), "an absolute path"},
	} {
		if x.bad {
			return errOption.New(x.option, x.found, x.allowed)
		}
	}
	for _, f := range c.Faults {
		if f.FD < 0 || f.FD > 2 || f.Bytes < 0 {
			return errOption.New("stream fault", fmt.Sprintf("of descriptor %d after %d bytes", f.FD, f.Bytes), "of 0, 1 or 2, after 0 bytes or more")
		}
	}
	for _, kv := range c.Env {
		if !strings.Contains(kv, "=") || strings.HasPrefix(kv, "=") {
			return errOption.New("env", fmt.Sprintf("%q", kv), "NAME=VALUE")
		}
	}
	for _, m := range c.Mounts {
		if m.Host == "" || !path.IsAbs(m.Guest) {
			return errOption.New("mount", fmt.Sprintf("%q at %q", m.Host, m.Guest), "a host folder or file, and an absolute guest path")
		}
	}
	return nil
}
