package minimize

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

// sourceNames finds lines and variables in the files of a guest.
type sourceNames struct {
	root  string
	files map[string]*debuginfo.File // by guest path; for look-up only
	// images are where files lie in memory, in the order in which they were met.
	images   []image
	ownLines bool // a file has debug information of its own
}

type image struct {
	path string
	bias uint64
}

func (n *sourceNames) openFile(path string) *debuginfo.File {
	f := n.files[path]
	if f == nil {
		var err error
		if f, err = debuginfo.Open(filepath.Join(n.root, path)); err != nil {
			f = &debuginfo.File{}
		}
		n.files[path] = f
	}
	return f
}

// lineOf returns the innermost source line of a stop. Lines that come from a
// distribution's debug files are used only if no file of the run was built with debug
// information: the report shows the program, not the C library that it called.
func (n *sourceNames) lineOf(stop Stop) string {
	for _, p := range stop.Places {
		if p.Path == "" || p.Addr == 0 {
			continue
		}
		file := n.openFile(p.Path)
		if line, ok := file.SourceLine(p.Addr); ok && file.HasOwnLines() == n.ownLines {
			return line
		}
	}
	return ""
}

// noteFiles remembers the files that a thread is in.
func (n *sourceNames) noteFiles(stop Stop) {
	for _, p := range stop.Places {
		known := p.Path == "" || p.Addr == 0
		for _, i := range n.images {
			known = known || i == image{p.Path, p.Bias}
		}
		if !known {
			n.images = append(n.images, image{p.Path, p.Bias})
			n.ownLines = n.ownLines || n.openFile(p.Path).HasOwnLines()
		}
	}
}

// variableAt names the variable at an address.
func (n *sourceNames) variableAt(at arch.Addr) string {
	for _, i := range n.images {
		v, offset := n.openFile(i.path).VariableAt(uint64(at) - i.bias)
		switch {
		case v == nil:
		case offset > 0:
			return fmt.Sprintf("%s+%d", v.Name(), offset)
		default:
			return v.Name()
		}
	}
	return ""
}

// describeSteps describes a schedule.
func describeSteps(s minimize.Schedule, stops []Stop, root string) []Step {
	n := &sourceNames{root: root, files: map[string]*debuginfo.File{}}
	for _, stop := range stops {
		n.noteFiles(stop)
	}
	at := map[arch.ThreadID]uint64{} // for look-up only
	var all []Step
	for i := range s {
		x := Step{Thread: s[i].Thread, Core: s[i].Core, End: stops[i].Why, Line: n.lineOf(stops[i])}
		x.Instructions = s[i].To - min(s[i].To, at[x.Thread])
		at[x.Thread] = s[i].To
		if x.End == "" && i == len(s)-1 {
			x.End = EndLimit
		} else if x.End == "" {
			x.End = EndPreempted
			if s[i].Inside > 0 {
				x.End = EndInside
			}
		}
		if p := stops[i].Places; len(p) > 0 {
			x.Function = p[0].Function
		}
		for _, h := range s[i].Hold {
			x.Waiting = append(x.Waiting, Waiting{h.Thread, h.Addr, h.Newest, n.variableAt(h.Addr)})
		}
		all = append(all, x)
	}
	return all
}

// Write prints the report.
func (p *Report) Write(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "failure: %v\n\n", p.Failure)
	fmt.Fprintf(w, "\trecorded\tshortest\n")
	fmt.Fprintf(w, "context switches\t%d\t%d\n", p.Before.Switches, p.After.Switches)
	fmt.Fprintf(w, "delayed stores\t%d\t%d\n", p.Before.Delays, p.After.Delays)
	fmt.Fprintf(w, "\nschedules tried: %d\n", p.Runs)
	switch {
	case !p.Reproduced:
		fmt.Fprintf(w, "the failure does not show when threads and stores alone are ordered as recorded: nothing is left out\n")
	case p.Complete:
		fmt.Fprintf(w, "no single switch or delay can be left out\n")
	default:
		fmt.Fprintf(w, "the search was cut short\n")
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return err
	}
	return p.WriteSteps(to)
}

// WriteSteps writes the steps as a table.
func (p *Report) WriteSteps(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "thread\tcore\tinstructions\tuntil\tat\tstores that wait meanwhile\n")
	for i := range p.Steps {
		s := &p.Steps[i]
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%s\t%s\n", s.Thread, s.Core, s.Instructions, s.End, s.describePlace(), s.describeWaiting())
	}
	return w.Flush()
}

// describePlace names where the step ends.
func (s *Step) describePlace() string {
	switch {
	case s.Line == "":
		return s.Function
	case s.Function == "":
		return s.Line
	}
	return s.Line + " (" + s.Function + ")"
}

func (s *Step) describeWaiting() string {
	var all []string
	for _, x := range s.Waiting {
		text := fmt.Sprintf("thread %d to %#x", x.Thread, uint64(x.Addr))
		if x.Variable != "" {
			text = fmt.Sprintf("thread %d to %s", x.Thread, x.Variable)
		}
		if x.Stores > 1 {
			text += fmt.Sprintf(" (%d)", x.Stores)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}
