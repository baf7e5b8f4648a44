// Command bench measures the figures of docs/performance.md: heddle's speed in
// ratio to qemu-x86_64 on the same programs, and the prices of single
// operations.
//
// The two sides of a ratio run in turn, several times, and the shortest time
// of each counts: noise only ever adds. Figures of other benchmarks (snapshots)
// come from go test. With -write the lines measured are replaced in the table of docs/performance.md.
//
// Times of the host belong here and nowhere else; no test depends on them.
package main

import (
	"bytes"
	_ "embed" // for the guest program
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/internal/outfile"
)

//go:embed program/guest.c
var guestSource []byte

const (
	document = "docs/performance.md"
	begin    = "<!-- begin: make bench -->\n"
	end      = "<!-- end: make bench -->\n"
)

func main() {
	repeat := flag.Int("n", 5, "times that each side runs")
	write := flag.Bool("write", false, "put the lines into "+document)
	from := flag.Int("from", 1, "first line of the table to measure")
	to := flag.Int("to", len(measurements), "last line of the table to measure")
	flag.Parse()
	if err := run(*repeat, *from, *to, *write); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// setting is shared by the measurements.
type setting struct {
	heddle, guest, input string
	dir                  string
	repeat               int
	// run runs a command and demands that it succeeds; goFigures runs a benchmark of a
	// package and returns its figures by unit. Tests put others in their place.
	run       func(command ...string) (timing, error)
	goFigures func(pkg, name string) (map[string]float64, error)
}

// result is a line of the table.
type result struct {
	title, measured, target string
	met                     bool
}

func run(repeat, from, to int, write bool) error {
	if from < 1 || to > len(measurements) || from > to {
		return fmt.Errorf("-from %d -to %d: the table has the lines 1 to %d", from, to, len(measurements))
	}
	s, err := prepare(repeat)
	if err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	var results []result
	for _, measure := range measurements[from-1 : to] {
		r, err := measure(s)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %s (target %s)\n", r.title, r.measured, r.target)
		results = append(results, r)
	}
	table := render(results)
	if _, err := os.Stdout.Write(table); err != nil {
		return err
	}
	switch {
	case !write:
		return nil
	case from == 1 && to == len(measurements):
		return replace(document, func(string) string { return string(table) })
	}
	return replace(document, func(old string) string { return replaceLines(old, results) })
}

// replaceLines puts results into a table: in place of the lines about the same, or after the result before.
func replaceLines(table string, results []result) string {
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	at := len(lines) - 1
	for _, r := range results {
		same := func(line string) bool { return strings.HasPrefix(line, "| "+r.title+" |") }
		if i := slices.IndexFunc(lines, same); i >= 0 {
			at = i
			lines[i] = r.line()
		} else {
			at++
			lines = slices.Insert(lines, at, r.line())
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// prepare builds the guest program and the input in a temporary folder.
func prepare(repeat int) (*setting, error) {
	heddle := os.Getenv("HEDDLE_BIN")
	if heddle == "" {
		return nil, fmt.Errorf("HEDDLE_BIN names no heddle; use make bench")
	}
	dir, err := os.MkdirTemp("", "heddle-bench-")
	if err != nil {
		return nil, err
	}
	s := &setting{heddle: heddle, guest: filepath.Join(dir, "guest"), input: filepath.Join(dir, "input"), dir: dir, repeat: repeat}
	s.run, s.goFigures = runCommand, runBenchmark
	gcc := exec.Command("gcc", "-O2", "-pthread", "-static", "-x", "c", "-o", s.guest, "-")
	gcc.Stdin = bytes.NewReader(guestSource)
	if out, err := gcc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the guest program: %w\n%s", err, out)
	}
	return s, s.makeInput()
}

// inputSize is the length in bytes of the input of the compressors.
const inputSize = 6 << 20

// makeInput takes the beginning of a library that every host of heddle has.
func (s *setting) makeInput() error {
	found, err := filepath.Glob("/usr/lib/*/libunicorn.so.2")
	if err != nil || len(found) == 0 {
		return fmt.Errorf("no libunicorn.so.2 to compress")
	}
	from, err := os.Open(found[0])
	if err != nil {
		return err
	}
	defer from.Close()
	text, err := io.ReadAll(io.LimitReader(from, inputSize))
	if err != nil {
		return err
	}
	return os.WriteFile(s.input, text, 0o644)
}

func render(results []result) []byte {
	var b bytes.Buffer
	b.WriteString("| what | measured | target | met |\n| --- | --- | --- | --- |\n")
	for _, r := range results {
		b.WriteString(r.line() + "\n")
	}
	return b.Bytes()
}

// line is the result's line of the table.
func (r *result) line() string {
	met := "yes"
	if !r.met {
		met = "no"
	}
	return fmt.Sprintf("| %s | %s | %s | %s |", r.title, r.measured, r.target, met)
}

// newDocument is the document with an empty table.
const newDocument = `# Performance

` + "`make bench`" + ` takes these figures in one run: the two sides of each ratio in turn, several
times, and the shortest time of each. Ratios travel between hosts better than times do; a
busy host makes both worthless. ` + "`make bench BENCH=-write`" + ` replaces the table.

` + begin + end

// replace changes the table between the marks in the document, which it makes if it does not
// exist.
func replace(path string, change func(table string) string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		text, err = []byte(newDocument), nil
	}
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s does not have the marks %q and %q", path, begin, end)
	}
	return outfile.WriteBytes(path, []byte(before+begin+change(table)+end+after))
}
