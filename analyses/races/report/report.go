package report

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/heddle-dmt/heddle/analyses/races"
	"github.com/heddle-dmt/heddle/analyses/races/stream"
	"github.com/heddle-dmt/heddle/emu/arch"
	"github.com/heddle-dmt/heddle/internal/debuginfo"
	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/recorder/event"
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
	// Words is for HappensBefore; empty: RaceWords.
	Words Words
	// Repeats compares repeated accesses, too: each pair of instructions that races is reported, and not
	// only one for each series of accesses.
	Repeats bool
	// Library shows also races in which one side is the C library's or dynamic
	// linker's own code.
	Library bool
	// Data and Code, if not empty, choose races by address, and by the
	// instructions of either side.
	Data, Code []Range
	// Since is the number of an event: of races only those count whose second
	// access comes behind it.
	Since uint64
	// During, unless nil, is asked when a race is found: it counts only if During says so.
	During func() bool
	// Rules leave races out; the report counts them in these.
	Rules []*Rule
	// Verbose has the text say how many races each rule leaves out.
	Verbose bool
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
	Mode   string `json:"mode"`
	Benign Benign `json:"benign"`
	// Words are RaceWords, CodeWords or OrderWords, as they were in the end.
	Words  Words         `json:"atomic_words"`
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
	// Outside are those that Options.During leaves out.
	Outside uint64 `json:"outside_region,omitempty"`
	// Suppressed counts the pairs of instructions of races that Rules leave out, and
	// SuppressedInstances these races.
	Suppressed          int     `json:"suppressed"`
	SuppressedInstances uint64  `json:"suppressed_instances"`
	Rules               []*Rule `json:"rules"`
	// Threads are all threads of the run. Of those that take part in a race it is
	// told where they were made.
	Threads []Thread `json:"threads"`
	// Races are in the order in which their first instances were found.
	Races []*Race `json:"races"`
	// Locations are the races by what they access.
	Locations []Location `json:"locations"`
	// Another is a command that analyses another interleaving, empty if it is not known.
	Another string `json:"another"`

	// Prediction is set if races were predicted.
	Prediction *Prediction `json:"prediction,omitempty"`

	verbose bool
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
	// Internal reports that one of the accesses is a run-time library's own: see Options.Library.
	Internal bool `json:"-"`
	// Witness is set if the race is of another run than the report's.
	Witness *Witness `json:"witness,omitempty"`
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

// Make goes through a trace, which has a name for people.
func Make(name string, r *trace.Reader, o Options) (*Report, error) {
	description, err := r.Manifest()
	if err != nil {
		return nil, err
	}
	end, err := r.Summary()
	if err != nil {
		return nil, err
	}
	m := newMaker(name, o)
	m.files = func() (*names, error) { return newNames(description, end) }
	run, err := stream.New(r, m.streamOptions())
	if err != nil {
		return nil, err
	}
	defer run.Close()
	m.run = run.Run
	if err := run.ReadAll(); err != nil {
		return nil, err
	}
	return m.finish(description, end)
}

// Live makes the report of a run while it takes place: it is the Listener of the run. Its owner calls Close.
type Live struct {
	*stream.Live
	maker             *maker
	manifest, summary []byte
}

// NewLive makes a Live of a run, which has a name for people.
func NewLive(name string, o Options) *Live {
	l := &Live{maker: newMaker(name, o)}
	l.maker.files = func() (*names, error) { return newNames(l.manifest, nil) }
	l.Live = stream.NewLive(l.maker.streamOptions())
	l.maker.run = l.Live.Run
	return l
}

// Document implements trace.Listener.
func (l *Live) Document(kind trace.Kind, text []byte) {
	if kind == trace.ManifestK {
		l.manifest = text
	} else {
		l.summary = text
	}
}

// Report returns the report of the run, which is over.
func (l *Live) Report() (*Report, error) {
	if err := l.Live.Finish(); err != nil {
		return nil, err
	}
	return l.maker.finish(l.manifest, l.summary)
}

// maker takes the races of a run, and describes them when it is over: names are of files as they are then.
type maker struct {
	o       Options
	run     *stream.Run
	names   *names
	files   func() (*names, error) // of the run, while it takes place
	atomics *atomicFiles           // nil: not yet needed
	report  *Report
	groups  map[groupKey]*group
	order   []*group       // as they were found
	known   map[pair]*Race // nil: the C library's own
	// suppressed has pairs of which a rule has left races out.
	suppressed map[pair]bool
	created    map[int][]Frame
}

func newMaker(name string, o Options) *maker {
	m := &maker{
		o: o, groups: map[groupKey]*group{}, known: map[pair]*Race{}, created: map[int][]Frame{}, suppressed: map[pair]bool{},
		report: &Report{Format: Format, Trace: name, Mode: "hb", Benign: o.Benign, Words: RaceWords, verbose: o.Verbose, Races: []*Race{}, Locations: []Location{}, Rules: append([]*Rule{}, o.Rules...), Notes: []string{}},
	}
	if o.Order == races.ScheduleRelative {
		m.report.Mode = "schedule"
	}
	return m
}

func (m *maker) streamOptions() stream.Options {
	o := stream.Options{Order: m.o.Order, Values: m.o.Benign != Keep, Words: m.o.Words.atomics(), Repeats: m.o.Repeats, Race: m.found}
	if m.o.Order != races.HappensBefore {
		return o
	}
	o.AtomicCode = func(e *event.Mapping) []races.Code { return m.atomicFiles().codeIn(e) }
	if m.o.Words == AutoWords {
		o.WordsOf = func(file string) races.Atomics { return m.atomicFiles().atomicsOf(file) }
	}
	return o
}

// atomicFiles reads files of the run while it takes place.
func (m *maker) atomicFiles() *atomicFiles {
	if m.atomics == nil {
		n, err := m.files()
		if err != nil {
			n = &names{} // finish says why
		}
		m.atomics = &atomicFiles{n, map[string][]debuginfo.CodeRange{}}
	}
	return m.atomics
}

// pair is the key of a static race.
type pair struct{ low, high arch.Addr }

// place is an instruction, and the file that was mapped there, or the nearest one before it.
type place struct {
	pc   arch.Addr
	file event.Mapping // without a name: none
}

// groupSide is the instruction of an access and its call.
type groupSide struct {
	at     place
	kernel bool
	called bool
	caller arch.Addr
	stack  uint32 // all calls, if rules look at them; otherwise 0
}

// groupKey tells the races apart that may be different ones.
type groupKey [2]groupSide

// group is races of the same two instructions with the same calls.
type group struct {
	key           groupKey
	count, marked uint64
	kinds         [races.ReadWrite + 1]uint64
	first         moment
}

// moment is what is known of a race when it is found, and may be gone later.
type moment struct {
	race     races.Race
	stacks   [2][]place
	creators []creation // of the threads, and of those that made them
	file     event.Mapping
	block    *stream.Block
	sites    [2]*siteMoment // where the block was allocated and freed
	owner    int            // whose stack it is, or -1
}

// siteMoment is where a thread did something.
type siteMoment struct {
	thread   int
	stack    []place
	creators []creation
}

// creation is where a thread was made.
type creation struct {
	thread int
	stack  []place
}

// found takes a race.
func (m *maker) found(r *races.Race) {
	if m.o.During != nil && !m.o.During() {
		m.report.Outside++
		return
	}
	if !m.selected(r) || m.run.LastEvent() <= m.o.Since && m.o.Since > 0 {
		m.report.Unselected++
		return
	}
	if r.Benign && m.o.Benign == Prune {
		m.report.Pruned++
		return
	}
	key := groupKey{m.sideOf(&r.First, &r.Sides[0]), m.sideOf(&r.Second, &r.Sides[1])}
	g := m.groups[key]
	if g == nil {
		g = &group{key: key, first: m.momentOf(r)}
		m.groups[key] = g
		m.order = append(m.order, g)
	}
	g.count++
	g.kinds[r.Kind]++
	if r.Benign && m.o.Benign == Mark {
		g.marked++
	}
}

func (m *maker) selected(r *races.Race) bool {
	return within(m.o.Data, arch.Addr(r.Addr)) && (within(m.o.Code, r.First.PC) || within(m.o.Code, r.Second.PC))
}

func within(list []Range, addr arch.Addr) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(r Range) bool { return r.Start <= addr && addr < r.End })
}

func (m *maker) sideOf(i *races.Instance, s *races.Side) groupSide {
	side := groupSide{at: m.placeOf(i.Thread, i.PC), kernel: s.Other && i.PC == 0}
	if calls := m.run.CallsOf(s.Stack); len(calls) > 0 {
		side.called, side.caller = true, calls[0]
	}
	if len(m.o.Rules) > 0 {
		side.stack = s.Stack
	}
	return side
}

// placeOf is where code of a thread's process is.
func (m *maker) placeOf(thread int, pc arch.Addr) place {
	p := place{pc: pc}
	if f := m.run.FileAt(m.run.ThreadAt(thread).Process, pc); f != nil {
		p.file = *f
	}
	return p
}

// placesOf are the places of a stack of a thread.
func (m *maker) placesOf(thread int, stack uint32) (list []place) {
	for _, pc := range m.run.CallsOf(stack) {
		list = append(list, m.placeOf(thread, pc))
	}
	return list
}

func (m *maker) momentOf(r *races.Race) moment {
	out := moment{race: *r, owner: -1}
	for n, i := range []*races.Instance{&r.First, &r.Second} {
		out.creators = m.addCreators(out.creators, i.Thread)
		if !(r.Sides[n].Other && i.PC == 0) {
			out.stacks[n] = append(out.stacks[n], m.placeOf(i.Thread, i.PC))
		}
		out.stacks[n] = append(out.stacks[n], m.placesOf(i.Thread, r.Sides[n].Stack)...)
	}
	process := m.run.ThreadAt(r.Second.Thread).Process
	out.file = m.placeOf(r.Second.Thread, arch.Addr(r.Addr)).file
	if b := m.run.BlockAt(process, r.Addr); b != nil {
		copied := *b
		out.block = &copied
		out.sites[0] = m.siteOf(&b.Allocated)
		if b.Freed != nil {
			out.sites[1] = m.siteOf(b.Freed)
		}
	}
	if owner := m.run.StackOf(process, r.Addr); owner != nil {
		out.owner = owner.Number
	}
	return out
}

func (m *maker) siteOf(s *stream.Site) *siteMoment {
	out := &siteMoment{thread: s.Thread, creators: m.addCreators(nil, s.Thread)}
	out.stack = append([]place{m.placeOf(s.Thread, s.PC)}, m.placesOf(s.Thread, s.Stack)...)
	return out
}

// addCreators adds where a thread was made, and those that made it.
func (m *maker) addCreators(list []creation, thread int) []creation {
	for {
		t := m.run.ThreadAt(thread)
		if t.Parent < 0 {
			return list
		}
		list = append(list, creation{thread, m.placesOf(t.Parent, t.CreationStack)})
		thread = t.Parent
	}
}

// describeGroup adds the races of a group.
func (m *maker) describeGroup(g *group) {
	a, b := m.blamed(&g.key[0]), m.blamed(&g.key[1])
	key := pair{min(a, b), max(a, b)}
	race, known := m.known[key]
	found := race
	if !known || race != nil && len(m.o.Rules) > 0 {
		found = m.describe(&g.first)
	}
	if found != nil && m.suppresses(key, found, g.count) {
		return
	}
	if !known {
		race = found
		m.addRace(key, race)
	}
	if race == nil {
		m.report.Library += g.count
		return
	}
	race.Count += g.count
	for kind, n := range g.kinds {
		if n > 0 {
			race.Kinds[races.Kind(kind).String()] += n
		}
	}
	m.report.Dynamic += g.count
	race.Marked += g.marked
	m.report.Marked += g.marked
}

// addRace adds the entry of a pair of instructions; nil: the C library's own.
func (m *maker) addRace(key pair, race *Race) {
	m.known[key] = race
	if race == nil {
		m.report.LibraryPairs++
		return
	}
	m.report.Static++
	if m.o.Limit == 0 || len(m.report.Races) < m.o.Limit {
		m.report.Races = append(m.report.Races, race)
	}
}

// blamed is the instruction, or, of a function that copies or compares memory, its call.
func (m *maker) blamed(s *groupSide) arch.Addr {
	if s.kernel || !s.called || !m.names.copies(m.names.imageOf(s.at)) {
		return s.at.pc
	}
	return s.caller
}

// describe makes the entry of a race, nil if it is the C library's own and not
// wanted.
func (m *maker) describe(f *moment) *Race {
	r := &f.race
	m.noteCreators(f.creators)
	race := &Race{
		Kinds: map[string]uint64{},
		First: m.access(f, 0, r.Kind != races.ReadWrite), Second: m.access(f, 1, r.Kind != races.WriteRead),
	}
	race.Internal = m.internal(race.First) || m.internal(race.Second)
	if race.Internal && !m.o.Library {
		return nil
	}
	race.At = m.at(f)
	return race
}

// access describes the first access of a race, 0, or the second.
func (m *maker) access(f *moment, n int, write bool) Access {
	i, s := &f.race.First, &f.race.Sides[n]
	if n == 1 {
		i = &f.race.Second
	}
	a := Access{Instance: *i, Write: write, Atomic: s.Atomic, Size: s.Size, By: "instruction", Stack: m.frames(f.stacks[n])}
	switch {
	case s.Other && i.PC == 0:
		a.By = "kernel"
	case s.Other && write:
		a.By, a.Size = "free", 0
	case s.Other:
		a.By, a.Size, a.Atomic = "operation", 0, false
	}
	return a
}

// noteCreators notes where threads that take part in a race were made.
func (m *maker) noteCreators(list []creation) {
	for _, c := range list {
		if _, known := m.created[c.thread]; !known {
			m.created[c.thread] = m.frames(c.stack)
		}
	}
}

func (m *maker) frames(list []place) []Frame {
	frames := []Frame{}
	for _, p := range list {
		frames = append(frames, m.frame(p))
	}
	return frames
}

func (m *maker) frame(at place) Frame {
	p := m.names.imageOf(at)
	f := Frame{PC: at.pc, Image: p.name, ImageAddr: p.addr}
	if p.file == nil {
		return f
	}
	if function, offset := p.file.FunctionAt(p.addr); function != nil {
		f.Function, f.Offset = function.Name(), offset
	}
	f.File, f.Line, _ = p.file.Line(p.addr)
	return f
}

// internal reports whether an access is the C library's, dynamic linker's or Go's run-time's own: by
// code of theirs other than functions that copy or compare memory for a caller.
func (m *maker) internal(a Access) bool {
	if a.By != "instruction" {
		return false
	}
	for i := range a.Stack {
		f := &a.Stack[i]
		switch {
		case !ownedByRuntime(f):
			return false
		case !copying(f.Function):
			return true
		}
	}
	return true
}

// at describes the address of a race, as the second thread has it.
func (m *maker) at(f *moment) Place {
	p := Place{Addr: arch.Addr(f.race.Addr), Kind: "memory"}
	if b := f.block; b != nil {
		p.Kind, p.Offset, p.Size = "block", f.race.Addr-b.Addr, b.Size
		p.Made, p.Freed = m.site(f.sites[0]), m.site(f.sites[1])
		return p
	}
	i := m.names.imageOf(place{p.Addr, f.file})
	if i.file != nil {
		if variable, offset := i.file.VariableAt(i.addr); variable != nil {
			p.Kind, p.Name, p.Offset, p.Image = "variable", variable.Name(), offset, i.name
			return p
		}
	}
	if f.owner >= 0 {
		p.Kind, p.Thread = "stack", f.owner
	}
	return p
}

func (m *maker) site(s *siteMoment) *Site {
	if s == nil {
		return nil
	}
	m.noteCreators(s.creators)
	return &Site{Thread: s.thread, Stack: m.frames(s.stack)}
}

// finish makes the report of a run that is over, by its manifest and summary.
func (m *maker) finish(description, end []byte) (*Report, error) {
	r := m.report
	var err error
	if m.names, err = newNames(description, end); err != nil {
		return nil, errMode.Wrap(err)
	}
	r.Args = m.names.args
	for _, g := range m.order {
		m.describeGroup(g)
	}
	switch m.run.Words() {
	case races.AllAtomics:
		r.Words = OrderWords
	case races.AtomicsOfCode:
		r.Words = CodeWords
	}
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
	r.noteLocations()
	if r.Another, err = m.another(description); err != nil {
		return nil, errMode.Wrap(err)
	}
	return r, nil
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
