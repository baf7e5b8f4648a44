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

// Added says what became of a schedule.
type Added struct {
	// Name is the entry's, or that of the one which admits all that the schedule does.
	Name string
	// New tells that there is an entry more.
	New bool
	// Replaced are the entries that were left out for it.
	Replaced []string
}

// maxPerProgram is how many entries a program has at most. The one with the lowest
// rate makes room, the oldest of several.
const maxPerProgram = 1000

// Add adds a schedule. One with the same preconditions and another schedule is kept
// beside it, as a backup (TERN section 6); one whose preconditions imply those of an
// entry is not, and an entry whose preconditions imply the schedule's own and whose
// schedule is the same makes room.
func (c *Cache) Add(f *hybrid.File) (Added, error) {
	var text bytes.Buffer
	if err := f.Write(&text); err != nil {
		return Added{}, errOpen.Wrap(err, c.path)
	}
	var a Added
	err := c.change(func(tx *sql.Tx) error {
		all, _, err := entries(tx, f.Program)
		if err != nil {
			return err
		}
		if a = merge(f, sumOf(text.Bytes()), all); !a.New {
			return nil
		}
		return put(tx, f, &a, text.Bytes())
	})
	return a, err
}

// merge decides what becomes of a schedule, beside some entries.
func merge(f *hybrid.File, name string, all []*Entry) Added {
	a := Added{Name: name, New: true}
	for _, e := range all {
		if e.Name == name {
			return Added{Name: name}
		}
	}
	for _, e := range all {
		weaker, stronger := compare(f, e.File)
		same := alike(f.Schedule, e.File.Schedule)
		switch {
		case stronger && (same || !weaker):
			return Added{Name: e.Name}
		case weaker && same:
			a.Replaced = append(a.Replaced, e.Name)
		}
	}
	return a
}

// put adds an entry, and removes those that make room for it.
func put(tx *sql.Tx, f *hybrid.File, a *Added, text []byte) error {
	for _, name := range a.Replaced {
		if _, err := tx.Exec("DELETE FROM entries WHERE name = ?", name); err != nil {
			return err
		}
	}
	if _, err := tx.Exec("INSERT INTO entries (name, program, version, command, schedule) VALUES (?,?,?,?,?)",
		a.Name, f.Program, hybrid.Version, strings.Join(f.Args, " "), text); err != nil {
		return err
	}
	_, err := tx.Exec(`DELETE FROM entries WHERE name IN (SELECT name FROM entries WHERE program = ? AND name <> ?
		ORDER BY (reuses + 0.5) / (tries + 0.5) DESC, rowid DESC LIMIT -1 OFFSET ?)`, f.Program, a.Name, maxPerProgram-1)
	return err
}

// compare tells whether the preconditions of f follow from those of g, and those of g
// from those of f. If the question is too hard the answer is no.
func compare(f, g *hybrid.File) (weaker, stronger bool) {
	pool := symbolic.NewPool()
	a, err := preconditions.Parse(f.Preconditions, pool)
	if err != nil {
		return false, false
	}
	b, err := preconditions.Parse(g.Preconditions, pool)
	if err != nil || !sameSurroundings(f, g) || a.Args != b.Args || !reflect.DeepEqual(a.Env, b.Env) {
		return false, false
	}
	return implies(pool, b.Terms, a.Terms), implies(pool, a.Terms, b.Terms)
}

// sameSurroundings compares what besides the input must be as it was.
func sameSurroundings(f, g *hybrid.File) bool {
	return f.Program == g.Program && f.Dir == g.Dir && f.Layout == g.Layout && f.Model == g.Model && f.Seed == g.Seed &&
		f.Cores == g.Cores && reflect.DeepEqual(f.Inputs, g.Inputs)
}

// implies tells whether all of b follow from a.
func implies(p *symbolic.Pool, a, b []*symbolic.Expr) bool {
	known := map[*symbolic.Expr]bool{}
	for _, t := range a {
		known[t] = true
	}
	open := slices.DeleteFunc(slices.Clone(b), func(t *symbolic.Expr) bool { return known[t] })
	if len(open) == 0 {
		return true
	}
	if preconditions.Large(slices.Concat(a, open)) {
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

// alike tells whether two schedules order the same: times, and numbers of
// instructions, are the recorded runs'.
func alike(a, b *event.Schedule) bool { return shape(a) == shape(b) }

// shape is what a schedule orders, as text.
func shape(s *event.Schedule) string {
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

// Pack writes the entries of a program, or all if that is empty, to a new file, which
// is a cache that nothing is added to: schedules that go with the program (TERN
// section 3.3).
func (c *Cache) Pack(path, program string) (entries int, err error) {
	if _, err := c.db.Exec("VACUUM INTO ?", path); err != nil {
		return 0, errOpen.Wrap(err, path)
	}
	out, err := open(path, false)
	if err != nil {
		return 0, err
	}
	if err := out.change(func(tx *sql.Tx) error {
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

// Unpack adds the entries of another cache, and tells how many were new.
func (c *Cache) Unpack(from *Cache) (added int, damaged []error, err error) {
	entries, damaged, err := from.Entries("")
	for _, e := range entries {
		if err != nil {
			break
		}
		var a Added
		if a, err = c.Add(e.File); a.New {
			added++
		}
	}
	return added, damaged, err
}
