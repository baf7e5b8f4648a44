// Package bugs has small programs with one concurrency bug each, by the classes of the standard
// benchmarks for concurrency testing. A program has a number N as its argument and two forms of one
// source: the fixed one, and the buggy one, compiled with -DBUGGY. bugs.yaml describes them.
package bugs

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"

	"gopkg.in/yaml.v3"

	"github.com/heddle-dmt/heddle/internal/gcc"
)

//go:embed bugs.yaml source/*.c source/*.h
var files embed.FS

// Program is one program with a bug.
type Program struct {
	// Name is the name of its source, without the ending, or one of its own.
	Name string `yaml:"name"`
	// Source is the name of the source, if that is another one, and Define a macro that it is compiled with.
	Source string `yaml:"source"`
	Define string `yaml:"define"`
	// Fails says in which schedules the buggy form fails.
	Fails string `yaml:"fails"`
	// Default is the argument N if none is given.
	Default int `yaml:"default"`
	// Kind is how the buggy form fails.
	Kind Kind `yaml:"kind"`
	// Least is the smallest number of preemptions of a failing schedule with the default N.
	Least int `yaml:"least"`
	// StandsFor names the benchmark or the published bugs whose pattern it has.
	StandsFor string `yaml:"stands_for"`
}

// Kind is a way to fail.
type Kind string

// The kinds of failure: SIGABRT of a check, all threads waiting, SIGSEGV.
const (
	Assertion Kind = "assertion"
	Deadlock  Kind = "deadlock"
	Crash     Kind = "crash"
)

// All lists the programs in the order of bugs.yaml.
func All() ([]Program, error) {
	text, err := files.ReadFile("bugs.yaml")
	if err != nil {
		return nil, err
	}
	var list struct {
		Programs []Program `yaml:"programs"`
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("bugs.yaml: %w", err)
	}
	return list.Programs, nil
}

// Build compiles the buggy or the fixed form, with further arguments for gcc, and returns the
// executable's path.
func (p Program) Build(buggy bool, more ...string) (string, error) {
	label, args := "fixed", []string{"-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"}
	if buggy {
		label, args = "buggy", append(args, "-DBUGGY")
	}
	if p.Define != "" {
		label, args = label+"-"+p.Define, append(args, "-D"+p.Define)
	}
	file := "source/" + cmp.Or(p.Source, p.Name) + ".c"
	args = append(append(args, more...), file)
	var sources []gcc.Source
	for _, name := range []string{"source/bugs.h", file} {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return "", err
		}
		sources = append(sources, gcc.Source{Path: name, Text: text})
	}
	return gcc.Build{Cache: "heddle-bugs", Name: p.Name, Label: label, Args: args, Sources: sources}.Make()
}
