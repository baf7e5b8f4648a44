package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// load loads an experiment from text.
func load(t testing.TB, text string) (*Experiment, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	x, err := Load(path)
	if err != nil {
		err = fmt.Errorf("%s", strings.TrimPrefix(err.Error(), filepath.Dir(path)+"/"))
	}
	return x, err
}

// mustLoad loads an experiment that is right, with its store in a fresh folder.
func mustLoad(t testing.TB, text string) *Experiment {
	t.Helper()
	x, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	x.Store = filepath.Join(t.TempDir(), "x.sqlite")
	return x
}

func TestExampleIsValid(t *testing.T) {
	x, err := load(t, string(Example))
	if err != nil || x.Name != "x" || x.Repetitions != 1 || !x.Native {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestLoadErrorsNameThePlace(t *testing.T) {
	const one = "programs: [{command: [echo]}]\n"
	for text, want := range map[string]string{
		"name: x\n":                                   `x.yaml:1: programs is "empty"; allowed: at least one program`,
		one + "name: a/b\n":                           `x.yaml:2: name is "a/b"; allowed: ` + plainNameForm,
		one + "repetitions: 0\n":                      "x.yaml:2: repetitions is 0; allowed: 1 to 1000",
		one + "workers: -1\n":                         "x.yaml:2: workers is -1; allowed: 0 to 1000",
		one + "time_limit: long\n":                    `x.yaml:2: time_limit is "long"; allowed: a duration like 90s or 10m`,
		one + "machine:\n  cores: 65\n":               "x.yaml:3: machine.cores is 65; allowed: 1 to 64",
		one + "machine: {mhz: 5}\n":                   "x.yaml:2: unknown field machine.mhz; allowed here: cores, seed, sched, operations, memory, engine, cpu, costs, randomize_layout, dir, rootfs, mounts, publish, requests, env, uid, gid, host_times, max_memory, max_instructions, region, unknown_syscalls",
		one + "machine: {mounts: [/:/h:rw]}":          `x.yaml:2: machine.mounts[0] is "/:/h:rw"; allowed: a mount without :rw; runs of a sweep must not change the input of others`,
		one + "grid: {cores: [0]}":                    `x.yaml:2: grid.cores[0] is "0"; allowed: 1 to 64, or threads`,
		one + "grid: {cores: threads}":                `x.yaml:2: grid.cores[0] is "threads"; allowed: a number, unless the grid gives threads`,
		one + "grid: {threads: 0-4}":                  `x.yaml:2: grid.threads[0] is "0-4"; allowed: at least 1`,
		one + "grid: {threads: 1-65, cores: threads}": `x.yaml:2: grid.threads[0] is "1-65"; allowed: 1 to 64, because cores is threads`,
		one + "grid: {seeds: 5-1}":                    `x.yaml:2: grid.seeds is "5-1"; allowed: a number or a range like 1-10`,
		one + "grid: {seeds: [1, x]}":                 `x.yaml:2: grid.seeds[1] is "x"; allowed: a number or a range like 1-10`,
		one + "grid: {seeds: 1-10000000}":             `x.yaml:2: grid is "10000000 runs"; allowed: at most 1000000`,
		one + "grid: {policy: [rr, fifo]}":            `x.yaml:2: grid.policy[1] is "fifo"; allowed: scheduling option policy is "fifo"; allowed: timed, rr, random, pct, rr-sync, fcfs-sync, kendo, coredet, parrot, dthreads, consequence`,
		one + "grid: {arguments: {threads: [1]}}":     `x.yaml:2: grid.arguments.threads is "threads"; allowed: a name besides threads, with at least one value`,
		one + "inputs: [{name: a}]":                   `x.yaml:2: inputs[0] is "an input with neither file nor generate"; allowed: either file or generate`,
		one + "inputs:\n- {name: a, generate: text, size: 1K}\n- {name: a, generate: text, size: 1K}": `x.yaml:4: inputs[1].name is "a"; allowed: a name that no other input has`,
		one + "inputs: [{name: ../a, generate: text}]":                                                `x.yaml:2: inputs[0].name is "../a"; allowed: ` + plainNameForm,
		one + "inputs: [{name: a, generate: prose}]":                                                  `x.yaml:2: inputs[0].generate is "prose"; allowed: text, numbers, random, zeros`,
		one + "inputs: [{name: a, generate: text}]":                                                   `x.yaml:2: inputs[0].size is 0; allowed: 1 to 16G`,
		one + "inputs: [{name: a, file: /no/such}]":                                                   `x.yaml:2: inputs[0].file is "/no/such"; allowed: a file that exists`,
		"programs: [{name: a}]":                                                                       `x.yaml:1: programs[0].command is "empty"; allowed: a list of the program and its arguments, or a server`,
		"programs: [{command: echo a}]":                                                               `x.yaml:1: programs[0].command is "echo a"; allowed: a list of the program and its arguments, as in [pigz, -p, "4", file]`,
		"programs: [{command: [echo]}, {command: [echo]}]":                                            `x.yaml:1: programs[1].name is "echo"; allowed: a name that no other program has`,
		"programs: [{command: [echo], stdin: a}]":                                                     `x.yaml:1: programs[0].stdin is "a"; allowed: the name of an input`,
		"programs: [{command: [echo, '{level}']}]":                                                    `x.yaml:1: programs[0].command[1] is "{level}"; allowed: placeholders that the grid gives: threads or a name in arguments`,
		"programs: [{command: [/no/such]}]":                                                           `x.yaml:1: programs[0].command is "/no/such"; allowed: a program that exists`,
	} {
		if _, err := load(t, text); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestPlanIsTheGrid(t *testing.T) {
	x := mustLoad(t, `
programs:
  - {name: a, command: [echo, "{threads}", "{level}{level}"]}
  - {name: b, command: [echo, fixed], stdin: text}
inputs: [{name: text, generate: text, size: 1K}]
machine: {cores: 3, env: ["N={unused}"]}
grid:
  threads: [1, 4-5]
  seeds: [7, 1-2]
  policy: [rr, timed]
  arguments: {level: [x, y], unswept: [1, 2, 3]}
repetitions: 2
`)
	plan, err := x.Plan(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range plan.Runs {
		got = append(got, run.Point.String()+": "+strings.Join(run.Job.Args, " "))
	}
	if len(got) != 2*2*3*3+2*3 || x.Size() != float64(2*len(got)) {
		t.Errorf("%d runs of a size of %v", len(got), x.Size())
	}
	for i, want := range map[int]string{
		0:  "a level=x threads=1 cores=3 policy=rr seed=7: echo 1 xx",
		1:  "a level=x threads=1 cores=3 policy=rr seed=1: echo 1 xx",
		3:  "a level=x threads=4 cores=3 policy=rr seed=7: echo 4 xx",
		9:  "a level=x threads=1 cores=3 policy=timed seed=7: echo 1 xx",
		18: "a level=y threads=1 cores=3 policy=rr seed=7: echo 1 yy",
		36: "b cores=3 policy=rr seed=7: echo fixed",
		41: "b cores=3 policy=timed seed=2: echo fixed",
	} {
		if got[i] != want {
			t.Errorf("run %d is %q, want %q", i, got[i], want)
		}
	}
	last := plan.Runs[41].Job
	if filepath.Base(last.Stdin) != "text" || last.Options.Sched.Policy != "timed" || last.Options.Seed != 2 || last.Options.Dir != guestDir {
		t.Errorf("the last job is %+v", last)
	}
}

// TestKeys: the dependencies of a run change its key, and nothing else does.
func TestKeys(t *testing.T) {
	base := `
programs: [{command: [echo, "{threads}"]}]
inputs: [{name: text, generate: text, size: 1K, seed: 1}]
grid: {threads: [2], seeds: [5]}
`
	key := func(text string) (string, string) {
		plan, err := mustLoad(t, text).Plan(Options{})
		if err != nil {
			t.Fatal(err)
		}
		return plan.Runs[0].Key, plan.Runs[0].NativeKey
	}
	want, wantNative := key(base)
	for name, c := range map[string]struct {
		old, new         string
		changes, natives bool
	}{
		"workers":   {"grid:", "workers: 7\ngrid:", false, false},
		"name":      {"grid:", "name: other\ngrid:", false, false},
		"more runs": {"seeds: [5]", "seeds: [5, 6]", false, false},
		"seed":      {"seeds: [5]", "seeds: [6]", true, false},
		"cores":     {"seeds: [5]", "seeds: [5], cores: [7]", true, false},
		"policy":    {"seeds: [5]", "seeds: [5], policy: [rr]", true, false},
		"costs":     {"grid:", "machine: {costs: {memory: 2}}\ngrid:", true, false},
		"argument":  {"threads: [2]", "threads: [3]", true, true},
		"program":   {"echo", "printf", true, true},
		"input":     {"seed: 1", "seed: 2", true, true},
		"variable":  {"grid:", "machine: {env: [A=b]}\ngrid:", true, true},
	} {
		got, native := key(strings.Replace(base, c.old, c.new, 1))
		if (got != want) != c.changes || (native != wantNative) != c.natives {
			t.Errorf("%s: the key changes: %v, want %v; the native key: %v, want %v", name, got != want, c.changes, native != wantNative, c.natives)
		}
	}
}

func TestRelativeProgramsAreBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"tool": "#!/bin/sh\n", "x.yaml": "programs: [{command: [./tool]}]\nstore: kept/x.sqlite\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	x, err := Load(filepath.Join(dir, "x.yaml"))
	if err != nil || x.Programs[0].Command[0] != filepath.Join(dir, "tool") || x.Store != filepath.Join(dir, "kept/x.sqlite") {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestRangeValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Uint64Max(1000).Draw(t, "low")
		n := rapid.Uint64Max(100).Draw(t, "n")
		var r Range
		if err := r.UnmarshalText(fmt.Appendf(nil, "%d-%d", low, low+n)); err != nil {
			t.Fatal(err)
		}
		list := listValues([]Range{r}, 0)
		if uint64(len(list)) != n+1 || list[0] != low || list[n] != low+n || countValues([]Range{r}) != float64(n+1) {
			t.Fatalf("%v has values %v", r, list)
		}
	})
	if got := listValues([]Range{{1<<64 - 2, 1<<64 - 1}}, 0); len(got) != 2 {
		t.Errorf("the last two numbers are %v", got)
	}
}
