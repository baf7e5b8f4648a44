package minimal

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/internal/lines"
	"github.com/heddle-dmt/heddle/recorder/event"
	"github.com/heddle-dmt/heddle/sched/minimize"
)

// names finds lines and variables in the files of a guest.
type names struct {
	root  string
	files map[string]*lines.File // by guest path; for look-up only
	// images are where files lie in memory, in the order in which they were met.
	images []image
}

type image struct {
	path string
	bias uint64
}

func (n *names) file(path string) *lines.File {
	f := n.files[path]
	if f == nil {
		f = lines.Open(filepath.Join(n.root, path))
		n.files[path] = f
	}
	return f
}

// line is the innermost line of a stop that is known.
func (n *names) line(stop heddle.Stop) string {
	for _, p := range stop.Places {
		if p.Path == "" || p.Addr == 0 {
			continue
		}
		if line, ok := n.file(p.Path).Line(p.Addr); ok {
			return line
		}
	}
	return ""
}

// note remembers the files that a thread is in.
func (n *names) note(stop heddle.Stop) {
	for _, p := range stop.Places {
		known := p.Path == "" || p.Addr == 0
		for _, i := range n.images {
			known = known || i == image{p.Path, p.Bias}
		}
		if !known {
			n.images = append(n.images, image{p.Path, p.Bias})
		}
	}
}

// variable names what is at an address.
func (n *names) variable(at event.Addr) string {
	for _, i := range n.images {
		if name, ok := n.file(i.path).Variable(uint64(at) - i.bias); ok {
			return name
		}
	}
	return ""
}

// steps describes a schedule.
func steps(s minimize.Schedule, stops []heddle.Stop, root string) []Step {
	n := &names{root: root, files: map[string]*lines.File{}}
	for _, stop := range stops {
		n.note(stop)
	}
	at := map[event.ThreadID]uint64{} // for look-up only
	var all []Step
	for i := range s {
		x := Step{Thread: s[i].Thread, Core: s[i].Core, End: stops[i].Why, Line: n.line(stops[i])}
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
			x.Waiting = append(x.Waiting, Waiting{h.Thread, h.Addr, h.Newest, n.variable(h.Addr)})
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
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%s\t%s\n", s.Thread, s.Core, s.Instructions, s.End, s.place(), s.waiting())
	}
	return w.Flush()
}

// place names where the step ends.
func (s *Step) place() string {
	switch {
	case s.Line == "":
		return s.Function
	case s.Function == "":
		return s.Line
	}
	return s.Line + " (" + s.Function + ")"
}

func (s *Step) waiting() string {
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
