// Package calibrate measures the costs of the timing model on this host, with small native programs in C that are part of heddle and are compiled
// at run time.
//
// It reads the host's clocks, which is not allowed to anything that a run depends on: its results
// reach a run only through a file that the user names with --costs.
//
// Measure gives Measurements; Write makes the file of them.
//
// Invariants:
//
//  1. There is one measurement for each of arch.CostFields, in their order.
//  2. The costs of the file are the rounded medians, within the fields' bounds;
//     a cost that cannot be measured has its default.
package calibrate

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
)

//go:embed programs
var sources embed.FS

// programs are the sources without measure.h and the ending.
var programs = []string{"instructions", "instrumentation", "kernel", "relay"}

// compilers are looked for in this order.
var compilers = []string{"cc", "gcc", "clang"}

// limit is how long one of the programs may take; it needs a second or two.
const limit = 2 * time.Minute

var (
	errCompiler = errs.Define("calibrate-no-compiler",
		"cannot measure: no C compiler is found ({names})",
		"The programs that measure are compiled on this host, and none of the compilers is in PATH.",
		"Install one (Debian: apt-get install gcc libc6-dev), or use the default costs.")
	errCompile = errs.Define("calibrate-compile",
		"cannot measure: {compiler} does not compile {program}",
		"The compiler or the C library's headers are not usable; the rest of the sentence is the compiler's first line.",
		"Install the headers (Debian: apt-get install libc6-dev), or use the default costs.")
	errProgram = errs.Define("calibrate-program",
		"cannot measure: the program {program} failed",
		"A program that measures crashed, took more than two minutes or printed something unexpected; the rest of the sentence says what happened.",
		"Run it again on a quiet host, and report the sentence if it stays.")
	errFolder = errs.Define("calibrate-folder",
		"cannot measure: there is no room for the compiled programs",
		"The folder for temporary files is full, or may not be written to; the rest of the sentence says which.",
		"Free space, or set TMPDIR to another folder.")
)

// Measurement is one cost on this host.
type Measurement struct {
	Field arch.CostField
	// Measured reports whether it could be measured here.
	Measured bool
	// Value is the median, in the field's unit, before rounding. It is not
	// negative, and 0 if it was not measured.
	Value float64
}

// Cost is the value for the timing model: the rounded one, or the default if
// none was measured.
func (m *Measurement) Cost() uint32 {
	if !m.Measured {
		return m.Field.Default
	}
	rounded := math.Round(min(m.Value, float64(m.Field.Most)))
	return max(m.Field.Least, uint32(rounded))
}

// Measure compiles the programs and runs each so often, at least once.
func Measure(ctx context.Context, repetitions int) ([]Measurement, error) {
	dir, err := os.MkdirTemp("", "heddle-calibrate-")
	if err != nil {
		return nil, errFolder.Wrap(err)
	}
	defer os.RemoveAll(dir)
	if err := build(ctx, dir); err != nil {
		return nil, err
	}
	times := map[string][]float64{}
	for range repetitions {
		for _, name := range programs {
			if err := measure(ctx, dir, name, times); err != nil {
				return nil, err
			}
		}
	}
	return inCycles(times), nil
}

// build compiles the programs in a folder.
func build(ctx context.Context, dir string) error {
	compiler, err := findCompiler()
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, sources); err != nil {
		return errFolder.Wrap(err)
	}
	for _, name := range programs {
		source := filepath.Join(dir, "programs", name+".c")
		c := exec.CommandContext(ctx, compiler, "-O2", "-pthread", "-o", filepath.Join(dir, name), source)
		if out, err := c.CombinedOutput(); err != nil {
			return errCompile.Wrap(firstLine(out, err), compiler, name+".c")
		}
	}
	return nil
}

func findCompiler() (string, error) {
	for _, name := range compilers {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errCompiler.New(strings.Join(compilers, ", "))
}

// firstLine is the first line that a program printed, or else the error.
func firstLine(out []byte, err error) error {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if line == "" {
		return err
	}
	return errors.New(line)
}

// measure runs one of the programs and adds the times that it prints, in
// nanoseconds, by name.
func measure(ctx context.Context, dir, name string, times map[string][]float64) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, filepath.Join(dir, name))
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return errProgram.Wrap(firstLine(stderr.Bytes(), err), name)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		what, text, _ := strings.Cut(lines.Text(), " ")
		if text == "-" {
			continue
		}
		ns, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return errProgram.Wrap(err, name)
		}
		times[what] = append(times[what], max(ns, 0))
	}
	return nil
}

// inCycles turns times into the fields' units. The cycle is measured like all
// else, as the time of a simple instruction: that costs 1 by definition.
func inCycles(times map[string][]float64) []Measurement {
	cycle := max(median(times["cycle"]), 1e-3)
	var list []Measurement
	for _, f := range arch.CostFields() {
		m := Measurement{Field: f, Measured: true}
		switch {
		case f.Name == "instruction":
			m.Value = 1
		case f.Name == "mhz":
			m.Value = 1000 / cycle
		case len(times[f.Name]) == 0:
			m.Measured = false
		default:
			m.Value = median(times[f.Name]) / cycle
		}
		list = append(list, m)
	}
	return list
}

// median is the middle one, or 0 of none.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// Write makes the file that `--costs` takes. The processor's name stands in a
// comment.
func Write(to io.Writer, processor string, list []Measurement) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Costs of the timing model, measured by `heddle calibrate` on\n# %s.\n", processor)
	b.WriteString("# heddle run --costs takes this file. Virtual time that is modelled with it is this\n# host's, not the default machine's.\ncosts:\n")
	for i := range list {
		m := &list[i]
		note := "not measured"
		if m.Measured {
			note = fmt.Sprintf("measured %.2f", m.Value)
		}
		fmt.Fprintf(&b, "  %s: %d # %s; %s, default %d: %s\n", m.Field.Name, m.Cost(), m.Field.Unit(), note, m.Field.Default, m.Field.What)
	}
	_, err := io.WriteString(to, b.String())
	return err
}
