package report

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/analyses/races/stream"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/trace"
)

// Format is the version of the JSON form.
const Format = 1

// Benign says what becomes of races whose writes change nothing (TERN section
// 7.1).
type Benign string

// What becomes of them.
const (
	Keep  Benign = "keep"  // they are races like others
	Mark  Benign = "mark"  // they are counted apart
	Prune Benign = "prune" // they are left out
)

// Modes names the orders that races are found by.
var Modes = map[string]races.Order{"hb": races.HappensBefore, "schedule": races.ScheduleRelative}

// Options say what is reported.
type Options struct {
	Order  races.Order
	Benign Benign
	// Library shows also races in which one side is the C library's or dynamic
	// linker's own code.
	Library bool
	// Data and Code, if not empty, choose races by address, and by the
	// instructions of either side.
	Data, Code []Range
	// Since is the number of an event: of races only those count whose second
	// access comes behind it.
	Since uint64
	// Limit is how many races are described, 0: all. The others count.
	Limit int
}

// Range is addresses from Start on, without End.
type Range struct{ Start, End arch.Addr }

// Report is what was found.
type Report struct {
	Format int      `json:"format"`
	Trace  string   `json:"trace"`
	Args   []string `json:"program"`
	// Mode is "hb" or "schedule", Benign as in Options.
	Mode   string        `json:"mode"`
	Benign Benign        `json:"benign"`
	Counts stream.Counts `json:"counts"`
	// Dynamic counts the races of Races, Static the entries.
	Dynamic uint64 `json:"dynamic"`
	Static  int    `json:"static"`
	// Marked of Dynamic are benign; Pruned were, and are left out. Library are
	// those of the C library that are left out, of so many pairs of
	// instructions, Unselected those that Data and Code leave out.
	Marked       uint64 `json:"marked"`
	Pruned       uint64 `json:"pruned"`
	Library      uint64 `json:"library"`
	LibraryPairs int    `json:"library_pairs"`
	Unselected   uint64 `json:"unselected"`
	// Threads are all threads of the run. Of those that take part in a race it is
	// told where they were made.
	Threads []Thread `json:"threads"`
	// Races are in the order in which their first instances were found.
	Races []*Race `json:"races"`
	// Notes are sentences about what limits the report.
	Notes []string `json:"notes"`
}

// Thread is a thread of the run.
type Thread struct {
	Number  int           `json:"number"`
	ID      arch.ThreadID `json:"id"`
	Name    string        `json:"name"`
	Process int32         `json:"process"`
	Parent  int           `json:"parent"`
	Created []Frame       `json:"created"`
}

// Race is all races of two instructions.
type Race struct {
	// Count is how many there were, and Marked how many of them were benign.
	Count  uint64 `json:"count"`
	Marked uint64 `json:"marked"`
	// Kinds counts them by what came first.
	Kinds map[string]uint64 `json:"kinds"`
	// First and Second are the accesses of the first one, At what they access.
	First  Access `json:"first"`
	Second Access `json:"second"`
	At     Place  `json:"at"`
}

// Access is one of the two accesses.
type Access struct {
	races.Instance
	// Write tells a store; Atomic that it is part of an atomic instruction, of
	// which under HappensBefore only the load is looked at.
	Write  bool `json:"write"`
	Atomic bool `json:"atomic"`
	// Size is the number of bytes, 0: not known.
	Size int `json:"size"`
	// By is "instruction", "kernel" (a system call wrote), "free", or "operation"
	// (a synchronization operation used its object).
	By string `json:"by"`
	// Stack has where the instruction is and then the calls, the innermost
	// first.
	Stack []Frame `json:"stack"`
}

// Frame is a place in code.
type Frame struct {
	PC arch.Addr `json:"pc"`
	// Function and Offset are by the symbols of Image, the file that is mapped
	// there, where the place has the address ImageAddr. Empty: not known.
	Function  string `json:"function"`
	Offset    uint64 `json:"offset"`
	Image     string `json:"image"`
	ImageAddr uint64 `json:"image_address"`
	// File and Line are of the source, if there is debug information.
	File string `json:"file"`
	Line int    `json:"line"`
}

// Place is what an address is of.
type Place struct {
	Addr arch.Addr `json:"address"`
	// Kind is "variable", "block", "stack" or "memory".
	Kind string `json:"kind"`
	// Name and Offset are of a variable, with the file that has it.
	Name   string `json:"name,omitempty"`
	Offset uint64 `json:"offset"`
	Image  string `json:"image,omitempty"`
	// Size is that of a block, Made who allocated it and Freed who freed it.
	Size  uint64 `json:"size,omitempty"`
	Made  *Site  `json:"allocated,omitempty"`
	Freed *Site  `json:"freed,omitempty"`
	// Thread is whose stack it is.
	Thread int `json:"thread,omitempty"`
}

// Site is where a thread did something.
type Site struct {
	Thread int     `json:"thread"`
	Stack  []Frame `json:"stack"`
}

var errMode = errs.Define("races-manifest",
	"the trace's description of the run cannot be read",
	"The record was not written by this version of heddle; the rest of the sentence is the decoder's.",
	"Record the run again.")

// pair is the key of a static race.
type pair struct{ low, high arch.Addr }

// maker goes through a trace.
type maker struct {
	o       Options
	run     *stream.Reader
	names   *names
	report  *Report
	known   map[pair]*Race // nil: the C library's own
	created map[int][]Frame
}

// Make goes through a trace, which has a name for people.
func Make(name string, r *trace.Reader, o Options) (*Report, error) {
	m := &maker{
		o: o, known: map[pair]*Race{}, created: map[int][]Frame{},
		report: &Report{Format: Format, Trace: name, Mode: "hb", Benign: o.Benign, Races: []*Race{}, Notes: []string{}},
	}
	if o.Order == races.ScheduleRelative {
		m.report.Mode = "schedule"
	}
	description, err := r.Manifest()
	if err != nil {
		return nil, err
	}
	end, err := r.Summary()
	if err != nil {
		return nil, err
	}
	if m.names, err = newNames(description, end); err != nil {
		return nil, errMode.Wrap(err)
	}
	m.report.Args = m.names.args
	m.run, err = stream.New(r, stream.Options{Order: o.Order, Values: o.Benign != Keep, Race: m.found})
	if err != nil {
		return nil, err
	}
	defer m.run.Close()
	if err := m.run.ReadAll(); err != nil {
		return nil, err
	}
	m.finish()
	return m.report, nil
}

// found takes a race.
func (m *maker) found(r *races.Race) {
	if !m.selected(r) || m.run.LastEvent() <= m.o.Since && m.o.Since > 0 {
		m.report.Unselected++
		return
	}
	if r.Benign && m.o.Benign == Prune {
		m.report.Pruned++
		return
	}
	key := m.key(r)
	race, known := m.known[key]
	if !known {
		race = m.describe(r)
		if race != nil {
			m.report.Static++
			if m.o.Limit == 0 || len(m.report.Races) < m.o.Limit {
				m.report.Races = append(m.report.Races, race)
			}
		} else {
			m.report.LibraryPairs++
		}
		m.known[key] = race
	}
	if race == nil {
		m.report.Library++
		return
	}
	race.Count++
	race.Kinds[r.Kind.String()]++
	m.report.Dynamic++
	if r.Benign && m.o.Benign == Mark {
		race.Marked++
		m.report.Marked++
	}
}

func (m *maker) selected(r *races.Race) bool {
	return within(m.o.Data, arch.Addr(r.Addr)) && (within(m.o.Code, r.First.PC) || within(m.o.Code, r.Second.PC))
}

func within(list []Range, addr arch.Addr) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(r Range) bool { return r.Start <= addr && addr < r.End })
}

// key is the two instructions, in either order. A function that copies or
// compares memory stands for its caller.
func (m *maker) key(r *races.Race) pair {
	a, b := m.blamed(&r.First, &r.Sides[0]), m.blamed(&r.Second, &r.Sides[1])
	return pair{min(a, b), max(a, b)}
}

func (m *maker) blamed(i *races.Instance, s *races.Side) arch.Addr {
	if s.Other && i.PC == 0 || !m.names.copies(m.place(i.Thread, i.PC)) {
		return i.PC
	}
	if calls := m.run.CallsOf(s.Stack); len(calls) > 0 {
		return calls[0]
	}
	return i.PC
}

// place is where code of a thread's process is.
func (m *maker) place(thread int, pc arch.Addr) image {
	t := m.run.ThreadAt(thread)
	return m.names.image(m.run.FileAt(t.Process, pc), pc)
}

// describe makes the entry of a race, nil if it is the C library's own and not
// wanted.
func (m *maker) describe(r *races.Race) *Race {
	race := &Race{
		Kinds: map[string]uint64{},
		First: m.access(&r.First, &r.Sides[0], r.Kind != races.ReadWrite), Second: m.access(&r.Second, &r.Sides[1], r.Kind != races.WriteRead),
	}
	if !m.o.Library && (m.internal(race.First) || m.internal(race.Second)) {
		return nil
	}
	race.At = m.at(r)
	return race
}

func (m *maker) access(i *races.Instance, s *races.Side, write bool) Access {
	m.creation(i.Thread)
	a := Access{Instance: *i, Write: write, Atomic: s.Atomic, Size: s.Size, By: "instruction"}
	switch {
	case s.Other && i.PC == 0:
		a.By = "kernel"
		a.Stack = m.calls(i.Thread, s.Stack)
		return a
	case s.Other && write:
		a.By, a.Size = "free", 0
	case s.Other:
		a.By, a.Size, a.Atomic = "operation", 0, false
	}
	a.Stack = append([]Frame{m.frame(i.Thread, i.PC)}, m.calls(i.Thread, s.Stack)...)
	return a
}

// creation notes where a thread that takes part in a race was made, and those
// that made it: later the files may be gone.
func (m *maker) creation(thread int) {
	t := m.run.ThreadAt(thread)
	if _, known := m.created[thread]; known || t.Parent < 0 {
		return
	}
	m.created[thread] = m.calls(t.Parent, t.CreationStack)
	m.creation(t.Parent)
}

// calls are the frames of a stack of a thread.
func (m *maker) calls(thread int, stack uint32) []Frame {
	list := []Frame{}
	for _, pc := range m.run.CallsOf(stack) {
		list = append(list, m.frame(thread, pc))
	}
	return list
}

func (m *maker) frame(thread int, pc arch.Addr) Frame {
	p := m.place(thread, pc)
	f := Frame{PC: pc, Image: p.name, ImageAddr: p.addr}
	if p.file == nil {
		return f
	}
	if function, offset := p.file.FunctionAt(p.addr); function != nil {
		f.Function, f.Offset = function.Name(), offset
	}
	f.File, f.Line, _ = p.file.Line(p.addr)
	return f
}

// internal reports whether an access is the C library's or dynamic linker's own: by
// code of theirs other than functions that copy or compare memory for a caller.
func (m *maker) internal(a Access) bool {
	if a.By != "instruction" || !library(a.Stack[0].Image) {
		return false
	}
	for _, f := range a.Stack {
		switch {
		case !library(f.Image):
			return false
		case !copying(f.Function):
			return true
		}
	}
	return true
}

// at describes the address of a race, as the second thread has it.
func (m *maker) at(r *races.Race) Place {
	t := m.run.ThreadAt(r.Second.Thread)
	p := Place{Addr: arch.Addr(r.Addr), Kind: "memory"}
	if b := m.run.BlockAt(t.Process, r.Addr); b != nil {
		p.Kind, p.Offset, p.Size, p.Made = "block", r.Addr-b.Addr, b.Size, m.site(&b.Allocated)
		if b.Freed != nil {
			p.Freed = m.site(b.Freed)
		}
		return p
	}
	i := m.names.image(m.run.FileAt(t.Process, p.Addr), p.Addr)
	if i.file != nil {
		if variable, offset := i.file.VariableAt(i.addr); variable != nil {
			p.Kind, p.Name, p.Offset, p.Image = "variable", variable.Name(), offset, i.name
			return p
		}
	}
	if owner := m.run.StackOf(t.Process, r.Addr); owner != nil {
		p.Kind, p.Thread = "stack", owner.Number
	}
	return p
}

func (m *maker) site(s *stream.Site) *Site {
	m.creation(s.Thread)
	return &Site{Thread: s.Thread, Stack: append([]Frame{m.frame(s.Thread, s.PC)}, m.calls(s.Thread, s.Stack)...)}
}

// finish adds what is known at the end.
func (m *maker) finish() {
	r := m.report
	r.Counts = m.run.Counts()
	for n := range r.Counts.Threads {
		t := m.run.ThreadAt(n)
		created := m.created[n]
		if created == nil {
			created = []Frame{}
		}
		r.Threads = append(r.Threads, Thread{
			Number: n, ID: t.ID, Name: t.Name, Process: t.Process, Parent: t.Parent, Created: created,
		})
	}
	if r.Counts.Cut {
		r.Notes = append(r.Notes, "the recording ended before the run: what comes after its last synchronization operation, system call or call of an allocator is not looked at")
	}
	r.Notes = append(r.Notes, m.names.notes()...)
}

// Sorted orders the races by how often they happened, the most frequent first.
func (r *Report) Sorted() []*Race {
	list := slices.Clone(r.Races)
	slices.SortStableFunc(list, func(a, b *Race) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// JSON is the report's stored form, with a line end.
func (r *Report) JSON() []byte {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		panic("bug: a report is plain data: " + err.Error())
	}
	return append(b, '\n')
}
