package suite

import (
	"fmt"
	"io/fs"
	"path"

	"github.com/heddle-dmt/heddle/internal/gcc"
)

// Variant says how a program is compiled.
type Variant struct {
	Form Form
	// Optimize is the level after -O, 0 or 2; the sanitizer always has 1.
	Optimize int
	Static   bool
	// Debug adds debug information. Symbols are always there.
	Debug bool
	// Delays adds the pauses at the places that make the bug show natively.
	Delays bool
	// Sanitize compiles with gcc's thread sanitizer.
	Sanitize bool
	// Count makes the program print how many synchronization operations it
	// did, on standard error.
	Count bool
	// Hints adds hints for PARROT's schedules.
	Hints bool
}

// Variants are the eight ways in which `make programs` builds each form.
func Variants(form Form) []Variant {
	var all []Variant
	for _, optimize := range []int{0, 2} {
		for _, static := range []bool{false, true} {
			for _, debug := range []bool{false, true} {
				all = append(all, Variant{Form: form, Optimize: optimize, Static: static, Debug: debug})
			}
		}
	}
	return all
}

// Folder is the name of the folder in which `make programs` puts the variant:
// the optimization, static or dynamic, and g for debug information.
func (v Variant) Folder() string {
	name := fmt.Sprintf("O%d-dynamic", v.Optimize)
	if v.Static {
		name = fmt.Sprintf("O%d-static", v.Optimize)
	}
	if v.Debug {
		name += "-g"
	}
	return name
}

// File is the name of the program's executable in that folder.
func (v Variant) File(p Program) string {
	if v.Form == Buggy {
		return p.Name + "-buggy"
	}
	return p.Name
}

// label names the variant in the cache.
func (v Variant) label() string {
	name := string(v.Form) + "-" + v.Folder()
	if v.Delays {
		name += "-delays"
	}
	if v.Sanitize {
		name += "-tsan"
	}
	if v.Count {
		name += "-count"
	}
	if v.Hints {
		name += "-hints"
	}
	return name
}

// flags are the compiler's arguments before the source.
func (v Variant) flags() []string {
	args := []string{
		"-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror=implicit-function-declaration",
		"-pthread", "-Icommon", fmt.Sprintf("-O%d", v.Optimize),
	}
	if v.Form == Buggy {
		args = append(args, "-DBUGGY")
	}
	if v.Delays {
		args = append(args, "-DDELAYS")
	}
	if v.Count {
		args = append(args, "-DCOUNT")
	}
	if v.Hints {
		args = append(args, "-DHINTS")
	}
	if v.Debug || v.Sanitize {
		args = append(args, "-g")
	}
	if v.Sanitize {
		args = append(args, "-O1", "-fsanitize=thread")
	}
	if v.Static {
		args = append(args, "-static")
	}
	return args
}

// Build compiles and links a variant, or finds the build that an earlier call
// left in the user's cache folder, and returns the path of the executable.
// Several processes may build at the same time.
func (p Program) Build(v Variant) (string, error) {
	if !p.Has(v.Form) {
		return "", fmt.Errorf("build %s: it has no %s form", p.Name, v.Form)
	}
	args := append(v.flags(), path.Join(p.Folder, p.Name+".c"))
	args = append(append(args, p.Link...), "-lm")
	out, err := p.build(v.label(), args)
	if err != nil {
		return "", fmt.Errorf("build %s %s: %w", p.Name, v.label(), err)
	}
	return out, nil
}

func (p Program) build(label string, args []string) (string, error) {
	files, err := p.files()
	if err != nil {
		return "", err
	}
	return gcc.Build{
		Cache: "heddle-programs", Name: p.Name, Label: label, Args: args, Sources: files,
	}.Make()
}

// files are the sources that the program is made of: its own and all headers.
func (p Program) files() ([]gcc.Source, error) {
	var all []gcc.Source
	for _, pattern := range []string{"common/*.h", p.Folder + "/*.c"} {
		names, err := fs.Glob(sources, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := fs.ReadFile(sources, name)
			if err != nil {
				return nil, err
			}
			all = append(all, gcc.Source{Path: name, Text: text})
		}
	}
	return all, nil
}
