package cache

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/analyses/preconditions"
	"github.com/heddle-dmt/heddle/analyses/symbolic"
)

// A look-up for one run reads as little as possible: the database finds the entries whose literal arguments are the
// run's by a key, of these the preconditions are read, and a schedule is read only if they hold.

// Lookup returns the entry of a program with the highest reuse rate that admits an input and passes a further test;
// nil: there is no such entry. Damaged has an error for each entry that was found damaged, and dropped.
func (c *Cache) Lookup(program string, in *preconditions.Input, also func(*Entry) bool) (e *Entry, damaged []error, err error) {
	found, err := c.admitting(program, in)
	if err != nil {
		return nil, nil, errOpen.Wrap(err, c.path)
	}
	var admitting []*Entry
	for _, f := range found {
		list, drop, err := readEntries(c.db, "name = ?", f.name)
		if err != nil {
			return nil, damaged, errOpen.Wrap(err, c.path)
		}
		if len(list) > 0 && strings.Join(list[0].File.Preconditions, "\n") != f.preconditions {
			list, drop = nil, []string{f.name}
		}
		admitting = append(admitting, list...)
		more, err := c.drop(drop)
		damaged = append(damaged, more...)
		if err != nil {
			return nil, damaged, err
		}
	}
	slices.SortStableFunc(admitting, func(a, b *Entry) int { return cmp.Compare(b.Rate(), a.Rate()) })
	for _, e := range admitting {
		if also(e) {
			return e, damaged, nil
		}
	}
	return nil, damaged, nil
}

// lookup is what a look-up reads of an entry.
type lookup struct{ name, preconditions string }

// admitting returns the entries of a program whose preconditions hold.
func (c *Cache) admitting(program string, in *preconditions.Input) ([]lookup, error) {
	var all []preconditions.Literals
	err := c.query(func(rows *sql.Rows) error {
		var l preconditions.Literals
		err := rows.Scan(&l)
		all = append(all, l)
		return err
	}, "SELECT DISTINCT literals FROM lookups WHERE program = ? AND version = ?", program, hybrid.Version)
	if err != nil {
		return nil, err
	}
	var found []lookup
	for _, l := range all {
		key, ok := l.Key(in.Args)
		if !ok {
			continue
		}
		if err := c.query(func(rows *sql.Rows) error {
			var f lookup
			if err := rows.Scan(&f.name, &f.preconditions); err != nil {
				return err
			}
			if admits(f.preconditions, in) {
				found = append(found, f)
			}
			return nil
		}, "SELECT name, preconditions FROM lookups WHERE program = ? AND version = ? AND literals = ? AND key = ? ORDER BY rowid",
			program, hybrid.Version, l, key); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// query calls a function for each row of a query.
func (c *Cache) query(each func(*sql.Rows) error, query string, args ...any) error {
	rows, err := c.db.Query(query, args...)
	if err != nil {
		return err
	}
	for err == nil && rows.Next() {
		err = each(rows)
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

// admits reports whether preconditions, as text, hold for an input.
func admits(text string, in *preconditions.Input) bool {
	set, err := preconditions.Parse(strings.Split(text, "\n"), symbolic.NewPool())
	if err != nil {
		return false
	}
	checker, err := preconditions.NewChecker(set)
	if err != nil {
		return false
	}
	failed, shape := checker.Check(in)
	return shape && failed < 0
}

// insertLookup adds what a look-up reads of an entry. An entry whose preconditions cannot be read has none.
func insertLookup(tx *sql.Tx, name string, f *hybrid.File) error {
	set, err := preconditions.Parse(f.Preconditions, symbolic.NewPool())
	if err != nil {
		return nil //nolint:nilerr // no input satisfies them
	}
	literals, key := set.Literals()
	_, err = tx.Exec("INSERT OR REPLACE INTO lookups (name, program, version, literals, key, preconditions) VALUES (?,?,?,?,?,?)",
		name, f.Program, hybrid.Version, string(literals), key, strings.Join(f.Preconditions, "\n"))
	return err
}

// addLookups makes a file of the old format one of this format.
func (c *Cache) addLookups() error {
	return c.runTransaction(func(tx *sql.Tx) error {
		if _, err := tx.Exec(schema); err != nil {
			return err
		}
		all, _, err := readEntries(tx, "version = ?", hybrid.Version)
		if err != nil {
			return err
		}
		for _, e := range all {
			if err := insertLookup(tx, e.Name, e.File); err != nil {
				return err
			}
		}
		_, err = tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", Format))
		return err
	})
}
