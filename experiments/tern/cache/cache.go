package cache

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	// The driver registers itself as "sqlite3".
	_ "github.com/mattn/go-sqlite3"

	"github.com/heddle-dmt/heddle/analyses/hybrid"
	"github.com/heddle-dmt/heddle/internal/errs"
)

// Format is the number of the file format that this package reads and writes.
const Format = 2

var (
	errOpen = errs.Define("cache-unusable",
		"cannot use the schedule cache {file}",
		"The folder cannot be created or written, the disk is full, or the file is not a cache.",
		"Name another folder, or move this one away.")
	errFormat = errs.Define("cache-format",
		"the schedule cache {file} has format {found}; this heddle reads format {known}",
		"Another version of heddle wrote the cache.",
		"Use that version, or name another folder.")
	errPack = errs.Define("cache-is-a-pack",
		"{file} is a pack of schedules, which is not changed",
		"A pack goes with its program as it is: nothing is memoized into it, and nothing removed.",
		"Unpack it into a cache with heddle cache unpack, and name that.")
	errMissing = errs.Define("cache-missing",
		"there is no schedule cache {file}",
		"Nothing was memoized there yet, or the cache is elsewhere.",
		"Run a program with heddle run --cache and --memoize online first, or name the folder that was used.")
	errDamaged = errs.Define("cache-entry-damaged",
		"entry {entry} of the schedule cache {file} is damaged and was dropped",
		"The text of a schedule in the cache does not match its checksum: the disk or another program has changed it.",
		"Nothing needs to be done: the schedule is memoized again when its input comes.")
	errNoEntry = errs.Define("cache-entry-unknown",
		"the schedule cache {file} has no entry {entry}",
		"No entry's name begins with the given text, or several do.",
		"heddle cache ls shows the entries' names.")
)

const schema = `
CREATE TABLE IF NOT EXISTS entries (
	name TEXT PRIMARY KEY, program TEXT NOT NULL, version INTEGER NOT NULL, command TEXT NOT NULL,
	schedule BLOB NOT NULL, tries INTEGER NOT NULL DEFAULT 0, reuses INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS programs ON entries (program, version);
CREATE TABLE IF NOT EXISTS lookups (
	name TEXT PRIMARY KEY, program TEXT NOT NULL, version INTEGER NOT NULL, literals TEXT NOT NULL, key TEXT NOT NULL,
	preconditions TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS keys ON lookups (program, version, literals, key);
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON entries BEGIN DELETE FROM lookups WHERE name = old.name; END;
`

// oldFormat is a format without lookups, which they are added to.
const oldFormat = 1

// Entry is a schedule in the cache.
type Entry struct {
	// Name is the SHA-256 of the schedule file; its first twelve digits suffice in
	// commands.
	Name string
	// Program is the SHA-256 of the program, Command the recorded command.
	Program, Command string
	// Tries counts the inputs that satisfied the preconditions, Reuses the runs that
	// followed the schedule to its end.
	Tries, Reuses int
	// File is the schedule.
	File *hybrid.File
}

// Short is the beginning of the name, which commands show.
func (e *Entry) Short() string { return e.Name[:12] }

// Rate is the reuse rate; it starts as if the schedule had been tried half a time and
// followed half a time.
func (e *Entry) Rate() float64 { return (float64(e.Reuses) + 0.5) / (float64(e.Tries) + 0.5) }

// Cache is an open cache. Several goroutines may call its methods.
type Cache struct {
	db       *sql.DB
	path     string
	readOnly bool
}

// fileName is the cache's file in its folder.
const fileName = "schedules.db"

// Open opens the cache in a folder for writing, and creates it if it is missing.
func Open(path string) (*Cache, error) {
	if isRegularFile(path) {
		return nil, errPack.New(path)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, errOpen.Wrap(err, path)
	}
	return openFile(filepath.Join(path, fileName), false)
}

// OpenExisting opens a cache that must exist. If path is a file, it is a pack: a read-only
// cache.
func OpenExisting(path string) (*Cache, error) {
	if isRegularFile(path) {
		return openFile(path, true)
	}
	file := filepath.Join(path, fileName)
	if !isRegularFile(file) {
		return nil, errMissing.New(path)
	}
	return openFile(file, false)
}

func isRegularFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func openFile(path string, readOnly bool) (*Cache, error) {
	// Wait for a busy cache: another process may be adding to it.
	source := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_busy_timeout=60000"
	if readOnly {
		source += "&mode=ro&immutable=1"
	} else {
		// A log beside the file (WAL) would be made and removed by every run.
		source += "&_journal_mode=DELETE&_synchronous=FULL&_txlock=immediate"
	}
	db, err := sql.Open("sqlite3", source)
	if err != nil {
		return nil, errOpen.Wrap(err, path)
	}
	db.SetMaxOpenConns(1)
	c := &Cache{db: db, path: path, readOnly: readOnly}
	if err := c.prepareTables(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return c, nil
}

// prepareTables checks the format's number, and creates the tables of a new file.
func (c *Cache) prepareTables() error {
	var format, tables int
	if err := c.db.QueryRow("PRAGMA user_version").Scan(&format); err != nil {
		return errOpen.Wrap(err, c.path)
	}
	if format == Format { // the last thing that is written
		return nil
	}
	if err := c.db.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return errOpen.Wrap(err, c.path)
	}
	switch {
	case format == oldFormat && tables > 0 && !c.readOnly:
		return c.addLookups()
	case tables > 0:
		return errFormat.New(c.path, format, Format)
	case c.readOnly:
		return errMissing.New(c.path)
	}
	return c.runTransaction(func(tx *sql.Tx) error {
		_, err := tx.Exec(schema + fmt.Sprintf("PRAGMA user_version = %d;", Format))
		return err
	})
}

// runTransaction runs a function in a transaction.
func (c *Cache) runTransaction(do func(*sql.Tx) error) error {
	if c.readOnly {
		return errPack.New(c.path)
	}
	tx, err := c.db.Begin()
	if err != nil {
		return errOpen.Wrap(err, c.path)
	}
	if err := do(tx); err != nil {
		return errors.Join(errOpen.Wrap(err, c.path), tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return errOpen.Wrap(err, c.path)
	}
	return nil
}

// Path is the cache's file.
func (c *Cache) Path() string { return c.path }

// Close closes the file.
func (c *Cache) Close() error {
	if err := c.db.Close(); err != nil {
		return errOpen.Wrap(err, c.path)
	}
	return nil
}

// Entries returns the entries of a program, or all if program is empty, in the order in
// which they were added. Damaged has an error for each entry that was dropped.
func (c *Cache) Entries(program string) (list []*Entry, damaged []error, err error) {
	list, drop, err := readEntries(c.db, entriesOfProgram, hybrid.Version, program, program)
	if err != nil {
		return nil, nil, errOpen.Wrap(err, c.path)
	}
	damaged, err = c.drop(drop)
	return list, damaged, err
}

// entriesOfProgram selects the entries of a version and of a program, or of all programs if it is empty.
const entriesOfProgram = "version = ? AND (? = '' OR program = ?)"

// drop removes damaged entries, and returns an error for each.
func (c *Cache) drop(names []string) (damaged []error, err error) {
	for _, name := range names {
		damaged = append(damaged, errDamaged.New(shortName(name), c.path))
		if !c.readOnly {
			err = errors.Join(err, c.Remove(name))
		}
	}
	return damaged, err
}

// readEntries returns the entries that a condition selects, and the names of the damaged ones.
func readEntries(db interface {
	Query(query string, args ...any) (*sql.Rows, error)
}, condition string, args ...any,
) (list []*Entry, damaged []string, err error) {
	rows, err := db.Query("SELECT name, program, command, tries, reuses, schedule FROM entries WHERE "+condition+" ORDER BY rowid", args...)
	if err != nil {
		return nil, nil, err
	}
	for rows.Next() {
		var text []byte
		e := &Entry{}
		if err := rows.Scan(&e.Name, &e.Program, &e.Command, &e.Tries, &e.Reuses, &text); err != nil {
			return nil, nil, errors.Join(err, rows.Close())
		}
		if e.File = parseEntry(e, text); e.File == nil {
			damaged = append(damaged, e.Name)
			continue
		}
		list = append(list, e)
	}
	return list, damaged, errors.Join(rows.Err(), rows.Close())
}

func shortName(name string) string { return name[:min(len(name), 12)] }

// parseEntry returns the schedule of an entry, or nil if it is damaged.
func parseEntry(e *Entry, text []byte) *hybrid.File {
	if textSHA256(text) != e.Name {
		return nil
	}
	f, err := hybrid.Parse(string(text))
	if err != nil || f.Program != e.Program {
		return nil
	}
	return f
}

func textSHA256(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Find returns the entry whose name begins with the given digits.
func (c *Cache) Find(name string) (*Entry, error) {
	all, _, err := c.Entries("")
	if err != nil {
		return nil, err
	}
	var found *Entry
	for _, e := range all {
		if len(name) > 0 && len(name) <= len(e.Name) && e.Name[:len(name)] == name {
			if found != nil {
				return nil, errNoEntry.New(c.path, name)
			}
			found = e
		}
	}
	if found == nil {
		return nil, errNoEntry.New(c.path, name)
	}
	return found, nil
}

// Remove removes an entry.
func (c *Cache) Remove(name string) error {
	return c.runTransaction(func(tx *sql.Tx) error {
		_, err := tx.Exec("DELETE FROM entries WHERE name = ?", name)
		return err
	})
}

// triesBeforeEviction is the number of tries after which an entry is removed if fewer than
// half of them followed it.
const triesBeforeEviction = 4

// RecordTry records whether a run that an entry admitted followed it. It reports whether
// the entry was removed for that.
func (c *Cache) RecordTry(name string, followed bool) (evicted bool, err error) {
	if c.readOnly {
		return false, nil
	}
	err = c.runTransaction(func(tx *sql.Tx) error {
		reuse := 0
		if followed {
			reuse = 1
		}
		if _, err := tx.Exec("UPDATE entries SET tries = tries + 1, reuses = reuses + ? WHERE name = ?", reuse, name); err != nil {
			return err
		}
		gone, err := tx.Exec("DELETE FROM entries WHERE name = ? AND tries >= ? AND 2*reuses < tries", name, triesBeforeEviction)
		if err != nil {
			return err
		}
		n, err := gone.RowsAffected()
		evicted = n > 0
		return err
	})
	return evicted, err
}
