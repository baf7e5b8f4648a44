package store

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/heddle-dmt/heddle/experiments/minimize"
	"github.com/heddle-dmt/heddle/internal/machine"
	"github.com/heddle-dmt/heddle/internal/output"
)

func record(slot string, repetition int, key, digest string) Record {
	return Record{
		Slot: slot, Repetition: repetition, Key: key, Manifest: "files",
		Report: Report{
			Result: &machine.Result{
				Outcome: "exit", Digest: digest, Instructions: 1 << 40,
				Syscalls: map[string]uint64{"write": 3}, Inputs: []machine.Input{{Path: "/a", SHA256: "b"}},
			},
			Stdout: output.Sum{SHA256: "c", Bytes: 4},
		},
	}
}

func TestRecordsSurviveReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder with spaces?", "x.sqlite")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	want := record("slot", 1, "key", "digest")
	if err := s.Put(want); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenExisting(path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, ok, err := s.Get("slot", 1)
	if err != nil || !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, %v", got, ok, err)
	}
	if _, ok, err := s.Get("slot", 2); ok || err != nil {
		t.Errorf("a record that was never put: %v, %v", ok, err)
	}
}

func TestReplacingAndConflicts(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "x.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	failed := record("a", 1, "key", "")
	failed.Failure, failed.Report = "crashed", Report{}
	for _, r := range []Record{record("a", 1, "old", "d1"), failed, record("a", 2, "key", "d2"), record("b", 1, "key", "d3"), record("c", 1, "key", "d3")} {
		if err := s.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	got, _, _ := s.Get("a", 1)
	if got.Key != "key" || got.Failure != "crashed" || got.Report.Result != nil {
		t.Errorf("the newer record is %+v", got)
	}
	if digests, err := s.Digests("key", "other files"); err != nil || len(digests) != 0 {
		t.Errorf("digests of runs that read other files are %v, %v", digests, err)
	}
	if digests, err := s.Digests("key", "files"); err != nil || !slices.Equal(digests, []string{"d2", "d3"}) {
		t.Errorf("digests are %v, %v", digests, err)
	}
	if err := s.PutConflict("key", "a", "d2", "d3"); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"key": true, "old": false} {
		if got, err := s.HasConflict(key); got != want || err != nil {
			t.Errorf("conflict under %s: %v, %v", key, got, err)
		}
	}
}

func TestNative(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "x.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := Native{ExitCode: 139, Stdout: output.Sum{SHA256: "a", Bytes: 1}, Seconds: 0.5}
	if err := s.PutNative("key", want); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := s.GetNative("key"); got != want || !ok || err != nil {
		t.Errorf("got %+v, %v, %v", got, ok, err)
	}
	if _, ok, err := s.GetNative("other"); ok || err != nil {
		t.Errorf("a command that was never run: %v, %v", ok, err)
	}
}

func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sqlite")
	var group sync.WaitGroup
	for _, slot := range []string{"a", "b"} {
		group.Add(1)
		go func() {
			defer group.Done()
			s, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for i := range 50 {
				if err := s.Put(record(slot, i, "k"+slot, "d")); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
}

func TestUnusableStores(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("this is no database, but long enough to look at: 0123456789 0123456789 0123456789 0123456789"), 0o644); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer.sqlite")
	db, err := sql.Open("sqlite3", newer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE t (x); PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for path, want := range map[string]error{text: errOpen, filepath.Join(text, "x.sqlite"): errOpen, newer: errFormat} {
		if _, err := Open(path); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	if _, err := OpenExisting(filepath.Join(dir, "none.sqlite")); !errors.Is(err, errMissing) {
		t.Errorf("a missing store: %v", err)
	}
}

// oldRuns is the table of format 1, as it was.
const oldRuns = `
CREATE TABLE runs (
	slot TEXT NOT NULL, repetition INTEGER NOT NULL, key TEXT NOT NULL,
	program TEXT NOT NULL, arguments TEXT NOT NULL, policy TEXT NOT NULL,
	cores INTEGER NOT NULL, threads INTEGER NOT NULL, seed TEXT NOT NULL,
	failure TEXT NOT NULL, outcome TEXT NOT NULL, exit_code INTEGER NOT NULL,
	instructions INTEGER NOT NULL, cycles INTEGER NOT NULL, context_switches INTEGER NOT NULL,
	digest TEXT NOT NULL, schedule_digest TEXT NOT NULL, host_seconds REAL NOT NULL,
	manifest TEXT NOT NULL, report TEXT NOT NULL,
	PRIMARY KEY (slot, repetition)
) STRICT;
CREATE TABLE native (key TEXT PRIMARY KEY, report TEXT NOT NULL) STRICT;
CREATE TABLE conflicts (
	key TEXT NOT NULL, slot TEXT NOT NULL, digest TEXT NOT NULL, other TEXT NOT NULL,
	PRIMARY KEY (key, digest, other)
) STRICT;
INSERT INTO runs VALUES ('good', 1, 'key', 'p', '', 'rr', 4, 2, '1', '', 'exit', 0, 1, 2, 3, 'd', 's', 0.1, 'm', '{"result": {"outcome": "exit"}}');
INSERT INTO runs VALUES ('bad', 1, 'key2', 'p', '', 'rr', 4, 2, '1', '', 'exit', 3, 1, 2, 3, 'd', 's', 1e300, 'm', '{"result": {"outcome": "exit", "exit_code": 3}}');
INSERT INTO runs VALUES ('none', 1, 'key3', 'p', '', 'rr', 4, 2, '1', 'it crashed', '', 0, 0, 0, 0, '', '', 0, '', '{}');
INSERT INTO native VALUES ('n', '{"exit_code": 7}');
INSERT INTO conflicts VALUES ('key', 'good', 'd', 'e');
PRAGMA user_version = 1;`

// toFormat2 makes a store of format 1 one of format 2, whose classes were wrong.
const toFormat2 = `
ALTER TABLE runs ADD COLUMN model TEXT NOT NULL DEFAULT 'sc';
ALTER TABLE runs ADD COLUMN commits TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN capacity INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN class TEXT NOT NULL DEFAULT '';
CREATE TABLE shortest (key TEXT PRIMARY KEY, report TEXT NOT NULL) STRICT;
UPDATE runs SET class = 'wrong output';
INSERT INTO shortest VALUES ('key', '{"runs": 7}');
PRAGMA user_version = 2;`

// database executes statements on the file of a store.
func database(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOldStoresAreRenewed: their runs are still there, with the columns that came
// later, and with the class that they should have had.
func TestOldStoresAreRenewed(t *testing.T) {
	for format, statements := range map[int][]string{1: {oldRuns}, 2: {oldRuns, toFormat2}} {
		path := filepath.Join(t.TempDir(), "old.sqlite")
		database(t, path, statements...)
		for range 2 { // it is renewed once
			s, err := OpenExisting(path)
			if err != nil {
				t.Fatal(err)
			}
			for slot, want := range map[string]string{"good": "sc  0 ", "bad": "sc  0 wrong output", "none": "sc  0 "} {
				if r, ok, err := s.Get(slot, 1); err != nil || !ok {
					t.Errorf("format %d, %s: %+v, %v, %v", format, slot, r, ok, err)
				}
				if got := columns(t, s, slot); got != want {
					t.Errorf("format %d: %s has %q, want %q", format, slot, got, want)
				}
			}
			if n, ok, err := s.GetNative("n"); !ok || err != nil || n.ExitCode != 7 {
				t.Errorf("%+v, %v, %v", n, ok, err)
			}
			if differ, err := s.HasConflict("key"); !differ || err != nil {
				t.Errorf("%v, %v", differ, err)
			}
			var p minimize.Report
			if ok, err := s.GetShortest("key", &p); ok != (format == 2) || err != nil || ok && p.Runs != 7 {
				t.Errorf("format %d: %+v, %v, %v", format, p, ok, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		later := record("other", 1, "key", "digest")
		later.Labels, later.Class = Labels{Model: "tso", Commit: "lazy", Capacity: 3}, "assertion"
		if err := s.Put(later); err != nil {
			t.Fatal(err)
		}
		if got := columns(t, s, "other"); got != "tso lazy 3 assertion" {
			t.Errorf("it has %q", got)
		}
		if err := s.PutShortest("key", minimize.Report{Runs: 8}); err != nil {
			t.Fatal(err)
		}
		var p minimize.Report
		if ok, err := s.GetShortest("key", &p); !ok || err != nil || p.Runs != 8 {
			t.Errorf("%+v, %v, %v", p, ok, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// columns are those of the memory model and of the failure.
func columns(t *testing.T, s *Store, slot string) string {
	t.Helper()
	var model, commits, class string
	var capacity int
	row := s.db.QueryRow("SELECT model, commits, capacity, class FROM runs WHERE slot = ?", slot)
	if err := row.Scan(&model, &commits, &capacity, &class); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s %d %s", model, commits, capacity, class)
}

// TestDamagedRows: whatever column of a row is changed, reading it says so, and writing
// it again mends it.
func TestDamagedRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sqlite")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for table, access := range map[string]struct {
		put  func() error
		get  func() (bool, error)
		name string
	}{
		"runs": {
			func() error { return s.Put(record("slot", 2, "key", "digest")) },
			func() (bool, error) { _, ok, err := s.Get("slot", 2); return ok, err },
			"row slot repetition 2 of the table runs in the result store " + path + " is damaged",
		},
		"native": {
			func() error { return s.PutNative("key", Native{ExitCode: 3, Seconds: 0.1}) },
			func() (bool, error) { _, ok, err := s.GetNative("key"); return ok, err },
			"row key of the table native in the result store " + path + " is damaged",
		},
		"shortest": {
			func() error { return s.PutShortest("key", minimize.Report{Runs: 7}) },
			func() (bool, error) { return s.GetShortest("key", &minimize.Report{}) },
			"row key of the table shortest in the result store " + path + " is damaged",
		},
		"conflicts": {
			func() error { return s.PutConflict("key", "slot", "d", "e") },
			func() (bool, error) { return s.HasConflict("key") },
			"row key of the table conflicts in the result store " + path + " is damaged",
		},
	} {
		rows, err := s.db.Query("SELECT name, type FROM pragma_table_info(?) WHERE name NOT IN ('slot', 'repetition', 'key')", table)
		if err != nil {
			t.Fatal(err)
		}
		all, err := readValues(rows)
		if err != nil || len(all) < 2 {
			t.Fatal(all, err)
		}
		for _, column := range all {
			if err := access.put(); err != nil {
				t.Fatal(err)
			}
			if ok, err := access.get(); !ok || err != nil {
				t.Fatalf("%s: %v, %v", table, ok, err)
			}
			change := "'x' || " + column[0].(string)
			if column[1] != "TEXT" {
				change = "1 + " + column[0].(string)
			}
			if _, err := s.db.Exec("UPDATE " + table + " SET " + column[0].(string) + " = " + change); err != nil {
				t.Fatal(err)
			}
			if ok, err := access.get(); ok || !errors.Is(err, ErrDamaged) || err.Error() != access.name {
				t.Errorf("%s.%s: %v, %v", table, column[0], ok, err)
			}
			if digests, err := s.Digests("key", "files"); table == "runs" && (len(digests) > 0 || err != nil) {
				t.Errorf("digests of a damaged row: %v, %v", digests, err)
			}
			if table == "conflicts" {
				if err := s.DropDamagedConflicts(); !errors.Is(err, ErrDamaged) {
					t.Error(err)
				}
				if ok, err := access.get(); ok || err != nil {
					t.Errorf("after it was dropped: %v, %v", ok, err)
				}
			}
		}
	}
}
