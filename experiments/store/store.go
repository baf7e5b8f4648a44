// Package store keeps the results of runs in an SQLite file.
//
// A record belongs to a slot (a point of an experiment's grid) and a
// repetition, and holds the key of the run that gave it (see
// experiments.Run.Key), so that a changed experiment finds the slot but knows
// the record for stale. Records are written as runs finish, each in a
// transaction of its own, with a write-ahead log: a process that is killed
// loses the runs in flight and nothing else, and tables can be made while a
// sweep runs.
//
// The file's format has a number; a store of another format is refused by name.
package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	// The driver registers itself as "sqlite3".
	_ "github.com/mattn/go-sqlite3"

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/minimal"
	"github.com/heddle-dmt/heddle/experiments/worker"
	"github.com/heddle-dmt/heddle/internal/errs"
)

// Format is the number of the file format that this package reads and writes.
const Format = 2

var (
	errOpen = errs.Define("store-unusable",
		"cannot use the result store {file}",
		"The file or its folder cannot be created or written, the disk is full, or the file is not an SQLite database.",
		"Name another file with --store, or move this one away.")
	errFormat = errs.Define("store-format",
		"the result store {file} has format {found}; this heddle reads format {known}",
		"Another version of heddle wrote the store.",
		"Use that version, or name another file with --store.")
	errMissing = errs.Define("store-missing",
		"there is no result store {file}",
		"No run of the experiment has been stored yet, or the store is elsewhere.",
		"Run the experiment first with `heddle experiment run`, or name the store with --store.")
)

// schema is that of Format. The columns beside the JSON are for people's own
// queries; heddle reads the JSON.
const schema = `
CREATE TABLE IF NOT EXISTS runs (
	slot TEXT NOT NULL, repetition INTEGER NOT NULL, key TEXT NOT NULL,
	program TEXT NOT NULL, arguments TEXT NOT NULL, policy TEXT NOT NULL,
	cores INTEGER NOT NULL, threads INTEGER NOT NULL, seed TEXT NOT NULL,
	failure TEXT NOT NULL, outcome TEXT NOT NULL, exit_code INTEGER NOT NULL,
	instructions INTEGER NOT NULL, cycles INTEGER NOT NULL, context_switches INTEGER NOT NULL,
	digest TEXT NOT NULL, schedule_digest TEXT NOT NULL, host_seconds REAL NOT NULL,
	manifest TEXT NOT NULL, report TEXT NOT NULL,
	model TEXT NOT NULL DEFAULT 'sc', commits TEXT NOT NULL DEFAULT '', capacity INTEGER NOT NULL DEFAULT 0,
	class TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (slot, repetition)
) STRICT;
CREATE TABLE IF NOT EXISTS native (key TEXT PRIMARY KEY, report TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS conflicts (
	key TEXT NOT NULL, slot TEXT NOT NULL, digest TEXT NOT NULL, other TEXT NOT NULL,
	PRIMARY KEY (key, digest, other)
) STRICT;
CREATE TABLE IF NOT EXISTS shortest (key TEXT PRIMARY KEY, report TEXT NOT NULL) STRICT;
`

// renewal makes a store of format 1 one of Format.
const renewal = `
ALTER TABLE runs ADD COLUMN model TEXT NOT NULL DEFAULT 'sc';
ALTER TABLE runs ADD COLUMN commits TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN capacity INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN class TEXT NOT NULL DEFAULT '';
CREATE TABLE shortest (key TEXT PRIMARY KEY, report TEXT NOT NULL) STRICT;
`

// Record is a stored run.
type Record struct {
	Slot, Key  string
	Repetition int
	// Manifest identifies the host files that the run read.
	Manifest string
	Labels   Labels
	// Failure says why there is no result; Report is then empty.
	Failure string
	Report  worker.Report
}

// Labels describe a run in columns.
type Labels struct {
	Program, Arguments, Policy string
	Cores, Threads             int
	Seed                       string // SQLite's integers are signed
	Model, Commit              string
	Capacity                   int
}

// Native is what a command gave on the host.
type Native struct {
	ExitCode int           `json:"exit_code"` // 128+n after signal n
	Stdout   worker.Output `json:"stdout"`
	Stderr   worker.Output `json:"stderr"`
	Seconds  float64       `json:"seconds"`
	Failure  string        `json:"failure,omitempty"`
}

// Store is an open file. Its methods may be called from several goroutines.
type Store struct {
	db   *sql.DB
	path string
}

// Open opens a store, and makes it if it is not there.
func Open(path string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, errOpen.Wrap(err, path)
	}
	s, err := open(path)
	if err != nil {
		return nil, err
	}
	if _, err := s.db.Exec(schema); err != nil {
		return nil, errors.Join(errOpen.Wrap(err, path), s.db.Close())
	}
	return s, nil
}

// OpenExisting opens a store for reading; it is an error if it is not there.
func OpenExisting(path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, errMissing.New(path)
	}
	return open(path)
}

func open(path string) (*Store, error) {
	// A busy store is waited for: another sweep may be writing.
	source := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_journal_mode=WAL&_synchronous=NORMAL&_busy_timeout=60000&_txlock=immediate"
	db, err := sql.Open("sqlite3", source)
	if err != nil {
		return nil, errOpen.Wrap(err, path)
	}
	db.SetMaxOpenConns(1)
	s := &Store{db: db, path: path}
	if err := s.checkFormat(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// checkFormat reads the format's number, and writes it into a new file.
func (s *Store) checkFormat() error {
	var format int
	if err := s.db.QueryRow("PRAGMA user_version").Scan(&format); err != nil {
		return errOpen.Wrap(err, s.path)
	}
	var tables int
	if err := s.db.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return errOpen.Wrap(err, s.path)
	}
	if format == Format {
		return nil
	}
	change := ""
	switch {
	case format == 1 && tables > 0:
		change = renewal
	case tables > 0:
		return errFormat.New(s.path, format, Format)
	}
	if err := s.atOnce(change + fmt.Sprintf("PRAGMA user_version = %d;", Format)); err != nil {
		return errOpen.Wrap(err, s.path)
	}
	return nil
}

// atOnce executes statements in one transaction.
func (s *Store) atOnce(statements string) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(statements); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Close closes the file.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return errOpen.Wrap(err, s.path)
	}
	return nil
}

// Put stores a record in place of an older one of its slot and repetition.
func (s *Store) Put(r Record) error {
	report, err := json.Marshal(r.Report)
	if err != nil {
		return errOpen.Wrap(err, s.path)
	}
	result := r.Report.Result
	if result == nil {
		result = &heddle.Result{}
	}
	class, _ := result.Failure(nil)
	_, err = s.db.Exec(`INSERT OR REPLACE INTO runs VALUES (?,?,?, ?,?,?,?,?,?, ?,?,?,?,?,?,?,?,?, ?,?, ?,?,?,?)`,
		r.Slot, r.Repetition, r.Key,
		r.Labels.Program, r.Labels.Arguments, r.Labels.Policy, r.Labels.Cores, r.Labels.Threads, r.Labels.Seed,
		r.Failure, result.Outcome, result.ExitCode, int64(result.Instructions), int64(result.Cycles),
		int64(result.ContextSwitches), result.Digest, result.ScheduleDigest, result.HostSeconds, r.Manifest, string(report),
		r.Labels.Model, r.Labels.Commit, r.Labels.Capacity, class.Class)
	if err != nil {
		return errOpen.Wrap(err, s.path)
	}
	return nil
}

// Get returns the record of a slot's repetition; ok is false if there is none.
func (s *Store) Get(slot string, repetition int) (r Record, ok bool, err error) {
	r = Record{Slot: slot, Repetition: repetition}
	var report string
	err = s.db.QueryRow("SELECT key, manifest, failure, report FROM runs WHERE slot = ? AND repetition = ?", slot, repetition).
		Scan(&r.Key, &r.Manifest, &r.Failure, &report)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(report), &r.Report)
	}
	if err != nil {
		return r, false, errOpen.Wrap(err, s.path)
	}
	return r, true, nil
}

// Digests returns the different digests of the stored runs that had this key
// and read these files.
func (s *Store) Digests(key, manifest string) ([]string, error) {
	rows, err := s.db.Query("SELECT DISTINCT digest FROM runs WHERE key = ? AND manifest = ? AND failure = '' ORDER BY digest", key, manifest)
	if err != nil {
		return nil, errOpen.Wrap(err, s.path)
	}
	defer rows.Close()
	var digests []string
	for rows.Next() {
		var digest string
		if err := rows.Scan(&digest); err != nil {
			return nil, errOpen.Wrap(err, s.path)
		}
		digests = append(digests, digest)
	}
	if err := rows.Err(); err != nil {
		return nil, errOpen.Wrap(err, s.path)
	}
	return digests, nil
}

// PutConflict notes that two runs with one key had two digests.
func (s *Store) PutConflict(key, slot, digest, other string) error {
	if _, err := s.db.Exec("INSERT OR REPLACE INTO conflicts VALUES (?,?,?,?)", key, slot, digest, other); err != nil {
		return errOpen.Wrap(err, s.path)
	}
	return nil
}

// HasConflict tells whether runs with this key were seen to differ.
func (s *Store) HasConflict(key string) (bool, error) {
	var n int
	if err := s.db.QueryRow("SELECT count(*) FROM conflicts WHERE key = ?", key).Scan(&n); err != nil {
		return false, errOpen.Wrap(err, s.path)
	}
	return n > 0, nil
}

// PutShortest stores the shortest schedule of the failing run with this key.
func (s *Store) PutShortest(key string, p minimal.Report) error {
	report, err := json.Marshal(p)
	if err == nil {
		_, err = s.db.Exec("INSERT OR REPLACE INTO shortest VALUES (?,?)", key, string(report))
	}
	if err != nil {
		return errOpen.Wrap(err, s.path)
	}
	return nil
}

// GetShortest returns what PutShortest stored; ok is false if nothing was.
func (s *Store) GetShortest(key string) (p minimal.Report, ok bool, err error) {
	var report string
	err = s.db.QueryRow("SELECT report FROM shortest WHERE key = ?", key).Scan(&report)
	if errors.Is(err, sql.ErrNoRows) {
		return p, false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(report), &p)
	}
	if err != nil {
		return p, false, errOpen.Wrap(err, s.path)
	}
	return p, true, nil
}

// PutNative stores what a command gave on the host.
func (s *Store) PutNative(key string, n Native) error {
	report, err := json.Marshal(n)
	if err == nil {
		_, err = s.db.Exec("INSERT OR REPLACE INTO native VALUES (?,?)", key, string(report))
	}
	if err != nil {
		return errOpen.Wrap(err, s.path)
	}
	return nil
}

// GetNative returns what a command gave on the host; ok is false if it is not
// known.
func (s *Store) GetNative(key string) (n Native, ok bool, err error) {
	var report string
	err = s.db.QueryRow("SELECT report FROM native WHERE key = ?", key).Scan(&report)
	if errors.Is(err, sql.ErrNoRows) {
		return n, false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(report), &n)
	}
	if err != nil {
		return n, false, errOpen.Wrap(err, s.path)
	}
	return n, true, nil
}
