package cache

import (
	"bytes"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/smt"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
	"github.com/heddle-dmt/heddle/recorder/event"
)

// AddResult is the result of adding a schedule.
type AddResult struct {
	// Name is the entry's, or that of the entry that admits all inputs of the schedule.
	Name string
	// New is set if an entry was added.
	New bool
	// Replaced are the entries that it replaces.
	Replaced []string
}

// maxPerProgram is the most entries of a program. If there are more, the entry with the
// lowest rate is removed, the oldest of several.
const maxPerProgram = 1000

// Add adds a schedule. A different schedule with the same preconditions is kept, too, as a
// backup (TERN section 6). A schedule is not kept if its preconditions imply those of an
// entry; an entry with the same schedule is replaced if its preconditions imply the new
// ones.
func (c *Cache) Add(f *hybrid.File) (AddResult, error) {
	var text bytes.Buffer
	if err := f.Write(&text); err != nil {
		return AddResult{}, errOpen.Wrap(err, c.path)
	}
	var a AddResult
	err := c.runTransaction(func(tx *sql.Tx) error {
		all, _, err := readEntries(tx, entriesOfProgram, hybrid.Version, f.Program, f.Program)
		if err != nil {
			return err
		}
		if a = decideMerge(f, textSHA256(text.Bytes()), all); !a.New {
			return nil
		}
		return insertEntry(tx, f, &a, text.Bytes())
	})
	return a, err
}

// decideMerge decides whether a schedule becomes an entry and which entries it replaces.
func decideMerge(f *hybrid.File, name string, all []*Entry) AddResult {
	a := AddResult{Name: name, New: true}
	for _, e := range all {
		if e.Name == name {
			return AddResult{Name: name}
		}
	}
	for _, e := range all {
		weaker, stronger := comparePreconditions(f, e.File)
		same := ordersAlike(f.Schedule, e.File.Schedule)
		switch {
		case stronger && (same || !weaker):
			return AddResult{Name: e.Name}
		case weaker && same:
			a.Replaced = append(a.Replaced, e.Name)
		}
	}
	return a
}

// insertEntry adds an entry, and removes the ones it replaces or displaces.
func insertEntry(tx *sql.Tx, f *hybrid.File, a *AddResult, text []byte) error {
	for _, name := range a.Replaced {
		if _, err := tx.Exec("DELETE FROM entries WHERE name = ?", name); err != nil {
			return err
		}
	}
	if _, err := tx.Exec("INSERT INTO entries (name, program, version, command, schedule) VALUES (?,?,?,?,?)",
		a.Name, f.Program, hybrid.Version, strings.Join(f.Args, " "), text); err != nil {
		return err
	}
	if err := insertLookup(tx, a.Name, f); err != nil {
		return err
	}
	_, err := tx.Exec(`DELETE FROM entries WHERE name IN (SELECT name FROM entries WHERE program = ? AND name <> ?
		ORDER BY (reuses + 0.5) / (tries + 0.5) DESC, rowid DESC LIMIT -1 OFFSET ?)`, f.Program, a.Name, maxPerProgram-1)
	return err
}

// comparePreconditions reports whether the preconditions of g imply those of f (weaker),
// and those of f those of g (stronger). If the question is too hard the answer is no.
func comparePreconditions(f, g *hybrid.File) (weaker, stronger bool) {
	pool := symbolic.NewPool()
	a, err := preconditions.Parse(f.Preconditions, pool)
	if err != nil {
		return false, false
	}
	b, err := preconditions.Parse(g.Preconditions, pool)
	if err != nil || !sameEnvironment(f, g) || a.Args != b.Args || !reflect.DeepEqual(a.Env, b.Env) {
		return false, false
	}
	return impliesTerms(pool, b.Terms, a.Terms), impliesTerms(pool, a.Terms, b.Terms)
}

// sameEnvironment reports whether two schedules require the same environment besides the
// input.
func sameEnvironment(f, g *hybrid.File) bool {
	return f.Program == g.Program && f.Dir == g.Dir && f.Layout == g.Layout && f.Model == g.Model && f.Seed == g.Seed &&
		f.Cores == g.Cores && reflect.DeepEqual(f.Inputs, g.Inputs)
}

// impliesTerms reports whether a implies all of b.
func impliesTerms(p *symbolic.Pool, a, b []*symbolic.Expr) bool {
	known := map[*symbolic.Expr]bool{}
	for _, t := range a {
		known[t] = true
	}
	open := slices.DeleteFunc(slices.Clone(b), func(t *symbolic.Expr) bool { return known[t] })
	if len(open) == 0 {
		return true
	}
	if preconditions.TooCostly(slices.Concat(a, open)) {
		return false
	}
	s := smt.New(preconditions.DefaultLimit)
	for _, t := range a {
		s.Assert(t)
	}
	for _, t := range open {
		s.Push()
		s.Assert(p.Not(t))
		answer := s.Check()
		s.Pop()
		if answer != smt.Unsatisfiable {
			return false
		}
	}
	return true
}

// ordersAlike reports whether two schedules impose the same order: times, and numbers of
// instructions, are the recorded runs'.
func ordersAlike(a, b *event.Schedule) bool { return orderText(a) == orderText(b) }

// orderText is the order that a schedule imposes, as text.
func orderText(s *event.Schedule) string {
	var w strings.Builder
	fmt.Fprintln(&w, s.Threads, s.Free)
	for i := range s.Operations {
		o := &s.Operations[i]
		fmt.Fprintln(&w, o.Thread, o.Part, o.Op, s.Objects[o.Object], o.Number)
	}
	for i := range s.Constraints {
		for _, p := range []*event.Point{&s.Constraints[i].First, &s.Constraints[i].Second} {
			fmt.Fprintln(&w, p.Thread, p.Done, p.PC, p.Occurrence, p.Ends)
		}
	}
	return w.String()
}

// Pack writes the entries of a program, or all if program is empty, to a new file, a
// read-only cache: schedules that are distributed with the program (TERN section 3.3).
func (c *Cache) Pack(path, program string) (entries int, err error) {
	if _, err := c.db.Exec("VACUUM INTO ?", path); err != nil {
		return 0, errOpen.Wrap(err, path)
	}
	out, err := openFile(path, false)
	if err != nil {
		return 0, err
	}
	if err := out.runTransaction(func(tx *sql.Tx) error {
		_, err := tx.Exec("DELETE FROM entries WHERE ? <> '' AND program <> ?", program, program)
		return err
	}); err != nil {
		return 0, err
	}
	if err := out.db.QueryRow("SELECT count(*) FROM entries").Scan(&entries); err != nil {
		return 0, errOpen.Wrap(err, path)
	}
	// One file, without a log beside it.
	if _, err := out.db.Exec("PRAGMA journal_mode = DELETE; VACUUM"); err != nil {
		return 0, errOpen.Wrap(err, path)
	}
	return entries, out.Close()
}

// Unpack adds the entries of another cache, and returns how many were new.
func (c *Cache) Unpack(from *Cache) (added int, damaged []error, err error) {
	entries, damaged, err := from.Entries("")
	for _, e := range entries {
		if err != nil {
			break
		}
		var a AddResult
		if a, err = c.Add(e.File); a.New {
			added++
		}
	}
	return added, damaged, err
}
