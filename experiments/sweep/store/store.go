// Package store keeps the results of runs in an SQLite file.
//
// A record belongs to a slot (a point of an experiment's grid) and a
// repetition, and holds the key of the run that gave it (see
// sweep.Run.Key), so that a changed experiment finds the slot but knows
// the record for stale. Records are written as runs finish, each in a
// transaction of its own, with a write-ahead log: a process that is killed
// loses the runs in flight and nothing else, and tables can be made while a
// sweep runs.
//
// Every row has a checksum of its other columns, which is compared when the row is
// read: a damaged row is an error that names it (ErrDamaged), and writing the row again
// mends it.
//
// The file's format has a number; a store of an older format is renewed when it is
// opened, and one of a newer format is refused by name.
package store

import (
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	// The driver registers itself as "sqlite3".
	_ "github.com/mattn/go-sqlite3"
	"github.com/zeebo/xxh3"

	"github.com/heddle-dmt/heddle/internal/errs"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/output"
	"github.com/heddle-dmt/heddle/recorder/region"
)

// Format is the number of the file format that this package reads and writes.
const Format = 3

var (
	errOpen = errs.Define("store-unusable",
		"cannot use the result store {file}",
		"The file or its folder cannot be created or written, the disk is full, or the file is not an SQLite database.",
		"Name another file with --store, or move this one away.")
	errFormat = errs.Define("store-format",
		"the result store {file} has format {found}; this heddle reads format {known}",
		"Another version of heddle wrote the store.",
		"Use that version, or name another file with --store.")
	// ErrDamaged is the kind of error of a row that differs from the written one.
	ErrDamaged = errs.Define("store-row-damaged",
		"row {row} of the table {table} in the result store {file} is damaged",
		"Bytes of the file were changed, by the disk or by another program that wrote to the table: the row does not have its checksum.",
		"Run `heddle experiment run` with the same file: it carries out the damaged runs again. Do not change the tables of a store by other means.")
	errMissing = errs.Define("store-missing",
		"there is no result store {file}; heddle experiment run makes it",
		"No run of the experiment has been stored yet, or the store is elsewhere.",
		"Run the experiment first with `heddle experiment run`, or name the store with --store.")
)

// schema is that of Format. The columns beside the JSON are for people's own
// queries; heddle reads the JSON. The checksum is the last column of each table.
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
	class TEXT NOT NULL DEFAULT '', checksum TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (slot, repetition)
) STRICT;
CREATE TABLE IF NOT EXISTS native (key TEXT PRIMARY KEY, report TEXT NOT NULL, checksum TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE IF NOT EXISTS conflicts (
	key TEXT NOT NULL, slot TEXT NOT NULL, digest TEXT NOT NULL, other TEXT NOT NULL, checksum TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (key, digest, other)
) STRICT;
CREATE TABLE IF NOT EXISTS shortest (key TEXT PRIMARY KEY, report TEXT NOT NULL, checksum TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE IF NOT EXISTS builds (build TEXT PRIMARY KEY, version TEXT NOT NULL, checksum TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS outputs (sha256 TEXT PRIMARY KEY, zstd BLOB NOT NULL, checksum TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS runs_by_key ON runs (key);
` + views

// views are for pandas, R and other readers (docs/experiments.md): numbers are numbers, and NULL
// stands for a missing one. SQLite's integers are signed: a seed of 2^63 or more stays a text.
const views = `
CREATE VIEW IF NOT EXISTS results AS SELECT
	program, arguments, policy, model, nullif(commits, '') AS "commit", nullif(capacity, 0) AS capacity, cores, nullif(threads, 0) AS threads,
	CASE WHEN length(seed) < 19 THEN CAST(seed AS INTEGER) WHEN length(seed) = 19 AND seed <= '9223372036854775807' THEN CAST(seed AS INTEGER) ELSE seed END AS seed,
	repetition, outcome, exit_code, class AS failure_class, instructions, cycles, context_switches,
	json_extract(report, '$.result.turns') AS turns, json_extract(report, '$.result.peak_memory') AS peak_memory,
	host_seconds, digest, schedule_digest, key, slot
	FROM runs WHERE failure = '';
CREATE VIEW IF NOT EXISTS failed_runs AS SELECT
	program, arguments, policy, cores, threads, seed, repetition, failure, key, slot FROM runs WHERE failure <> '';
`

// Columns of the table runs that are read, by their place.
const (
	columnSlot = iota
	columnRepetition
	columnKey
	columnFailure  = 9
	columnDigest   = 15
	columnManifest = 18
	columnReport   = 19
	columnClass    = 23
)

// Record is a stored run.
type Record struct {
	Slot, Key  string
	Repetition int
	// Manifest identifies the host files that the run read.
	Manifest string
	Labels   Labels
	// Class is that of the program's failure (machine.FailureClasses), or empty.
	Class string
	// Failure says why there is no result.
	Failure string
	Report  Report
}

// Report is the result of a run; it is empty if heddle could not carry out the run.
type Report struct {
	Result *machine.Result `json:"result,omitempty"`
	Stdout output.Sum      `json:"stdout"`
	Stderr output.Sum      `json:"stderr"`
	// Region is the region of interest, if the run has one.
	Region *region.Result `json:"region,omitempty"`
	// Compared is the sum of standard output after the experiment's filter, nil without one.
	Compared *output.Sum `json:"compared,omitempty"`
	// Windows are numbers of a run in windows of requests, by the names of their measures.
	Windows map[string]float64 `json:"windows,omitempty"`
}

// Cycles returns the virtual time of a run that has a Result: of its region of interest, if it has one.
func (r *Report) Cycles() uint64 {
	if r.Region != nil {
		return r.Region.Cycles
	}
	return r.Result.Cycles
}

// Labels describe a run in columns.
type Labels struct {
	Program, Arguments, Policy string
	Cores, Threads             int
	Seed                       string // SQLite's integers are signed
	Model, Commit              string
	Capacity                   int
}

// Native is the result of a command on the host.
type Native struct {
	ExitCode int        `json:"exit_code"` // 128+n after signal n
	Stdout   output.Sum `json:"stdout"`
	Stderr   output.Sum `json:"stderr"`
	Seconds  float64    `json:"seconds"`
	Failure  string     `json:"failure,omitempty"`
	// Compared is as in Report.
	Compared *output.Sum `json:"compared,omitempty"`
}

// PrintsAs reports whether a run's standard output is the native run's, after the experiment's filter if there is one.
func (r *Report) PrintsAs(n *Native) bool {
	if r.Compared != nil && n.Compared != nil {
		return *r.Compared == *n.Compared
	}
	return r.Stdout == n.Stdout
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
	return openFile(path)
}

// OpenExisting opens a store for reading; it is an error if it is not there.
func OpenExisting(path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, errMissing.New(path)
	}
	return openFile(path)
}

// IsMissing reports whether an error says that there is no store.
func IsMissing(err error) bool { return errors.Is(err, errMissing) }

// OpenSnapshot opens a store to read it as it is, without a file beside it: for a store on a file
// system that several hosts share, to which none of them writes meanwhile.
func OpenSnapshot(path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, errMissing.New(path)
	}
	flags := "?mode=ro"
	if _, err := os.Stat(path + "-wal"); errors.Is(err, os.ErrNotExist) {
		flags += "&immutable=1"
	}
	s, err := connect(path, flags)
	if err != nil {
		return nil, err
	}
	var format int
	if err := s.db.QueryRow("PRAGMA user_version").Scan(&format); err != nil {
		return nil, errors.Join(errOpen.Wrap(err, path), s.db.Close())
	}
	if format != Format {
		return nil, errors.Join(errFormat.New(path, format, Format), s.db.Close())
	}
	return s, nil
}

func openFile(path string) (*Store, error) {
	// A busy store is waited for: another sweep may be writing.
	s, err := connect(path, "?_journal_mode=WAL&_synchronous=NORMAL&_busy_timeout=60000&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	if err := s.checkFormat(); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	if _, err := s.db.Exec(schema); err != nil {
		return nil, errors.Join(errOpen.Wrap(err, path), s.db.Close())
	}
	return s, nil
}

func connect(path, flags string) (*Store, error) {
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+flags)
	if err != nil {
		return nil, errOpen.Wrap(err, path)
	}
	db.SetMaxOpenConns(1)
	return &Store{db: db, path: path}, nil
}

// checkFormat reads the format's number, writes it into a new file, and renews one of an
// older format.
func (s *Store) checkFormat() error {
	var format, tables int
	if err := s.db.QueryRow("PRAGMA user_version").Scan(&format); err != nil {
		return errOpen.Wrap(err, s.path)
	}
	if err := s.db.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return errOpen.Wrap(err, s.path)
	}
	if format == Format {
		return nil
	}
	if tables > 0 && (format < 1 || format > Format) {
		return errFormat.New(s.path, format, Format)
	}
	if err := s.renewTables(format, tables > 0); err != nil {
		return errOpen.Wrap(err, s.path)
	}
	return nil
}

// renewTables makes a store of an older format, or an empty one, one of Format.
func (s *Store) renewTables(format int, full bool) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	if full && format == 1 {
		_, err = tx.Exec(`
ALTER TABLE runs ADD COLUMN model TEXT NOT NULL DEFAULT 'sc';
ALTER TABLE runs ADD COLUMN commits TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN capacity INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN class TEXT NOT NULL DEFAULT '';
CREATE TABLE shortest (key TEXT PRIMARY KEY, report TEXT NOT NULL) STRICT;`)
	}
	if full && err == nil {
		err = addChecksums(tx)
	}
	if err == nil {
		_, err = tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", Format))
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// addChecksums makes a store of format 2 one of format 3: rows get checksums, and runs
// the class of failure that they should have had. Format 2 has "wrong output" for every
// run that did not fail.
func addChecksums(tx *sql.Tx) error {
	for _, table := range []string{"runs", "native", "conflicts", "shortest"} {
		if _, err := tx.Exec("ALTER TABLE " + table + " ADD COLUMN checksum TEXT NOT NULL DEFAULT ''"); err != nil {
			return err
		}
		rows, err := tx.Query("SELECT rowid, * FROM " + table)
		if err != nil {
			return err
		}
		all, err := readValues(rows)
		if err != nil {
			return err
		}
		for _, v := range all {
			id, row := v[0], v[1:len(v)-1]
			if table == "runs" {
				row[columnClass] = classOfReport(row[columnReport])
				if _, err := tx.Exec("UPDATE runs SET class = ? WHERE rowid = ?", row[columnClass], id); err != nil {
					return err
				}
			}
			if _, err := tx.Exec("UPDATE "+table+" SET checksum = ? WHERE rowid = ?", rowChecksum(row), id); err != nil {
				return err
			}
		}
	}
	return nil
}

// classOfReport is the class of failure that a stored report has by itself.
func classOfReport(text any) string {
	var report Report
	if s, ok := text.(string); !ok || json.Unmarshal([]byte(s), &report) != nil || report.Result == nil {
		return ""
	}
	failure, _ := report.Result.Failure(nil)
	return failure.Class
}

// readValues reads all rows of a query: int64, float64 and string.
func readValues(rows *sql.Rows) (all [][]any, err error) {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// rowChecksum is that of a row without it. The type and the length of each value count.
func rowChecksum(row []any) string {
	var line, text []byte
	for _, v := range row {
		var kind string
		switch v := v.(type) {
		case string:
			kind, text = "string", append(text[:0], v...)
		case int64:
			kind, text = "int64", strconv.AppendInt(text[:0], v, 10)
		case float64:
			kind, text = "float64", strconv.AppendFloat(text[:0], v, 'g', -1, 64)
		default:
			kind, text = fmt.Sprintf("%T", v), fmt.Append(text[:0], v)
		}
		line = append(append(append(line, kind...), ' '), strconv.Itoa(len(text))...)
		line = append(append(append(line, ' '), text...), '\n')
	}
	sum := xxh3.Hash128(line).Bytes()
	return hex.EncodeToString(sum[:])
}

// putRow writes a row in place of an older one with the same primary key.
func (s *Store) putRow(table string, row ...any) error {
	marks := strings.Repeat("?,", len(row)) + "?"
	if _, err := s.db.Exec("INSERT OR REPLACE INTO "+table+" VALUES ("+marks+")", append(row, rowChecksum(row))...); err != nil {
		return errOpen.Wrap(err, s.path)
	}
	return nil
}

// getRows reads rows whose key columns have some values, and checks them. Damaged rows are
// left out, and the first of them is the error, of kind ErrDamaged; other errors leave
// no row.
func (s *Store) getRows(table, condition string, keys ...any) (whole [][]any, err error) {
	rows, err := s.db.Query("SELECT * FROM "+table+" WHERE "+condition, keys...)
	if err != nil {
		return nil, errOpen.Wrap(err, s.path)
	}
	all, err := readValues(rows)
	if err != nil {
		return nil, errOpen.Wrap(err, s.path)
	}
	for _, row := range all {
		last := len(row) - 1
		switch {
		case rowChecksum(row[:last]) == row[last]:
			whole = append(whole, row[:last])
		case err == nil:
			err = s.damaged(table, row)
		}
	}
	return whole, err
}

// getReport reads the JSON in the one row with a key; ok is false if the table has no such row.
func (s *Store) getReport(table, key string, to any) (ok bool, err error) {
	rows, err := s.getRows(table, "key = ?", key)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	if err := json.Unmarshal([]byte(rows[0][1].(string)), to); err != nil {
		return false, errOpen.Wrap(err, s.path)
	}
	return true, nil
}

// putReport is its opposite.
func (s *Store) putReport(table, key string, report any) error {
	text, err := json.Marshal(report)
	if err != nil {
		return errOpen.Wrap(err, s.path)
	}
	return s.putRow(table, key, string(text))
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
		result = &machine.Result{}
	}
	return s.putRow("runs", r.Slot, int64(r.Repetition), r.Key,
		r.Labels.Program, r.Labels.Arguments, r.Labels.Policy, int64(r.Labels.Cores), int64(r.Labels.Threads), r.Labels.Seed,
		r.Failure, result.Outcome.String(), int64(result.ExitCode), int64(result.Instructions), int64(result.Cycles),
		int64(result.ContextSwitches), result.Digest, result.ScheduleDigest, result.HostSeconds, r.Manifest, string(report),
		r.Labels.Model, r.Labels.Commit, int64(r.Labels.Capacity), r.Class)
}

// Get returns the record of a slot's repetition, without its labels; ok is false if
// the store has no such record.
func (s *Store) Get(slot string, repetition int) (r Record, ok bool, err error) {
	rows, err := s.getRows("runs", "slot = ? AND repetition = ?", slot, repetition)
	if err != nil || len(rows) == 0 {
		return Record{Slot: slot, Repetition: repetition}, false, err
	}
	r, err = s.decodeRun(rows[0])
	return r, err == nil, err
}

// Digests returns the different digests of the stored runs that had this key
// and read these files. A damaged row has none.
func (s *Store) Digests(key, manifest string) ([]string, error) {
	rows, err := s.getRows("runs", "key = ? AND manifest = ? AND failure = ''", key, manifest)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return nil, err
	}
	var digests []string
	for _, row := range rows {
		digests = append(digests, row[columnDigest].(string))
	}
	slices.Sort(digests)
	return slices.Compact(digests), nil
}

// PutConflict notes that two runs with one key had two digests.
func (s *Store) PutConflict(key, slot, digest, other string) error {
	return s.putRow("conflicts", key, slot, digest, other)
}

// HasConflict reports whether runs with this key were seen to differ.
func (s *Store) HasConflict(key string) (bool, error) {
	rows, err := s.getRows("conflicts", "key = ?", key)
	return len(rows) > 0, err
}

// DropDamagedConflicts removes the damaged rows that PutConflict wrote, which no run
// writes again, and returns the first as an error of kind ErrDamaged.
func (s *Store) DropDamagedConflicts() error {
	_, damaged := s.getRows("conflicts", "true")
	if !errors.Is(damaged, ErrDamaged) {
		return damaged
	}
	rows, err := s.db.Query("SELECT rowid, * FROM conflicts")
	if err != nil {
		return errOpen.Wrap(err, s.path)
	}
	all, err := readValues(rows)
	for _, row := range all {
		if last := len(row) - 1; err == nil && rowChecksum(row[1:last]) != row[last] {
			_, err = s.db.Exec("DELETE FROM conflicts WHERE rowid = ?", row[0])
		}
	}
	if err != nil {
		return errOpen.Wrap(err, s.path)
	}
	return damaged
}

// PutShortest stores a report, as JSON, on the shortest schedule of the failing run with this key.
func (s *Store) PutShortest(key string, report any) error {
	return s.putReport("shortest", key, report)
}

// GetShortest decodes the report that PutShortest stored; ok is false without one.
func (s *Store) GetShortest(key string, report any) (ok bool, err error) {
	return s.getReport("shortest", key, report)
}

// PutNative stores the result of a command on the host.
func (s *Store) PutNative(key string, n Native) error { return s.putReport("native", key, n) }

// GetNative returns the result of a command on the host; ok is false if it is not
// known.
func (s *Store) GetNative(key string) (n Native, ok bool, err error) {
	ok, err = s.getReport("native", key, &n)
	return n, ok, err
}
