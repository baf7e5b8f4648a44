package strangers

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Detection is what a race detector reports about one run of a program on the small input.
type Detection struct {
	// Races is the number of its reports, each of two instructions or, for drd, of one; Predicted are those of
	// them that the run itself does not have.
	Races, Predicted int
	// Instructions are the instructions that take part in them, but for those of the C library.
	Instructions map[string]bool
	// Seconds is the processor time.
	Seconds float64
	// Problem is why there is no report, or empty.
	Problem string
}

// detectors are the detectors that are compared: heddle's, with prediction, and Valgrind's two.
var detectors = []string{"heddle", "helgrind", "drd"}

// Comparison has the reports of all detectors about a program.
type Comparison struct {
	Program string
	By      []Detection // as in detectors
}

// CompareDetectors runs the race detectors over the programs that are installed, each with the limits of a cell.
func (c *Corpus) CompareDetectors(ctx context.Context, o Options) ([]Comparison, error) {
	programs, _, err := c.selected(o)
	if err != nil {
		return nil, err
	}
	var list []Comparison
	for _, i := range programs {
		p := c.Programs[i]
		if _, err := exec.LookPath(p.File); err != nil {
			continue
		}
		x := Comparison{Program: p.Name}
		for _, detector := range detectors {
			d, err := c.detect(ctx, o, p, detector)
			if err != nil {
				return nil, err
			}
			if o.Progress != nil {
				fmt.Fprintf(o.Progress, "%s, %s: %s %.1f s\n", p.Name, detector, d.text(), d.Seconds)
			}
			x.By = append(x.By, d)
		}
		list = append(list, x)
	}
	return list, nil
}

// detect runs one detector over a program.
func (c *Corpus) detect(ctx context.Context, o Options, p Program, detector string) (Detection, error) {
	dir, err := os.MkdirTemp("", "heddle-strangers-")
	if err != nil {
		return Detection{}, err
	}
	defer os.RemoveAll(dir)
	s := &session{corpus: c, program: p, heddle: o.Heddle, dir: dir, budget: newBudget(c.Limits)}
	in, err := s.makeInputs(ctx, p.Small, 1)
	var d *Detection
	if err == nil && detector == "heddle" {
		d, err = s.detectByHeddle(ctx, in)
	} else if err == nil {
		d, err = s.detectByValgrind(ctx, in, detector)
	}
	if f := (failure{}); errors.As(err, &f) {
		return Detection{Problem: string(f.State)}, nil
	}
	return *cmp.Or(d, &Detection{}), err
}

func (s *session) detectByHeddle(ctx context.Context, in *inputs) (*Detection, error) {
	report := filepath.Join(s.dir, "races.json")
	p, err := s.heddleRun(ctx, run{command: []string{"races", "-q", "--predict", "--json", "-o", report}, in: in})
	if err != nil {
		return nil, err
	}
	d, err := readHeddle(report)
	if d != nil {
		d.Seconds = p.spent.Seconds()
	}
	return d, err
}

// detectByValgrind runs the program in a copy of the inputs, as on the host.
func (s *session) detectByValgrind(ctx context.Context, in *inputs, tool string) (*Detection, error) {
	fresh := in.dir + "-valgrind"
	if err := os.CopyFS(fresh, os.DirFS(in.dir)); err != nil {
		return nil, errInputs.Wrap(err, s.program.Name)
	}
	report := filepath.Join(s.dir, "valgrind.%p.xml")
	args := []string{"valgrind", "-q", "--tool=" + tool, "--error-limit=no", "--xml=yes", "--xml-file=" + report, s.program.File}
	p := &process{Args: append(args, s.program.Arguments...), Dir: fresh, Stdin: s.program.Stdin}
	if err := s.budget.run(ctx, p); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "valgrind.*.xml"))
	if err != nil || len(files) == 0 {
		return &Detection{Problem: fmt.Sprintf("status %d", p.status)}, err
	}
	all := &Detection{Instructions: map[string]bool{}, Seconds: p.spent.Seconds()}
	for _, file := range files {
		text, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		err = all.addValgrind(text)
		text.Close()
		if err != nil {
			all.Problem = fmt.Sprintf("status %d", p.status) // the tool did not reach its end
		}
	}
	return all, nil
}

// heddleFrame is a frame of heddle's report.
type heddleFrame struct {
	Image   string `json:"image"`
	Address uint64 `json:"image_address"`
}

// readHeddle reads a report of `heddle races --json`.
func readHeddle(file string) (*Detection, error) {
	var r struct {
		Races []struct {
			Witness       *struct{} // of a predicted race
			First, Second struct{ Stack []heddleFrame }
		}
	}
	if err := readJSON(file, &r); err != nil {
		return nil, err
	}
	d := &Detection{Races: len(r.Races), Instructions: map[string]bool{}}
	for _, x := range r.Races {
		if x.Witness != nil {
			d.Predicted++
		}
		for _, side := range [][]heddleFrame{x.First.Stack, x.Second.Stack} {
			if len(side) > 0 {
				d.addInstruction(side[0].Image, side[0].Address)
			}
		}
	}
	return d, nil
}

// addValgrind adds the races of a report of helgrind or drd.
func (d *Detection) addValgrind(r io.Reader) error {
	var report struct {
		Errors []struct {
			Kind   string `xml:"kind"`
			Stacks []struct {
				Frames []struct {
					IP  string `xml:"ip"`
					Obj string `xml:"obj"`
				} `xml:"frame"`
			} `xml:"stack"`
		} `xml:"error"`
	}
	if err := xml.NewDecoder(r).Decode(&report); err != nil {
		return err
	}
	for _, e := range report.Errors {
		sides := 1 // drd's further stacks are those of segments
		switch e.Kind {
		case "Race":
			sides = 2
		case "ConflictingAccess":
		default:
			continue
		}
		d.Races++
		for _, stack := range e.Stacks[:min(sides, len(e.Stacks))] {
			if len(stack.Frames) == 0 {
				continue
			}
			at, err := strconv.ParseUint(stack.Frames[0].IP, 0, 64)
			if err != nil {
				return err
			}
			d.addInstruction(stack.Frames[0].Obj, at)
		}
	}
	return nil
}

// pageMask keeps the part of an address that does not depend on where a file is mapped.
const pageMask = 0xfff

// addInstruction adds an instruction of a file, unless that is the C library or Valgrind's.
func (d *Detection) addInstruction(file string, at uint64) {
	name := path.Base(file)
	for _, library := range []string{"libc.so", "ld-linux", "vgpreload"} {
		if strings.HasPrefix(name, library) {
			return
		}
	}
	d.Instructions[fmt.Sprintf("%s+...%03x", name, at&pageMask)] = true
}

// text is a cell of the table.
func (d *Detection) text() string {
	switch {
	case d.Problem != "":
		return d.Problem
	case d.Predicted > 0:
		return fmt.Sprintf("%d and %d predicted (%d)", d.Races-d.Predicted, d.Predicted, len(d.Instructions))
	}
	return fmt.Sprintf("%d (%d)", d.Races, len(d.Instructions))
}

// alone lists the instructions that one detector alone reports.
func (x *Comparison) alone(n int) (list []string) {
	for _, in := range slices.Sorted(maps.Keys(x.By[n].Instructions)) {
		found := false
		for m := range x.By {
			found = found || m != n && x.By[m].Instructions[in]
		}
		if !found {
			list = append(list, in)
		}
	}
	return list
}

// WriteComparisons writes a table: the races of each detector, in parentheses the instructions that take part, and
// how many of these one detector alone reports. Verbose adds a list of the latter.
func WriteComparisons(w io.Writer, list []Comparison, verbose bool) error {
	var b strings.Builder
	b.WriteString("| program | heddle | helgrind | drd | instructions by one alone: heddle, helgrind, drd | processor time |\n| --- | --- | --- | --- | --- | --- |\n")
	for i := range list {
		x := &list[i]
		var alone, times []string
		fmt.Fprintf(&b, "| %s |", x.Program)
		for n := range x.By {
			fmt.Fprintf(&b, " %s |", x.By[n].text())
			alone = append(alone, strconv.Itoa(len(x.alone(n))))
			times = append(times, seconds(time.Duration(x.By[n].Seconds*float64(time.Second))))
		}
		fmt.Fprintf(&b, " %s | %s |\n", strings.Join(alone, ", "), strings.Join(times, ", "))
	}
	for i := range list {
		for n, name := range detectors {
			if alone := list[i].alone(n); verbose && len(alone) > 0 {
				fmt.Fprintf(&b, "\n%s, %s alone: %s\n", list[i].Program, name, strings.Join(alone, " "))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
