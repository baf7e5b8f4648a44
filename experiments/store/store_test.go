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

	"github.com/heddle-dmt/heddle"
	"github.com/heddle-dmt/heddle/experiments/minimal"
	"github.com/heddle-dmt/heddle/experiments/worker"
)

func record(slot string, repetition int, key, digest string) Record {
	return Record{
		Slot: slot, Repetition: repetition, Key: key, Manifest: "files",
		Report: worker.Report{
			Result: &heddle.Result{
				Outcome: "exit", Digest: digest, Instructions: 1 << 40,
				Syscalls: map[string]uint64{"write": 3}, Inputs: []heddle.Input{{Path: "/a", SHA256: "b"}},
			},
			Stdout: worker.Output{SHA256: "c", Bytes: 4},
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
	failed.Failure, failed.Report = "crashed", worker.Report{}
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
	want := Native{ExitCode: 139, Stdout: worker.Output{SHA256: "a", Bytes: 1}, Seconds: 0.5}
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

// TestStoreOfFormatOneIsRenewed: its runs are still there, with the columns that
// came later.
func TestStoreOfFormatOneIsRenewed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.sqlite")
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	// The schema of format 1, as it was.
	if _, err := db.Exec(`
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
INSERT INTO runs VALUES ('slot', 1, 'key', 'p', '', 'rr', 4, 2, '1', '', 'exit', 0, 1, 2, 3, 'd', 's', 0.5, 'm', '{}');
PRAGMA user_version = 1;`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := OpenExisting(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r, ok, err := s.Get("slot", 1); err != nil || !ok || r.Key != "key" {
		t.Errorf("%+v, %v, %v", r, ok, err)
	}
	later := record("other", 1, "key", "digest")
	later.Labels = Labels{Model: "tso", Commit: "lazy", Capacity: 3}
	later.Report.Result.Outcome, later.Report.Result.Signal = "signal", 6
	if err := s.Put(later); err != nil {
		t.Fatal(err)
	}
	var model, commits, class string
	var capacity int
	for slot, want := range map[string]string{"slot": "sc  0 ", "other": "tso lazy 3 assertion"} {
		row := s.db.QueryRow("SELECT model, commits, capacity, class FROM runs WHERE slot = ?", slot)
		if err := row.Scan(&model, &commits, &capacity, &class); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %s %d %s", model, commits, capacity, class); got != want {
			t.Errorf("%s has %q, want %q", slot, got, want)
		}
	}
	if _, ok, err := s.GetShortest("key"); ok || err != nil {
		t.Errorf("a shortest schedule: %v, %v", ok, err)
	}
	if err := s.PutShortest("key", minimal.Report{Runs: 7}); err != nil {
		t.Fatal(err)
	}
	if p, ok, err := s.GetShortest("key"); !ok || err != nil || p.Runs != 7 {
		t.Errorf("%+v, %v, %v", p, ok, err)
	}
}
