package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/heddle-dmt/heddle/experiments/machine"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/buffers"
	"github.com/heddle-dmt/heddle/sched"
)

var errFlag = errs.Define("flag-wrong-value",
	"--{flag} is {found}; allowed: {allowed}",
	"A flag was given a value that it does not take.",
	"Use a value that the sentence allows.")

// machineFlags are the flags of `heddle run` that configure the machine: each
// overrides the field of that path in a configuration file.
var machineFlags = []struct {
	name, field, usage string
	value              func() *flagValue
}{
	{"cores", "cores", "number of emulated cores, 1 to 64", number},
	{"seed", "seed", "seed that chooses the run among all possible ones", number},
	{"sched", "sched.policy", "scheduling policy: " + strings.Join(sched.PolicyNames(), ", "), policy},
	{"quantum", "sched.quantum", "instructions of a slice (rr, random) or round (coredet), or cycles a core may run ahead (timed and those built on it)", number},
	{"time-slice", "sched.time_slice", "cycles a thread keeps its core while others wait (timed and those built on it)", number},
	{"jitter", "sched.jitter", "seeded noise of the cores' speed, as a fraction (timed, those built on it, coredet)", fraction},
	{"delay-rate", "sched.delay_rate", "probability that a delay is injected after a slice (as jitter)", fraction},
	{"delay-cycles", "sched.delay_cycles", "greatest length of an injected delay (as jitter)", number},
	{"granularity", "sched.granularity", "where slices end: " + strings.Join(sched.Granularities(), ", ") + " (rr, random)", granularity},
	{"depth", "sched.depth", "bug depth: one more than the priority change points (pct)", number},
	{"length", "sched.length", "estimated instructions of the run (pct)", number},
	{"fairness", "sched.fairness", "instructions of others after which a waiting thread runs (rr, random, pct), or without an operation after which a thread passes its turn on (rr-sync)", number},
	{"model", "memory.model", "memory model: " + strings.Join(memmodel.Names(), ", "), memoryModel},
	{"tso-engine", "memory.engine", "how stores are kept: " + strings.Join(buffers.Engines(), ", ") + " (pages: tso only)", engine},
	{"commit", "memory.commit", "when stores become visible (tso, pso): " + strings.Join(buffers.Policies(), ", "), commit},
	{"commit-rate", "memory.rate", "probability that a store is committed before a slice (random)", fraction},
	{"commit-latency", "memory.latency", "cycles until a store is committed (timed, lazy)", number},
	{"store-buffer", "memory.capacity", "stores, or pages, that a core's buffer holds (tso, pso)", number},
	{"randomize-layout", "randomize_layout", "derive the guest's addresses from the seed", yes},
	{"chdir", "dir", "the guest's working folder, an absolute guest path (default: the current folder)", folder},
	{"rootfs", "rootfs", "host folder to use as the guest's root instead of the host's own", folder},
	{"mount", "mounts", "host folder or file that the guest sees, HOST:GUEST, or HOST:GUEST:rw to write to it (repeatable)", mounts},
	{"env", "env", "NAME=VALUE to set in the guest's environment (repeatable)", variables},
	{"uid", "uid", "the guest's user id (default: yours); 0 is root, with all capabilities", number},
	{"gid", "gid", "the guest's group id (default: yours)", number},
	{"host-times", "host_times", "show files with their host's modification times", yes},
	{"max-memory", "max_memory", "bound of the guest's memory, like 512M or 4G", size},
	{"max-instructions", "max_instructions", "end the run after so many instructions; 0 means no bound", number},
	{"unknown-syscalls", "unknown_syscalls", "what a system call does that the machine lacks and programs need: stop the run, or answer enosys", stopOrENOSYS},
}

// A flagValue checks its text when it is set and keeps it for viper, which
// decodes it into the field.
type flagValue struct {
	kind  string
	check func(text string) error
	list  bool
	texts []string
}

// Set implements pflag.Value.
func (f *flagValue) Set(text string) error {
	if err := f.check(text); err != nil {
		return err
	}
	if !f.list {
		f.texts = nil
	}
	f.texts = append(f.texts, text)
	return nil
}

// String implements pflag.Value.
func (f *flagValue) String() string { return strings.Join(f.texts, " ") }

// Type implements pflag.Value.
func (f *flagValue) Type() string { return f.kind }

// content is what viper gets.
func (f *flagValue) content() any {
	if f.list {
		return f.texts
	}
	return f.texts[0]
}

// form is the error of a text that is not of the allowed form.
type form string

func (f form) Error() string { return string(f) }

func policy() *flagValue { return text("POLICY") }

func granularity() *flagValue { return text("WHERE") }

func memoryModel() *flagValue { return text("MODEL") }

func engine() *flagValue { return text("ENGINE") }

func commit() *flagValue { return text("WHEN") }

func folder() *flagValue { return text("DIR") }

func stopOrENOSYS() *flagValue { return text(machine.Stop + "|" + machine.ENOSYS) }

// text is any text; machine.Options.Check has the last word on it.
func text(kind string) *flagValue {
	return &flagValue{kind: kind, check: func(string) error { return nil }}
}

func number() *flagValue {
	return &flagValue{kind: "N", check: func(text string) error {
		if _, err := strconv.ParseUint(text, 10, 64); err != nil {
			return form("a whole number, not negative")
		}
		return nil
	}}
}

func fraction() *flagValue {
	return &flagValue{kind: "FRACTION", check: func(text string) error {
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return form("a number from 0 to 1")
		}
		return nil
	}}
}

func yes() *flagValue {
	return &flagValue{kind: "bool", check: func(text string) error {
		if text != "true" && text != "false" {
			return form("true or false")
		}
		return nil
	}}
}

func size() *flagValue {
	return &flagValue{kind: "SIZE", check: func(text string) error {
		return new(machine.Size).UnmarshalText([]byte(text))
	}}
}

func mounts() *flagValue {
	return &flagValue{kind: "HOST:GUEST", list: true, check: func(text string) error {
		return new(machine.Mount).UnmarshalText([]byte(text))
	}}
}

func variables() *flagValue {
	return &flagValue{kind: "NAME=VALUE", list: true, check: func(text string) error {
		if strings.Index(text, "=") < 1 {
			return form("NAME=VALUE")
		}
		return nil
	}}
}

// addMachineFlags defines the flags that configure the machine.
func addMachineFlags(flags *pflag.FlagSet) {
	for _, f := range machineFlags {
		flag := flags.VarPF(f.value(), f.name, "", f.usage)
		if flag.Value.Type() == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
}

// machineOptions reads the configuration file, if one is named, and the flags
// that were given over it, and then the file of costs, if one is named.
func machineOptions(flags *pflag.FlagSet, config, costs string) (machine.Options, error) {
	options := machine.Default()
	file, err := yamlfile.LoadBound(config, &options, func(v *viper.Viper) {
		for _, f := range machineFlags {
			if flag := flags.Lookup(f.name); flag.Changed {
				v.Set(f.field, flag.Value.(*flagValue).content())
			}
		}
	})
	if err != nil {
		return options, err
	}
	err = options.Check()
	var wrong *machine.FieldError
	if errors.As(err, &wrong) {
		err = explain(wrong, flags, config, file)
	}
	if err == nil && costs != "" {
		err = loadCosts(costs, &options)
	}
	return options, err
}

// explain says of a wrong field which flag, or which line of the file, it
// comes from.
func explain(wrong *machine.FieldError, flags *pflag.FlagSet, config string, file *yamlfile.File) error {
	field, _, _ := strings.Cut(wrong.Field, "[")
	for _, f := range machineFlags {
		if f.field == field && (flags.Changed(f.name) || config == "") {
			return errFlag.New(f.name, wrong.Found, wrong.Allowed)
		}
	}
	return file.Wrong(wrong.Field, wrong.Found, wrong.Allowed)
}

// repeatCommand is the command line that repeats a run exactly: the machine's
// flags that were given, with cores and seed always, and the program.
func repeatCommand(flags *pflag.FlagSet, run runFlags, options machine.Options, args []string) string {
	words := []string{"heddle", "run", "--cores=" + strconv.Itoa(options.Cores), "--seed=" + strconv.FormatUint(options.Seed, 10)}
	if run.config != "" {
		words = append(words, "--config="+run.config)
	}
	if run.costs != "" {
		words = append(words, "--costs="+run.costs)
	}
	if run.syncList != "" {
		words = append(words, "--sync-list="+run.syncList)
	}
	for _, f := range machineFlags {
		flag := flags.Lookup(f.name)
		if !flag.Changed || f.name == "cores" || f.name == "seed" {
			continue
		}
		for _, text := range flag.Value.(*flagValue).texts {
			words = append(words, "--"+f.name+"="+text)
		}
	}
	if run.stdin != "" {
		words = append(words, "--stdin="+run.stdin)
	}
	words = append(append(words, run.schedule.words(flags)...), "--")
	words = append(words, args...)
	for i, w := range words {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// quote makes one word of a shell's command line.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=+,./:@%^", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
