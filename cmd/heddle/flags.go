package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/heddle-dmt/heddle/cmd/heddle/command"
	"github.com/heddle-dmt/heddle/cmd/heddle/flagvalue"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/emu/engines"
	"github.com/heddle-dmt/heddle/internal/cli"
	"github.com/heddle-dmt/heddle/internal/job"
	"github.com/heddle-dmt/heddle/internal/shellword"
	"github.com/heddle-dmt/heddle/internal/yamlfile"
	"github.com/heddle-dmt/heddle/memmodel"
	"github.com/heddle-dmt/heddle/memmodel/storebuffer"
	"github.com/heddle-dmt/heddle/sched"
)

// The titles of the groups of flags, in the order of the help.
const (
	groupMachine    = "Machine"
	groupScheduling = "Scheduling"
	groupMemory     = "Memory model"
	groupFiles      = "Files and environment"
	groupLimits     = "Limits"
	groupRecording  = "Recording"
	groupEnforcing  = "Following a schedule"
	groupOutput     = "Output and checks"
)

// machineFlags are the flags of `heddle run` that configure the machine: each
// overrides the field of that path in a configuration file. Fallback is the default, where it
// is not the field's in job.DefaultOptions.
var machineFlags = []struct {
	group, name, field, usage string
	value                     func() *flagvalue.Value
	fallback                  string
}{
	{groupMachine, "cores", "cores", "number of emulated cores, 1 to 64", flagvalue.Number, ""},
	{groupMachine, "seed", "seed", "seed that chooses the run among all possible ones", flagvalue.Number, ""},
	{groupMachine, "engine", "engine", "what executes instructions: " + strings.Join(engines.Names(), ", "), flagvalue.Text("ENGINE"), ""},
	{groupMachine, "cpu", "cpu", "level of the emulated processor: " + strings.Join(arch.Levels(), ", ") + " (AVX2; engine direct, on hosts that have it)", flagvalue.Text("LEVEL"), ""},
	{groupMachine, "randomize-layout", "randomize_layout", "derive the guest's addresses from the seed", flagvalue.Yes, ""},
	{groupMachine, "unknown-syscalls", "unknown_syscalls", "effect of a system call that the machine lacks and programs need: stop the run, or answer enosys", flagvalue.Text(job.UnknownStop + "|" + job.UnknownENOSYS), ""},

	{groupScheduling, "sched", "sched.policy", "scheduling policy: " + strings.Join(sched.PolicyNames(), ", "), flagvalue.Text("POLICY"), ""},
	{groupScheduling, "quantum", "sched.quantum", "instructions of a turn (rr, random) or round (coredet), or cycles a core may run ahead of the others", flagvalue.Positive, perPolicy("quantum")},
	{groupScheduling, "time-slice", "sched.time_slice", "cycles a thread keeps its core while others wait", flagvalue.Positive, perPolicy("time_slice")},
	{groupScheduling, "jitter", "sched.jitter", "seeded noise of the cores' speed, as a fraction", flagvalue.Fraction, perPolicy("jitter")},
	{groupScheduling, "delay-rate", "sched.delay_rate", "probability that a delay is injected after a quantum", flagvalue.Fraction, perPolicy("delay_rate")},
	{groupScheduling, "delay-cycles", "sched.delay_cycles", "greatest length of an injected delay", flagvalue.Positive, perPolicy("delay_cycles")},
	{groupScheduling, "granularity", "sched.granularity", "places where a thread may lose its core: " + strings.Join(sched.Granularities(), ", "), flagvalue.Text("WHERE"), perPolicy("granularity")},
	{groupScheduling, "depth", "sched.depth", "bug depth: one more than the priority change points", flagvalue.Positive, perPolicy("depth")},
	{groupScheduling, "length", "sched.length", "estimated instructions of the run, over which the change points are spread", flagvalue.Positive, perPolicy("length")},
	{groupScheduling, "fairness", "sched.fairness", "instructions of others after which a waiting thread runs; of rr-sync and parrot, instructions without an operation after which a thread passes its turn on, of consequence, commits its stores, and of dthreads, counts as spinning", flagvalue.Positive, perPolicy("fairness")},

	{groupMemory, "model", "memory.model", "memory model: " + strings.Join(memmodel.Names(), ", "), flagvalue.Text("MODEL"), memmodel.SC.String()},
	{groupMemory, "tso-engine", "memory.engine", "how waiting stores are kept: " + strings.Join(storebuffer.Engines(), ", ") + " (pages: tso alone)", flagvalue.Text("ENGINE"), storebuffer.Exact},
	{groupMemory, "commit", "memory.commit", "when stores become visible: " + strings.Join(storebuffer.Policies(), ", "), flagvalue.Text("WHEN"), perCommit("commit")},
	{groupMemory, "commit-rate", "memory.rate", "probability that a store is committed before a quantum", flagvalue.PositiveFraction, perCommit("rate")},
	{groupMemory, "commit-latency", "memory.latency", "cycles until a store is committed", flagvalue.Positive, perCommit("latency")},
	{groupMemory, "store-buffer", "memory.capacity", "stores, or pages, that a core's buffer holds", flagvalue.Positive, perCommit("capacity")},

	{groupFiles, "chdir", "dir", "the guest's working folder, an absolute guest path", flagvalue.Text("DIR"), "the current folder"},
	{groupFiles, "rootfs", "rootfs", "host folder to use as the guest's root", flagvalue.Text("DIR"), "the host's own root, reduced to the files that programs need"},
	{groupFiles, "mount", "mounts", "host folder or file that the guest sees, HOST:GUEST, or HOST:GUEST:rw to write to it; repeatable", flagvalue.Mounts, ""},
	{groupFiles, "env", "env", "NAME=VALUE to set in the guest's environment; repeatable", flagvalue.Variables, ""},
	{groupFiles, "publish", "publish", "port of the guest that clients on the host can connect to, HOSTPORT:GUESTPORT, or HOSTADDR:HOSTPORT:GUESTPORT for another address than the loopback ones; HOSTPORT 0: a free one; repeatable", flagvalue.Ports, ""},
	{groupFiles, "uid", "uid", "the guest's user id; 0 is root, with all capabilities", flagvalue.Number, "yours"},
	{groupFiles, "gid", "gid", "the guest's group id", flagvalue.Number, "yours"},
	{groupFiles, "host-times", "host_times", "show files with their host's modification times", flagvalue.Yes, ""},

	{groupOutput, "requests", "requests", "measure the requests to a TCP port that a server of the guest listens on: throughput and response time, in virtual time; repeatable", flagvalue.GuestPorts, ""},

	{groupLimits, "max-memory", "max_memory", "bound of the guest's memory, like 512M or 4G", flagvalue.Size, ""},
	{groupLimits, "max-instructions", "max_instructions", "end the run after this many instructions of all threads; 0: no bound", flagvalue.Number, ""},
}

// perPolicy lists an option's defaults by policy, and the policies that use it.
func perPolicy(option string) string {
	var values []string
	users := map[string][]string{} // of each value
	used := sched.UsedBy(option)
	for _, policy := range used {
		value := fieldText(sched.Defaults(policy), option)
		if users[value] == nil {
			values = append(values, value)
		}
		users[value] = append(users[value], policy)
	}
	if len(used) == len(sched.PolicyNames()) && len(values) == 1 {
		return values[0]
	}
	for i, value := range values {
		values[i] = fmt.Sprintf("%s with %s", value, strings.Join(users[value], ", "))
	}
	return strings.Join(values, "; ")
}

// perCommit lists an option's defaults by the policy of commits that uses it.
func perCommit(option string) string {
	defaults := storebuffer.Options{Model: memmodel.TSO.String()}.WithDefaults()
	switch option {
	case "rate":
		return fieldText(defaults, option) + " with random"
	case "latency":
		timed, lazy := storebuffer.Options{Commit: "timed"}.WithDefaults(), storebuffer.Options{Commit: "lazy"}.WithDefaults()
		return fmt.Sprintf("%s with timed; %s with lazy", fieldText(timed, option), fieldText(lazy, option))
	case "capacity":
		pages := storebuffer.Options{Engine: storebuffer.Pages}.WithDefaults()
		return fmt.Sprintf("%s; %s with pages", fieldText(defaults, option), fieldText(pages, option))
	}
	return fieldText(defaults, option)
}

// fieldText is the value of the field of options with a name, as text.
func fieldText(options any, name string) string {
	v := reflect.ValueOf(options)
	for i := range v.NumField() {
		if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("mapstructure"), ","); tag == name {
			return fmt.Sprint(reflect.Indirect(v.Field(i)))
		}
	}
	panic("bug: no option " + name)
}

// defaultField is the default of the field with a path, "sched.policy", as text; a zero
// value has none.
func defaultField(path string) string {
	options := job.DefaultOptions()
	options.Sched = options.Sched.WithDefaults()
	top, rest, nested := strings.Cut(path, ".")
	if nested {
		return fieldText(options.Sched, rest)
	}
	if text := fieldText(options, top); text != "false" && text != "" && text != "[]" {
		return text
	}
	return ""
}

// addMachineFlags defines the flags that configure the machine, or only those of some groups.
func addMachineFlags(flags *pflag.FlagSet, groups ...string) {
	for _, f := range machineFlags {
		if len(groups) > 0 && !slices.Contains(groups, f.group) {
			continue
		}
		flag := flags.VarPF(f.value(), f.name, "", f.usage)
		if flag.Value.Type() == "bool" {
			flag.NoOptDefVal = "true"
		}
		cli.Group(flags, f.group, f.name)
		text := f.fallback
		if text == "" {
			text = defaultField(f.field)
		}
		if text != "" {
			cli.SetDefault(flags, f.name, text)
		}
	}
}

// machineOptions reads the configuration file, if one is named, and the flags
// that were given over it, and then the file of costs, if one is named.
func machineOptions(flags *pflag.FlagSet, config, costs string) (job.Options, error) {
	options := job.DefaultOptions()
	file, err := yamlfile.LoadBound(config, &options, func(v *viper.Viper) {
		for _, f := range machineFlags {
			flag := flags.Lookup(f.name)
			if flag == nil || !flag.Changed {
				continue
			}
			if value, ofMachine := flag.Value.(*flagvalue.Value); ofMachine {
				v.Set(f.field, value.Content())
			}
		}
	})
	if err != nil {
		return options, err
	}
	err = options.Check()
	var wrong *job.FieldError
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
func explain(wrong *job.FieldError, flags *pflag.FlagSet, config string, file *yamlfile.File) error {
	field, _, _ := strings.Cut(wrong.Field, "[")
	for _, f := range machineFlags {
		if f.field == field && (flags.Changed(f.name) || config == "") {
			return command.ErrFlag.New(f.name, wrong.Found, wrong.Allowed)
		}
	}
	return file.Wrong(wrong.Field, wrong.Found, wrong.Allowed)
}

// repeatCommand is the command line that repeats a run exactly: the machine's
// flags that were given, with cores and seed always, and the program.
func repeatCommand(flags *pflag.FlagSet, run runFlags, options job.Options, args []string) string {
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
		for _, text := range flag.Value.(*flagvalue.Value).Texts() {
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
var quote = shellword.Quote
