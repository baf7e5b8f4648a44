package hybrid

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/recorder/event"
)

// Version is that of the file format.
const Version = 7

// FileStart is the start of every schedule file, of any version.
const FileStart = "heddle schedule "

// File is a schedule with the run that it was made of: the content of a schedule file.
type File struct {
	// Kind is "hybrid", "sync" or "mem".
	Kind string
	// Args, Env and Dir are the program's; Seed is the seed of its random numbers, Cores how many
	// cores it saw, Layout whether its addresses were random, and Model the memory model.
	Args, Env []string
	Dir       string
	Seed      uint64
	Cores     int
	Layout    bool
	Model     string
	// Inputs are the files that it read.
	Inputs []Input
	// Prune says which constraints were left out, Counts how many races and constraints there were.
	Prune    Prune
	Counts   Counts
	Schedule *event.Schedule
	// Preconditions, of a memoized schedule, are those of inputs that may follow it, as
	// preconditions.Set writes them; Varying are the names that they have for the files which may
	// differ. A schedule that is not portable has preconditions that all input is as recorded.
	Preconditions []string
	Varying       []string
	// Program is the SHA-256 of the program that a memoized schedule is for, wherever
	// its file is; empty: the schedule has no preconditions.
	Program string
	// Notes say where constraints are in the source; by number, or none.
	Notes []string
	// SpinLoops are the loops in which threads waited for each other.
	SpinLoops []SpinLoop
}

// Input is a file with its SHA-256.
type Input struct{ SHA256, Path string }

// Write writes a schedule file: text, one line for each thing, with a checksum at
// its end. docs/schedules.md describes it.
func (f *File) Write(w io.Writer) error {
	var b bytes.Buffer
	f.writeHeader(&b)
	s := f.Schedule
	f.writePortable(&b)
	if s.Allocators {
		b.WriteString("allocators\n")
	}
	if s.Stuck {
		b.WriteString("stuck\n")
	}
	for i, name := range s.Threads {
		fmt.Fprintf(&b, "thread %d %s\n", i, name)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Objects)) {
		fmt.Fprintf(&b, "object %016x %q\n", uint64(id), s.Objects[id])
	}
	for i := range s.Operations {
		writeOperation(&b, &s.Operations[i])
	}
	for i := range f.SpinLoops {
		writeSpinLoop(&b, &f.SpinLoops[i])
	}
	for i := range s.Constraints {
		c := &s.Constraints[i]
		fmt.Fprintf(&b, "constraint %s -> %s", pointText(&c.First), pointText(&c.Second))
		if i < len(f.Notes) && f.Notes[i] != "" {
			fmt.Fprintf(&b, " # %s", f.Notes[i])
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "end %016x\n", xxh3.Hash(b.Bytes()))
	_, err := w.Write(b.Bytes())
	return err
}

func (f *File) writeHeader(b *bytes.Buffer) {
	fmt.Fprintf(b, FileStart+"%d\n", Version)
	fmt.Fprintf(b, "kind %s\nseed %d\ncores %d\nlayout %t\nmodel %s\ndir %q\n", f.Kind, f.Seed, f.Cores, f.Layout, f.Model, f.Dir)
	for _, list := range []struct {
		word  string
		texts []string
	}{{"arg", f.Args}, {"env", f.Env}} {
		for _, text := range list.texts {
			fmt.Fprintf(b, "%s %q\n", list.word, text)
		}
	}
	for _, in := range f.Inputs {
		fmt.Fprintf(b, "input %s %q\n", in.SHA256, in.Path)
	}
	fmt.Fprintf(b, "prune %s\ncounts %d %d %d %d\n", pruneNames[f.Prune], f.Counts.Races, f.Counts.Unpruned, f.Counts.Subsumed, f.Counts.Reduced)
}

// writePortable writes the lines of a portable schedule, and of one with preconditions.
func (f *File) writePortable(b *bytes.Buffer) {
	if f.Schedule.Portable {
		b.WriteString("portable")
		for _, d := range f.Schedule.Free {
			fmt.Fprintf(b, " %d", d)
		}
		b.WriteByte('\n')
	}
	if f.Program == "" {
		return
	}
	fmt.Fprintf(b, "program %s\n", f.Program)
	for _, name := range f.Varying {
		fmt.Fprintf(b, "varying %q\n", name)
	}
	for _, line := range f.Preconditions {
		fmt.Fprintf(b, "precondition %s\n", line)
	}
}

// writeOperation writes an operation: thread, part, name or number, result, times, and its writes.
func writeOperation(b *bytes.Buffer, o *event.Operation) {
	what := o.Op.String()
	if o.Part == event.SystemCall || o.Part == event.SignalPart {
		what = strconv.FormatUint(o.Number, 10)
	}
	fmt.Fprintf(b, "op %d %s %s %016x %d %d %d", o.Thread, o.Part, what, uint64(o.Object), o.Result, o.At, o.Time)
	for _, w := range o.Writes {
		fmt.Fprintf(b, " %x:%x", uint64(w.Addr), w.Data)
	}
	b.WriteByte('\n')
}

// writeSpinLoop writes a loop: its instruction, how often threads waited there and read, and the writers.
func writeSpinLoop(b *bytes.Buffer, l *SpinLoop) {
	fmt.Fprintf(b, "spin %x %d %d", uint64(l.PC), l.Waits, l.Iterations)
	for _, w := range l.Writers {
		fmt.Fprintf(b, " %x", uint64(w))
	}
	if l.Note != "" {
		fmt.Fprintf(b, " # %s", l.Note)
	}
	b.WriteByte('\n')
}

func pointText(p *event.Point) string {
	mark := ""
	switch {
	case p.Ends:
		mark = "!"
	case p.Accesses > 0:
		mark = fmt.Sprintf("/%d", p.Accesses)
	}
	return fmt.Sprintf("%d %d %x %d %d %d %d %d%s", p.Thread, p.Done, uint64(p.PC), p.Branches, p.Instructions, p.Occurrence, p.Spins, p.Span, mark)
}
