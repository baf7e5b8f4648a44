package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/heddle-dmt/heddle/internal/errs"
)

var errMerge = errs.Define("merge-failed",
	"the stores cannot be merged into {file}, which is as it was before",
	"The disk is full, the file cannot be written, or one of the stores cannot be read; the rest of the sentence says which.",
	"Remove the cause and merge again; the stores that were to be merged are whole.")

// Merged counts the rows of merged stores.
type Merged struct {
	// New are the runs that the store did not have, or had only as failed or outdated ones; Equal
	// those that it had, with the same digest; Failed those without a result, which are not taken
	// in place of a result.
	New, Equal, Failed int
	// Conflicts are the slots of runs that gave another digest than an equal run. They are noted in
	// the store.
	Conflicts []string
	// OtherFiles counts the runs whose key another run has that read other host files.
	OtherFiles int
	// OtherNative counts the commands that gave other results on two hosts; the first is kept.
	OtherNative int
}

// String summarises the counts in a line.
func (m Merged) String() string {
	text := fmt.Sprintf("%d runs taken over, %d equal to those there", m.New, m.Equal)
	for _, c := range []struct {
		n    int
		text string
	}{
		{m.Failed, "failed"},
		{m.OtherFiles, "read other files of their host than an equal run"},
		{m.OtherNative, "commands gave another result natively, of which the first is kept"},
	} {
		if c.n > 0 {
			text += fmt.Sprintf("; %d %s", c.n, c.text)
		}
	}
	return text
}

// Judge decides about a record of a merged store: with an error to end the merge, and with current
// whether its key is the one that the slot has now.
type Judge func(from *Store, slot, key string) (current bool, err error)

// Merge takes over the rows of other stores, all or none: after an error the store is as it was. A row that
// two stores share must be equal: another digest is a conflict, which is noted. Merging again changes
// nothing. A damaged row is an error.
func (s *Store) Merge(from []*Store, judge Judge) (Merged, error) {
	m := merge{to: s, judge: judge, have: map[string]place{}, digests: map[string]string{}, keys: map[string]bool{}, natives: map[string]Native{}}
	err := m.readOwn()
	if err == nil {
		m.tx, err = s.db.Begin()
	}
	if err != nil {
		return Merged{}, m.failed(err)
	}
	for _, other := range from {
		if err := m.takeAll(other); err != nil {
			return Merged{}, errors.Join(m.failed(err), m.tx.Rollback())
		}
	}
	if err := m.tx.Commit(); err != nil {
		return Merged{}, errors.Join(m.failed(err), m.tx.Rollback())
	}
	return m.counts, nil
}

// merge is one call of Merge.
type merge struct {
	to      *Store
	tx      *sql.Tx
	judge   Judge
	have    map[string]place  // by slot and repetition
	digests map[string]string // of results, by versionOf
	keys    map[string]bool   // of results
	natives map[string]Native
	insert  *sql.Stmt // of a run
	counts  Merged
}

// place is the state of a slot and repetition.
type place struct {
	key  string
	good bool // it has a result
}

// failed explains an error that is not one of a row or a record by itself.
func (m *merge) failed(err error) error {
	var known *errs.Error
	if errors.As(err, &known) && known.Kind() != errOpen {
		return err
	}
	return errMerge.Wrap(err, m.to.path)
}

// placeOf names the place of a row.
func placeOf(row []any) string {
	return row[columnSlot].(string) + " " + strconv.FormatInt(row[columnRepetition].(int64), 10)
}

// versionOf identifies what the digest of a row depends on: the key and the files that were read.
func versionOf(row []any) string {
	return row[columnKey].(string) + " " + row[columnManifest].(string)
}

// readOwn notes the rows that the store has.
func (m *merge) readOwn() (err error) {
	for row, err := range m.to.readChecked("runs") {
		if err != nil {
			return err
		}
		m.noteRun(row)
	}
	m.natives, err = m.to.Natives()
	return err
}

func (m *merge) noteRun(row []any) {
	good := row[columnFailure] == ""
	m.have[placeOf(row)] = place{row[columnKey].(string), good}
	if good {
		m.digests[versionOf(row)] = row[columnDigest].(string)
		m.keys[row[columnKey].(string)] = true
	}
}

// takeAll takes over the rows of one store.
func (m *merge) takeAll(from *Store) error {
	for row, err := range from.readChecked("runs") {
		if err == nil {
			err = m.takeRun(from, row)
		}
		if err != nil {
			return err
		}
	}
	if err := from.eachWhole("native", m.takeNative); err != nil {
		return err
	}
	for _, table := range []string{"conflicts", "shortest", "builds", "outputs"} {
		err := from.eachWhole(table, func(row []any) error { return m.put("INSERT OR IGNORE", table, row) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *merge) put(verb, table string, row []any) error {
	marks := strings.Repeat("?,", len(row)) + "?"
	_, err := m.tx.Exec(verb+" INTO "+table+" VALUES ("+marks+")", append(row, rowChecksum(row))...)
	return err
}

// takeRun takes over a run, or compares it with the one that is there.
func (m *merge) takeRun(from *Store, row []any) error {
	slot, key := row[columnSlot].(string), row[columnKey].(string)
	current, err := m.judge(from, slot, key)
	if err != nil {
		return err
	}
	good := row[columnFailure] == ""
	if good {
		if err := m.compareRun(row); err != nil {
			return err
		}
	}
	own, there := m.have[placeOf(row)]
	switch {
	case there && own.key == key && own.good && good:
		m.counts.Equal++
		return nil
	case there && own.good && !(good && current && own.key != key):
		if !good {
			m.counts.Failed++
		}
		return nil
	case good:
		m.counts.New++
	default:
		m.counts.Failed++
	}
	m.noteRun(row)
	if m.insert == nil {
		marks := strings.Repeat("?,", len(row)) + "?"
		if m.insert, err = m.tx.Prepare("INSERT OR REPLACE INTO runs VALUES (" + marks + ")"); err != nil {
			return err
		}
	}
	_, err = m.insert.Exec(append(row, rowChecksum(row))...)
	return err
}

// compareRun compares a result with that of an equal run, and notes a difference.
func (m *merge) compareRun(row []any) error {
	digest := row[columnDigest].(string)
	other, known := m.digests[versionOf(row)]
	if !known {
		if m.keys[row[columnKey].(string)] {
			m.counts.OtherFiles++
		}
		return nil
	}
	if other == digest {
		return nil
	}
	m.counts.Conflicts = append(m.counts.Conflicts, row[columnSlot].(string))
	return m.put("INSERT OR REPLACE", "conflicts", []any{row[columnKey], row[columnSlot], digest, other})
}

// takeNative takes over the result of a command on the host, unless there is one.
func (m *merge) takeNative(row []any) error {
	key := row[0].(string)
	var n Native
	if err := json.Unmarshal([]byte(row[1].(string)), &n); err != nil {
		return err
	}
	own, there := m.natives[key]
	switch {
	case there && own.Failure == "":
		if n.Failure == "" && (own.ExitCode != n.ExitCode || own.Stdout != n.Stdout) {
			m.counts.OtherNative++
		}
		return nil
	case there && n.Failure != "":
		return nil
	}
	m.natives[key] = n
	return m.put("INSERT OR REPLACE", "native", row)
}
