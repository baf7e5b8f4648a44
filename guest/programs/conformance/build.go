package conformance

import (
	"fmt"
	"io/fs"
	"path"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/gcc"
)

// cflags are the compiler's arguments for every program. Warnings are shown
// when a program does not compile; they are not made errors, because each
// compiler version warns about other things.
var cflags = []string{"-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-Wall", "-Wextra"}

// Build compiles and links the program, or finds the build that an earlier
// call left in the user's cache folder, and returns the path of the
// executable. Several processes may build at the same time.
func (p Program) Build(static bool) (string, error) {
	if static && p.DynamicOnly != "" {
		return "", fmt.Errorf("build %s: no static form: %s", p.Name, p.DynamicOnly)
	}
	if static {
		return p.build(p.Name+"-static", "-static")
	}
	return p.build(p.Name)
}

// BuildPlugin compiles the shared library of a program that has one, as Build does.
func (p Program) BuildPlugin() (string, error) {
	if !p.Plugin {
		return "", fmt.Errorf("build %s: it has no plugin", p.Name)
	}
	return p.build(p.Name+"-plugin", "-DPLUGIN", "-shared", "-fPIC")
}

func (p Program) build(target string, mode ...string) (string, error) {
	args := append(append([]string{}, cflags...), mode...)
	if p.CPU > arch.V2 {
		args = append(args, "-O3", "-march="+p.CPU.String())
	}
	args = append(args, "-x", "c", p.Name+".c", "-x", "none")
	args = append(args, p.Link...)
	files, err := p.files()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p.Name, err)
	}
	out, err := gcc.Build{
		Cache: "heddle-conformance", Name: p.Name, Label: target, Args: args, Sources: files,
	}.Make()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p.Name, err)
	}
	return out, nil
}

// files are the sources that the program is made of: its own and all headers.
func (p Program) files() ([]gcc.Source, error) {
	headers, err := fs.Glob(sources, "src/*.h")
	if err != nil {
		panic("bug: " + err.Error())
	}
	var all []gcc.Source
	for _, name := range append(headers, "src/"+p.Name+".c") {
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return nil, err
		}
		all = append(all, gcc.Source{Path: path.Base(name), Text: text})
	}
	return all, nil
}
