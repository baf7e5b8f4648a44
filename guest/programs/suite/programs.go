// Package programs is the suite of programs under study: C programs that stand
// for SPLASH-2, PARSEC, the tools and the bugs of the papers that heddle
// rebuilds, written from published descriptions of the algorithms.
//
// A program is a folder with its source and a program.yaml with the program that it
// stands for, its arguments, its races by source line and its possible
// outcomes. A program with a bug has two forms of the same source: the fixed
// one, and the buggy one, compiled with -DBUGGY. [Program.Build] compiles a
// [Variant] or finds it in the user's cache; the command in the folder install
// builds all of them. The folder common holds headers that programs share, the
// folder memmodel programs that fail under weak memory models only.
//
// The package describes and builds programs; its tests run them natively, under
// race detectors and under heddle. The tables of docs/programs.md are generated
// from it and from measured.json, which `go test -run Measure -update` writes.
package suite

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/internal/yamlfile"
)

//go:embed common/*.h */*.c */program.yaml memmodel/*/*.c memmodel/*/program.yaml
var sources embed.FS

// Program is one program of the suite, as its program.yaml says.
type Program struct {
	// Name is the name of the program and of its folder.
	Name string `mapstructure:"name"`
	// Folder is the program's folder, relative to this package's.
	Folder string `mapstructure:"-"`
	Kind   Kind   `mapstructure:"kind"`
	// About describes the program in one sentence.
	About string `mapstructure:"about"`
	// StandsFor names the program or figure of a paper that this one replaces.
	StandsFor string `mapstructure:"stands_for"`
	// Source is the publication that describes the algorithm or the bug.
	Source string `mapstructure:"source"`
	// Keeps and LeavesOut compare it with the program or figure that it stands for.
	Keeps     string `mapstructure:"keeps"`
	LeavesOut string `mapstructure:"leaves_out"`
	// Link holds further arguments for the linker.
	Link []string `mapstructure:"link"`
	// Forms are the forms that the program has; fixed is always one of them.
	Forms []Form `mapstructure:"forms"`
	// Arguments are command lines by size; {threads} stands for a number of
	// threads. A program of one size has empty ones.
	Arguments Arguments `mapstructure:"arguments"`
	// Threads bounds the number of threads of the program's arguments.
	Threads Bounds `mapstructure:"threads"`
	// Output is the set of things on which standard output depends.
	Output Output `mapstructure:"output"`
	// Races are the places that race detectors must name in the buggy form.
	Races []Race `mapstructure:"races"`
	// Outcomes are the classes of outcome that the buggy form can have. The
	// fixed form is always correct.
	Outcomes []Outcome `mapstructure:"outcomes"`
	// Models are the memory models under which the buggy form can fail, in a
	// program that is right under sequential consistency.
	Models []Model `mapstructure:"models"`
	// Shows says in one sentence when and how the bug shows.
	Shows string `mapstructure:"shows"`
	// Schedule holds options of `heddle run` under which the bug shows within
	// 200 seeds.
	Schedule []string `mapstructure:"schedule"`
	// Synchronization compares counts of operations with the original's.
	Synchronization *Synchronization `mapstructure:"synchronization"`
}

// Arguments are a program's command lines.
type Arguments struct {
	// Test takes 1 to 100 ms natively, Small about a second. Paper is the size
	// that the papers used, or the default size of the original.
	Test  string `mapstructure:"test"`
	Small string `mapstructure:"small"`
	Paper string `mapstructure:"paper"`
	// Trigger is the command line that the bug is shown with; empty means Test.
	Trigger string `mapstructure:"trigger"`
}

// Bounds is a range of whole numbers, both ends included.
type Bounds struct {
	Least    int `mapstructure:"least"`
	Greatest int `mapstructure:"greatest"`
}

// Race is a known race or another fault that detectors report.
type Race struct {
	// Object names the variable, lock or block of memory.
	Object string   `mapstructure:"object"`
	Kind   RaceKind `mapstructure:"kind"`
	// Lines are the lines of the accesses as file:line.
	Lines []string `mapstructure:"lines"`
	// Also are lines of further accesses, which race in consequence of the race: those under a lock that
	// was freed, say. Few runs show them.
	Also []string `mapstructure:"also"`
	// Why explains the failure, or why there is none.
	Why string `mapstructure:"why"`
}

// Synchronization compares the number of a thread's operations with the published
// number of the original.
type Synchronization struct {
	// Original is the number that the 1995 characterisation reports or implies.
	Original string `mapstructure:"original"`
	// Barriers, Locks and Waits are formulas for the mean number of barrier
	// waits, mutex acquisitions and condition waits of a thread, over the
	// values of the cases and threads.
	Barriers string `mapstructure:"barriers"`
	Locks    string `mapstructure:"locks"`
	Waits    string `mapstructure:"waits"`
	// Tolerance is the factor by which a measured number of locks or waits
	// may differ from the formula, at least 1; barriers must match.
	Tolerance float64 `mapstructure:"tolerance"`
	// Cases are the sizes at which the formulas are checked.
	Cases []Case `mapstructure:"cases"`
}

// Case is a size for checking synchronization counts.
type Case struct {
	Arguments string             `mapstructure:"arguments"`
	Values    map[string]float64 `mapstructure:"values"`
}

// Kind is the purpose of a program in the suite.
type Kind string

// The kinds.
const (
	Kernel Kind = "kernel" // a computation that verifies its own result
	Stress Kind = "stress" // races on purpose
	Tool   Kind = "tool"   // a program of the kind users run
	Bug    Kind = "bug"    // the pattern of one bug
	Benign Kind = "benign" // races that do no harm
	Memory Kind = "memory" // fails under weak memory models only
)

// UnmarshalText accepts the kinds.
func (k *Kind) UnmarshalText(text []byte) error {
	return oneOf(k, text, Kernel, Stress, Tool, Bug, Benign, Memory)
}

// Model is a memory model.
type Model string

// The memory models that are weaker than sequential consistency: total and
// partial store order (SPARC Architecture Manual, version 8, appendix K).
const (
	TSO Model = "tso"
	PSO Model = "pso"
)

// UnmarshalText accepts the memory models.
func (m *Model) UnmarshalText(text []byte) error { return oneOf(m, text, TSO, PSO) }

// Form is one of the two forms of a program's source.
type Form string

// The forms.
const (
	Fixed Form = "fixed" // without the bug
	Buggy Form = "buggy" // compiled with -DBUGGY
)

// UnmarshalText accepts the forms.
func (f *Form) UnmarshalText(text []byte) error { return oneOf(f, text, Fixed, Buggy) }

// Output is the set of things on which standard output of the fixed form depends.
type Output string

// The sets that an output can depend on.
const (
	Same    Output = "same"    // arguments except the number of threads
	Threads Output = "threads" // arguments with the number of threads
	Varies  Output = "varies"  // the interleaving, too
)

// UnmarshalText accepts the sets that an output can depend on.
func (o *Output) UnmarshalText(text []byte) error { return oneOf(o, text, Same, Threads, Varies) }

// RaceKind is a class of races.
type RaceKind string

// Harmful races and other faults, and the four kinds of benign race of Frost
// section 4.2.
const (
	Harmful         RaceKind = "harmful"
	LockOrder       RaceKind = "lock-order"
	UserSync        RaceKind = "user-synchronization"
	RedundantWrite  RaceKind = "redundant-write"
	DoubleCheck     RaceKind = "double-check"
	Approximate     RaceKind = "approximate-computation"
	IntentionalRace RaceKind = "intentional"
)

// UnmarshalText accepts the kinds of race.
func (k *RaceKind) UnmarshalText(text []byte) error {
	return oneOf(k, text, Harmful, LockOrder, UserSync, RedundantWrite, DoubleCheck, Approximate, IntentionalRace)
}

// Outcome is a class of results of a run.
type Outcome string

// The outcomes.
const (
	Correct   Outcome = "correct"   // exit status 0
	Wrong     Outcome = "wrong"     // exit status 1: its own check failed
	Assertion Outcome = "assertion" // death by SIGABRT
	Crash     Outcome = "crash"     // death by SIGSEGV or SIGBUS
	Deadlock  Outcome = "deadlock"  // all threads wait for ever
	Hang      Outcome = "hang"      // a thread loops for ever
	Different Outcome = "different" // another output, all being right
)

// UnmarshalText accepts the outcomes.
func (o *Outcome) UnmarshalText(text []byte) error {
	return oneOf(o, text, Correct, Wrong, Assertion, Crash, Deadlock, Hang, Different)
}

func oneOf[T ~string](to *T, text []byte, allowed ...T) error {
	*to = T(text)
	if slices.Contains(allowed, *to) {
		return nil
	}
	var names []string
	for _, a := range allowed {
		names = append(names, string(a))
	}
	return fmt.Errorf("one of %s", strings.Join(names, ", "))
}

// All returns every program in the order of folders, those for memory models
// last. The error is that of the first program.yaml that is wrong.
func All() ([]Program, error) {
	var all []Program
	for _, pattern := range []string{"*/program.yaml", "memmodel/*/program.yaml"} {
		files, err := fs.Glob(sources, pattern)
		if err != nil {
			panic("bug: " + err.Error())
		}
		for _, file := range files {
			p, err := load(file)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// Find returns the program of that name.
func Find(name string) (Program, error) {
	all, err := All()
	if err != nil {
		return Program{}, err
	}
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
	}
	return Program{}, fmt.Errorf("no program of the name %s in the suite", name)
}

// included is a line that includes a header of the folder common.
var included = regexp.MustCompile(`(?m)^#include "([^"]+)"`)

// Texts returns the program's text, and those of the headers that it shares with others,
// by the files' names.
func (p Program) Texts() (map[string]string, error) {
	texts := map[string]string{}
	files := []string{path.Join(p.Folder, p.Name+".c")}
	for len(files) > 0 {
		file := files[0]
		files = files[1:]
		text, err := fs.ReadFile(sources, file)
		if err != nil {
			return nil, err
		}
		texts[path.Base(file)] = string(text)
		for _, m := range included.FindAllStringSubmatch(string(text), -1) {
			if _, known := texts[m[1]]; !known {
				files = append(files, path.Join("common", m[1]))
			}
		}
	}
	return texts, nil
}

func load(file string) (Program, error) {
	data, err := fs.ReadFile(sources, file)
	if err != nil {
		return Program{}, err
	}
	return parse(file, data)
}

func parse(file string, data []byte) (Program, error) {
	p := Program{Folder: path.Dir(file)}
	f, err := yamlfile.Parse(file, data, &p)
	if err != nil {
		return p, err
	}
	if p.Forms == nil {
		p.Forms = []Form{Fixed}
	}
	if p.Threads == (Bounds{}) {
		p.Threads = Bounds{Least: 1, Greatest: 64}
	}
	return p, p.check(f)
}

var lineForm = regexp.MustCompile(`^[a-z0-9-]+\.[ch]:[1-9][0-9]*$`)

// check reports the first field whose value its type allows and the program
// cannot have.
func (p Program) check(f *yamlfile.File) error {
	for _, required := range []struct{ field, value string }{
		{"name", p.Name},
		{"kind", string(p.Kind)},
		{"about", p.About},
		{"stands_for", p.StandsFor},
		{"source", p.Source},
		{"keeps", p.Keeps},
		{"leaves_out", p.LeavesOut},
		{"output", string(p.Output)},
	} {
		if required.value == "" {
			return f.Wrong(required.field, "missing", "some text")
		}
	}
	switch {
	case p.Name != path.Base(p.Folder):
		return f.Wrong("name", p.Name, "the folder's name, "+path.Base(p.Folder))
	case p.Forms[0] != Fixed:
		return f.Wrong("forms", p.Forms, "fixed first")
	case p.Has(Buggy) && (len(p.Outcomes) == 0 || p.Shows == ""):
		return f.Wrong("outcomes", "missing", "outcomes and shows in a program with a buggy form")
	case !p.Has(Buggy) && (p.Races != nil || p.Outcomes != nil):
		return f.Wrong("races", "given", "races and outcomes only with a buggy form")
	case (p.Kind == Kernel || p.Kind == Tool) && (p.Arguments.Test == "" || p.Arguments.Small == "" || p.Arguments.Paper == ""):
		return f.Wrong("arguments", p.Arguments, "test, small and paper in a kernel or tool")
	case (p.Kind == Memory) != (p.Models != nil):
		return f.Wrong("models", p.Models, "models in a program of the kind memory, and in no other")
	case p.Threads.Least < 1 || p.Threads.Greatest < p.Threads.Least:
		return f.Wrong("threads", p.Threads, "1 <= least <= greatest")
	}
	for i, r := range p.Races {
		for j, line := range r.Lines {
			if !lineForm.MatchString(line) {
				return f.Wrong(fmt.Sprintf("races[%d].lines[%d]", i, j), line, "file.c:line")
			}
		}
	}
	return p.checkFormulas(f)
}

func (p Program) checkFormulas(f *yamlfile.File) error {
	s := p.Synchronization
	if s == nil {
		return nil
	}
	if s.Tolerance < 1 {
		return f.Wrong("synchronization.tolerance", s.Tolerance, "at least 1")
	}
	for i, c := range s.Cases {
		for _, formula := range []struct{ field, text string }{
			{"barriers", s.Barriers}, {"locks", s.Locks}, {"waits", s.Waits},
		} {
			if _, err := c.Evaluate(formula.text, 2); err != nil {
				return f.Wrong("synchronization."+formula.field, formula.text,
					fmt.Sprintf("a formula over threads and the values of case %d: %v", i, err))
			}
		}
	}
	return nil
}

// Has reports whether the program has the form.
func (p Program) Has(form Form) bool { return slices.Contains(p.Forms, form) }

// CommandLine splits one of the program's argument strings into words for that
// number of threads, which is brought into the program's bounds.
func (p Program) CommandLine(arguments string, threads int) []string {
	threads = min(max(threads, p.Threads.Least), p.Threads.Greatest)
	words := strings.Fields(arguments)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "{threads}", strconv.Itoa(threads))
	}
	return words
}

// Trigger is the command line with which the bug shows.
func (p Program) Trigger() string {
	if p.Arguments.Trigger != "" {
		return p.Arguments.Trigger
	}
	return p.Arguments.Test
}

// MarkedRaces finds the comments "// race: object" in the program's source and
// returns the lines of each object.
func (p Program) MarkedRaces() (map[string][]string, error) {
	marked := map[string][]string{}
	file := p.Name + ".c"
	text, err := fs.ReadFile(sources, path.Join(p.Folder, file))
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		if _, mark, ok := strings.Cut(line, "// race: "); ok {
			for _, object := range strings.Split(mark, ", ") {
				marked[object] = append(marked[object], fmt.Sprintf("%s:%d", file, i+1))
			}
		}
	}
	return marked, nil
}
